package kube

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

func TestPartsOf(t *testing.T) {
	r := a100(1)
	r.Models[0].Profiles = []v1alpha1.Profile{
		{Name: "1g.5gb", Compute: 1, Size: 1},
		{Name: "1g.10gb", Compute: 1, Size: 2},
		{Name: "2g.10gb", Compute: 2, Size: 2},
		{Name: "3g.20gb", Compute: 3, Size: 4},
		{Name: "7g.40gb", Compute: 7, Size: 8},
	}
	big := a100(1)
	big.Models[0].Profiles = []v1alpha1.Profile{{Name: "1g.10gb", Compute: 1, Size: 1}, {Name: "7g.80gb", Compute: 7, Size: 8}}
	shared(&big, 4, true)
	got := partsOf(map[string]*v1alpha1.SliceInventory{"a": {Report: r}, "b": {Report: big}})
	want := map[corev1.ResourceName]int64{
		"nvidia.com/gpu": 1000, "nvidia.com/gpu.shared": 250, "nvidia.com/mig-1g.5gb": 143, "nvidia.com/mig-1g.10gb": 250, // of the smaller card
		"nvidia.com/mig-2g.10gb": 286, "nvidia.com/mig-3g.20gb": 500, "nvidia.com/mig-7g.40gb": 1000, "nvidia.com/mig-7g.80gb": 1000,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	c := newCatalog()
	for name, want := range map[corev1.ResourceName]int64{"nvidia.com/mig-3g.20gb": 429, "nvidia.com/mig-7g.40gb": 1000, "nvidia.com/gpu": 1000, "nvidia.com/gpu.shared": 1000, "nvidia.com/mig-odd": 1000} {
		if got := c.partOf(name); got != want {
			t.Errorf("without agents %s counts %d, want %d", name, got, want)
		}
	}
}

// A queue that counts cards is charged for slices as parts, and for what it names
// itself in its own name.
func TestQueueOfCards(t *testing.T) {
	c, space := newCatalog(), quota.NewSpace()
	c.dirty = true
	gpu, small, large := space.Index("nvidia.com/gpu"), space.Index("nvidia.com/mig-1g.5gb"), space.Index("nvidia.com/mig-3g.20gb")
	c.flavors["a"] = rf("a", nil)
	c.clusterQueues["cq"] = cqNamed("cq", kueue.ClusterQueueSpec{ResourceGroups: []kueue.ResourceGroup{group("a", quotaOf(quota.Cards, "32"), quotaOf("nvidia.com/mig-3g.20gb", "4"))}})
	c.volcanoQueues["v"] = &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: volcano.QueueSpec{
		Weight: 1, Capability: corev1.ResourceList{quota.Cards: resource.MustParse("1500m"), "nvidia.com/mig-3g.20gb": resource.MustParse("4")},
	}}
	queues := seenQueues(c.refresh(space))
	r := quota.Resources{}
	r.Set(gpu, 2)
	r.Set(small, 3)
	r.Set(large, 1)
	for _, x := range []struct {
		q            *queue.Queue
		cards, large string
		bound        map[int]int64
		most         int64
	}{
		{queues["cq"], "a:sluice.dev/gpu", "a:nvidia.com/mig-3g.20gb", queues["cq"].Quota.Nominal, 32000},
		{queues["v"], "sluice.dev/gpu", "nvidia.com/mig-3g.20gb", queues["v"].Quota.Max, 1500},
	} {
		charge := x.q.Flavors[0].Charge(r)
		if got := charge.At(space.Index(x.cards)); got != 2*1000+3*143 {
			t.Errorf("%s is charged %d thousandths", x.q.Quota.Name, got)
		}
		if got := charge.At(space.Index(x.large)); got != 1 {
			t.Errorf("%s is charged %d of its own slices", x.q.Quota.Name, got)
		}
		if charge.At(gpu)+charge.At(small)+charge.At(space.Index(":nvidia.com/gpu")) != 0 {
			t.Errorf("%s is charged twice: %v", x.q.Quota.Name, charge)
		}
		if got := x.bound[space.Index(x.cards)]; got != x.most {
			t.Errorf("%s has %d thousandths", x.q.Quota.Name, got)
		}
	}
}
