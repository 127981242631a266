package kube

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kueue/pkg/util/api"

	"sluice.dev/sluice/admission/answer"
	"sluice.dev/sluice/gang"
)

// LabelPolicy is labels that the nodes with other labels should have.
type LabelPolicy struct {
	Name     string
	Selector map[string]string // labels of its nodes, all of them; not empty
	Labels   map[string]string
	Enforce  bool // put back what is missing; else only say so
}

func (p *LabelPolicy) selects(n *corev1.Node) bool {
	for k, v := range p.Selector {
		if has, ok := n.Labels[k]; !ok || has != v {
			return false
		}
	}
	return true
}

// missing are the declared labels that the node does not have as declared, in the
// order of the policies, then of the keys.
func missing(policies []LabelPolicy, n *corev1.Node) []gang.Difference {
	var list []gang.Difference
	for i := range policies {
		p := &policies[i]
		if !p.selects(n) {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
			if has, ok := n.Labels[key]; !ok || has != p.Labels[key] {
				list = append(list, gang.Difference{About: gang.DriftLabels, What: key, Claimed: has, Found: p.Labels[key]})
			}
		}
	}
	return list
}

// putBack says which declared labels the node lacks, and sets those that a policy
// enforces. One that somebody else sets otherwise again and again is set again as
// often as it is seen; no more.
func (r *runner) putBack(n *corev1.Node) {
	set := map[string]string{}
	for i := range r.policies {
		p := r.policies[i : i+1]
		lacks, about := missing(p, n), object{nodeKind, p[0].Name, n.Name}
		if len(lacks) == 0 {
			delete(r.lacking, about)
			continue
		}
		text := ""
		for _, d := range lacks {
			text += answer.DriftText(d) + " (policy " + p[0].Name + "); mend: " + answer.Mend(n.Name, d) + "\n"
			if p[0].Enforce {
				set[d.What] = d.Found
			}
		}
		if r.lacking[about] != text {
			r.lacking[about] = text
			r.recorder.Event(&corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.Name}, corev1.EventTypeWarning, "LabelsMissing", api.TruncateEventMessage(text))
		}
	}
	if len(set) == 0 {
		return
	}
	r.chores.send("labels "+n.Name, func(ctx context.Context) error {
		next := n.DeepCopy()
		if next.Labels == nil {
			next.Labels = map[string]string{}
		}
		maps.Copy(next.Labels, set)
		err := r.client.Patch(ctx, next, client.MergeFrom(n), client.FieldOwner(FieldOwner))
		if apierrors.IsForbidden(err) {
			r.log.Info("labels of a node cannot be put back", "node", n.Name, "reason", err.Error())
			return nil
		}
		if err == nil {
			r.log.Info("labels of a node put back", "node", n.Name, "labels", set)
		}
		return client.IgnoreNotFound(err)
	})
}
