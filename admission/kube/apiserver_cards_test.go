package kube_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/admission/kube"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

const model = "NVIDIA A100-SXM4-40GB"

// report is an agent's word: eight cards that can be cut, in order and whole.
func report() v1alpha1.Report {
	r := v1alpha1.Report{
		State: v1alpha1.Ready, Summary: v1alpha1.Summary{Cards: "8/8", Taken: "0/0"}, Changed: metav1.Now(),
		Models: []v1alpha1.Model{{Name: model, Units: 8, Profiles: []v1alpha1.Profile{
			{Name: "1g.5gb", Compute: 1, Size: 1, Starts: []int32{0, 1, 2, 3, 4, 5, 6}}, {Name: "3g.20gb", Compute: 3, Size: 4, Starts: []int32{0, 4}},
		}}},
		Sharing: v1alpha1.Sharing{MIGStrategy: v1alpha1.MIGMixed},
	}
	for i := range 8 {
		r.Cards = append(r.Cards, v1alpha1.Card{Index: int32(i), UUID: fmt.Sprintf("GPU-%d", i), Model: model})
	}
	return r
}

// reports has the agent of n0 say so, and be there.
func (w *world) reports(with func(*v1alpha1.Report)) {
	w.t.Helper()
	inv := &v1alpha1.SliceInventory{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}
	if get(w, inv) == nil {
		inv = &v1alpha1.SliceInventory{ObjectMeta: metav1.ObjectMeta{Name: "n0"}, Report: report()}
		with(&inv.Report)
		w.create(inv)
	} else {
		r := report()
		with(&r)
		change(w, inv, func(inv *v1alpha1.SliceInventory) { inv.Report = r })
	}
	w.beats()
}

// beats has the agent of n0 be heard for the next hour.
func (w *world) beats() {
	w.t.Helper()
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.HeartbeatNamespace}})
	w.create(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HeartbeatNamespace, Name: "n0"},
		Spec:       coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NowMicro()), LeaseDurationSeconds: ptr.To[int32](3600)},
	})
}

// drift is what is said of n0 and its cards.
func (w *world) drift() *metav1.Condition {
	w.t.Helper()
	inv := get(w, &v1alpha1.SliceInventory{ObjectMeta: metav1.ObjectMeta{Name: "n0"}})
	if inv == nil {
		return nil
	}
	return apimeta.FindStatusCondition(inv.Status.Conditions, kube.DriftCondition)
}

func (w *world) drifts(reason string, says ...string) {
	w.t.Helper()
	w.eventually("drift of n0", func() string {
		c := w.drift()
		if c == nil {
			return "nothing is said"
		}
		for _, s := range says {
			if !strings.Contains(c.Message, s) {
				return c.Reason + ": " + c.Message
			}
		}
		if c.Reason != reason {
			return c.Reason + ": " + c.Message
		}
		return ""
	})
}

// A lost card is no room, whatever the device plugin claims, and the gang that waits
// for it goes when it is back.
func TestLostCard(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.queues(8)
	w.reports(func(r *v1alpha1.Report) { r.Cards[3].Out, r.State = v1alpha1.Lost, v1alpha1.Degraded })
	w.drifts("Allocatable", "the node offers 8, its cards are 7", "card 3 is lost")
	wl := w.workload("train", 1, 8)
	w.create(wl)
	if text := w.waits(wl, "Hardware"); !strings.Contains(text, "card 3") {
		t.Errorf("the card is not named: %s", text)
	}
	w.reports(func(*v1alpha1.Report) {})
	w.admitted(wl)
	w.drifts("InStep")
}

// What a silent agent said last is no room, until it is heard again.
func TestSilentAgent(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.queues(8)
	w.create(&v1alpha1.SliceInventory{ObjectMeta: metav1.ObjectMeta{Name: "n0"}, Report: report()})
	w.drifts("Silent")
	wl := w.workload("train", 1, 8)
	w.create(wl)
	if text := w.waits(wl, "Hardware"); !strings.Contains(text, "its agent reports nothing") {
		t.Errorf("says %s", text)
	}
	w.beats()
	w.admitted(wl)
}

// An agent that stops is noticed without any other news.
func TestAgentFallsSilent(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.queues(8)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.HeartbeatNamespace}}, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HeartbeatNamespace, Name: "n0"},
		Spec:       coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NowMicro()), LeaseDurationSeconds: ptr.To[int32](2)},
	}, &v1alpha1.SliceInventory{ObjectMeta: metav1.ObjectMeta{Name: "n0"}, Report: report()})
	w.drifts("InStep")
	w.drifts("Silent")
}

// A label of feature discovery that is lost is named with its value, with the command
// that puts it back, and with how many wait for it; putting it back starts them.
func TestLostLabel(t *testing.T) {
	other := node("n1", 8)
	other.Labels[v1alpha1.LabelProduct] = "NVIDIA-A10"
	w := newWorld(t, node("n0", 8), other)
	w.queues(16)
	w.reports(func(*v1alpha1.Report) {})
	wl := w.workload("train", 1, 8, func(wl *kueue.Workload) {
		wl.Spec.PodSets[0].Template.Spec.NodeSelector = map[string]string{v1alpha1.LabelProduct: "NVIDIA-A100-SXM4-40GB"}
	})
	w.create(wl)
	if text := w.waits(wl, "Labels"); !strings.Contains(text, v1alpha1.LabelProduct) {
		t.Errorf("the label is not named: %s", text)
	}
	mend := "kubectl label node n0 nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB --overwrite"
	w.drifts("Labels", "label nvidia.com/gpu.product is missing, should be NVIDIA-A100-SXM4-40GB", mend)
	change(w, node("n0", 8), func(n *corev1.Node) { n.Labels[v1alpha1.LabelProduct] = "NVIDIA-A100-SXM4-40GB" })
	w.admitted(wl)
}

// Slices are placed where they are cut, once the device plugin offers them.
func TestSlices(t *testing.T) {
	n := node("n0", 8)
	w := newWorld(t, n)
	w.create(volcanoQueue("slices", "8"), w.localQueue("main", "slices"))
	w.reports(func(r *v1alpha1.Report) {
		r.Cards[0].MIG = &v1alpha1.MIGMode{Current: true, Pending: true}
		r.Cards[0].Instances = []v1alpha1.Instance{{ID: 1, Profile: "3g.20gb", Start: ptr.To[int32](0), Size: 4, Devices: []v1alpha1.MIGDevice{{}}}}
	})
	wl := w.workload("infer", 1, 0, func(wl *kueue.Workload) {
		wl.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Limits = resources(map[corev1.ResourceName]string{"nvidia.com/mig-3g.20gb": "1"})
	})
	w.create(wl)
	if text := w.waits(wl, "Hardware"); !strings.Contains(text, "the device plugin claims 0, its cards are 1") {
		t.Errorf("says %s", text)
	}
	n = get(w, n)
	maps.Copy(n.Status.Allocatable, resources(map[corev1.ResourceName]string{"nvidia.com/mig-3g.20gb": "1", gpu: "7"}))
	n.Status.Capacity = n.Status.Allocatable
	if err := w.Status().Update(context.Background(), n); err != nil {
		t.Fatal(err)
	}
	w.admitted(wl)
	w.drifts("InStep")
}

// Slices are charged as parts of cards to a queue that counts cards.
func TestQuotaInCards(t *testing.T) {
	n := node("n0", 8)
	maps.Copy(n.Status.Allocatable, resources(map[corev1.ResourceName]string{"nvidia.com/mig-3g.20gb": "8"}))
	w := newWorld(t, n)
	w.queues(0, func(cq *kueue.ClusterQueue) {
		cq.Spec.ResourceGroups[0].CoveredResources = []corev1.ResourceName{"sluice.dev/gpu"}
		cq.Spec.ResourceGroups[0].Flavors[0].Resources = []kueue.ResourceQuota{{Name: "sluice.dev/gpu", NominalQuota: resource.MustParse("2")}}
	})
	of := func(name string) func(*kueue.Workload) {
		return func(wl *kueue.Workload) {
			wl.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Limits = resources(map[corev1.ResourceName]string{corev1.ResourceName(name): "1"})
		}
	}
	slices := w.workload("slices", 2, 0, of("nvidia.com/mig-3g.20gb")) // 429 each
	w.create(slices)
	w.admitted(slices)
	cards := w.workload("cards", 2, 0, of("nvidia.com/gpu"))
	w.create(cards)
	if text := w.waits(cards, "Quota"); !strings.Contains(text, "asks 2 sluice.dev/gpu of flavor gpu") || !strings.Contains(text, "858m of") {
		t.Errorf("says %s", text)
	}
	one := w.workload("one", 1, 0, of("nvidia.com/gpu"))
	w.create(one)
	w.admitted(one)
}

// Declared labels that a node lacks are said, and put back where a policy enforces it.
func TestDeclaredLabels(t *testing.T) {
	a, b := node("n0", 8), node("n1", 8)
	a.Labels["pool"], b.Labels["pool"] = "a", "b"
	w := newWorld(t, a, b)
	w.stop()
	w.labels = []kube.LabelPolicy{
		{Name: "a", Selector: map[string]string{"pool": "a"}, Labels: map[string]string{"rack": "r1"}, Enforce: true},
		{Name: "b", Selector: map[string]string{"pool": "b"}, Labels: map[string]string{"rack": "r2"}},
	}
	w.start()
	w.queues(16)
	wl := w.workload("train", 1, 8, func(wl *kueue.Workload) {
		wl.Spec.PodSets[0].Template.Spec.NodeSelector = map[string]string{"rack": "r1"}
	})
	w.create(wl)
	w.admitted(wl)
	w.eventually("what is only declared is said", func() string {
		if text := w.events("n1"); !strings.Contains(text, "label rack is missing, should be r2 (policy b); mend: kubectl label node n1 rack=r2 --overwrite") {
			return text
		}
		return ""
	})
	if got := get(w, b).Labels["rack"]; got != "" {
		t.Errorf("a label that is only declared was set to %q", got)
	}
	change(w, a, func(n *corev1.Node) { n.Labels["rack"] = "elsewhere" })
	w.eventually("the label is put back again", func() string { return strings.TrimPrefix(get(w, a).Labels["rack"], "r1") })
}
