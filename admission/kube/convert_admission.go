package kube

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	utiltas "sigs.k8s.io/kueue/pkg/util/tas"
	"sigs.k8s.io/kueue/pkg/workload"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
)

// admission is the Workload's admission as the cluster has it, or nil. resolved is
// false if a node of it is known by its host alone, since no such node was seen.
func (r *reader) admission(wl *kueue.Workload) (a *admission.Admission, resolved bool) {
	have := wl.Status.Admission
	if have == nil || !workload.HasQuotaReservation(wl) {
		return nil, true
	}
	name := string(have.ClusterQueue)
	a = &admission.Admission{
		Key: wl.Namespace + "/" + wl.Name, UID: string(wl.UID), Queue: name, At: reservedAt(wl), Based: version(wl.ResourceVersion),
	}
	if flavors := r.catalog.flavorsOf(name); len(flavors) > 0 {
		a.Flavor = flavorNamed(r.catalog.clusterQueueOf(name), flavors, have)
	}
	resolved = true
	for i := range have.PodSetAssignments {
		ps := &have.PodSetAssignments[i]
		set, known := r.setPlan(ps)
		resolved = resolved && known
		a.Plan.Sets = append(a.Plan.Sets, set)
	}
	return a, resolved
}

// setPlan reads where the pods of a set go. An assignment that does not go down to
// nodes names no place: its pods count where they run.
func (r *reader) setPlan(ps *kueue.PodSetAssignment) (set gang.SetPlan, resolved bool) {
	set.Name = string(ps.Name)
	ta := ps.TopologyAssignment
	if r.catalog.nodeless && ta == nil && ps.Count != nil && *ps.Count > 0 {
		set.Slots = []gang.Slot{{Node: anywhere, Count: int(*ps.Count)}}
	}
	if ta == nil || !utiltas.IsLowestLevelHostname(ta.Levels) {
		return set, true
	}
	one := gang.Plan{Sets: []gang.SetPlan{set}}
	resolved = true
	for d := range utiltas.InternalSeqFrom(ta) {
		node, known := r.hosts.node(d.Values[len(d.Values)-1])
		resolved = resolved && known
		one.Add(0, node, int(d.Count))
	}
	return one.Sets[0], resolved
}

// reservedAt is when the Workload was admitted. It makes the stamp on its pods.
func reservedAt(wl *kueue.Workload) time.Time {
	c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
	return c.LastTransitionTime.Time
}

// status is the admission as Workload.status has it. adjusted is the Workload with
// the requests that its pods will have; cq is its queue, nil for one of Volcano's;
// named says whether the flavors that it names exist. host is the hostname label
// of a node.
func status(a *admission.Admission, adjusted *kueue.Workload, cq *kueue.ClusterQueue, named bool, host func(node string) (string, bool)) (*kueue.Admission, bool) {
	out := &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(a.Queue)}
	for i := range adjusted.Spec.PodSets {
		ps := &adjusted.Spec.PodSets[i]
		var set gang.SetPlan
		for _, s := range a.Plan.Sets {
			if s.Name == string(ps.Name) {
				set = s
			}
		}
		psa, ok := assignment(a, ps, set, cq, named, host)
		if !ok {
			return nil, false
		}
		out.PodSetAssignments = append(out.PodSetAssignments, psa)
	}
	return out, true
}

func assignment(a *admission.Admission, ps *kueue.PodSet, set gang.SetPlan, cq *kueue.ClusterQueue, named bool, host func(string) (string, bool)) (kueue.PodSetAssignment, bool) {
	var domains []utiltas.TopologyDomainAssignment
	count := int32(0)
	for _, slot := range set.Slots {
		if slot.Node == anywhere {
			count += int32(slot.Count)
			continue
		}
		value, ok := host(slot.Node)
		if !ok {
			return kueue.PodSetAssignment{}, false
		}
		domains = append(domains, utiltas.TopologyDomainAssignment{Values: []string{value}, Count: int32(slot.Count)})
		count += int32(slot.Count)
	}
	slices.SortFunc(domains, func(x, y utiltas.TopologyDomainAssignment) int { return cmp.Compare(x.Values[0], y.Values[0]) })
	psa := kueue.PodSetAssignment{Name: ps.Name, Count: ptr.To(count), ResourceUsage: corev1.ResourceList{}}
	asked := corev1.ResourceList{}
	for name, q := range perPod(ps) {
		v, err := amount(name, q)
		if err != nil {
			return kueue.PodSetAssignment{}, false
		}
		if v == 0 {
			continue
		}
		asked[name] = q
		psa.ResourceUsage[name] = quantity(name, v*int64(count))
	}
	if covers(cq, corev1.ResourcePods) {
		asked[corev1.ResourcePods] = quantity(corev1.ResourcePods, 1)
		psa.ResourceUsage[corev1.ResourcePods] = quantity(corev1.ResourcePods, int64(count))
	}
	if named {
		psa.Flavors = assigned(cq, cmp.Or(a.Flavor, DefaultFlavor), asked)
	}
	if len(domains) > 0 {
		psa.TopologyAssignment = utiltas.V1Beta2From(&utiltas.TopologyAssignment{Levels: []string{hostname}, Domains: domains})
	}
	return psa, true
}
