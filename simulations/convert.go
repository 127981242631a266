package simulations

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// converter turns objects of the virtual API into what the core sees of them.
// It belongs to one State, whose dimensions it uses.
type converter struct{ space *quota.Space }

// vector is amounts as the core counts them.
func (c converter) vector(as Amounts) quota.Resources {
	var r quota.Resources
	for _, a := range as {
		r.Set(c.space.Index(a.Resource), a.Value)
	}
	return r
}

// bounds is amounts by dimension; nil stays nil, since it means something else
// than nothing.
func (c converter) bounds(as Amounts) map[int]int64 {
	if as == nil {
		return nil
	}
	m := make(map[int]int64, len(as))
	for _, a := range as {
		m[c.space.Index(a.Resource)] = a.Value
	}
	return m
}

// needs is what a pod takes, itself included.
func needs(requests Amounts) Amounts {
	as := Amounts{{ResourcePods, 1}}
	for _, a := range requests {
		if a.Resource == ResourcePods {
			as[0].Value = quota.Sum(as[0].Value, a.Value)
			continue
		}
		as = append(as, a)
	}
	return as
}

func (c converter) node(n *nodeObject) *gang.Node {
	out := &gang.Node{Name: n.Name, Labels: n.labels, Offer: c.vector(n.allocatable())}
	for _, t := range n.taints {
		if hard(t) {
			out.Taints = append(out.Taints, gang.Taint{Key: t.Key, Value: t.Value, Effect: gang.Effect(t.Effect)})
		}
	}
	if n.cordoned {
		out.Outages = append(out.Outages, gang.Outage{What: "cordoned", Closed: true})
	}
	if n.notReady {
		out.Outages = append(out.Outages, gang.Outage{What: gang.NotReady, Closed: true})
	}
	if d := c.deck(n); d != nil {
		return gang.Equip(*out, d)
	}
	return out
}

// hard says that the taint keeps pods away, and does not merely discourage.
func hard(t Taint) bool { return t.Effect != "PreferNoSchedule" }

func (c converter) queue(q *Queue) *queue.Queue {
	return &queue.Queue{
		Quota: quota.Queue{
			Name: q.Name, Parent: q.Parent, Weight: q.WeightMillis,
			Nominal: c.bounds(q.Nominal), Max: c.bounds(q.Max), Lendable: c.bounds(q.Lendable),
		},
		Priority:  q.Priority,
		Strict:    q.Strategy == StrictFIFO,
		Within:    queue.Within(q.WithinQueue),
		Reclaim:   queue.Reclaim(q.Reclaim),
		Sheltered: !q.Reclaimable,
		Closed:    q.Closed,
	}
}

func (c converter) workload(w *workloadObject) *queue.Workload {
	out := &queue.Workload{
		Key: w.key, UID: w.uid, Queue: w.Queue, Priority: w.Priority, Queued: epoch.Add(w.queued),
		Pinned: !w.Preemptible, Held: w.hold, Gate: w.Gate, Invalid: contradiction(&w.Workload),
		Spec: gang.Spec{Level: level(w.Topology)},
	}
	if w.MinTotal != nil {
		out.Spec.MinTotal = int(*w.MinTotal)
	}
	if w.Limit != nil {
		out.Limit = *w.Limit
	}
	for i := range w.PodSets {
		s := &w.PodSets[i]
		out.Spec.PodSets = append(out.Spec.PodSets, gang.PodSet{
			Name: s.Name, Count: int(s.Pods), Min: int(s.Min), Request: c.vector(needs(s.Requests)),
			Filter: filter(s), Level: level(s.Topology), Sharing: sharing(w.Sharing),
		})
	}
	return out
}

// contradiction is why a gang can never run as its owner wrote it, or "".
func contradiction(w *Workload) string {
	total := int64(0)
	for _, s := range w.PodSets {
		if s.Min > s.Pods {
			return fmt.Sprintf("pod set %s has a minimum of %d and only %d pods", s.Name, s.Min, s.Pods)
		}
		total = quota.Sum(total, s.Pods)
	}
	if w.MinTotal != nil && *w.MinTotal > total {
		return fmt.Sprintf("a minimum of %d in all and only %d pods", *w.MinTotal, total)
	}
	return ""
}

func level(t Topology) gang.Level { return gang.Level{Key: t.Level, Required: t.Required} }

func filter(s *PodSet) gang.Filter {
	var f gang.Filter
	for _, l := range s.Selector {
		f.All = append(f.All, gang.Requirement{Key: l.Key, Op: gang.In, Values: []string{l.Value}})
	}
	if len(s.NotNodes) > 0 {
		f.All = append(f.All, gang.Requirement{Key: gang.NameField, Op: gang.NotIn, Values: slices.Clone(s.NotNodes)})
	}
	for _, t := range s.Tolerations {
		f.Tolerations = append(f.Tolerations, gang.Toleration{Key: t.Key, Exists: t.AnyValue, Value: t.Value, Effect: gang.Effect(t.Effect)})
	}
	return f
}

// seen is the workload as an observation; fresh says that it was read after
// the controller's last write to it had ended.
func (c converter) seen(w *workloadObject, fresh bool) admission.WorkloadSeen {
	return admission.WorkloadSeen{
		Workload: c.workload(w), Version: w.version, Fresh: fresh,
		Admission: w.admission, Stopping: w.stopping, StopsFor: w.stopsFor, Finished: w.finished,
	}
}

func (c converter) pod(p *podObject) admission.Pod {
	out := admission.Pod{
		UID: p.uid, Key: p.name, Version: p.version, Set: p.set, Node: p.node, Stopping: p.stopping,
		Stamp: p.stamp, Request: c.vector(needs(p.requests)), Refused: p.refused, Accepted: p.phase == podBound,
	}
	if p.owner != nil {
		out.Workload, out.Queue = p.owner.key, p.owner.Queue
		if p.owner.deleted { // another may have its name by now
			out.Workload = fmt.Sprintf("%s (deleted, %s)", p.owner.key, p.owner.uid)
		}
	}
	switch p.phase {
	case podGated:
		out.Phase = admission.PodGated
	case podBound:
		out.Phase = admission.PodPlaced
	case podSucceeded:
		out.Phase = admission.PodSucceeded
	case podFailed:
		out.Phase = admission.PodFailed
	}
	return out
}

// config is the controller's configuration that a policy asks for.
func config(p *Policy) admission.Config {
	c := admission.DefaultConfig()
	c.ReserveAfter, c.RecoveryWindow, c.MinRuntime = p.ReserveAfter, p.RecoveryWindow, p.MinRuntime
	c.GrowEvery, c.FairReclaim, c.ShortestFirst = p.GrowEvery, p.FairReclaim, p.ShortestFirst
	return c
}
