package kube

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/quota"
)

func readyNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n0", Labels: map[string]string{hostname: "h0", "gpu": "h100"}},
		Status: corev1.NodeStatus{
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("3500m"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("8")},
		},
	}
}

func TestConvertNode(t *testing.T) {
	taint := func(key string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Value: "v", Effect: effect}
	}
	for _, test := range []struct {
		name      string
		change    func(*corev1.Node)
		collision string
		outages   []string
		taints    []string
	}{
		{name: "in order", change: func(*corev1.Node) {}},
		{name: "cordoned is one outage and no taint", change: func(n *corev1.Node) {
			n.Spec.Unschedulable = true
			n.Spec.Taints = []corev1.Taint{taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)}
		}, outages: []string{"cordoned"}},
		{name: "not ready is one outage whatever says so", change: func(n *corev1.Node) {
			n.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown"}
			n.Spec.Taints = []corev1.Taint{taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule), taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)}
		}, outages: []string{"notReady"}},
		{name: "never reported", change: func(n *corev1.Node) { n.Status.Conditions = nil }, outages: []string{"notReady"}},
		{name: "pressure", change: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{taint(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule)}
		}, outages: []string{"diskPressure"}},
		{name: "a taint of its owner stays, one that only prefers does not", change: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{taint("team", corev1.TaintEffectNoSchedule), taint("slow", corev1.TaintEffectPreferNoSchedule)}
		}, taints: []string{"team=v:NoSchedule"}},
		{name: "without a host it cannot be named", change: func(n *corev1.Node) { delete(n.Labels, hostname) }, outages: []string{"unnamed"}},
		{name: "with the host of another neither", change: func(*corev1.Node) {}, collision: "n1", outages: []string{"ambiguous"}},
		{name: "going", change: func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{} }, outages: []string{"leaving"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			space, n := quota.NewSpace(), readyNode()
			test.change(n)
			got := convertNode(space, n, test.collision, nil, nil)
			var outages, taints []string
			for _, o := range got.Outages {
				outages = append(outages, o.What)
				if !o.Closed {
					t.Errorf("%s does not close the node", o.What)
				}
			}
			for _, x := range got.Taints {
				taints = append(taints, x.String())
			}
			if !slices.Equal(outages, test.outages) || !slices.Equal(taints, test.taints) {
				t.Errorf("outages %v, want %v; taints %v, want %v", outages, test.outages, taints, test.taints)
			}
			want := space.Vector(map[string]int64{"cpu": 3500, "memory": 1 << 30, "pods": 110, "nvidia.com/gpu": 8})
			if !got.Offer.Equal(want) {
				t.Errorf("offers %v, want %v", got.Offer, want)
			}
		})
	}
}

// A heartbeat changes nothing that the core sees.
func TestHeartbeatIsNoNews(t *testing.T) {
	space, n := quota.NewSpace(), readyNode()
	before := convertNode(space, n, "", nil, nil)
	n = n.DeepCopy()
	n.ResourceVersion = "7"
	n.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	n.Annotations = map[string]string{"a": "b"}
	if after := convertNode(space, n, "", nil, nil); !reflect.DeepEqual(before, after) {
		t.Errorf("%+v became %+v", before, after)
	}
}

func TestHosts(t *testing.T) {
	h := newHosts()
	if touched := h.set("n0", "h"); len(touched) != 0 {
		t.Errorf("touched %v", touched)
	}
	if touched := h.set("n1", "h"); !slices.Equal(touched, []string{"n0"}) {
		t.Errorf("a second node of one host touched %v", touched)
	}
	if h.collision("n0") != "n1" || h.collision("n1") != "n0" {
		t.Errorf("collisions %q %q", h.collision("n0"), h.collision("n1"))
	}
	if touched := h.set("n1", ""); !slices.Equal(touched, []string{"n0"}) || h.collision("n0") != "" {
		t.Errorf("touched %v, collision %q", touched, h.collision("n0"))
	}
	h.set("n0", "")
	if name, known := h.node("h"); name != "n0" || !known {
		t.Errorf("the host of a node that is gone is %q, %t", name, known)
	}
	if name, known := h.node("never"); name != "never" || known {
		t.Errorf("a host that never was is %q, %t", name, known)
	}
	if _, ok := h.of("n0"); ok {
		t.Error("a node that is gone has a host")
	}
}
