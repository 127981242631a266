package answer

import (
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// reader turns values of a snapshot into those of the core, and notes what is wrong.
type reader struct {
	dims  map[string]int
	kinds map[string]*gang.Kind
	errs  []error
}

func newReader(names []string, models []Model) *reader {
	r := &reader{dims: map[string]int{}, kinds: map[string]*gang.Kind{}}
	basic := quota.NewSpace()
	for i, name := range names {
		r.dims[name] = i
		if i < basic.Len() && basic.Name(i) != name {
			r.fail("resources", "number %d is %q, not %s", i, name, basic.Name(i))
		}
	}
	if len(r.dims) != len(names) || len(names) < basic.Len() {
		r.fail("resources", "each stands once, cpu, memory and pods first")
	}
	for _, m := range models {
		r.kinds[m.Name] = r.kind(&m)
	}
	return r
}

func (r *reader) fail(where, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...)))
}

func (r *reader) dim(where, name string) int {
	i, ok := r.dims[name]
	if !ok {
		r.fail(where, "%q is not in resources", name)
	}
	return i
}

func (r *reader) kind(m *Model) *gang.Kind {
	k := &gang.Kind{Name: m.Name}
	var profiles []gang.Profile
	for _, p := range m.Profiles {
		k.Slices = append(k.Slices, r.dim("model "+m.Name, p.Resource))
		profiles = append(profiles, gang.Profile{Name: p.Name, Size: p.Size, Starts: p.Starts, Sole: p.Sole})
		if p.Size < 1 || p.Size > 64 {
			r.fail("model "+m.Name, "profile %s covers %d units", p.Name, p.Size)
		}
	}
	switch {
	case m.Units < 0 || m.Units > 64:
		r.fail("model "+m.Name, "%d units", m.Units)
	case m.Units > 0 && len(r.errs) == 0:
		k.Grid = gang.NewGrid(m.Units, profiles)
	}
	return k
}

func (r *reader) amounts(where string, a Amounts) quota.Resources {
	if a == nil {
		return nil
	}
	out := quota.Resources{}
	for name, v := range a {
		if v < 0 {
			r.fail(where, "%s is %d", name, v)
		}
		out.Set(r.dim(where, name), v)
	}
	return out
}

func (r *reader) bounds(where string, a Amounts) map[int]int64 {
	if a == nil {
		return nil
	}
	out := map[int]int64{}
	for name, v := range a {
		out[r.dim(where, name)] = v
	}
	return out
}

func (r *reader) policy(p Policy) admission.Config {
	return admission.Config{
		ReserveAfter: time.Duration(p.ReserveAfter), Reservations: p.Reservations, ShortestFirst: p.ShortestFirst, MostActs: p.MostActs, RecoveryWindow: time.Duration(p.RecoveryWindow),
		MinRuntime: time.Duration(p.MinRuntime), GrowEvery: time.Duration(p.GrowEvery), FairReclaim: p.FairReclaim,
		HalfLife: time.Duration(p.HalfLife), RetryBase: time.Duration(p.RetryBase), RetryMost: time.Duration(p.RetryMost),
	}
}

func (r *reader) node(n *Node) *gang.Node {
	where := "node " + n.Name
	out := &gang.Node{Name: n.Name, Labels: n.Labels, Offer: r.amounts(where, n.Offer), Whole: r.amounts(where, n.Whole), Doubtful: n.Doubtful}
	for _, t := range n.Taints {
		out.Taints = append(out.Taints, gang.Taint{Key: t.Key, Value: t.Value, Effect: gang.Effect(t.Effect)})
	}
	for _, o := range n.Outages {
		out.Outages = append(out.Outages, gang.Outage(o))
	}
	for _, d := range n.Drift {
		out.Drift = append(out.Drift, gang.Difference{About: gang.Drift(d.About), What: d.What, Claimed: d.Claimed, Found: d.Found})
	}
	if c := n.Cards; c != nil {
		out.Cards = r.deck(where, c)
	}
	return out
}

func (r *reader) deck(where string, c *Cards) *gang.Deck {
	var cards []gang.Card
	for _, x := range c.Cards {
		one := gang.Card{Offer: r.amounts(where, x.Offer), Cut: x.Cut, Replicas: x.Replicas, Layout: x.Layout, Out: x.Out}
		if x.Model != "" {
			if one.Kind = r.kinds[x.Model]; one.Kind == nil {
				r.fail(where, "a card is of model %q, which is not in models", x.Model)
			}
		}
		cards = append(cards, one)
	}
	var governs []int
	for _, name := range c.Governs {
		governs = append(governs, r.dim(where, name))
	}
	return gang.NewDeck(cards, r.dim(where, c.Whole), c.Silent, governs...)
}

func (r *reader) queue(q *Queue) *queue.Queue {
	where := "queue " + q.Name
	out := &queue.Queue{
		Quota: quota.Queue{
			Name: q.Name, Parent: q.Parent, Weight: q.Weight,
			Nominal: r.bounds(where, q.Nominal), Max: r.bounds(where, q.Max), Lendable: r.bounds(where, q.Lendable),
		},
		Priority: q.Priority, Strict: q.Strict, Within: queue.Within(q.Within), Reclaim: queue.Reclaim(q.Reclaim), Sheltered: q.Sheltered,
		Closed: q.Closed, Turns: q.Turns, UserMax: r.bounds(where, q.UserMax), BorrowFirst: q.BorrowFirst, PreemptFirst: q.PreemptFirst,
	}
	for _, f := range q.Flavors {
		one := queue.Flavor{Name: f.Name, Roomy: f.Roomy, All: readRequirements(f.Requires), Tolerations: readTolerations(f.Tolerations)}
		for of, as := range f.ChargedAs {
			if one.Dims == nil {
				one.Dims = map[int]int{}
			}
			one.Dims[r.dim(where, of)] = r.dim(where, as)
		}
		if one.Parts = r.bounds(where, f.Parts); f.Parts != nil {
			one.Card = r.dim(where, f.Card)
		}
		out.Flavors = append(out.Flavors, one)
	}
	return out
}

func readRequirements(list []Requirement) []gang.Requirement {
	var out []gang.Requirement
	for _, q := range list {
		out = append(out, gang.Requirement{Key: q.Key, Op: gang.Operator(q.Op), Values: q.Values})
	}
	return out
}

func readTolerations(list []Toleration) []gang.Toleration {
	var out []gang.Toleration
	for _, t := range list {
		out = append(out, gang.Toleration{Key: t.Key, Exists: t.Exists, Value: t.Value, Effect: gang.Effect(t.Effect)})
	}
	return out
}

func readLevel(l *Level) gang.Level {
	if l == nil {
		return gang.Level{}
	}
	return gang.Level{Key: l.Key, Required: l.Required}
}

func (r *reader) workload(x *Workload) admission.Remembered {
	where := "workload " + x.Key
	w := &queue.Workload{
		Key: x.Key, UID: x.UID, Queue: x.Queue, User: x.User, Priority: x.Priority, Queued: x.Queued,
		Spec:   gang.Spec{MinTotal: x.MinTotal, Level: readLevel(x.Level), Roomy: x.Roomy, Stays: r.plan(x.Stays)},
		Pinned: x.Pinned, Limit: time.Duration(x.Limit), MaxRun: time.Duration(x.MaxRun), Held: x.Held, Invalid: x.Invalid,
		After: deref(x.After), Gate: x.Gate, MinRuntime: time.Duration(x.MinRuntime),
	}
	for _, ps := range x.PodSets {
		if ps.Count < 0 || ps.Min < 0 {
			r.fail(where, "pod set %s has count %d and min %d", ps.Name, ps.Count, ps.Min)
		}
		f := gang.Filter{All: readRequirements(ps.All), Tolerations: readTolerations(ps.Tolerations)}
		if ps.Any != nil {
			f.Any = [][]gang.Requirement{}
		}
		for _, term := range ps.Any {
			f.Any = append(f.Any, readRequirements(term))
		}
		set := gang.PodSet{
			Name: ps.Name, Count: ps.Count, Min: ps.Min, Request: r.amounts(where, ps.Request), Filter: f,
			Sharing: gang.Sharing(ps.Sharing), Level: readLevel(ps.Level),
		}
		r.rules(where, &set, &ps)
		w.Spec.PodSets = append(w.Spec.PodSets, set)
	}
	m := admission.Remembered{
		Name: x.Name, Workload: w, Version: x.Version, Phase: admission.Phase(r.word(where, "phase", x.Phase, phases)),
		Admission: r.admission(x.Admission), Done: x.Done, ChargedTo: x.ChargedTo, Flavor: x.Flavor, Unanswered: x.Unanswered,
		Gone: x.Gone, Over: x.Over, Whole: x.Whole, Broken: deref(x.Broken), Leaving: deref(x.Leaving), Grown: deref(x.Grown),
		Refused: x.Refused, Retry: deref(x.Retry), Retrying: x.Retrying,
	}
	if (m.Phase == admission.Admitted) != (m.Admission != nil) {
		r.fail(where, "phase %s goes with an admission if and only if it is Admitted", x.Phase)
	}
	if x.StopsFor != nil {
		m.StopsFor = admission.Claimant{Key: x.StopsFor.Key, UID: x.StopsFor.UID}
	}
	if x.Before != nil {
		m.Before = &admission.Before{Phase: admission.Phase(r.word(where, "before.phase", x.Before.Phase, phases)), Admission: r.admission(x.Before.Admission)}
	}
	for i := range x.Pods {
		m.Pods = append(m.Pods, r.pod(&x.Pods[i]))
	}
	return m
}

func (r *reader) word(where, field, word string, words []string) int {
	i := slices.Index(words, word)
	if i < 0 {
		r.fail(where, "%s is one of %v, not %q", field, words, word)
		return 0
	}
	return i
}

func (r *reader) admission(a *Admission) *admission.Admission {
	if a == nil {
		return nil
	}
	return &admission.Admission{Key: a.Key, UID: a.UID, Queue: a.Queue, Flavor: a.Flavor, Plan: r.plan(a.Plan), At: a.At, Based: a.Based}
}

func (r *reader) plan(sets []SetPlan) gang.Plan {
	var p gang.Plan
	for _, s := range sets {
		out := gang.SetPlan{Name: s.Name}
		for _, slot := range s.Slots {
			if slot.Count < 0 {
				r.fail("plan of "+s.Name, "%d pods on %s", slot.Count, slot.Node)
			}
			out.Slots = append(out.Slots, gang.Slot(slot))
		}
		p.Sets = append(p.Sets, out)
	}
	return p
}

func (r *reader) pod(p *Pod) admission.RememberedPod {
	where := "pod " + p.Key
	return admission.RememberedPod{Pod: admission.Pod{
		UID: p.UID, Key: p.Key, Version: p.Version, Workload: p.Workload, Set: p.Set, Node: p.Node,
		Phase: admission.PodPhase(r.word(where, "phase", p.Phase, podPhases)), Stopping: p.Stopping, Refused: p.Refused,
		Accepted: p.Accepted, Stamp: p.Stamp, Request: r.amounts(where, p.Request), Queue: p.Queue,
	}, Refused: p.Refusals, Retry: deref(p.Retry)}
}

// gridParts is what a grid was made of; nothing of a card that cannot be cut.
func gridParts(g *gang.Grid) (units int, profiles []gang.Profile) {
	if g == nil {
		return 0, nil
	}
	return g.Units(), g.Profiles()
}
