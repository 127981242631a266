package podgroup

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// TopologyAnnotation on a PodGroup names the Topology whose levels its tiers are,
// where there are several.
const TopologyAnnotation = "sluice.dev/topology"

// level is the label of nodes that the group's network topology stands for: tier 1 is
// the level next above the host of the Topology, and so on; a tier's name is the label
// of a level. note says what cannot be carried out. A hard level that is not known asks
// for a label that no node has, so the group waits and its reason names it.
func (r *Reconciler) level(ctx context.Context, pg *volcano.PodGroup) (request *kueue.PodSetTopologyRequest, note string, err error) {
	nt := pg.Spec.NetworkTopology
	if nt == nil || nt.HighestTierAllowed == nil && nt.HighestTierName == "" {
		return nil, "", nil
	}
	var list kueue.TopologyList
	if err := r.client.List(ctx, &list); err != nil {
		return nil, "", fmt.Errorf("list topologies: %w", err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(t kueue.Topology) bool {
		name := pg.Annotations[TopologyAnnotation]
		return name != "" && t.Name != name
	})
	key, why := "", fmt.Sprintf("there are %d Topologies to read its tiers from, want one, or the annotation %s", len(list.Items), TopologyAnnotation)
	if len(list.Items) == 1 {
		key, why = tier(&list.Items[0], nt)
	}
	soft := nt.Mode == volcano.SoftNetworkTopologyMode
	switch {
	case key == "" && soft:
		return nil, "networkTopology is not heeded: " + why, nil
	case key == "":
		key = "volcano.sh/unknown-tier"
		why = "networkTopology cannot be met: " + why
	default:
		why = ""
	}
	group := ptr.To("podgroup") // all sets share the domain
	if soft {
		return &kueue.PodSetTopologyRequest{Preferred: &key, PodSetGroupName: group}, why, nil
	}
	return &kueue.PodSetTopologyRequest{Required: &key, PodSetGroupName: group}, why, nil
}

// tier is the label of the highest tier that may be crossed, or why there is none.
func tier(t *kueue.Topology, nt *volcano.NetworkTopologySpec) (key, why string) {
	var levels []string // the host's neighbour first
	for _, l := range slices.Backward(t.Spec.Levels) {
		if l.NodeLabel != corev1.LabelHostname {
			levels = append(levels, l.NodeLabel)
		}
	}
	switch name := nt.HighestTierName; {
	case name != "" && slices.Contains(levels, name):
		return name, ""
	case name != "":
		return "", fmt.Sprintf("Topology %s has no level %s", t.Name, name)
	case *nt.HighestTierAllowed == 0:
		return corev1.LabelHostname, ""
	case *nt.HighestTierAllowed < 0 || *nt.HighestTierAllowed > len(levels):
		return "", fmt.Sprintf("Topology %s has %d tiers, not %d", t.Name, len(levels), *nt.HighestTierAllowed)
	}
	return levels[*nt.HighestTierAllowed-1], ""
}

// ask puts the request on every set.
func ask(sets []kueue.PodSet, request *kueue.PodSetTopologyRequest) {
	for i := range sets {
		sets[i].TopologyRequest = request.DeepCopy()
	}
}

// podsOf are the pods of the group, as the cache has them: nobody may change them.
func podsOf(ctx context.Context, c client.Reader, namespace, group string) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := c.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{groupIndex: group}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list pods of PodGroup %s/%s: %w", namespace, group, err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods, nil
}
