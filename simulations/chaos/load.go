package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kueue/pkg/controller/constants"

	"sluice.dev/sluice/simulations/demo"
)

const (
	// alive is how many Jobs there are at a time: enough that some always wait.
	alive = 14
	// lookEvery is how often the load looks at its Jobs.
	lookEvery = 500 * time.Millisecond
	// mark is the label of the load's Jobs.
	mark = "sluice.dev/chaos"
	// runFor is the annotation after which a simulated node ends a pod.
	runFor = "sandbox.sluice.dev/run-for"
	// queueUrgent is the class of some Jobs.
	queueUrgent = "chaos-urgent"
)

var teams = []string{"chaos-a", "chaos-b"}

// shapes are the gangs of the load: pods, and GPUs of each. The last takes the whole
// cluster, so that reservations and draining happen too.
var shapes = [][2]int64{{1, 1}, {3, 1}, {8, 1}, {2, 2}, {5, 2}, {2, 4}, {4, 4}, {1, 8}, {2, 8}, {3, 8}, {6, 8}}

// load keeps the cluster busy.
type load struct {
	cluster *demo.Cluster
	random  *rand.Rand
	seed    uint64

	mu          sync.Mutex
	made, ended int
	failed      []string // Jobs that came to an end that is not theirs
	retries     int      // what the API server did not take while it was broken
	draining    bool
}

// next is the nth gang of the seed.
func (l *load) next(n int) *batchv1.Job {
	shape := shapes[l.random.IntN(len(shapes))]
	if shape[0]*shape[1] == 48 && l.random.IntN(4) > 0 {
		shape = shapes[0]
	}
	pods := int32(shape[0])
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: teams[l.random.IntN(len(teams))], Name: fmt.Sprintf("gang-%d", n),
			Labels: map[string]string{constants.QueueLabel: "main", mark: fmt.Sprint(l.seed)},
		},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To(pods), Completions: ptr.To(pods), BackoffLimit: ptr.To(int32(1000)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{runFor: fmt.Sprintf("%ds", 1+l.random.IntN(8))}},
				Spec: corev1.PodSpec{
					RestartPolicy:                 corev1.RestartPolicyNever,
					TerminationGracePeriodSeconds: ptr.To(int64(1)),
					Containers: []corev1.Container{{
						Name: "main", Image: "busybox:1.37",
						Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
							"nvidia.com/gpu": *resource.NewQuantity(shape[1], resource.DecimalSI),
						}},
					}},
				},
			},
		},
	}
	if l.random.IntN(6) == 0 {
		job.Labels[constants.WorkloadPriorityClassLabel] = queueUrgent
	}
	return job
}

// run keeps as many Jobs alive as there should be, until ctx ends; while the load
// drains it makes none.
func (l *load) run(ctx context.Context) {
	var owed *batchv1.Job // made and not taken yet
	for ctx.Err() == nil {
		left, err := l.look(ctx)
		for err == nil && left < alive && !l.isDraining() && ctx.Err() == nil {
			if owed == nil {
				l.mu.Lock()
				l.made++
				owed = l.next(l.made)
				l.mu.Unlock()
			}
			err = l.cluster.Create(ctx, owed.DeepCopy())
			if err == nil || apierrors.IsAlreadyExists(err) { // an earlier try was answered too late
				owed, err = nil, nil
				left++
			}
		}
		l.mu.Lock()
		if err != nil {
			l.retries++
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}

// look removes the Jobs that have ended and counts the others.
func (l *load) look(ctx context.Context) (left int, err error) {
	var jobs batchv1.JobList
	if err := l.cluster.List(ctx, &jobs, client.MatchingLabels{mark: fmt.Sprint(l.seed)}); err != nil {
		return 0, err
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		end := endOf(job)
		if end == "" || job.DeletionTimestamp != nil {
			if end == "" {
				left++
			}
			continue
		}
		err := l.cluster.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &job.UID})
		if err != nil {
			continue // the next look tries again
		}
		l.mu.Lock()
		l.ended++
		if end != batchv1.JobComplete {
			l.failed = append(l.failed, fmt.Sprintf("%s/%s: %s", job.Namespace, job.Name, end))
		}
		l.mu.Unlock()
	}
	return left, nil
}

// endOf is how a Job ended; empty means that it has not.
func endOf(job *batchv1.Job) batchv1.JobConditionType {
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c.Type
		}
	}
	return ""
}

func (l *load) isDraining() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.draining
}

func (l *load) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
}

// counts are the Jobs that were made and that have ended.
func (l *load) counts() (made, ended int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.made, l.ended
}
