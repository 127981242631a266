package kube

import (
	"context"
	"encoding/json"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/admission"
)

// release lets one gated pod go to its node. The UID in the patch makes sure that
// it is this pod and no later one of its name. No resourceVersion is sent: others
// write pods all the time, and once the gate is gone the API server refuses any
// other node.
func (r *runner) release(ctx context.Context, p *admission.Release) (uint64, error) {
	known := r.pods[types.UID(p.UID)]
	if known == nil {
		return 0, notSent("the pod is gone")
	}
	patch, err := releasePatch(known.seen, p)
	if err != nil {
		return 0, err
	}
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: known.seen.Namespace, Name: known.seen.Name}}
	if err := r.client.Patch(ctx, out, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldOwner)); err != nil {
		return 0, err
	}
	r.log.V(1).Info("pod released", "workload", p.Workload, "pod", p.Key, "node", p.Node)
	return version(out.ResourceVersion), nil
}

// releasePatch is a JSON merge patch. Lists are replaced whole by it, so they are
// sent whole, with what others put there.
func releasePatch(pod *corev1.Pod, p *admission.Release) ([]byte, error) {
	gates := []corev1.PodSchedulingGate{}
	for _, g := range pod.Spec.SchedulingGates {
		if g.Name != gate {
			gates = append(gates, g)
		}
	}
	if p.Node == anywhere { // any node will do, once there is one
		return json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": p.UID, "annotations": map[string]string{StampAnnotation: strconv.FormatInt(p.Stamp, 10)}},
			"spec":     map[string]any{"schedulingGates": gates},
		})
	}
	terms, err := pinned(pod, p.Node)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid": p.UID,
			"annotations": map[string]string{
				NodeAnnotation:  p.Node,
				StampAnnotation: strconv.FormatInt(p.Stamp, 10),
			},
		},
		"spec": map[string]any{
			"affinity": map[string]any{
				"nodeAffinity": map[string]any{
					"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{"nodeSelectorTerms": terms},
				},
			},
			"schedulingGates": gates,
		},
	})
}

// pinned are the pod's required node affinity terms, each with the node's name
// added: one without would let the pod go elsewhere. A term that is empty matches
// nothing, and may not be changed.
func pinned(pod *corev1.Pod, node string) ([]corev1.NodeSelectorTerm, error) {
	here := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
	var have []corev1.NodeSelectorTerm
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		have = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	if len(have) == 0 {
		return []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{here}}}, nil
	}
	open := false
	terms := make([]corev1.NodeSelectorTerm, len(have))
	for i := range have {
		have[i].DeepCopyInto(&terms[i])
		if len(have[i].MatchExpressions)+len(have[i].MatchFields) > 0 {
			terms[i].MatchFields = append(terms[i].MatchFields, here)
			open = true
		}
	}
	if !open {
		return nil, notSent("every node affinity term of the pod is empty, which matches no node")
	}
	return terms, nil
}
