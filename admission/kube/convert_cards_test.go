package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
	"sluice.dev/sluice/quota"
)

// a100 is a report of n cards of one model that can be cut, none of them cut.
func a100(n int) v1alpha1.Report {
	r := v1alpha1.Report{
		State: v1alpha1.Ready,
		Models: []v1alpha1.Model{{Name: "NVIDIA A100-SXM4-40GB", Units: 8, Profiles: []v1alpha1.Profile{
			{Name: "1g.5gb", Size: 1, Starts: []int32{0, 1, 2, 3, 4, 5, 6}}, {Name: "3g.20gb", Size: 4, Starts: []int32{0, 4}},
		}}},
		Sharing: v1alpha1.Sharing{MIGStrategy: v1alpha1.MIGMixed},
	}
	for i := range n {
		r.Cards = append(r.Cards, v1alpha1.Card{Index: int32(i), Model: r.Models[0].Name})
	}
	return r
}

// cut puts slices of the profiles on the card.
func cut(c *v1alpha1.Card, profiles ...string) {
	c.MIG = &v1alpha1.MIGMode{Current: true, Pending: true}
	for i, p := range profiles {
		c.Instances = append(c.Instances, v1alpha1.Instance{ID: int32(i), Profile: p, Size: 1, Devices: []v1alpha1.MIGDevice{{}}})
	}
}

// shared offers cards several times.
func shared(r *v1alpha1.Report, replicas int32, renamed bool) {
	r.Sharing.Shares = []v1alpha1.Share{{Resource: v1alpha1.WholeCard, Strategy: v1alpha1.TimeSlicing, Replicas: replicas, Renamed: renamed}}
}

// TestCards holds what a node offers, and why not more, against what its agent says.
func TestCards(t *testing.T) {
	for name, c := range map[string]struct {
		report func(*v1alpha1.Report)
		labels map[string]string
		claims string // resource=amount of the node's allocatable
		silent bool
		want   string // what it offers; what is out of use
	}{
		"whole cards":             {func(*v1alpha1.Report) {}, nil, "gpu=2", false, "gpu=2"},
		"the plugin claims less":  {func(*v1alpha1.Report) {}, nil, "gpu=1", false, "gpu=1; misreported (the device plugin claims 1, its cards are 2)"},
		"the plugin claims more":  {func(*v1alpha1.Report) {}, nil, "gpu=4", false, "gpu=2"},
		"one is lost":             {func(r *v1alpha1.Report) { r.Cards[1].Out = v1alpha1.Lost }, nil, "gpu=2", false, "gpu=1; lost (card 1)"},
		"one waits for its mode":  {func(r *v1alpha1.Report) { r.Cards[0].Out = v1alpha1.MIGModePending }, nil, "gpu=2", false, "gpu=1; migModePending (card 0)"},
		"silent":                  {func(*v1alpha1.Report) {}, nil, "gpu=2", true, "gpu=0; silent (its agent reports nothing)"},
		"the driver changed":      {func(r *v1alpha1.Report) { r.State, r.Cards = v1alpha1.DriverChanged, nil }, nil, "gpu=2", false, "gpu=0; silent (its agent reports nothing)"},
		"ghosts without a driver": {func(r *v1alpha1.Report) { r.State, r.Cards = v1alpha1.NoDriver, nil }, nil, "gpu=2", false, "gpu=0"},
		"an agent that may not":   {func(r *v1alpha1.Report) { r.State, r.Cards = v1alpha1.NoPermission, nil }, nil, "gpu=2", false, "gpu=2"},
		"slices": {
			func(r *v1alpha1.Report) { cut(&r.Cards[0], "3g.20gb", "1g.5gb", "1g.5gb") }, nil, "gpu=1,mig-1g.5gb=2,mig-3g.20gb=1", false,
			"gpu=1 mig-1g.5gb=2 mig-3g.20gb=1",
		},
		"a cut that the plugin has not seen": {
			func(r *v1alpha1.Report) { cut(&r.Cards[0], "3g.20gb"); cut(&r.Cards[1]) }, nil, "gpu=2", false,
			"gpu=0; misreported (the device plugin claims 0, its cards are 1)",
		},
		"slices of an earlier cut": {func(*v1alpha1.Report) {}, nil, "gpu=2,mig-1g.5gb=7", false, "gpu=2 mig-1g.5gb=0"},
		"being cut": {
			func(r *v1alpha1.Report) { cut(&r.Cards[0], "1g.5gb") },
			map[string]string{v1alpha1.LabelMIGState: "pending"},
			"gpu=1,mig-1g.5gb=1", false,
			"gpu=0 mig-1g.5gb=0; repartitioning (cards 0, 1)",
		},
		"a cut that failed": {func(*v1alpha1.Report) {}, map[string]string{v1alpha1.LabelMIGState: "failed"}, "gpu=2", false, "gpu=0; repartitionFailed (cards 0, 1)"},
		"the plugin is paused": {
			func(*v1alpha1.Report) {},
			map[string]string{v1alpha1.LabelMIGState: "success", v1alpha1.LabelPluginPaused: v1alpha1.PausedForMIG},
			"gpu=2", false,
			"gpu=0; pluginPaused (cards 0, 1)",
		},
		"time slices":    {func(r *v1alpha1.Report) { shared(r, 4, false) }, nil, "gpu=8", false, "gpu=8"},
		"renamed slices": {func(r *v1alpha1.Report) { shared(r, 4, true) }, nil, "gpu.shared=8", false, "gpu.shared=8"},
		"single": {
			func(r *v1alpha1.Report) {
				r.Sharing.MIGStrategy = v1alpha1.MIGSingle
				cut(&r.Cards[0], "1g.5gb", "1g.5gb")
				cut(&r.Cards[1], "1g.5gb")
			}, nil, "gpu=3", false, "gpu=3",
		},
		"single, not alike": {
			func(r *v1alpha1.Report) {
				r.Sharing.MIGStrategy = v1alpha1.MIGSingle
				cut(&r.Cards[0], "1g.5gb")
			}, nil, "gpu=2", false, "gpu=0; refusedByPlugin (cards 0, 1)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			space := quota.NewSpace()
			inv := &v1alpha1.SliceInventory{Report: a100(2)}
			c.report(&inv.Report)
			n := someNode(c.labels, c.claims)
			got := convertNode(space, n, "", newCardReader(space).deck(n, inv, c.silent), nil)
			if text := offered(space, n, got); text != c.want {
				t.Errorf("\ngot  %s\nwant %s", text, c.want)
			}
		})
	}
}

func someNode(labels map[string]string, claims string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{hostname: "n"}}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
	for k, v := range labels {
		n.Labels[k] = v
	}
	for _, claim := range strings.Split(claims, ",") {
		name, amount, _ := strings.Cut(claim, "=")
		n.Status.Allocatable[corev1.ResourceName("nvidia.com/"+name)] = resource.MustParse(amount)
	}
	return n
}

// offered is what can be had of what the node claims, and what of it is out of use.
func offered(space *quota.Space, from *corev1.Node, n *gang.Node) string {
	var parts, outages []string
	for _, name := range sortedResources(from.Status.Allocatable) {
		parts = append(parts, fmt.Sprintf("%s=%d", strings.TrimPrefix(string(name), "nvidia.com/"), n.Offer.At(space.Index(string(name)))))
	}
	for _, o := range n.Outages {
		outages = append(outages, "; "+o.What+" ("+o.Detail+")")
	}
	return strings.Join(parts, " ") + strings.Join(outages, "")
}

// Without an agent the labels of feature discovery tell that what is called a card
// is none.
func TestCardsFromLabels(t *testing.T) {
	for name, c := range map[string]struct {
		labels      string
		claims      string
		whole, part bool // whether pods that want a card to themselves, or a part, may go there
	}{
		"nothing said":  {"", "gpu=8", true, true},
		"whole cards":   {"gpu.count=8,gpu.replicas=1", "gpu=8", true, true},
		"time slices":   {"gpu.count=2,gpu.replicas=4,gpu.product=NVIDIA-A10-SHARED", "gpu=8", false, true},
		"single":        {"gpu.count=14,gpu.replicas=1,mig.strategy=single,gpu.product=NVIDIA-A100-MIG-1g.5gb", "gpu=14", false, true},
		"mixed":         {"gpu.count=2,gpu.replicas=0,mig.strategy=mixed", "gpu=1", true, true},
		"odd counts":    {"gpu.count=many,gpu.replicas=4", "gpu=8", true, true},
		"no such cards": {"gpu.count=2,gpu.replicas=4", "gpu.shared=8", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			space := quota.NewSpace()
			labels := map[string]string{}
			for _, l := range strings.Split(c.labels, ",") {
				if k, v, ok := strings.Cut(l, "="); ok {
					labels["nvidia.com/"+k] = v
				}
			}
			n := someNode(labels, c.claims)
			got := convertNode(space, n, "", newCardReader(space).deck(n, nil, false), nil)
			asks := quota.Resources{}
			asks.Set(space.Index("nvidia.com/gpu"), 1)
			whole, part := got.Suits(&gang.PodSet{Request: asks}), got.Suits(&gang.PodSet{Request: asks, Sharing: gang.SharedCards})
			if got.Cards == nil {
				part = true // nobody knows
			}
			if whole != c.whole || part != c.part {
				t.Errorf("whole %t, part %t", whole, part)
			}
		})
	}
}

func TestSharingOf(t *testing.T) {
	for text, want := range map[string]string{"whole": "", "shared": "shared", "any": "any", "both": "bad", "": "bad"} {
		got, bad := sharingOf(&metav1.ObjectMeta{Annotations: map[string]string{SharingAnnotation: text}})
		if (bad != "") != (want == "bad") || bad == "" && string(got) != want {
			t.Errorf("%q is %q (%s)", text, got, bad)
		}
	}
	if got, bad := sharingOf(&metav1.ObjectMeta{Labels: map[string]string{SharingAnnotation: "any"}}); got != gang.AnyCards || bad != "" {
		t.Errorf("as a label it is %q (%s)", got, bad)
	}
}

// An agent falls silent when its Lease ends, and is heard again.
func TestAgentsFallSilent(t *testing.T) {
	a := newAgents()
	lease := func(at time.Time) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(at)), LeaseDurationSeconds: ptr.To[int32](60)}}
	}
	r := &runner{view: view{agents: a, catalog: newCatalog()}, drifted: map[string]string{}}
	at := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
	inv := &v1alpha1.SliceInventory{}
	check := func(seconds int, due string, silent bool) {
		t.Helper()
		if got := a.due(at(seconds)); fmt.Sprint(got) != due || a.silent["n"] != silent {
			t.Errorf("at %d: due %v, silent %t; want %s, %t", seconds, got, a.silent["n"], due, silent)
		}
	}
	r.sawAgent(news{object{inventoryKind, "", "n"}, inv})
	check(0, "[n]", true) // no Lease at all
	r.sawAgent(news{object{leaseKind, "sluice-agents", "n"}, lease(at(0))})
	check(1, "[n]", false)
	r.sawAgent(news{object{leaseKind, "sluice-agents", "n"}, lease(at(20))})
	check(21, "[]", false)
	if !a.next.Equal(at(60)) {
		t.Errorf("looks again at %v", a.next)
	}
	check(61, "[]", false) // renewed since
	if !a.next.Equal(at(80)) {
		t.Errorf("looks again at %v", a.next)
	}
	check(81, "[n]", true)
	check(200, "[]", true)
	r.sawAgent(news{object{leaseKind, "sluice-agents", "n"}, lease(at(201))})
	check(202, "[n]", false)
	r.sawAgent(news{object{inventoryKind, "", "n"}, nil})
	check(203, "[n]", false)
	check(300, "[]", false)
}

// The condition names old value, new value, what mends it, and whom it keeps waiting.
func TestDriftCondition(t *testing.T) {
	c := driftCondition("n", []gang.Difference{
		{About: gang.DriftAllocatable, What: "nvidia.com/gpu", Claimed: "8", Found: "6"},
		{About: gang.DriftLabels, What: v1alpha1.LabelProduct, Found: "NVIDIA-A100"},
		{About: gang.DriftLayout, What: "card 3", Found: gang.Recutting},
	}, func(key, value string) int {
		if key == v1alpha1.LabelProduct && value == "NVIDIA-A100" {
			return 3
		}
		return 0
	})
	want := `nvidia.com/gpu: the node offers 8, its cards are 6; mend: kubectl -n gpu-operator delete pod -l app=nvidia-device-plugin-daemonset --field-selector spec.nodeName=n
label nvidia.com/gpu.product is missing, should be NVIDIA-A100 (3 waiting workloads select it); mend: kubectl label node n nvidia.com/gpu.product=NVIDIA-A100 --overwrite
card 3 is being cut anew`
	if c.Status != metav1.ConditionTrue || c.Reason != "Allocatable" || c.Message != want {
		t.Errorf("%s %s\n%s", c.Status, c.Reason, c.Message)
	}
	if c := driftCondition("n", nil, nil); c.Status != metav1.ConditionFalse || c.Reason != "InStep" {
		t.Errorf("%+v", c)
	}
}

// Agents that fall silent all at once are given time: the API server was away.
func TestAgentsFallSilentTogether(t *testing.T) {
	a := newAgents()
	r := &runner{view: view{agents: a, catalog: newCatalog()}, drifted: map[string]string{}}
	at := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
	hear := func(node string, seconds int) {
		r.sawAgent(news{object{leaseKind, "sluice-agents", node}, &coordinationv1.Lease{
			Spec: coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(at(seconds))), LeaseDurationSeconds: ptr.To[int32](60)},
		}})
	}
	for _, node := range []string{"a", "b"} {
		r.sawAgent(news{object{inventoryKind, "", node}, &v1alpha1.SliceInventory{}})
		hear(node, 0)
	}
	check := func(seconds int, due string) {
		t.Helper()
		if got := a.due(at(seconds)); fmt.Sprint(got) != due {
			t.Errorf("at %d: due %v, want %s", seconds, got, due)
		}
	}
	check(1, "[a b]")
	check(61, "[]") // both are over, and nobody is heard
	if len(a.silent) > 0 || !a.next.Equal(at(121)) {
		t.Errorf("silent %v, looks again at %v", a.silent, a.next)
	}
	hear("a", 100)
	check(101, "[]")
	check(122, "[b]") // a is heard again, b is silent by itself
	check(161, "[a]") // the only one that was heard until now
	if !a.silent["a"] || !a.silent["b"] {
		t.Errorf("silent %v", a.silent)
	}
	hear("a", 200)
	hear("b", 200)
	check(201, "[a b]")
	check(261, "[]")
	check(322, "[a b]") // the time is over
	if !a.silent["a"] || !a.silent["b"] {
		t.Errorf("silent %v", a.silent)
	}
}
