package witness

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/constants"
	utiltas "sigs.k8s.io/kueue/pkg/util/tas"
)

// planned counts the pods of one pod set that an admission puts on each node.
// Nil means that it names no nodes.
func planned(a *kueue.Admission, podSet string) map[string]int32 {
	if a == nil {
		return nil
	}
	for _, assigned := range a.PodSetAssignments {
		if string(assigned.Name) != podSet || assigned.TopologyAssignment == nil {
			continue
		}
		last := len(assigned.TopologyAssignment.Levels) - 1
		if last < 0 || assigned.TopologyAssignment.Levels[last] != corev1.LabelHostname {
			return nil
		}
		count := make(map[string]int32)
		for domain := range utiltas.InternalSeqFrom(assigned.TopologyAssignment) {
			count[domain.Values[last]] += domain.Count
		}
		return count
	}
	return nil
}

// places counts the pods that an admission is for.
func places(a *kueue.Admission) int {
	n := 0
	for _, assigned := range a.PodSetAssignments {
		n += int(ptr.Deref(assigned.Count, 0))
	}
	return n
}

// podSetOf names the pod set of a pod.
func podSetOf(p *Pod) string {
	if name := p.Labels[kueueconstants.PodSetLabel]; name != "" {
		return name
	}
	return string(kueue.DefaultPodSetName)
}

// sharers counts the pods on a node that are there by the same plan: of the same
// gang, pod set and admission, and not over.
func (w *World) sharers(p *Pod) int32 {
	var n int32
	for _, other := range w.Pods {
		if other.Workload == p.Workload && other.Plan == p.Plan && podSetOf(other) == podSetOf(p) &&
			other.Spec.NodeName == p.Spec.NodeName && !other.Ended() && other.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func keyOf(p *Pod) string { return client.ObjectKeyFromObject(p.Pod).String() }
