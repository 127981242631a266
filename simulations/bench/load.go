package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	namespace = "bench"
	flavor    = "default"
	// classLabel is on every Workload of the load.
	classLabel = "bench.sluice.dev/class"
)

// prepare makes what a shape needs before its Workloads.
func (s Shape) prepare(ctx context.Context, c client.Client) error {
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: flavor}},
	}
	for cohort := range s.Cohorts {
		for queue := range s.Queues {
			cq := s.clusterQueue(cohort, queue)
			objects = append(objects, cq, &kueue.LocalQueue{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cq.Name},
				Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(cq.Name)},
			})
		}
	}
	for _, o := range objects {
		if err := c.Create(ctx, o); err != nil {
			return fmt.Errorf("create %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

func (s Shape) clusterQueue(cohort, queue int) *kueue.ClusterQueue {
	cq := &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: queueName(cohort, queue)},
		Spec: kueue.ClusterQueueSpec{
			CohortName:        kueue.CohortReference(cohortName(cohort)),
			NamespaceSelector: &metav1.LabelSelector{},
			QueueingStrategy:  kueue.BestEffortFIFO,
			Preemption: &kueue.ClusterQueuePreemption{
				ReclaimWithinCohort: kueue.PreemptionPolicyNever, WithinClusterQueue: kueue.PreemptionPolicyNever,
			},
			ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{corev1.ResourceCPU},
				Flavors: []kueue.FlavorQuotas{{Name: flavor, Resources: []kueue.ResourceQuota{{
					Name: corev1.ResourceCPU, NominalQuota: *resource.NewQuantity(s.Nominal, resource.DecimalSI),
					BorrowingLimit: ptr.To(*resource.NewQuantity(s.Borrow, resource.DecimalSI)),
				}}}},
			}},
		},
	}
	if s.Preempt {
		cq.Spec.Preemption.ReclaimWithinCohort = kueue.PreemptionPolicyAny
		cq.Spec.Preemption.WithinClusterQueue = kueue.PreemptionPolicyLowerPriority
	}
	return cq
}

func workloadOf(c Class, queue string, n int) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("%s-%s-%d", queue, c.Name, n), Labels: map[string]string{classLabel: c.Name},
		},
		Spec: kueue.WorkloadSpec{
			QueueName: kueue.LocalQueueName(queue),
			Priority:  &c.Priority,
			PodSets: []kueue.PodSet{{
				Name: kueue.DefaultPodSetName, Count: 1,
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{
						Name: "main", Image: "busybox:1.37",
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU: *resource.NewQuantity(c.Request, resource.DecimalSI),
						}},
					}},
				}},
			}},
		},
	}
}

// create makes all Workloads, each class of each queue at its own pace, and returns
// when they are there.
func (s Shape) create(ctx context.Context, c client.Client) error {
	var running sync.WaitGroup
	failed := make(chan error, s.Cohorts*s.Queues*len(s.Classes))
	for cohort := range s.Cohorts {
		for queue := range s.Queues {
			for _, class := range s.Classes {
				running.Go(func() { failed <- class.create(ctx, c, queueName(cohort, queue)) })
			}
		}
	}
	running.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

func (class Class) create(ctx context.Context, c client.Client, queue string) error {
	begin := time.Now()
	for n := range class.Count {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(begin.Add(time.Duration(n) * class.Every))):
		}
		wl := workloadOf(class, queue, n)
		if err := c.Create(ctx, wl); err != nil {
			return fmt.Errorf("create workload %s: %w", wl.Name, err)
		}
	}
	return nil
}
