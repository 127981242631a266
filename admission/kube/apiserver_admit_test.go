package kube_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/admission/kube"
)

// A gang is admitted with a host for each pod, and each of its pods is let go to a
// node of the plan, with what it had before kept.
func TestGangIsAdmittedAndReleased(t *testing.T) {
	w := newWorld(t, node("n0", 8), node("n1", 8))
	w.queues(16)
	wl := w.workload("train", 3, 4)
	w.create(wl)
	wl = w.admitted(wl)

	if got, want := plan(wl), (map[string]int{"host-of-n0": 2, "host-of-n1": 1}); !maps.Equal(got, want) {
		t.Errorf("planned on %v, want %v", got, want)
	}
	psa := wl.Status.Admission.PodSetAssignments[0]
	if *psa.Count != 3 || psa.Flavors[gpu] != "gpu" || !psa.ResourceUsage[gpu].Equal(resource.MustParse("12")) {
		t.Errorf("assigned %+v", psa)
	}

	on := map[string]int{}
	terms := []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpExists}}},
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpDoesNotExist}}},
	}
	plain, gatedTwice, picky := w.gatedPod(wl, 0), w.gatedPod(wl, 1), w.gatedPod(wl, 2)
	gatedTwice.Spec.SchedulingGates = append(gatedTwice.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: "example.com/other"})
	picky.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
	for _, p := range []*corev1.Pod{plain, gatedTwice, picky} {
		w.create(p)
		on[w.released(p)]++
	}
	if want := (map[string]int{"n0": 2, "n1": 1}); !maps.Equal(on, want) {
		t.Errorf("released to %v, want %v", on, want)
	}
	if g := get(w, gatedTwice).Spec.SchedulingGates; len(g) != 1 || g[0].Name != "example.com/other" {
		t.Errorf("gates that are not ours: %v", g)
	}
	for _, p := range []*corev1.Pod{plain, picky} {
		p = get(w, p)
		for i, term := range p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			f := term.MatchFields
			if len(f) != 1 || f[0].Key != "metadata.name" || len(f[0].Values) != 1 || f[0].Values[0] != p.Annotations["sluice.dev/node"] {
				t.Errorf("%s: term %d is %+v, released to %s", p.Name, i, term, p.Annotations["sluice.dev/node"])
			}
		}
	}
	if n := len(get(w, picky).Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms); n != 2 {
		t.Errorf("%d affinity terms, the pod had 2", n)
	}
}

// What other pods hold is gone, whoever they are of.
func TestForeignPodsTakeRoom(t *testing.T) {
	w := newWorld(t, node("n0", 8), node("n1", 8))
	stranger := &corev1.Pod{Spec: podSpec(6)}
	stranger.Namespace, stranger.Name = w.ns, "stranger"
	w.create(stranger)
	w.bind(stranger, "n0")
	w.queues(12)
	first := w.workload("first", 2, 4)
	w.create(first)
	if got, want := plan(w.admitted(first)), (map[string]int{"host-of-n1": 2}); !maps.Equal(got, want) {
		t.Errorf("planned on %v, want %v", got, want)
	}
	second := w.workload("second", 1, 8)
	w.create(second)
	w.waits(second, "Quota")
	third := w.workload("third", 1, 4)
	w.create(third)
	if text := w.waits(third, "Capacity"); !strings.Contains(text, "4 nvidia.com/gpu") {
		t.Errorf("the reason has no numbers: %s", text)
	}
	w.phase(stranger, corev1.PodSucceeded)
	w.admitted(third)
}

// Two gangs that each need everything never hold half each.
func TestOneOfTwoGangsGoes(t *testing.T) {
	w := newWorld(t, node("n0", 8), node("n1", 8))
	w.queues(32)
	a, b := w.workload("a", 2, 8), w.workload("b", 2, 8)
	for range 5 {
		w.create(a, b)
		w.eventually("one of two goes", func() string {
			a, b = get(w, a), get(w, b)
			if (a.Status.Admission == nil) == (b.Status.Admission == nil) {
				return "a: " + why(a) + "\nb: " + why(b)
			}
			return ""
		})
		goes, waits := a, b
		if a.Status.Admission == nil {
			goes, waits = b, a
		}
		w.waits(waits, "Capacity")
		if err := w.Delete(t.Context(), goes); err != nil {
			t.Fatal(err)
		}
		w.admitted(waits)
		if err := w.Delete(t.Context(), waits); err != nil {
			t.Fatal(err)
		}
		w.eventually("both are gone", func() string {
			if get(w, w.workload("a", 2, 8)) != nil || get(w, w.workload("b", 2, 8)) != nil {
				return "still there"
			}
			return ""
		})
		a, b = w.workload("a", 2, 8), w.workload("b", 2, 8)
	}
}

// A gang of no pods is admitted with no place, so that its job can end.
func TestGangOfNoPods(t *testing.T) {
	w := newWorld(t)
	w.queues(8)
	wl := w.workload("empty", 0, 8)
	w.create(wl)
	wl = w.admitted(wl)
	psa := wl.Status.Admission.PodSetAssignments[0]
	if *psa.Count != 0 || psa.TopologyAssignment != nil {
		t.Errorf("assigned %+v", psa)
	}
}

// LimitRanges and limits are what pods will ask for, though the template says nothing.
func TestDefaultsCount(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.create(&corev1.LimitRange{
		ObjectMeta: named(w.ns, "defaults"),
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, DefaultRequest: resources(map[corev1.ResourceName]string{"cpu": "48"}),
		}}},
	})
	w.queues(8)
	one, two := w.workload("one", 1, 1), w.workload("two", 1, 1)
	w.create(one)
	psa := w.admitted(one).Status.Admission.PodSetAssignments[0]
	if !psa.ResourceUsage[corev1.ResourceCPU].Equal(resource.MustParse("48")) {
		t.Errorf("assigned %+v", psa)
	}
	w.create(two)
	if text := w.waits(two, "Capacity"); !strings.Contains(text, "cpu") {
		t.Errorf("the reason is not about cpu: %s", text)
	}
}

// A LocalQueue may lead to a Volcano Queue, whose capability then bounds it.
func TestVolcanoQueue(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.create(volcanoQueue(w.ns, "4"), w.localQueue("main", w.ns))
	one, two := w.workload("one", 1, 4), w.workload("two", 1, 4)
	w.create(one)
	one = w.admitted(one)
	if string(one.Status.Admission.ClusterQueue) != w.ns {
		t.Errorf("admitted to %s", one.Status.Admission.ClusterQueue)
	}
	w.create(two)
	if text := w.waits(two, "Quota"); !strings.Contains(text, "4 of at most 4") {
		t.Errorf("the reason has no numbers: %s", text)
	}
	never := w.workload("never", 1, 5)
	w.create(never)
	w.waits(never, "NeverFits")
	w.eventually("status of the queue", func() string {
		q := get(w, volcanoQueue(w.ns, "4"))
		used := q.Status.Allocated[gpu]
		if used.Value() != 4 || q.Status.Running != 1 || q.Status.Pending != 2 || q.Status.State != "Open" {
			return fmt.Sprintf("%+v", q.Status)
		}
		return ""
	})
}

// One user may have a part of a queue; the others are not held up by who has his.
func TestUserHasHisPart(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.queues(8, func(cq *kueue.ClusterQueue) {
		cq.Annotations = map[string]string{kube.UserMaxAnnotation: "nvidia.com/gpu=4", kube.TurnsAnnotation: "true"}
	})
	of := func(user string) func(*kueue.Workload) {
		return func(wl *kueue.Workload) { wl.Labels = map[string]string{kube.UserAnnotation: user} }
	}
	first, second := w.workload("first", 1, 4, of("ann")), w.workload("second", 1, 4, of("ann"))
	w.create(first)
	w.admitted(first)
	w.create(second)
	if text := w.waits(second, "Quota"); !strings.Contains(text, "ann") {
		t.Errorf("the reason does not name the user: %s", text)
	}
	third := w.workload("third", 1, 4, of("bob"))
	w.create(third)
	w.admitted(third)
	if err := w.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.admitted(second)
}
