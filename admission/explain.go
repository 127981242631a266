package admission

import (
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// empty is the cluster without pods: as it is, with all hardware in order, with cards
// cut and shared as one likes besides, and with labels and taints disregarded as well.
// recut is nil where no node's cards are known.
type empty struct{ asis, sound, recut, loose *gang.Inventory }

func newEmpty(v *gang.Inventory) *empty {
	e := &empty{
		asis:  v.Vacant(gang.Relax{}),
		sound: v.Vacant(gang.Relax{Hardware: true}),
		loose: v.Vacant(gang.Relax{Labels: true, Layout: true, Hardware: true}),
	}
	if v.Recuttable() {
		e.recut = v.Vacant(gang.Relax{Layout: true, Hardware: true})
	}
	return e
}

// explain says of every workload that waits why it does, if that changed.
func (p *pass) explain() {
	for _, name := range p.s.waiting.Queues() {
		for _, g := range p.s.waiting.Groups(name) {
			p.explainGroup(name, g)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.s.idle)) {
		r := p.s.idle[key]
		p.tell(r, p.unlisted(r), "")
	}
}

// unlisted is why a workload is not even in the waiting set.
func (p *pass) unlisted(r *record) Reason {
	switch {
	case r.w.Held:
		return Reason{Code: Held, Queue: r.w.Queue}
	case r.w.Invalid != "":
		return Reason{Code: Invalid, Queue: r.w.Queue, Detail: r.w.Invalid}
	default:
		return Reason{Code: Held, Queue: r.w.Queue, Detail: r.w.Gate}
	}
}

// explainGroup tells all members of a group. One answer serves them all, but for
// those whose victims stop and those that sit out. If everybody has been told the
// same before, nobody is asked.
func (p *pass) explainGroup(name string, g *queue.Group) {
	head := p.common(g)
	if head == nil {
		p.d.untold[g.Shape] = true
	} else {
		why := p.reasonOf(head, name, g)
		last := p.s.failed[g.Shape]
		text := last.text
		if !why.same(&last.reason) {
			text = p.s.Text(why)
		}
		_, tried := p.failed[g]
		p.d.looked[g.Shape] = glance{tried: tried && !p.fickle[g], barren: p.hopeless[g], changes: p.s.changes, rises: p.s.rises, reason: why, text: text}
		if text == last.text && !p.s.news[g.Shape] {
			return
		}
	}
	for _, w := range g.Members {
		r := p.s.records[w.Key]
		switch {
		case p.admitted[w.Key], r.phase == Stopping:
		case p.s.returns(r):
			p.d.untold[g.Shape] = true
			p.tell(r, Reason{Code: Backoff, Queue: name, Detail: "its own pods from before to be gone"}, "")
		case p.nominated[w.Key] && !r.retry.After(p.now):
			p.d.untold[g.Shape] = true
			p.tell(r, Reason{Code: Preempting, Queue: name, Names: p.victimsOf(w.Key)}, "")
		case !r.settled:
			p.d.untold[g.Shape] = true
		case p.waits(r):
			p.d.untold[g.Shape] = true
			p.tell(r, p.resting(r, name), "")
		case head != nil:
			look := p.d.looked[g.Shape]
			p.tell(r, look.reason, look.text)
		}
	}
}

// common is the first member that shares the common answer, or nil.
func (p *pass) common(g *queue.Group) *record {
	for _, w := range g.Members {
		if r := p.s.records[w.Key]; !p.s.returns(r) && !p.admitted[w.Key] && !p.nominated[w.Key] && !p.waits(r) {
			return r
		}
	}
	return nil
}

func (p *pass) tell(r *record, why Reason, text string) {
	if text == "" {
		text = p.s.Text(why)
	}
	if text != r.told {
		p.d.Verdicts = append(p.d.Verdicts, Verdict{Key: r.w.Key, Reason: why, Text: text})
	}
}

func (p *pass) victimsOf(key string) []string {
	for _, n := range p.d.Nominees {
		if n.Key == key {
			return n.Victims
		}
	}
	return nil
}

// resting is the reason of a workload that sits out until a later try.
func (p *pass) resting(r *record, name string) Reason {
	if why := p.standing(r, name); why.Code != "" {
		return why
	}
	until := r.w.After
	if r.retry.After(until) {
		until = r.retry
	}
	return Reason{Code: Backoff, Queue: name, Until: until}
}

// reasonOf is why the members of g wait: what the queue or the empty cluster says;
// else what this pass found; else, if the pass never came to it, who is before it.
func (p *pass) reasonOf(r *record, name string, g *queue.Group) Reason {
	if why := p.standing(r, name); why.Code != "" {
		return why
	}
	leaf, _ := p.s.tree.ID(name)
	if why, ok := p.failed[g]; ok {
		return p.refresh(r, leaf, why)
	}
	for _, f := range p.s.queues[name].Choices() {
		if lack, ok := p.fits(leaf, f.Charge(r.w.Least())); !ok {
			return Reason{Code: Quota, Queue: name, Bound: p.bound(&lack, false)}
		}
	}
	return Reason{Code: Behind, Queue: name, Names: []string{p.stopped[name]}}
}

// refresh brings the numbers of a reason up to what this pass admitted after it was
// found. Looking at nodes costs, so that ends when the pass has seen enough of them;
// the numbers are then those of an earlier look.
func (p *pass) refresh(r *record, leaf int, why Reason) Reason {
	for _, f := range p.s.queues[r.w.Queue].Choices() {
		switch {
		case why.Code == Quota:
			if lack, ok := p.fits(leaf, f.Charge(r.w.Least())); !ok {
				why.Bound = p.bound(&lack, false)
				return why
			}
		case why.Places != nil && p.looks > 0:
			p.looks -= p.inv.Len()
			spec, sizes := f.Spec(&r.w.Spec), r.w.LeastSizes()
			if _, short := gang.Place(p.inv, spec, sizes); short != nil {
				fresh := p.offerReason(r, offer{spec: spec, short: short})
				fresh.Queue = why.Queue
				return fresh
			}
		}
	}
	return why
}

// standing is a reason that holds whatever else runs: of the queue, or of the
// empty cluster. Its Code is "" if there is none.
func (p *pass) standing(r *record, name string) Reason {
	q := p.s.queues[name]
	leaf, known := p.s.tree.ID(name)
	switch {
	case q != nil && q.Closed:
		return Reason{Code: QueueClosed, Queue: name}
	case q == nil || !known:
		return Reason{Code: QueueMissing, Queue: name}
	case p.s.tree.Ghost(leaf):
		return Reason{Code: QueueMissing, Queue: name, Detail: p.problem(name)}
	case len(p.s.tree.Children(leaf)) > 0:
		return Reason{Code: Invalid, Queue: name, Detail: "queue " + name + " has queues under it; submit to one of these"}
	}
	why, ok := p.s.static[r.w.Shape()]
	if !ok || r.w.Pinned && p.s.tree.Heirs() { // what bounds it follows the demand
		why = p.static(r, leaf, q)
		p.s.static[r.w.Shape()] = why
	}
	return why
}

// problem is what keeps the queue out of the tree.
func (p *pass) problem(name string) string {
	for _, x := range p.s.problems {
		if len(x) > 6+len(name) && x[:6+len(name)] == "queue "+name {
			return x
		}
	}
	return ""
}

// static asks the empty cluster, flavor by flavor, and tells the reason of the
// flavor that comes nearest.
func (p *pass) static(r *record, leaf int, q *queue.Queue) Reason {
	var worst Reason
	for i, f := range q.Choices() {
		why := p.staticOf(r, leaf, f)
		if why.Code == "" {
			return why
		}
		why.Queue = q.Quota.Name
		if i == 0 || rank(why.Code) > rank(worst.Code) {
			worst = why
		}
	}
	return worst
}

func (p *pass) staticOf(r *record, leaf int, f *queue.Flavor) Reason {
	charge := f.Charge(r.w.Least())
	if b := p.never(r, leaf, charge); b != nil {
		return Reason{Code: NeverFits, Bound: b}
	}
	if p.s.empty == nil {
		p.s.empty = newEmpty(p.inv)
	}
	spec, sizes := f.Spec(&r.w.Spec), r.w.LeastSizes()
	tell := func(c Code, v *gang.Inventory, spec *gang.Spec) Reason {
		_, short := gang.Place(v, spec, sizes)
		return Reason{Code: c, Places: p.places(spec, sizes, short, gang.Look(v, spec))}
	}
	anywhere := spec.Loosen()
	switch {
	case gang.Fits(p.s.empty.asis, spec, sizes):
		return Reason{}
	case gang.Fits(p.s.empty.sound, spec, sizes):
		return tell(Hardware, p.s.empty.asis, spec)
	case p.s.empty.recut != nil && gang.Fits(p.s.empty.recut, spec, sizes):
		why := tell(Layout, p.s.empty.sound, spec)
		if plan, short := gang.Place(p.s.empty.recut, spec, sizes); short == nil {
			why.Places.Recut = plan.Nodes()
		}
		return why
	case gang.Fits(p.s.empty.loose, anywhere, sizes):
		return tell(Labels, p.s.empty.sound, spec)
	default:
		return tell(NeverFits, p.s.empty.loose, anywhere)
	}
}

// never is the bound that the claim is above whatever else runs, or nil.
func (p *pass) never(r *record, leaf int, charge quota.Resources) *Bound {
	for at := leaf; at != -1; at = p.s.tree.Parent(at) {
		for i, v := range charge {
			if m := p.s.tree.Max(at, i); v > 0 && m != quota.Unbounded && v > m {
				return p.bound(&quota.Lack{Queue: p.s.tree.Name(at), Resource: i, Bound: m, Asked: v}, false)
			}
		}
	}
	if r.w.Pinned {
		for i, v := range charge {
			if own := p.s.tree.Nominal(leaf).At(i); v > 0 && p.s.tree.Counts(i) && v > own {
				return p.bound(&quota.Lack{Queue: r.w.Queue, Resource: i, Bound: own, Asked: v}, true)
			}
		}
	}
	return nil
}

func (p *pass) bound(l *quota.Lack, pinned bool) *Bound {
	return &Bound{Queue: l.Queue, Resource: p.s.Space.Name(l.Resource), Borrow: l.Borrow, Pinned: pinned, Limit: l.Bound, Used: l.Used, Asked: l.Asked}
}

// shortReason is why this pass could not admit r: of the flavor that came nearest.
func (p *pass) shortReason(r *record, offers []offer) Reason {
	var best Reason
	for i, o := range offers {
		why := p.offerReason(r, o)
		why.Queue = r.w.Queue
		if i == 0 || rank(why.Code) > rank(best.Code) {
			best = why
		}
	}
	return best
}

func (p *pass) offerReason(r *record, o offer) Reason {
	switch {
	case o.lack != nil:
		b := p.bound(o.lack, o.pinned)
		if o.user {
			b.User = r.w.User
		}
		return Reason{Code: Quota, Bound: b}
	case o.behind != "":
		why := Reason{Code: Behind, Names: []string{o.behind}}
		for _, k := range p.keeps {
			if k.key == o.behind {
				why.Until = k.start
			}
		}
		return why
	case p.mute:
		return Reason{Code: Capacity}
	}
	look, sizes := gang.Look(p.inv, o.spec), r.w.LeastSizes()
	code := Capacity
	if o.spec.Request(sizes).Within(look.Free) {
		code = Fragmented
	}
	return Reason{Code: code, Places: p.places(o.spec, sizes, o.short, look)}
}

// places puts numbers to a gang that found no place in v.
func (p *pass) places(spec *gang.Spec, sizes []int, short *gang.Shortfall, look gang.Survey) *Places {
	out := &Places{Sets: short.Sets, Level: short.Level, Cut: short.Cut, Excluded: look.Excluded}
	dim := look.Resource
	out.Resource = p.s.Space.Name(dim)
	out.Asked = spec.Request(sizes).At(dim)
	out.Free = look.Free.At(dim)
	out.Pod = look.Pod
	return out
}

func rank(c Code) int { return slices.Index(codes, c) }

var codes = []Code{Held, QueueClosed, QueueMissing, Invalid, NeverFits, Labels, Layout, Hardware, Quota, Preempting, Behind, Fragmented, Capacity, Backoff}

// Wake is when a cycle should run again though nothing happens until then; zero is
// never.
func (s *State) Wake(now time.Time) time.Time {
	var at time.Time
	want := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, f := range s.refusals {
		want(f.until)
	}
	for _, name := range s.waiting.Queues() {
		for _, g := range s.waiting.Groups(name) {
			s.wakeGroup(g, want)
		}
	}
	for _, r := range s.running {
		if r.phase != Admitted && !r.leaving.IsZero() {
			want(r.leaving.Add(s.cfg.RecoveryWindow))
		}
		if r.phase != Admitted || r.deleted {
			continue
		}
		want(r.retry)
		if r.w.MaxRun > 0 {
			want(r.admission.At.Add(r.w.MaxRun))
		}
		for _, p := range r.pods {
			want(p.retry)
		}
		if !r.broken.IsZero() {
			want(r.broken.Add(s.cfg.RecoveryWindow))
		}
		if r.wantsMore() {
			want(r.grown.Add(s.cfg.GrowEvery))
		}
		if protects := max(s.cfg.MinRuntime, r.w.MinRuntime); protects > 0 {
			want(r.admission.At.Add(protects))
		}
	}
	return at
}

// wakeGroup wants a cycle when room is to be reserved for the first member, and when
// a member that sits out is to be tried again.
func (s *State) wakeGroup(g *queue.Group, want func(time.Time)) {
	want(g.Head().Queued.Add(s.cfg.ReserveAfter))
	if !s.news[g.Shape] {
		return // nobody sits out
	}
	for _, w := range g.Members {
		want(w.After)
		want(s.records[w.Key].retry)
	}
}
