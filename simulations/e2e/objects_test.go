package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/constants"
)

const gpu corev1.ResourceName = "nvidia.com/gpu"

// runFor is the annotation after which a simulated node ends a pod.
const runFor = "sandbox.sluice.dev/run-for"

// podSpec asks for limits alone, as people do.
func podSpec(limits corev1.ResourceList) corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "main", Image: "busybox:1.37", Command: []string{"sleep", "1"},
			Resources: corev1.ResourceRequirements{Limits: limits},
		}},
	}
}

func gpus(n int64) corev1.ResourceList {
	return corev1.ResourceList{gpu: *resource.NewQuantity(n, resource.DecimalSI)}
}

// job is a gang of alike pods that run for a moment. Without a queue it is
// nobody's business.
func job(namespace, name, queue string, pods int32, limits corev1.ResourceList) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To(pods), Completions: ptr.To(pods),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{runFor: "1s"}},
				Spec:       podSpec(limits),
			},
		},
	}
	if queue != "" {
		j.Labels = map[string]string{constants.QueueLabel: queue}
	}
	return j
}

func (s *stage) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := s.Cluster().Create(t.Context(), o); err != nil {
		t.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
}

// withdraw deletes an object and waits until it is gone; a Job with its pods and
// its Workload.
func (s *stage) withdraw(t *testing.T, o client.Object) {
	t.Helper()
	c := s.Cluster()
	err := c.Delete(t.Context(), o, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	eventually(t, "delete "+o.GetName(), func() error {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("still there, finalizers %v: %w", o.GetFinalizers(), errors.Join(err, errors.New("not gone")))
	})
	if j, ok := o.(*batchv1.Job); ok {
		eventually(t, "the Workload of "+j.Name+" is gone", func() error {
			if w, err := s.workload(t, j); err != nil || w != nil {
				return fmt.Errorf("still there: %v, %w", w != nil, errors.Join(err, errors.New("not gone")))
			}
			return nil
		})
	}
}

// workload is the Workload of a Job; nil if there is none.
func (s *stage) workload(t *testing.T, owner *batchv1.Job) (*kueue.Workload, error) {
	var list kueue.WorkloadList
	if err := s.Cluster().List(t.Context(), &list, client.InNamespace(owner.Namespace)); err != nil {
		return nil, err
	}
	for i := range list.Items {
		o := metav1.GetControllerOf(&list.Items[i])
		if o != nil && o.Name == owner.Name && (owner.UID == "" || o.UID == owner.UID) {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

func (s *stage) pods(t *testing.T, owner *batchv1.Job) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := s.Cluster().List(t.Context(), &list, client.InNamespace(owner.Namespace), client.MatchingLabels{batchv1.JobNameLabel: owner.Name})
	return list.Items, err
}

// succeeds waits until a Job is complete.
func (s *stage) succeeds(t *testing.T, j *batchv1.Job) {
	t.Helper()
	eventually(t, j.Namespace+"/"+j.Name+" is complete", func() error {
		if err := s.Cluster().Get(t.Context(), client.ObjectKeyFromObject(j), j); err != nil {
			return err
		}
		for _, c := range j.Status.Conditions {
			if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		w, err := s.workload(t, j)
		if w == nil {
			return errors.Join(errors.New("there is no Workload"), err)
		}
		return fmt.Errorf("active %d, succeeded %d; %s", j.Status.Active, j.Status.Succeeded, waits(w))
	})
}

// waits is what a Workload says of why it waits.
func waits(w *kueue.Workload) string {
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	if c == nil {
		return "no condition yet"
	}
	return fmt.Sprintf("QuotaReserved=%s %s: %s", c.Status, c.Reason, c.Message)
}

// saysWhy waits until a Workload waits with a reason that contains all words,
// and checks that its Job has no pod.
func (s *stage) saysWhy(t *testing.T, j *batchv1.Job, words ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s/%s waits, with %q", j.Namespace, j.Name, words), func() error {
		w, err := s.workload(t, j)
		if err != nil || w == nil {
			return errors.Join(errors.New("there is no Workload"), err)
		}
		c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
		if c == nil || c.Status != metav1.ConditionFalse || w.Status.Admission != nil {
			return errors.New(waits(w))
		}
		for _, word := range words {
			if !strings.Contains(waits(w), word) {
				return fmt.Errorf("no %q in %s", word, waits(w))
			}
		}
		tell(t, "%s/%s: %s", j.Namespace, j.Name, c.Message)
		return nil
	})
	pods, err := s.pods(t, j)
	if err != nil || len(pods) > 0 {
		t.Errorf("%s/%s has %d pods while it waits (%v)", j.Namespace, j.Name, len(pods), err)
	}
}
