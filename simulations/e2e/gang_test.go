package e2e

import (
	"errors"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/constants"
	podconstants "sigs.k8s.io/kueue/pkg/controller/jobs/pod/constants"

	"sluice.dev/sluice/simulations/e2e/witness"
)

// A queue that owns 8 GPUs and may borrow 8 runs two gangs of 8 at a time,
// however idle the cluster is, and never a gang of 24.
func TestQueueMaximum(t *testing.T) {
	s := onStage(t)
	queue := &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: "capped"},
		Spec: kueue.ClusterQueueSpec{
			CohortName: "research", NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{gpu},
				Flavors: []kueue.FlavorQuotas{{Name: "gpu", Resources: []kueue.ResourceQuota{{
					Name: gpu, NominalQuota: resource.MustParse("8"), BorrowingLimit: ptr.To(resource.MustParse("8")),
				}}}},
			}},
		},
	}
	s.create(t, queue)
	defer s.withdraw(t, queue)
	s.namespace(t, "capped", "capped")
	s.watched(t, func(func(witness.Interval)) {
		large := job("capped", "large", "main", 3, gpus(8))
		s.create(t, large)
		s.saysWhy(t, large, "capped", "16")
		var small []*batchv1.Job
		for i := range 4 {
			small = append(small, job("capped", fmt.Sprintf("small-%d", i), "main", 2, gpus(4)))
			s.create(t, small[i])
		}
		for _, j := range small {
			s.succeeds(t, j)
		}
		for _, j := range append(small, large) {
			s.withdraw(t, j)
		}
	})
}

// Plain pods that belong together wait until all of them are there.
func TestPodGroup(t *testing.T) {
	s := onStage(t)
	s.namespace(t, "pod-group", "team-b")
	s.watched(t, func(func(witness.Interval)) {
		for i := range 3 {
			s.create(t, groupPod(i))
		}
		// A gang that came later goes by while the group is not whole.
		later := job("pod-group", "later", "main", 2, gpus(1))
		s.create(t, later)
		s.succeeds(t, later)
		for i := range 3 {
			p := groupPod(i)
			if err := s.Cluster().Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
				t.Fatal(err)
			}
			if len(p.Spec.SchedulingGates) == 0 {
				t.Errorf("%s was released while one of the group is missing", p.Name)
			}
		}
		s.create(t, groupPod(3))
		for i := range 4 {
			eventually(t, fmt.Sprintf("pod %d of the group succeeds", i), func() error { return s.ended(t, groupPod(i)) })
		}
		for i := range 4 {
			s.withdraw(t, groupPod(i))
		}
		s.withdraw(t, later)
	})
}

func groupPod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "pod-group", Name: fmt.Sprintf("member-%d", i),
			Labels:      map[string]string{constants.QueueLabel: "main", podconstants.GroupNameLabel: "group"},
			Annotations: map[string]string{podconstants.GroupTotalCountAnnotation: "4", runFor: "1s"},
		},
		Spec: podSpec(gpus(4)),
	}
}

func (s *stage) ended(t *testing.T, p *corev1.Pod) error {
	if err := s.Cluster().Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		return err
	}
	if p.Status.Phase != corev1.PodSucceeded {
		return fmt.Errorf("%s, gates %v", p.Status.Phase, p.Spec.SchedulingGates)
	}
	return nil
}

// A pod that is deleted under a gang holds its GPUs until it is gone; the one
// that follows it takes the same place then, and not before.
func TestReplacedPod(t *testing.T) {
	s := onStage(t)
	s.watched(t, func(func(witness.Interval)) {
		j := job("team-a", "replaced", "main", 2, gpus(8))
		j.Spec.Template.Annotations = map[string]string{runFor: "6s", "sandbox.sluice.dev/stop-takes": "3s"}
		s.create(t, j)
		var victim *corev1.Pod
		eventually(t, "both pods run", func() error {
			pods, err := s.pods(t, j)
			if err != nil {
				return err
			}
			running := 0
			for i := range pods {
				if pods[i].Status.Phase == corev1.PodRunning {
					running, victim = running+1, &pods[i]
				}
			}
			if running != 2 {
				return fmt.Errorf("%d run", running)
			}
			return nil
		})
		if err := s.Cluster().Delete(t.Context(), victim); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		eventually(t, "the deleted pod is gone", func() error {
			err := s.Cluster().Get(t.Context(), client.ObjectKeyFromObject(victim), victim)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(errors.New("it still stops"), err)
		})
		s.succeeds(t, j)
		s.withdraw(t, j)
	})
}
