package kube_test

import (
	"testing"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Where there are no nodes at all quota alone decides, also after a restart. With the
// first node gangs are placed again, and those that were admitted stay so and are
// charged where their pods run.
func TestNoNodes(t *testing.T) {
	w := newWorld(t)
	w.queues(8)
	wl := w.workload("first", 3, 2, func(wl *kueue.Workload) {
		wl.Spec.PodSets[0].Template.Spec.NodeSelector = map[string]string{"gpu": "h100"}
	})
	w.create(wl)
	wl = w.admitted(wl)
	psa := wl.Status.Admission.PodSetAssignments[0]
	if psa.TopologyAssignment != nil || *psa.Count != 3 || psa.Flavors[gpu] != "gpu" {
		t.Errorf("assigned %+v", psa)
	}
	second := w.workload("second", 2, 2)
	w.create(second)
	w.waits(second, "Quota")
	w.stop()
	w.start()
	third := w.workload("third", 1, 2)
	w.create(third)
	w.admitted(third) // 6 of 8 are taken, and no more
	w.waits(second, "Quota")

	p := w.gatedPod(wl, 0)
	w.create(p)
	if on := w.released(p); on != "" || p.Spec.Affinity != nil {
		t.Errorf("released to %q with %v", on, p.Spec.Affinity)
	}
	n := node("n0", 8)
	w.addNode(n)
	w.bind(p, "n0")
	if err := w.Delete(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	w.admitted(second)
	if got, want := plan(get(w, second)), 2; got["host-of-n0"] != want {
		t.Errorf("planned on %v", got)
	}
	if now := get(w, wl); now.Status.Admission == nil {
		t.Errorf("the first is not admitted any more: %s", why(now))
	}
}
