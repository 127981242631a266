package kube

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/gang"
)

func term(key string, match map[string]string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: match}}
}

func shuns(terms ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}

func joins(terms ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}

const zone = "topology.kubernetes.io/zone"

// town is a reader who knows some workloads and pods.
type town struct {
	*reader
	t *testing.T
}

func newTown(t *testing.T) *town {
	r := newReader()
	r.groups = newGroups(r.space, func(ns string) labels.Set { return r.catalog.namespaces[ns] })
	return &town{r, t}
}

// gang is a Workload of one pod set with these labels and this affinity, known to all.
func (x *town) gang(name string, set map[string]string, a *corev1.Affinity, spread ...corev1.TopologySpreadConstraint) *kueue.Workload {
	wl := someWorkload()
	wl.Name = name
	t := &wl.Spec.PodSets[0].Template
	t.Labels, t.Spec.Affinity, t.Spec.TopologySpreadConstraints = set, a, spread
	x.groups.put(socialGang("ns/"+name, wl))
	return wl
}

func (x *town) pod(name string, set map[string]string, a *corev1.Affinity) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: set}, Spec: corev1.PodSpec{NodeName: "n0", Affinity: a}}
	x.groups.put(socialPod(p))
	return p
}

// read is the only pod set of the workload, and what is wrong with it.
func (x *town) read(wl *kueue.Workload) (gang.PodSet, string) {
	x.t.Helper()
	x.groups.settle()
	seen, _ := x.workload(wl)
	return seen.Workload.Spec.PodSets[0], seen.Workload.Invalid
}

func (x *town) dims(p *corev1.Pod) []int { return x.groups.dims(x.groups.all[podID(string(p.UID))], 0) }

// One pod a node: the gang minds its own pods alone, so nobody else has to know.
func TestApartFromItself(t *testing.T) {
	x := newTown(t)
	me := map[string]string{"app": "train"}
	ps, bad := x.read(x.gang("a", me, shuns(term(hostname, me))))
	want := []gang.Apart{{Key: gang.NameField, Group: gang.Group{Sets: []bool{true}}, Most: 1, Text: "pods with app=train"}}
	if bad != "" || !reflect.DeepEqual(ps.Apart, want) || ps.Groups != nil {
		t.Errorf("%q %+v in %v", bad, ps.Apart, ps.Groups)
	}
	// Another gang of the same label comes: both count in one group. It goes again.
	a, b := x.gang("a", me, shuns(term(hostname, me))), x.gang("b", me, nil)
	first, _ := x.read(a)
	second, _ := x.read(b)
	if first.Apart[0].Group.Dim == 0 || len(first.Groups) != 2 || len(second.Groups) != 1 || second.Groups[0] != first.Apart[0].Group.Dim {
		t.Errorf("%+v in %v, other in %v", first.Apart, first.Groups, second.Groups)
	}
	// b has no rule, but a would mind it: so it keeps out of nodes with a.
	if len(second.Apart) != 1 || second.Apart[0].Key != gang.NameField || !strings.Contains(second.Apart[0].Text, "keep apart") {
		t.Errorf("the other: %+v", second.Apart)
	}
	x.groups.drop(gangID("ns/b"))
	if ps, _ := x.read(a); !reflect.DeepEqual(ps.Apart, want) || ps.Groups != nil {
		t.Errorf("alone again: %+v in %v", ps.Apart, ps.Groups)
	}
}

func TestApartFromPods(t *testing.T) {
	x := newTown(t)
	online := map[string]string{"tier": "online"}
	p := x.pod("web", online, nil)
	stranger := x.pod("other", map[string]string{"tier": "batch"}, nil)
	wl := x.gang("a", map[string]string{"app": "train"}, shuns(term(hostname, online)))
	ps, bad := x.read(wl)
	if bad != "" || len(ps.Apart) != 1 || ps.Apart[0].Group.Sets[0] || ps.Groups != nil {
		t.Fatalf("%q %+v in %v", bad, ps.Apart, ps.Groups)
	}
	if got := x.dims(p); len(got) != 1 || got[0] != ps.Apart[0].Group.Dim || x.dims(stranger) != nil {
		t.Errorf("the pod is in %v, the other in %v, want %d", got, x.dims(stranger), ps.Apart[0].Group.Dim)
	}
	elsewhere := x.pod("far", online, nil)
	elsewhere.Namespace = "far"
	x.groups.put(socialPod(elsewhere))
	x.groups.settle()
	if got := x.dims(elsewhere); got != nil {
		t.Errorf("a pod of another namespace is in %v", got)
	}
}

// A pod of a service that keeps apart from batch work keeps gangs off its node.
func TestShunnedByPods(t *testing.T) {
	x := newTown(t)
	batch := map[string]string{"tier": "batch"}
	p := x.pod("web", map[string]string{"app": "web"}, shuns(term(hostname, batch), term(zone, map[string]string{"tier": "x"})))
	ps, bad := x.read(x.gang("a", batch, nil))
	if bad != "" || len(ps.Apart) != 1 || ps.Apart[0].Key != gang.NameField || ps.Apart[0].Group.Sets[0] {
		t.Fatalf("%q %+v", bad, ps.Apart)
	}
	if got := x.dims(p); len(got) != 1 || got[0] != ps.Apart[0].Group.Dim {
		t.Errorf("the pod is in %v, want %d", got, ps.Apart[0].Group.Dim)
	}
	if ps, _ := x.read(x.gang("b", map[string]string{"tier": "c"}, nil)); ps.Apart != nil {
		t.Errorf("one that is not minded: %+v", ps.Apart)
	}
}

func TestSpread(t *testing.T) {
	x := newTown(t)
	me := map[string]string{"app": "train"}
	constraint := corev1.TopologySpreadConstraint{MaxSkew: 2, TopologyKey: zone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: me}}
	ps, bad := x.read(x.gang("a", me, nil, constraint))
	own := gang.Group{Sets: []bool{true}}
	want := gang.Spread{Key: zone, Group: own, Skew: 2, Must: true, Text: "pods with app=train"}
	if bad != "" || !reflect.DeepEqual(ps.Spread, []gang.Spread{want}) || ps.Apart != nil {
		t.Errorf("%q %+v %+v", bad, ps.Spread, ps.Apart)
	}
	constraint.MinDomains, constraint.NodeTaintsPolicy = ptr.To[int32](3), ptr.To(corev1.NodeInclusionPolicyHonor)
	want.Domains, want.Open = 3, true
	ps, bad = x.read(x.gang("a", me, nil, constraint))
	if bad != "" || !reflect.DeepEqual(ps.Spread, []gang.Spread{want}) || len(ps.Apart) != 1 || ps.Apart[0].Most != 2 || ps.Apart[0].Key != gang.NameField {
		t.Errorf("%q %+v %+v", bad, ps.Spread, ps.Apart)
	}
	constraint.WhenUnsatisfiable, constraint.MinDomains, constraint.NodeAffinityPolicy = corev1.ScheduleAnyway, nil, ptr.To(corev1.NodeInclusionPolicyIgnore)
	want.Must, want.Domains, want.All = false, 0, true
	if ps, bad = x.read(x.gang("a", me, nil, constraint)); bad != "" || !reflect.DeepEqual(ps.Spread, []gang.Spread{want}) {
		t.Errorf("%q %+v", bad, ps.Spread)
	}
	constraint.MatchLabelKeys = []string{"rev", "missing"}
	if ps, _ = x.read(x.gang("a", map[string]string{"app": "train", "rev": "7"}, nil, constraint)); ps.Spread[0].Text != "pods with app=train,rev in (7)" {
		t.Errorf("narrowed to %s", ps.Spread[0].Text)
	}
}

// Required affinity to the own gang is a level; to others it is where they are.
func TestJoins(t *testing.T) {
	x := newTown(t)
	me, cache := map[string]string{"app": "train"}, map[string]string{"app": "cache"}
	ps, bad := x.read(x.gang("a", me, joins(term(zone, me))))
	if bad != "" || ps.Level != (gang.Level{Key: zone, Required: true}) || ps.Near != nil {
		t.Errorf("%q %+v %+v", bad, ps.Level, ps.Near)
	}
	ps, bad = x.read(x.gang("a", me, joins(term(zone, cache))))
	if bad != "" || len(ps.Near) != 1 || ps.Near[0].Dim == 0 || ps.Near[0].Self || ps.Level.Key != "" {
		t.Errorf("%q %+v %+v", bad, ps.Level, ps.Near)
	}
	p := x.pod("cache", cache, nil)
	if ps, _ = x.read(x.gang("a", me, joins(term(zone, cache)))); len(x.dims(p)) != 1 || x.dims(p)[0] != ps.Near[0].Dim {
		t.Errorf("the pod is in %v, wanted are %+v", x.dims(p), ps.Near)
	}
	x.gang("b", me, nil)
	if ps, bad = x.read(x.gang("a", me, joins(term(zone, me)))); bad != "" || len(ps.Near) != 1 || !ps.Near[0].Self || ps.Level.Key != zone {
		t.Errorf("beside others: %q %+v %+v", bad, ps.Level, ps.Near)
	}
	wl := x.gang("c", map[string]string{"app": "c"}, joins(term(zone, map[string]string{"app": "c"})))
	wl.Spec.PodSets[0].TopologyRequest = &kueue.PodSetTopologyRequest{Required: ptr.To("rack")}
	if _, bad = x.read(wl); bad != "" {
		t.Errorf("a level and an affinity: %q", bad)
	}
	a := joins(term(zone, map[string]string{"app": "c"}), term("row", map[string]string{"app": "c"}))
	wl.Spec.PodSets[0].Template.Spec.Affinity = a
	x.groups.put(socialGang("ns/c", wl))
	if _, bad = x.read(wl); !strings.Contains(bad, "cannot be planned together") {
		t.Errorf("three levels: %q", bad)
	}
}

func TestWishes(t *testing.T) {
	x := newTown(t)
	prefer := func(weight int32, key string, values ...string) corev1.PreferredSchedulingTerm {
		return corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}}}
	}
	a := &corev1.Affinity{
		NodeAffinity:    &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{prefer(80, "kind", "new"), {Weight: 5}}},
		PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 7, PodAffinityTerm: term(zone, map[string]string{"x": "y"})}}},
		PodAffinity:     &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 9, PodAffinityTerm: term(hostname, map[string]string{"x": "z"})}}},
	}
	ps, bad := x.read(x.gang("a", nil, a))
	if bad != "" || len(ps.Wishes) != 1 || ps.Wishes[0].Weight != 80 || ps.Wishes[0].Terms[0].Key != "kind" || len(ps.Apart) != 2 || ps.Apart[0].Weight != 7 || ps.Apart[1].Weight != -9 {
		t.Errorf("%q %+v %+v", bad, ps.Wishes, ps.Apart)
	}
}

// Labels that a job's controller adds count as the pods' own.
func TestLabelsOfJobs(t *testing.T) {
	x := newTown(t)
	set := map[string]string{"jobset.sigs.k8s.io/jobset-name": "js"}
	wl := x.gang("a", nil, shuns(term(hostname, set)))
	wl.OwnerReferences = []metav1.OwnerReference{{Kind: "JobSet", Name: "js", Controller: ptr.To(true)}}
	x.groups.put(socialGang("ns/a", wl))
	if ps, bad := x.read(wl); bad != "" || !ps.Apart[0].Group.Sets[0] {
		t.Errorf("%q %+v", bad, ps.Apart)
	}
}
