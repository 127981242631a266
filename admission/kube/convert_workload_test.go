package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	utiltas "sigs.k8s.io/kueue/pkg/util/tas"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newReader knows a ClusterQueue "cq" of one flavor, a LocalQueue "main" that leads
// there, and two nodes.
func newReader() *reader {
	r := &reader{space: quota.NewSpace(), catalog: newCatalog(), hosts: newHosts()}
	r.hosts.set("n0", "h0")
	r.hosts.set("n1", "h1")
	c := r.catalog
	c.dirty = true
	c.flavors["f"] = rf("f", nil)
	c.namespaces["ns"] = labels.Set{"team": "a"}
	c.clusterQueues["cq"] = cqNamed("cq", kueue.ClusterQueueSpec{NamespaceSelector: &metav1.LabelSelector{}, ResourceGroups: []kueue.ResourceGroup{group("f", quotaOf("gpu", "8"))}})
	c.localQueues["ns/main"] = &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "main"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "cq"}}
	c.refresh(r.space)
	return r
}

func someWorkload() *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "u", ResourceVersion: "7", CreationTimestamp: metav1.NewTime(epoch)},
		Spec: kueue.WorkloadSpec{QueueName: "main", PodSets: []kueue.PodSet{{
			Name: "main", Count: 4,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container(map[corev1.ResourceName]string{"gpu": "2"})}}},
		}}},
	}
}

func condition(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(epoch.Add(time.Minute))}
}

func admittedTo(hosts map[string]int32) func(*kueue.Workload) {
	return func(wl *kueue.Workload) {
		ta := &utiltas.TopologyAssignment{Levels: []string{hostname}}
		count := int32(0)
		for _, host := range []string{"h0", "h1", "elsewhere"} {
			if n := hosts[host]; n > 0 {
				ta.Domains = append(ta.Domains, utiltas.TopologyDomainAssignment{Values: []string{host}, Count: n})
				count += n
			}
		}
		wl.Status.Conditions = append(wl.Status.Conditions, condition(kueue.WorkloadQuotaReserved, metav1.ConditionTrue, "QuotaReserved"))
		wl.Status.Admission = &kueue.Admission{ClusterQueue: "cq", PodSetAssignments: []kueue.PodSetAssignment{{
			Name: "main", Count: ptr.To(count), Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"gpu": "f"}, TopologyAssignment: utiltas.V1Beta2From(ta),
		}}}
	}
}

func TestConvertWorkload(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*kueue.Workload)
		want   func(admission.WorkloadSeen) bool
	}{
		{"waiting", func(*kueue.Workload) {}, func(s admission.WorkloadSeen) bool {
			w := s.Workload
			ps := w.Spec.PodSets[0]
			return w.Key == "ns/train" && w.Queue == "cq" && w.Queued.Equal(epoch) && s.Version == 7 && s.Admission == nil && !s.Stopping && !s.Finished &&
				ps.Count == 4 && ps.Min == 4 && ps.Request.At(quota.Pods) == 1 && ps.Request.At(3) == 2 && !w.Held && w.Invalid == "" && w.Gate == ""
		}},
		{"elastic", func(wl *kueue.Workload) { wl.Spec.PodSets[0].MinCount = ptr.To[int32](2) }, func(s admission.WorkloadSeen) bool {
			return s.Workload.Spec.PodSets[0].Min == 2
		}},
		{"with a wrong minimum", func(wl *kueue.Workload) { wl.Spec.PodSets[0].MinCount = ptr.To[int32](5) }, func(s admission.WorkloadSeen) bool {
			return strings.Contains(s.Workload.Invalid, "minCount 5")
		}},
		{"with a priority", func(wl *kueue.Workload) { wl.Spec.Priority = ptr.To[int32](-3) }, func(s admission.WorkloadSeen) bool { return s.Workload.Priority == -3 }},
		{"held", func(wl *kueue.Workload) { wl.Spec.Active = ptr.To(false) }, func(s admission.WorkloadSeen) bool { return s.Workload.Held }},
		{"not to be taken back", func(wl *kueue.Workload) { wl.Annotations = map[string]string{PreemptibleAnnotation: "false"} }, func(s admission.WorkloadSeen) bool { return s.Workload.Pinned }},
		{"with a limit that was used in part", func(wl *kueue.Workload) {
			wl.Spec.MaximumExecutionTimeSeconds, wl.Status.AccumulatedPastExecutionTimeSeconds = ptr.To[int32](100), ptr.To[int32](40)
		}, func(s admission.WorkloadSeen) bool { return s.Workload.Limit == time.Minute }},
		{"required level", func(wl *kueue.Workload) {
			wl.Spec.PodSets[0].TopologyRequest = &kueue.PodSetTopologyRequest{Required: ptr.To("rack")}
		}, func(s admission.WorkloadSeen) bool {
			return s.Workload.Spec.PodSets[0].Level == gang.Level{Key: "rack", Required: true}
		}},
		{"preferred level", func(wl *kueue.Workload) {
			wl.Spec.PodSets[0].TopologyRequest = &kueue.PodSetTopologyRequest{Preferred: ptr.To("rack")}
		}, func(s admission.WorkloadSeen) bool {
			return s.Workload.Spec.PodSets[0].Level == gang.Level{Key: "rack"}
		}},
		{"slices of a level", func(wl *kueue.Workload) {
			wl.Spec.PodSets[0].TopologyRequest = &kueue.PodSetTopologyRequest{PodSetSliceRequiredTopology: ptr.To("rack")}
		}, func(s admission.WorkloadSeen) bool { return strings.Contains(s.Workload.Invalid, "slices") }},
		{"two pod sets of one name", func(wl *kueue.Workload) { wl.Spec.PodSets = append(wl.Spec.PodSets, wl.Spec.PodSets[0]) }, func(s admission.WorkloadSeen) bool {
			return s.Workload.Invalid == "two pod sets are called main"
		}},
		{"more than can be counted", func(wl *kueue.Workload) {
			wl.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests["gpu"] = resource.MustParse("10E")
		}, func(s admission.WorkloadSeen) bool {
			return s.Workload.Invalid == "pod set main: a request for gpu of 10E is more than can be counted"
		}},
		{"without a queue", func(wl *kueue.Workload) { wl.Spec.QueueName = "" }, func(s admission.WorkloadSeen) bool { return s.Workload.Invalid == "spec.queueName is empty" }},
		{"in a queue that is missing", func(wl *kueue.Workload) { wl.Spec.QueueName = "no" }, func(s admission.WorkloadSeen) bool { return s.Workload.Queue == "LocalQueue ns/no" }},
		{"to be tried later", func(wl *kueue.Workload) {
			wl.Status.RequeueState = &kueue.RequeueState{RequeueAt: ptr.To(metav1.NewTime(epoch.Add(time.Hour)))}
		}, func(s admission.WorkloadSeen) bool { return s.Workload.After.Equal(epoch.Add(time.Hour)) }},
		{"after its pods were not ready in time", func(wl *kueue.Workload) {
			wl.Status.Conditions = []metav1.Condition{condition(kueue.WorkloadEvicted, metav1.ConditionTrue, kueue.WorkloadEvictedByPodsReadyTimeout)}
		}, func(s admission.WorkloadSeen) bool { return s.Workload.Queued.Equal(epoch.Add(time.Minute)) }},
		{"after it was preempted", func(wl *kueue.Workload) {
			wl.Status.Conditions = []metav1.Condition{condition(kueue.WorkloadEvicted, metav1.ConditionTrue, kueue.WorkloadEvictedByPreemption)}
		}, func(s admission.WorkloadSeen) bool { return s.Workload.Queued.Equal(epoch) && !s.Stopping }},
		{"not requeued by somebody else", func(wl *kueue.Workload) {
			wl.Status.Conditions = []metav1.Condition{condition(kueue.WorkloadRequeued, metav1.ConditionFalse, "Mine")}
		}, func(s admission.WorkloadSeen) bool { return strings.Contains(s.Workload.Gate, "reason Mine") }},
		{"reactivated", func(wl *kueue.Workload) {
			wl.Status.Conditions = []metav1.Condition{condition(kueue.WorkloadRequeued, metav1.ConditionFalse, "DeactivatedDueToMaximumExecutionTimeExceeded")}
		}, func(s admission.WorkloadSeen) bool { return s.Workload.Gate == "" && !s.Workload.Held }},
		{"being deleted", func(wl *kueue.Workload) { wl.DeletionTimestamp = &metav1.Time{Time: epoch} }, func(s admission.WorkloadSeen) bool { return s.Stopping && s.Workload.Gate != "" }},
		{"finished", func(wl *kueue.Workload) {
			admittedTo(map[string]int32{"h0": 4})(wl)
			wl.Status.Conditions = append(wl.Status.Conditions, condition(kueue.WorkloadFinished, metav1.ConditionTrue, "Succeeded"))
		}, func(s admission.WorkloadSeen) bool { return s.Finished }},
		{"admitted", admittedTo(map[string]int32{"h0": 3, "h1": 1}), func(s admission.WorkloadSeen) bool {
			a := s.Admission
			return a != nil && a.Queue == "cq" && a.Flavor == "f" && a.At.Equal(epoch.Add(time.Minute)) && a.Based == 7 && a.Plan.String() == "n0×3 n1×1" && !s.Stopping
		}},
		{"admitted smaller than it asks", func(wl *kueue.Workload) {
			wl.Spec.PodSets[0].MinCount = ptr.To[int32](2)
			admittedTo(map[string]int32{"h0": 3})(wl)
		}, func(s admission.WorkloadSeen) bool {
			ps := s.Workload.Spec.PodSets[0]
			return ps.Count == 3 && ps.Min == 2
		}},
		{"evicted and still admitted", func(wl *kueue.Workload) {
			admittedTo(map[string]int32{"h0": 4})(wl)
			wl.Status.Conditions = append(wl.Status.Conditions, condition(kueue.WorkloadEvicted, metav1.ConditionTrue, "Preempted"))
		}, func(s admission.WorkloadSeen) bool { return s.Stopping }},
		{"with pods that gave their place back", func(wl *kueue.Workload) {
			wl.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: 3}}
		}, func(s admission.WorkloadSeen) bool { return s.Done["main"] == 3 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			wl := someWorkload()
			test.change(wl)
			seen, resolved := newReader().workload(wl)
			if !resolved || !test.want(seen) {
				t.Errorf("resolved: %t; %+v\nadmission %+v", resolved, *seen.Workload, seen.Admission)
			}
		})
	}
}

// A node that was never seen stands for itself until it is.
func TestAdmissionOfUnknownNode(t *testing.T) {
	wl := someWorkload()
	admittedTo(map[string]int32{"h0": 1, "elsewhere": 3})(wl)
	r := newReader()
	if seen, resolved := r.workload(wl); resolved || seen.Admission.Plan.String() != "elsewhere×3 n0×1" {
		t.Errorf("resolved: %t, plan %s", resolved, seen.Admission.Plan)
	}
	r.hosts.set("n9", "elsewhere")
	if seen, resolved := r.workload(wl); !resolved || seen.Admission.Plan.String() != "n0×1 n9×3" {
		t.Errorf("resolved: %t, plan %s", resolved, seen.Admission.Plan)
	}
}

// What is written of a plan is what is read of it.
func TestAdmissionIsReadBack(t *testing.T) {
	r, wl := newReader(), someWorkload()
	wl.Spec.PodSets = append(wl.Spec.PodSets, kueue.PodSet{Name: "none", Template: wl.Spec.PodSets[0].Template})
	a := &admission.Admission{Key: "ns/train", UID: "u", Queue: "cq", Flavor: "f", At: epoch, Plan: gang.Plan{Sets: []gang.SetPlan{
		{Name: "main", Slots: []gang.Slot{{Node: "n0", Count: 1}, {Node: "n1", Count: 3}}}, {Name: "none"},
	}}}
	st, ok := status(a, wl, r.catalog.clusterQueueOf("cq"), true, r.hosts.of)
	if !ok {
		t.Fatal("cannot be written")
	}
	if u := st.PodSetAssignments[0].ResourceUsage["gpu"]; u.Value() != 8 {
		t.Errorf("usage %v", u.String())
	}
	wl.Status.Admission = st
	wl.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(epoch)}}
	seen, _ := r.workload(wl)
	b := seen.Admission
	if b.Plan.String() != a.Plan.String() || b.Queue != a.Queue || b.Flavor != a.Flavor || b.Stamp() != a.Stamp() {
		t.Errorf("wrote %+v, read %+v", a, b)
	}
	if _, ok := status(a, wl, nil, true, func(string) (string, bool) { return "", false }); ok {
		t.Error("a plan with a node that has no host was written")
	}
}

func TestFilter(t *testing.T) {
	spec := &corev1.PodSpec{
		NodeSelector: map[string]string{"b": "2", "a": "1"},
		Tolerations:  []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, {Key: "v", Value: "x"}},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "c", Operator: corev1.NodeSelectorOpGt, Values: []string{"5"}}}, MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n0"}}}},
			{},
		}}}},
	}
	f := filter(spec)
	if got, want := fmt.Sprint(f.All), "[a=1 b=2]"; got != want {
		t.Errorf("all %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(f.Any), "[[c Gt 5 metadata.name=n0] []]"; got != want {
		t.Errorf("any %s, want %s", got, want)
	}
	if want := (gang.Toleration{Key: "k", Exists: true, Effect: gang.NoSchedule}); len(f.Tolerations) != 2 || f.Tolerations[0] != want {
		t.Errorf("tolerations %+v", f.Tolerations)
	}
	if f := filter(&corev1.PodSpec{}); f.Any != nil {
		t.Error("a pod without affinity is kept out everywhere")
	}
}

func TestResolve(t *testing.T) {
	selects := func(team string) func(*catalog) {
		return func(c *catalog) {
			c.clusterQueues["cq"].Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
		}
	}
	for _, test := range []struct {
		name   string
		change func(*catalog)
		want   string // part of what keeps workloads out; "" is nothing
	}{
		{"open", func(*catalog) {}, ""},
		{"selected", selects("a"), ""},
		{"not selected", selects("b"), "its namespaceSelector is team=b"},
		{"no selector", func(c *catalog) { c.clusterQueues["cq"].Spec.NamespaceSelector = nil }, "has no namespaceSelector"},
		{"local queue stopped", func(c *catalog) { c.localQueues["ns/main"].Spec.StopPolicy = ptr.To(kueue.Hold) }, "LocalQueue ns/main to be resumed"},
		{"faulty", func(c *catalog) {
			c.faults[object{clusterQueueKind, "", "cq"}] = faultf("Invalid", "it is wrong")
		}, "ClusterQueue cq: it is wrong"},
		{"to the root", func(c *catalog) { c.localQueues["ns/main"].Spec.ClusterQueue = "root" }, "whole cluster"},
	} {
		c := newReader().catalog
		test.change(c)
		to := c.resolve("ns", "main")
		if got := to.invalid + to.gate; (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %+v", test.name, to)
		}
	}
}

func TestShortList(t *testing.T) {
	long := strings.Split("abcdefghij", "")
	if got, want := shortList(long), "a, b, c, d, e, f, g, h and 2 more nodes"; got != want {
		t.Errorf("%q", got)
	}
}
