package kube

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

func quotaOf(name, nominal string, limits ...string) kueue.ResourceQuota {
	q := kueue.ResourceQuota{Name: corev1.ResourceName(name), NominalQuota: resource.MustParse(nominal)}
	if len(limits) > 0 && limits[0] != "" {
		q.BorrowingLimit = ptr.To(resource.MustParse(limits[0]))
	}
	if len(limits) > 1 {
		q.LendingLimit = ptr.To(resource.MustParse(limits[1]))
	}
	return q
}

func group(flavor string, quotas ...kueue.ResourceQuota) kueue.ResourceGroup {
	g := kueue.ResourceGroup{Flavors: []kueue.FlavorQuotas{{Name: kueue.ResourceFlavorReference(flavor), Resources: quotas}}}
	for _, q := range quotas {
		g.CoveredResources = append(g.CoveredResources, q.Name)
	}
	return g
}

func cqNamed(name string, spec kueue.ClusterQueueSpec) *kueue.ClusterQueue {
	return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

func rf(name string, labels map[string]string) *kueue.ResourceFlavor {
	return &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ResourceFlavorSpec{NodeLabels: labels}}
}

// byDimension names the dimensions of a bound and leaves out those of which the
// queue has ample.
func byDimension(space *quota.Space, m map[int]int64) map[string]int64 {
	out := map[string]int64{}
	for d, v := range m {
		if !strings.HasPrefix(space.Name(d), ":") {
			out[space.Name(d)] = v
		}
	}
	return out
}

func seenQueues(events []admission.Event) map[string]*queue.Queue {
	m := map[string]*queue.Queue{}
	for _, e := range events {
		if q, ok := e.(admission.QueueSeen); ok {
			m[q.Queue.Quota.Name] = q.Queue
		}
	}
	return m
}

func TestConvertClusterQueue(t *testing.T) {
	c, space := newCatalog(), quota.NewSpace()
	c.dirty = true
	c.flavors["a"], c.flavors["b"] = rf("a", map[string]string{"gpu": "a"}), rf("b", nil)
	two := group("a", quotaOf("gpu", "8", "4", "2"))
	two.Flavors = append(two.Flavors, kueue.FlavorQuotas{Name: "b", Resources: []kueue.ResourceQuota{quotaOf("gpu", "16")}})
	c.clusterQueues["alone"] = cqNamed("alone", kueue.ClusterQueueSpec{ResourceGroups: []kueue.ResourceGroup{group("a", quotaOf("gpu", "8"))}})
	c.clusterQueues["member"] = cqNamed("member", kueue.ClusterQueueSpec{
		CohortName: "all", QueueingStrategy: kueue.StrictFIFO, StopPolicy: ptr.To(kueue.Hold),
		FairSharing: &kueue.FairSharing{Weight: ptr.To(resource.MustParse("2500m"))},
		Preemption:  &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerOrNewerEqualPriority, ReclaimWithinCohort: kueue.PreemptionPolicyAny},
		ResourceGroups: []kueue.ResourceGroup{
			two, group("b", quotaOf("cpu", "10"), quotaOf("memory", "1Gi")),
		},
	})
	seen := seenQueues(c.refresh(space))

	alone := seen["alone"]
	if alone.Quota.Parent != "" || alone.Quota.Weight != 1000 || alone.Closed || alone.Strict || alone.Within != queue.WithinNever || alone.Reclaim != queue.ReclaimNever {
		t.Errorf("alone is %+v", alone)
	}
	if got, want := byDimension(space, alone.Quota.Max), (map[string]int64{"a:gpu": 8}); !maps.Equal(got, want) {
		t.Errorf("a queue without a cohort may use %v, want %v", got, want)
	}

	m := seen["member"]
	if m.Quota.Parent != "cohort/all" || m.Quota.Weight != 2500 || !m.Closed || !m.Strict || m.Within != queue.WithinNewer || m.Reclaim != queue.ReclaimAny {
		t.Errorf("member is %+v", m)
	}
	if got, want := byDimension(space, m.Quota.Nominal), (map[string]int64{"a:gpu": 8, "b:gpu": 16, "b:cpu": 10000, "b:memory": 1 << 30}); !maps.Equal(got, want) {
		t.Errorf("member owns %v, want %v", got, want)
	}
	if got, want := byDimension(space, m.Quota.Max), (map[string]int64{"a:gpu": 12}); !maps.Equal(got, want) {
		t.Errorf("member may use %v, want %v", got, want)
	}
	if got, want := byDimension(space, m.Quota.Lendable), (map[string]int64{"a:gpu": 2}); !maps.Equal(got, want) {
		t.Errorf("member lends %v, want %v", got, want)
	}
	var names []string
	for _, f := range m.Flavors {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, []string{"a,b", "b,b"}) || len(m.Flavors[0].All) != 1 || m.Flavors[0].All[0].String() != "gpu=a" {
		t.Errorf("flavors %v, labels of the first %v", names, m.Flavors[0].All)
	}
	// What is listed is charged there, the rest where there is ample of it.
	asked := space.Vector(map[string]int64{"cpu": 100, "gpu": 2, "pods": 1})
	charge := m.Flavors[1].Charge(asked)
	for name, want := range map[string]int64{"b:gpu": 2, "b:cpu": 100, ":pods": 1, "gpu": 0, "cpu": 0, "pods": 0} {
		if d, ok := space.Lookup(name); !ok || charge.At(d) != want {
			t.Errorf("charged %d of %s, want %d", charge.At(d), name, want)
		}
	}
	if d, _ := space.Lookup(":pods"); m.Quota.Nominal[d] != ample {
		t.Error("member does not own ample of pods")
	}
	if events := c.refresh(space); len(events) != 0 {
		t.Errorf("told again: %v", events)
	}
	// A resource that nobody spoke of before.
	space.Index("example.com/new")
	if seen := seenQueues(c.refresh(space)); seen["alone"] == nil || seen["member"] == nil {
		t.Error("queues were not told how a new resource is charged")
	}
}

// A Cohort's own quota comes on top of its members', through levels of cohorts.
func TestConvertCohorts(t *testing.T) {
	c, space := newCatalog(), quota.NewSpace()
	c.dirty = true
	c.flavors["f"] = rf("f", nil)
	for name, cohort := range map[string]kueue.CohortReference{"a": "inner", "b": "inner", "c": "outer"} {
		c.clusterQueues[name] = cqNamed(name, kueue.ClusterQueueSpec{CohortName: cohort, ResourceGroups: []kueue.ResourceGroup{group("f", quotaOf("gpu", "4"))}})
	}
	c.cohorts["inner"] = &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: "inner"}, Spec: kueue.CohortSpec{
		ParentName: "outer", FairSharing: &kueue.FairSharing{Weight: ptr.To(resource.MustParse("3"))},
		ResourceGroups: []kueue.ResourceGroup{group("f", quotaOf("gpu", "2", "5", "6"))},
	}}
	c.cohorts["unused"] = &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: "unused"}}
	seen := seenQueues(c.refresh(space))
	inner, outer := seen["cohort/inner"], seen["cohort/outer"]
	if inner == nil || outer == nil || seen["cohort/unused"] != nil {
		t.Fatalf("cohorts %v", slices.Sorted(maps.Keys(seen)))
	}
	if inner.Quota.Parent != "cohort/outer" || inner.Quota.Weight != 3000 {
		t.Errorf("inner is %+v", inner.Quota)
	}
	for what, m := range map[string]map[int]int64{"owns 10": inner.Quota.Nominal, "may use 15": inner.Quota.Max, "lends 6": inner.Quota.Lendable} {
		var n int64
		for _, v := range byDimension(space, m) {
			n = v
		}
		if !strings.HasSuffix(what, " "+resource.NewQuantity(n, resource.DecimalSI).String()) {
			t.Errorf("inner %s, but it is %d", what, n)
		}
	}
	if outer.Quota.Nominal != nil || outer.Quota.Parent != "" {
		t.Errorf("a cohort by name only is %+v", outer.Quota)
	}
}

func TestConvertVolcanoQueue(t *testing.T) {
	list := func(v string) corev1.ResourceList { return corev1.ResourceList{"gpu": resource.MustParse(v)} }
	for _, test := range []struct {
		name   string
		spec   volcano.QueueSpec
		state  volcano.QueueState
		fault  string
		holds  func(*queue.Queue) bool
		parent string
	}{
		{name: "by weight", spec: volcano.QueueSpec{Weight: 3}, holds: func(q *queue.Queue) bool {
			return q.Quota.Weight == 3000 && q.Quota.Nominal == nil && !q.Closed && !q.Sheltered && q.Reclaim == queue.ReclaimAny
		}},
		{name: "under root", spec: volcano.QueueSpec{Weight: 1, Parent: "root"}, holds: func(q *queue.Queue) bool { return q.Quota.Parent == "" }},
		{name: "under another", spec: volcano.QueueSpec{Weight: 1, Parent: "up"}, holds: func(q *queue.Queue) bool { return q.Quota.Parent == "up" }},
		{name: "a ClusterQueue is no parent", spec: volcano.QueueSpec{Weight: 1, Parent: "cq"}, holds: func(q *queue.Queue) bool { return q.Quota.Parent != "cq" }},
		{name: "with amounts", spec: volcano.QueueSpec{
			Weight: 1, Capability: list("16"), Deserved: list("8"), Guarantee: volcano.Guarantee{Resource: list("2")}, Priority: 5,
			Reclaimable: ptr.To(false), DequeueStrategy: volcano.DequeueStrategyFIFO,
		}, holds: func(q *queue.Queue) bool {
			const d = 3 // the first dimension after those that every Space has
			return q.Quota.Max[d] == 16 && q.Quota.Nominal[d] == 8 && q.Quota.Lendable[d] == 6 && q.Priority == 5 && q.Sheltered && q.Strict
		}},
		{name: "closing", spec: volcano.QueueSpec{Weight: 1}, state: volcano.QueueStateClosing, holds: func(q *queue.Queue) bool { return q.Closed }},
		{name: "open", spec: volcano.QueueSpec{Weight: 1}, state: volcano.QueueStateOpen, holds: func(q *queue.Queue) bool { return !q.Closed }},
		{name: "negative weight", spec: volcano.QueueSpec{Weight: -1}, fault: "spec.weight -1 is negative"},
		{name: "negative amount", spec: volcano.QueueSpec{Weight: 1, Capability: list("-1")}, fault: "spec.capability: gpu of -1 is negative"},
		{name: "more than can be counted", spec: volcano.QueueSpec{Weight: 1, Deserved: list("10E")}, fault: "spec.deserved: gpu of 10E is more than can be counted"},
		{name: "guarantee above deserved", spec: volcano.QueueSpec{Weight: 1, Guarantee: volcano.Guarantee{Resource: list("1")}}, fault: "spec.guarantee: gpu of 1 is more than spec.deserved"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, space := newCatalog(), quota.NewSpace()
			c.clusterQueues["cq"] = cqNamed("cq", kueue.ClusterQueueSpec{})
			v := &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: test.spec, Status: volcano.QueueStatus{State: test.state}}
			q, bad := c.volcanoQueue(space, v)
			switch {
			case test.fault == "" && bad != nil:
				t.Errorf("fault %v", bad)
			case test.fault != "" && (bad == nil || bad.message != test.fault || !q.Closed):
				t.Errorf("fault %v, want %q; closed: %t", bad, test.fault, q.Closed)
			case test.holds != nil && !test.holds(q):
				t.Errorf("converted to %+v", q)
			}
		})
	}
	c := newCatalog()
	c.clusterQueues["cq"] = cqNamed("cq", kueue.ClusterQueueSpec{})
	if q, bad := c.volcanoQueue(quota.NewSpace(), &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: "cq"}}); q != nil || bad == nil {
		t.Errorf("a name that is taken gives %+v, %v", q, bad)
	}
}

func TestThousandth(t *testing.T) {
	for _, test := range []struct {
		q    string
		want int64
		bad  bool
	}{{"2", 2000, false}, {"0", 0, false}, {"0.0001", 1, false}, {"-1", 0, true}, {"2147483648", 0, true}} {
		got, err := thousandth(ptr.To(resource.MustParse(test.q)))
		if got != test.want || (err != nil) != test.bad {
			t.Errorf("weight %s: %d, %v", test.q, got, err)
		}
	}
	if got, _ := thousandth(nil); got != 1000 {
		t.Errorf("no weight is %d", got)
	}
}

// A Workload is charged what its admission says, read back as it was written, also
// where it asks for nothing of a group.
func TestFlavorIsReadBack(t *testing.T) {
	c, space := newCatalog(), quota.NewSpace()
	c.dirty = true
	for _, name := range []string{"a", "b", "x", "y"} {
		c.flavors[name] = rf(name, nil)
	}
	gpus, cpus := group("a", quotaOf("gpu", "8")), group("x", quotaOf("cpu", "8"))
	gpus.Flavors = append(gpus.Flavors, kueue.FlavorQuotas{Name: "b", Resources: []kueue.ResourceQuota{quotaOf("gpu", "8")}})
	cpus.Flavors = append(cpus.Flavors, kueue.FlavorQuotas{Name: "y", Resources: []kueue.ResourceQuota{quotaOf("cpu", "8")}})
	cq := cqNamed("cq", kueue.ClusterQueueSpec{ResourceGroups: []kueue.ResourceGroup{gpus, cpus}})
	c.clusterQueues["cq"] = cq
	c.refresh(space)
	for _, f := range c.flavorsOf("cq") {
		for _, asked := range []corev1.ResourceList{{}, {"cpu": {}}, {"gpu": {}}, {"cpu": {}, "gpu": {}, "memory": {}}} {
			a := &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{Flavors: assigned(cq, f.Name, asked)}}}
			if got := flavorNamed(cq, c.flavorsOf("cq"), a); got != f.Name {
				t.Errorf("%s, asked %v, written %v, read back as %s", f.Name, asked, a.PodSetAssignments[0].Flavors, got)
			}
		}
	}
}
