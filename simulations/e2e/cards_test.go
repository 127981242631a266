package e2e

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The cases of other projects about cards, on real objects: the agent's code looks at
// mock cards, and a device plugin and feature discovery are played beside it. The
// simulator runs the same cases from their scenario files.

// asks is a gang of the scene.
func asks(name string, pods int32, what string, each int64, change ...func(*batchv1.Job)) *batchv1.Job {
	j := job(scene, name, "main", pods, corev1.ResourceList{corev1.ResourceName("nvidia.com/" + what): *resource.NewQuantity(each, resource.DecimalSI)})
	for _, f := range change {
		f(j)
	}
	return j
}

func shares(j *batchv1.Job) { j.Spec.Template.Annotations["sluice.dev/sharing"] = "shared" }

// lasting is for pods that run until their Job is deleted.
func lasting(j *batchv1.Job) { j.Spec.Template.Annotations[runFor] = "1h" }

func on(node string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	}
}

// allRun waits until all pods of the Job run, on no other nodes than those named.
func (s *stage) allRun(t *testing.T, j *batchv1.Job, pods int, nodes ...string) {
	t.Helper()
	eventually(t, j.Name+" runs", func() error {
		list, err := s.pods(t, j)
		if err != nil {
			return err
		}
		n := 0
		for _, p := range list {
			if p.Status.Phase == corev1.PodRunning {
				n++
			}
			ok := len(nodes) == 0
			for _, name := range nodes {
				ok = ok || p.Spec.NodeName == name || p.Spec.NodeName == ""
			}
			if !ok {
				t.Fatalf("%s runs on %s", p.Name, p.Spec.NodeName)
			}
		}
		if n != pods {
			w, err := s.workload(t, j)
			if w == nil {
				return fmt.Errorf("%d of %d run; no Workload: %w", n, pods, err)
			}
			return fmt.Errorf("%d of %d run; %s", n, pods, waits(w))
		}
		return nil
	})
}

// offers waits until the node claims so many of a resource.
func (s *stage) offers(t *testing.T, node, what string, n int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s offers %d %s", node, n, what), func() error {
		o := &corev1.Node{}
		if err := s.Cluster().Get(t.Context(), client.ObjectKey{Name: node}, o); err != nil {
			return err
		}
		q := o.Status.Allocatable[corev1.ResourceName("nvidia.com/"+what)]
		if q.Value() != n {
			return fmt.Errorf("it offers %d", q.Value())
		}
		return nil
	})
}

// B53: after a re-cut only the slices that exist count.
func TestOldSlicesDoNotCount(t *testing.T) {
	s := onStage(t)
	defer s.setScene(t)()
	defer s.machine(t, "mig-0 clear all", "mig-0 cut 0 3g.20gb@4 2g.10gb 1g.5gb 1g.5gb", "mig-0 cut 1 3g.20gb@4 3g.20gb@0")
	s.machine(t, "mig-0 clear all", "mig-0 cut all 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb")
	s.offers(t, "mig-0", "mig-1g.5gb", 14)
	s.machine(t, "mig-0 clear all", "mig-0 cut all 7g.40gb")
	s.offers(t, "mig-0", "mig-7g.40gb", 2)
	s.machine(t, "mig-0 clear all", "mig-0 cut all 3g.20gb@4 3g.20gb@0")
	s.offers(t, "mig-0", "mig-3g.20gb", 4)
	s.offers(t, "mig-0", "mig-1g.5gb", 0)
	seven, three, one := asks("seven", 1, "mig-7g.40gb", 1), asks("three", 4, "mig-3g.20gb", 1, lasting), asks("one", 1, "mig-1g.5gb", 1)
	for _, j := range []*batchv1.Job{seven, three, one} {
		s.create(t, j)
		defer s.withdraw(t, j)
	}
	s.allRun(t, three, 4, "mig-0")
	s.tellsWhy(t, seven, "Layout", []string{"mig-0"})
	s.tellsWhy(t, one, "Layout", []string{"mig-0"})
}

// B56: fewer replicas per card while more are in use: what runs stays, newcomers wait.
func TestFewerReplicas(t *testing.T) {
	s := onStage(t)
	defer s.setScene(t)()
	defer s.machine(t, "shared-0 share nvidia.com/gpu 4")
	first := asks("first", 6, "gpu", 1, shares, lasting)
	s.create(t, first)
	s.allRun(t, first, 6, "shared-0")
	s.machine(t, "shared-0 share nvidia.com/gpu 2")
	s.offers(t, "shared-0", "gpu", 4)
	next := asks("next", 1, "gpu", 1, shares, lasting)
	s.create(t, next)
	defer s.withdraw(t, next)
	s.tellsWhy(t, next, "", []string{"shared-0"})
	s.allRun(t, first, 6, "shared-0")
	s.withdraw(t, first)
	s.allRun(t, next, 1, "shared-0")
}

// B56b: the replicas of one pod are on different cards or nowhere.
func TestReplicasOnDifferentCards(t *testing.T) {
	s := onStage(t)
	defer s.setScene(t)()
	s.machine(t, "shared-0 lose 1")
	defer s.machine(t, "shared-0 return 1")
	s.drifts(t, "shared-0", "card 1 is lost")
	two := asks("two", 1, "gpu", 2, shares, lasting)
	three := asks("three", 1, "gpu", 3, shares)
	for _, j := range []*batchv1.Job{two, three} {
		s.create(t, j)
		defer s.withdraw(t, j)
	}
	s.tellsWhy(t, two, "Hardware", []string{"shared-0", "card 1"})
	s.tellsWhy(t, three, "Layout", []string{"shared-0"}) // eight whole cards could be shared
	s.machine(t, "shared-0 return 1")
	s.allRun(t, two, 1, "shared-0")
	s.tellsWhy(t, three, "Layout", []string{"shared-0"})
}

// B56c: whole cards and shared cards are not taken for each other.
func TestWholeIsNotShared(t *testing.T) {
	s := onStage(t)
	defer s.setScene(t)()
	whole := asks("whole", 1, "gpu", 1, on("shared-0"))
	part := asks("part", 2, "gpu", 1, shares, on("gpu-0"))
	either := asks("either", 8, "gpu", 1, shares, lasting)
	for _, j := range []*batchv1.Job{whole, part, either} {
		s.create(t, j)
		defer s.withdraw(t, j)
	}
	s.allRun(t, either, 8, "shared-0")
	s.tellsWhy(t, whole, "Layout", []string{"shared-0", "shared between pods"})
	s.tellsWhy(t, part, "Layout", []string{"gpu-0", "not shared"})
}

// B58: a lost card is gone from the plan until it is back.
func TestLostCardIsGone(t *testing.T) {
	s := onStage(t)
	defer s.setScene(t)()
	s.machine(t, "gpu-0 lose 3")
	defer s.machine(t, "gpu-0 return 3")
	s.drifts(t, "gpu-0", "card 3 is lost")
	one, all := asks("one", 1, "gpu", 8, lasting), asks("all", 6, "gpu", 8)
	s.create(t, one)
	s.allRun(t, one, 1, "gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-5")
	s.create(t, all)
	defer s.withdraw(t, all)
	s.tellsWhy(t, all, "Hardware", []string{"gpu-0", "card 3"})
	s.withdraw(t, one)
	s.machine(t, "gpu-0 return 3")
	s.succeeds(t, all)
}

// B58c: a card that the device plugin forgot is drift, not capacity.
func TestForgottenCard(t *testing.T) {
	s := onStage(t)
	defer s.setScene(t)()
	s.machine(t, "gpu-0 lose 3")
	defer s.machine(t, "gpu-0 return 3", "gpu-0 plugin follow")
	s.offers(t, "gpu-0", "gpu", 7)
	s.machine(t, "gpu-0 plugin freeze", "gpu-0 return 3")
	s.drifts(t, "gpu-0", "nvidia.com/gpu: the node offers 7, its cards are 8")
	eight, seven := asks("eight", 1, "gpu", 8, on("gpu-0")), asks("seven", 7, "gpu", 1, on("gpu-0"))
	s.create(t, eight)
	defer s.withdraw(t, eight)
	s.tellsWhy(t, eight, "Hardware", []string{"gpu-0", "the device plugin claims 7, its cards are 8"})
	s.create(t, seven)
	defer s.withdraw(t, seven)
	s.succeeds(t, seven)
	s.machine(t, "gpu-0 plugin follow")
	s.succeeds(t, eight)
}
