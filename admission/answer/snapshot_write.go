package answer

import (
	"maps"
	"slices"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// writer turns values of the core into those of a snapshot.
type writer struct {
	names  []string
	models map[string]bool
	list   []Model
}

func (w *writer) amounts(r quota.Resources) Amounts {
	if r == nil {
		return nil
	}
	a := Amounts{}
	for i, v := range r {
		if v != 0 {
			a[w.names[i]] = v
		}
	}
	return a
}

func (w *writer) bounds(m map[int]int64) Amounts {
	if m == nil {
		return nil
	}
	a := Amounts{}
	for i, v := range m {
		a[w.names[i]] = v
	}
	return a
}

func (w *writer) node(n *gang.Node) Node {
	out := Node{Name: n.Name, Labels: n.Labels, Offer: w.amounts(n.Offer), Whole: w.amounts(n.Whole), Doubtful: n.Doubtful}
	for _, t := range n.Taints {
		out.Taints = append(out.Taints, Taint{t.Key, t.Value, string(t.Effect)})
	}
	for _, o := range n.Outages {
		out.Outages = append(out.Outages, Outage(o))
	}
	for _, d := range n.Drift {
		out.Drift = append(out.Drift, Difference{string(d.About), d.What, d.Claimed, d.Found})
	}
	if d := n.Cards; d != nil {
		out.Cards = w.cards(d)
	}
	return out
}

func (w *writer) cards(d *gang.Deck) *Cards {
	c := &Cards{Whole: w.names[d.Whole], Silent: d.Silent, Governs: []string{}, Cards: []Card{}}
	for i, name := range w.names {
		if d.Governs(i) {
			c.Governs = append(c.Governs, name)
		}
	}
	for i := range d.Cards {
		x := &d.Cards[i]
		one := Card{Offer: w.amounts(x.Offer), Cut: x.Cut, Replicas: x.Replicas, Layout: x.Layout, Out: x.Out}
		if x.Kind != nil && x.Kind.Name != "" { // without a name nothing is known of it
			one.Model = x.Kind.Name
			w.model(x.Kind)
		}
		c.Cards = append(c.Cards, one)
	}
	return c
}

// model notes how cards of the kind can be cut. Kinds of one name are cut alike.
func (w *writer) model(k *gang.Kind) {
	if w.models[k.Name] {
		return
	}
	w.models[k.Name] = true
	m := Model{Name: k.Name}
	units, profiles := gridParts(k.Grid)
	m.Units = units
	for i, p := range profiles {
		m.Profiles = append(m.Profiles, Profile{Name: p.Name, Resource: w.names[k.Slices[i]], Size: p.Size, Starts: p.Starts, Sole: p.Sole})
	}
	w.list = append(w.list, m)
}

func (w *writer) queue(q *queue.Queue) Queue {
	out := Queue{
		Name: q.Quota.Name, Parent: q.Quota.Parent, Weight: q.Quota.Weight,
		Nominal: w.bounds(q.Quota.Nominal), Max: w.bounds(q.Quota.Max), Lendable: w.bounds(q.Quota.Lendable),
		Priority: q.Priority, Strict: q.Strict, Within: string(q.Within), Reclaim: string(q.Reclaim), Sheltered: q.Sheltered,
		Closed: q.Closed, Turns: q.Turns, UserMax: w.bounds(q.UserMax), BorrowFirst: q.BorrowFirst, PreemptFirst: q.PreemptFirst,
	}
	for _, f := range q.Flavors {
		one := Flavor{Name: f.Name, Roomy: f.Roomy, Requires: writeRequirements(f.All), Tolerations: writeTolerations(f.Tolerations)}
		for _, i := range slices.Sorted(maps.Keys(f.Dims)) {
			if one.ChargedAs == nil {
				one.ChargedAs = map[string]string{}
			}
			one.ChargedAs[w.names[i]] = w.names[f.Dims[i]]
		}
		if one.Parts = w.bounds(f.Parts); f.Parts != nil {
			one.Card = w.names[f.Card]
		}
		out.Flavors = append(out.Flavors, one)
	}
	return out
}

func writeRequirements(list []gang.Requirement) []Requirement {
	var out []Requirement
	for _, r := range list {
		out = append(out, Requirement{r.Key, string(r.Op), r.Values})
	}
	return out
}

func writeTolerations(list []gang.Toleration) []Toleration {
	var out []Toleration
	for _, t := range list {
		out = append(out, Toleration{t.Key, t.Exists, t.Value, string(t.Effect)})
	}
	return out
}

func writeLevel(l gang.Level) *Level {
	if l == (gang.Level{}) {
		return nil
	}
	return &Level{l.Key, l.Required}
}

func (w *writer) workload(m *admission.Remembered) Workload {
	x := m.Workload
	out := Workload{
		Name: m.Name, Key: x.Key, UID: x.UID, Queue: x.Queue, User: x.User, Priority: x.Priority, Queued: x.Queued,
		MinTotal: x.Spec.MinTotal, Level: writeLevel(x.Spec.Level), Roomy: x.Spec.Roomy, Pinned: x.Pinned, Limit: Duration(x.Limit), MaxRun: Duration(x.MaxRun),
		Held: x.Held, Invalid: x.Invalid, After: optional(x.After), Gate: x.Gate, MinRuntime: Duration(x.MinRuntime),
		Version: m.Version, Phase: phases[m.Phase], Admission: writeAdmission(m.Admission), Done: m.Done,
		ChargedTo: m.ChargedTo, Flavor: m.Flavor, Unanswered: m.Unanswered, Gone: m.Gone, Over: m.Over, Whole: m.Whole,
		Broken: optional(m.Broken), Leaving: optional(m.Leaving), Grown: optional(m.Grown),
		Refused: m.Refused, Retry: optional(m.Retry), Retrying: m.Retrying, PodSets: []PodSet{},
	}
	if len(x.Spec.Stays.Sets) > 0 {
		out.Stays = writePlan(x.Spec.Stays)
	}
	if m.StopsFor != (admission.Claimant{}) {
		out.StopsFor = &Claimant{Key: m.StopsFor.Key, UID: m.StopsFor.UID}
	}
	for _, ps := range x.Spec.PodSets {
		one := PodSet{
			Name: ps.Name, Count: ps.Count, Min: ps.Min, Request: w.amounts(ps.Request), All: writeRequirements(ps.Filter.All),
			Tolerations: writeTolerations(ps.Filter.Tolerations), Sharing: string(ps.Sharing), Level: writeLevel(ps.Level),
		}
		w.rules(&one, &ps)
		if ps.Filter.Any != nil {
			one.Any = [][]Requirement{}
		}
		for _, term := range ps.Filter.Any {
			one.Any = append(one.Any, writeRequirements(term))
		}
		out.PodSets = append(out.PodSets, one)
	}
	if m.Before != nil {
		out.Before = &Before{Phase: phases[m.Before.Phase], Admission: writeAdmission(m.Before.Admission)}
	}
	for i := range m.Pods {
		out.Pods = append(out.Pods, w.pod(&m.Pods[i]))
	}
	return out
}

func writeAdmission(a *admission.Admission) *Admission {
	if a == nil {
		return nil
	}
	return &Admission{Key: a.Key, UID: a.UID, Queue: a.Queue, Flavor: a.Flavor, Plan: writePlan(a.Plan), At: a.At, Based: a.Based}
}

func (w *writer) pod(p *admission.RememberedPod) Pod {
	return Pod{
		UID: p.UID, Key: p.Key, Version: p.Version, Workload: p.Workload, Set: p.Set, Node: p.Node, Phase: podPhases[p.Phase],
		Stopping: p.Stopping, Refused: p.Pod.Refused, Accepted: p.Accepted, Stamp: p.Stamp, Request: w.amounts(p.Request),
		Queue: p.Queue, Refusals: p.Refused, Retry: optional(p.Retry),
	}
}
