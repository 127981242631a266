package e2e

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kueue/pkg/controller/constants"

	"sluice.dev/sluice/simulations/e2e/witness"
)

const downNamespace = "while-down"

func pod(name string, labels map[string]string, limits corev1.ResourceList) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: downNamespace, Name: name, Labels: labels},
		Spec:       podSpec(limits),
	}
}

// When sluice is down, only what asks for it waits.
func TestControllerDown(t *testing.T) {
	s := onStage(t)
	s.namespace(t, downNamespace, "team-a")
	s.watched(t, func(func(witness.Interval)) {
		waiting := job(downNamespace, "waiting", "main", 1, gpus(9))
		s.create(t, waiting)
		s.saysWhy(t, waiting, "NeverFits")

		if err := s.Supervisor().Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		plain := pod("plain", nil, gpus(1))
		plain.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "gpu-0"} // not on a share
		s.create(t, plain)
		others := job(downNamespace, "plain", "", 3, gpus(1))
		s.create(t, others)
		s.succeedsAlone(t, others)
		eventually(t, "the plain pod runs", func() error { return s.runs(t, plain) })
		s.refusedWhileDown(t)
		if pods, err := s.pods(t, waiting); err != nil || len(pods) > 0 {
			t.Errorf("the waiting Job has %d pods (%v)", len(pods), err)
		}

		if _, err := s.Supervisor().Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.besides(t, plain)
		s.withdraw(t, waiting)
		s.withdraw(t, others)
	})
}

// refusedWhileDown tries what asks for sluice.
func (s *stage) refusedWhileDown(t *testing.T) {
	t.Helper()
	label := map[string]string{constants.QueueLabel: "main"}
	for _, o := range []client.Object{job(downNamespace, "queued", "main", 2, gpus(1)), pod("queued", label, gpus(1))} {
		err := s.Cluster().Create(t.Context(), o)
		if err == nil {
			t.Errorf("a queued %T was taken while sluice is down", o)
		} else if !strings.Contains(err.Error(), "sluice.dev") {
			t.Errorf("a queued %T was refused without a word of sluice: %v", o, err)
		}
	}
}

// besides checks that a controller which has just started counts what others
// have placed meanwhile: a gang of all nodes waits for one plain pod.
func (s *stage) besides(t *testing.T, plain *corev1.Pod) {
	t.Helper()
	all := job(downNamespace, "all-nodes", "main", 6, gpus(8))
	s.create(t, all)
	s.saysWhy(t, all, string(gpu))
	s.withdraw(t, plain)
	s.succeeds(t, all)
	s.withdraw(t, all)
}

func (s *stage) runs(t *testing.T, p *corev1.Pod) error {
	if err := s.Cluster().Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		return err
	}
	if p.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("phase %s, gates %v, conditions %v", p.Status.Phase, p.Spec.SchedulingGates, p.Status.Conditions)
	}
	return nil
}

// succeedsAlone waits for a Job that is nobody's business but the cluster's.
func (s *stage) succeedsAlone(t *testing.T, j *batchv1.Job) {
	t.Helper()
	eventually(t, j.Name+" is complete", func() error {
		if err := s.Cluster().Get(t.Context(), client.ObjectKeyFromObject(j), j); err != nil {
			return err
		}
		if j.Status.Succeeded < *j.Spec.Completions {
			return fmt.Errorf("succeeded %d, active %d", j.Status.Succeeded, j.Status.Active)
		}
		return nil
	})
}
