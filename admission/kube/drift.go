package kube

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kueue/pkg/util/api"

	"sluice.dev/sluice/admission/answer"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// DriftCondition is the type of the condition of a SliceInventory that says whether
// the node's labels and allocatable say something else than its cards.
const DriftCondition = "Drift"

// sayDrift has the condition of the node's inventory written, if it says something
// else than it did.
func (r *runner) sayDrift(name string) {
	known, inv := r.nodes[name], r.agents.inventories[name]
	if known == nil || known.node == nil || inv == nil {
		delete(r.drifted, name)
		return
	}
	want := driftCondition(name, known.node.Drift, r.selecting)
	text := want.Reason + " " + want.Message
	if r.drifted[name] == text {
		return
	}
	r.drifted[name] = text
	r.chores.send("drift "+name, func(ctx context.Context) error { return r.writeDrift(ctx, name, want) })
}

func (r *runner) writeDrift(ctx context.Context, name string, want metav1.Condition) error {
	inv := &v1alpha1.SliceInventory{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, inv); err != nil {
		return client.IgnoreNotFound(err)
	}
	old := inv.DeepCopy()
	want.ObservedGeneration = inv.Generation
	want.LastTransitionTime = metav1.NewTime(r.clock.Now())
	was := apimeta.FindStatusCondition(old.Status.Conditions, DriftCondition)
	if was != nil && was.Status == want.Status && was.Reason == want.Reason && was.Message == want.Message {
		return nil
	}
	apimeta.SetStatusCondition(&inv.Status.Conditions, want)
	if err := r.client.Status().Patch(ctx, inv, client.MergeFrom(old), client.FieldOwner(FieldOwner)); err != nil {
		return client.IgnoreNotFound(err)
	}
	if want.Status == metav1.ConditionTrue || was != nil {
		kind := corev1.EventTypeNormal
		if want.Status == metav1.ConditionTrue {
			kind = corev1.EventTypeWarning
		}
		about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name}
		r.recorder.Event(about, kind, "Drift"+want.Reason, api.TruncateEventMessage(want.Message))
	}
	return nil
}

// driftCondition says how the node and its cards differ, each difference with what
// mends it and with how many workloads that wait it matters to.
func driftCondition(node string, list []gang.Difference, selecting func(key, value string) int) metav1.Condition {
	c := metav1.Condition{Type: DriftCondition, Status: metav1.ConditionFalse, Reason: "InStep", Message: "The node says what its cards are"}
	if len(list) == 0 {
		return c
	}
	c.Status, c.Reason = metav1.ConditionTrue, camel(string(list[0].About))
	var parts []string
	for _, d := range list {
		text := answer.DriftText(d)
		if n := selecting(d.What, d.Found); n > 0 {
			text += fmt.Sprintf(" (%d waiting workloads select it)", n)
		}
		if mend := answer.Mend(node, d); mend != "" {
			text += "; mend: " + mend
		}
		parts = append(parts, text)
	}
	c.Message = api.TruncateConditionMessage(strings.Join(parts, "\n"))
	return c
}

// selecting counts the waiting workloads of which a pod set wants the label.
func (r *runner) selecting(key, value string) int {
	if value == "" {
		return 0
	}
	n := 0
	for _, known := range r.workloads {
		if !known.admitted && !known.finished && selects(&known.workload.Spec, key, value) {
			n++
		}
	}
	return n
}

func selects(spec *gang.Spec, key, value string) bool {
	wants := func(list []gang.Requirement) bool {
		for _, q := range list {
			if q.Key != key || q.Op != gang.In {
				continue
			}
			for _, v := range q.Values {
				if v == value {
					return true
				}
			}
		}
		return false
	}
	for i := range spec.PodSets {
		f := &spec.PodSets[i].Filter
		if wants(f.All) {
			return true
		}
		for _, term := range f.Any {
			if wants(term) {
				return true
			}
		}
	}
	return false
}

func camel(word string) string {
	if word == "" {
		return ""
	}
	return strings.ToUpper(word[:1]) + word[1:]
}
