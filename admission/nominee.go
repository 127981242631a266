package admission

import (
	"maps"
	"slices"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// nominate decides that the victims stop, and keeps what they free for r. If nobody who
// runs has to stop, r is admitted.
func (p *pass) nominate(r *record, leaf int, o offer, victims []victim) {
	victims = p.unstarted(victims)
	if len(victims) == 0 && p.placeFree(r, leaf, &o) {
		p.admit(r, leaf, o)
		return
	}
	p.fork()
	if p.s.returns(r) { // nobody stops for it before it can start
		for _, v := range victims {
			p.returned.Add(v.charge)
		}
		p.keepFor(r, leaf, o, loadsOf(victims))
		p.nominated[r.w.Key] = true
		return
	}
	n := Nominee{Key: r.w.Key, UID: r.w.UID, Flavor: flavorName(o.flavor)}
	n.Victims, n.Awaited = p.takeAll(r, victims)
	p.loosened = true // who failed before may have the quota that is left over
	if plan, ok := p.keepFor(r, leaf, o, loadsOf(victims)); ok {
		n.Plan = plan
	}
	p.d.Nominees = append(p.d.Nominees, n)
}

// unstarted does not start those victims after all that this pass would have started,
// and returns the others.
func (p *pass) unstarted(victims []victim) []victim {
	done := map[*record]bool{}
	for _, v := range victims {
		if done[v.r] || !p.isBegun(v.r) {
			continue
		}
		done[v.r] = true
		if goes(victims, v.r) {
			p.cancel(v.r)
		} else {
			p.cutBack(v.r, victims)
		}
	}
	return slices.DeleteFunc(slices.Clone(victims), func(v victim) bool { return done[v.r] })
}

// placeFree finds the places of the offer in room that is free now, if there is the
// quota as well.
func (p *pass) placeFree(r *record, leaf int, o *offer) bool {
	if _, ok := p.today.Fits(leaf, o.charge); !ok {
		return false
	}
	defer p.takeKeeps(p.endOf(r.w), nil)()
	o.plan, o.short = gang.Place(p.inv, o.spec, r.w.LeastSizes())
	o.fits = o.short == nil
	return o.fits
}

// takeAll takes the victims back for r and names them; some of them may stop anyway.
func (p *pass) takeAll(r *record, victims []victim) (names []string, awaited bool) {
	for i, v := range victims {
		if slices.ContainsFunc(victims[:i], func(x victim) bool { return x.r == v.r }) {
			continue // taken with its first part
		}
		names = append(names, v.r.key)
		switch {
		case v.going:
			awaited = true
		case goes(victims, v.r):
			p.takeFor(r, v.r)
		default:
			p.shrink(v.r, victims)
		}
	}
	slices.Sort(names)
	return names, awaited
}

func loadsOf(victims []victim) []load {
	loads := make([]load, len(victims))
	for i, v := range victims {
		loads[i] = v.load
	}
	return loads
}

// keepRoom keeps, on the nodes alone, the places that the offer will have once the
// victims are gone.
func (p *pass) keepRoom(r *record, o offer, victims []load) {
	mark := p.inv.Mark()
	for _, v := range victims {
		for _, h := range v.rooms {
			p.inv.Give(h.node, h.amount)
		}
	}
	plan, short := gang.Place(p.inv, o.spec, o.sizesFor(r))
	p.inv.Undo(mark)
	if short != nil {
		return
	}
	for _, v := range victims {
		p.replaced[v.r] = true
	}
	k := kept{key: r.w.Key, rooms: beyond(o.spec, plan, victims)}
	for _, h := range k.rooms {
		p.inv.Take(h.node, h.amount)
	}
	p.promised = append(p.promised, k)
}

// sizesFor is how many pods of each pod set the offer is for.
func (o *offer) sizesFor(r *record) []int {
	if o.sizes != nil {
		return o.sizes
	}
	return r.w.LeastSizes()
}

// takeFor evicts x whole for r.
func (p *pass) takeFor(r, x *record) {
	cause := Reclaimed
	if x.queue == r.w.Queue {
		cause = Preempted
	}
	p.evicted[x] = true
	p.d.Evict = append(p.d.Evict, Eviction{Key: x.w.Key, UID: x.w.UID, Cause: cause, For: r.w.Key, ForUID: r.w.UID, Based: x.version})
}

// shrink takes the surplus of x that is among the victims out of its plan.
func (p *pass) shrink(x *record, victims []victim) {
	a := *x.admission
	a.Plan, a.Based = a.Plan.Clone(), x.version
	for _, v := range victims {
		if v.r == x {
			a.Plan.Add(v.set, v.node, -1)
		}
	}
	p.evicted[x] = true // not touched again in this pass
	p.d.Move = append(p.d.Move, a)
}

// fork makes later a ledger of its own, from which victims are gone already.
func (p *pass) fork() {
	if p.later == p.today {
		p.later = p.today.Clone()
		if p.arena != nil {
			p.arena = queue.NewContest(p.later, p.priority, p.head)
		}
	}
}

// keepFor finds the places that r will have once the victims are gone, and keeps
// them. It reports whether there are any.
func (p *pass) keepFor(r *record, leaf int, o offer, victims []load) (gang.Plan, bool) {
	mark := p.inv.Mark()
	for _, v := range victims {
		for _, h := range v.rooms {
			p.inv.Give(h.node, h.amount)
		}
	}
	unmark := p.takeKeeps(p.endOf(r.w), victims)
	plan, short := gang.Place(p.inv, o.spec, r.w.LeastSizes())
	unmark()
	p.inv.Undo(mark)
	if short != nil {
		return gang.Plan{}, false
	}
	p.keepPlan(r, leaf, o, plan, victims)
	return plan, true
}

// keepPlan puts r on the books in place of the victims: in the later ledger, and on
// the nodes as far as what the victims hold there does not cover it yet.
func (p *pass) keepPlan(r *record, leaf int, o offer, plan gang.Plan, victims []load) {
	for _, v := range victims {
		id, _ := p.s.tree.ID(v.r.queue)
		p.later.Release(id, v.charge)
		p.replaced[v.r] = true
		if p.arena != nil {
			p.arena.Changed(id)
		}
	}
	p.later.Charge(leaf, o.charge)
	k := kept{key: r.w.Key, charge: o.charge, rooms: beyond(o.spec, plan, victims)}
	for _, h := range k.rooms {
		p.inv.Take(h.node, h.amount)
	}
	p.promised = append(p.promised, k)
	p.nominated[r.w.Key] = true
	p.renounce(victims)
}

// beyond is what the plan takes on each node beyond what the victims hold there.
func beyond(spec *gang.Spec, plan gang.Plan, victims []load) []holding {
	freed := map[string]quota.Resources{}
	for _, v := range victims {
		for _, h := range v.rooms {
			sum := freed[h.node]
			sum.Add(h.amount)
			freed[h.node] = sum
		}
	}
	need := needs(spec, plan)
	var rooms []holding
	for _, node := range plan.Nodes() {
		room := need[node]
		room.Sub(freed[node])
		for i := range room {
			room[i] = max(0, room[i])
		}
		rooms = append(rooms, holding{node, room})
	}
	return rooms
}

// needs is what the plan takes by node.
func needs(spec *gang.Spec, plan gang.Plan) map[string]quota.Resources {
	m := map[string]quota.Resources{}
	for i, set := range plan.Sets {
		for _, slot := range set.Slots {
			sum := m[slot.Node]
			sum.Add(spec.PodSets[i].Request.Times(slot.Count))
			m[slot.Node] = sum
		}
	}
	return m
}

// handOver serves the claims that have room of their own before all others: those
// whose admission was refused and is tried again soon, and those for which victims
// stop. First the room of all of them is kept, so that none takes another's; then
// those are admitted whose room is free. Who lost its places looks for others last.
func (p *pass) handOver() {
	for _, key := range slices.Sorted(maps.Keys(p.s.retrying)) {
		if r := p.s.retrying[key]; r.retry.After(p.now) && p.s.waiting.Has(key) {
			p.keepPlace(r)
		}
	}
	var held, adrift []nominee
	for _, n := range p.nominees() {
		x, ok := p.look(n)
		switch {
		case !ok:
		case p.unanswered(n):
			p.nominated[n.Key] = true
			p.d.Nominees = append(p.d.Nominees, n)
		case p.stands(x):
			p.keepPlan(x.r, x.leaf, x.offer, n.Plan, x.victims)
			held = append(held, x)
		default:
			adrift = append(adrift, x)
		}
	}
	for _, x := range held {
		if !p.takeOver(x) {
			p.d.Nominees = append(p.d.Nominees, x.Nominee)
		}
	}
	for _, x := range adrift {
		x.victims = p.stopping(x.Nominee) // less what has been given to another since
		p.serve(x)
	}
}

// nominees are the claims for which victims stop: those that the last cycle knew, and
// those that only the victims name, after a restart. The places of these are not
// known any more; they are looked for among what the victims free.
func (p *pass) nominees() []Nominee {
	list := slices.Clone(p.s.nominees)
	for _, v := range p.crewed().going {
		c := v.stopsFor
		if c.UID == "" || !p.s.waiting.Has(c.Key) || slices.ContainsFunc(p.s.nominees, func(n Nominee) bool { return n.UID == c.UID }) {
			continue
		}
		at := slices.IndexFunc(list, func(n Nominee) bool { return n.UID == c.UID })
		if at < 0 {
			at, list = len(list), append(list, Nominee{Key: c.Key, UID: c.UID})
		}
		list[at].Victims = append(slices.Clip(list[at].Victims), v.key)
	}
	return list
}

// keepDied takes off the books of the nodes what claims for which victims stop will
// have of them, and returns how to put it back.
func (p *pass) keepDied() (back func()) {
	var taken []holding
	for _, n := range p.nominees() {
		x, ok := p.look(n)
		if !ok || p.unanswered(n) || !p.stands(x) {
			continue
		}
		for _, h := range beyond(x.offer.spec, x.Plan, x.victims) {
			p.inv.Take(h.node, h.amount)
			taken = append(taken, h)
		}
	}
	return func() {
		for _, h := range taken {
			p.inv.Give(h.node, h.amount)
		}
	}
}

// nominee is a Nominee with what this pass knows of it.
type nominee struct {
	Nominee
	r       *record
	leaf    int
	queue   *queue.Queue
	offer   offer  // in the flavor in which it was nominated
	victims []load // what they still hold
}

// look puts a nominee together, if it is one still.
func (p *pass) look(n Nominee) (nominee, bool) {
	x := nominee{Nominee: n, r: p.s.records[n.Key]}
	if x.r == nil || x.r.w.UID != n.UID || p.s.returns(x.r) || !p.s.waiting.Has(n.Key) || p.waits(x.r) {
		return x, false
	}
	if x.leaf, x.queue = p.standingQueue(x.r); x.queue == nil {
		return x, false
	}
	x.victims = p.stopping(n)
	if n.Awaited && slices.ContainsFunc(x.victims, func(l load) bool { return p.stuck(l.r) }) {
		return x, false
	}
	f := x.queue.Flavor(n.Flavor)
	x.offer = offer{flavor: f, spec: f.Spec(&x.r.w.Spec), charge: f.Charge(x.r.w.Least()), plan: n.Plan}
	return x, n.Flavor == "" || f != nil
}

// stands says whether the places of the nominee can still be kept for it.
func (p *pass) stands(x nominee) bool {
	if !slices.Equal(x.Plan.Sizes(), x.r.w.LeastSizes()) || !p.fitsWithout(x.victims, x.leaf, x.offer) {
		return false
	}
	for i, set := range x.Plan.Sets {
		for _, slot := range set.Slots {
			if !p.usable(slot.Node, &x.offer.spec.PodSets[i]) {
				return false
			}
		}
	}
	for _, h := range beyond(x.offer.spec, x.Plan, x.victims) {
		if !h.amount.Within(p.inv.Free(h.node)) {
			return false
		}
	}
	return true
}

// takeOver admits a nominee whose room, which is kept, is all free by now.
func (p *pass) takeOver(x nominee) bool {
	own := slices.IndexFunc(p.promised, func(k kept) bool { return k.key == x.Key })
	k := p.promised[own]
	mark := p.inv.Mark()
	for _, h := range k.rooms {
		p.inv.Give(h.node, h.amount)
	}
	free := true
	for node, need := range needs(x.offer.spec, x.Plan) {
		free = free && need.Within(p.inv.Free(node))
	}
	p.inv.Undo(mark)
	if _, ok := p.today.Fits(x.leaf, x.offer.charge); !ok || !free || !p.ownFits(x.r, x.leaf, x.offer.charge) || p.outranked(x.r, x.offer.charge) {
		return false
	}
	for _, h := range k.rooms {
		p.inv.Give(h.node, h.amount)
	}
	p.later.Release(x.leaf, x.offer.charge)
	p.promised = slices.Delete(p.promised, own, own+1)
	delete(p.nominated, x.Key)
	p.admit(x.r, x.leaf, x.offer)
	return true
}

// standingQueue is the queue of r if it may admit anything at all.
func (p *pass) standingQueue(r *record) (leaf int, q *queue.Queue) {
	leaf, ok := p.s.tree.ID(r.w.Queue)
	q = p.s.queues[r.w.Queue]
	if !ok || q == nil || q.Closed || p.s.tree.Ghost(leaf) {
		return 0, nil
	}
	return leaf, q
}

// keepPlace keeps room for r, which fits but cannot be tried now.
func (p *pass) keepPlace(r *record) {
	leaf, q := p.standingQueue(r)
	if q == nil {
		return
	}
	for _, f := range q.Choices() {
		if o := p.offer(r, leaf, f); o.fits {
			p.fork()
			p.keepFor(r, leaf, o, nil)
			return
		}
	}
}

// serve admits a nominee that lost its places where it fits now, or finds others that
// its victims free.
func (p *pass) serve(x nominee) {
	for _, f := range x.queue.Choices() {
		o := p.offer(x.r, x.leaf, f)
		if o.fits {
			p.admit(x.r, x.leaf, o)
			return
		}
		if len(x.victims) == 0 || !p.fitsWithout(x.victims, x.leaf, o) {
			continue
		}
		if plan, ok := p.keepFor(x.r, x.leaf, o, x.victims); ok {
			x.Plan, x.Flavor = plan, flavorName(f)
			p.d.Nominees = append(p.d.Nominees, x.Nominee)
			return
		}
	}
}

// fitsWithout asks the later ledger for the offer's quota once the loads are gone.
func (p *pass) fitsWithout(gone []load, leaf int, o offer) bool {
	p.fork()
	mark := p.later.Mark()
	defer p.later.Undo(mark)
	for _, l := range gone {
		id, _ := p.s.tree.ID(l.r.queue)
		p.later.Release(id, l.charge)
	}
	_, fits := p.later.Fits(leaf, o.charge)
	return fits
}

// unanswered says whether the write that takes a victim of n back was refused and is
// tried again later, or has had no answer yet: nobody else is taken meanwhile.
func (p *pass) unanswered(n Nominee) bool {
	return slices.ContainsFunc(n.Victims, func(key string) bool {
		v := p.s.records[key]
		return v != nil && v.phase == Admitted && p.waits(v)
	})
}

// stopping is what the victims of n still hold of what they have to give.
func (p *pass) stopping(n Nominee) []load {
	var list []load
	for _, key := range n.Victims {
		v := p.s.records[key]
		if v == nil || p.replaced[v] || len(v.held) == 0 {
			continue
		}
		leaving := maps.Clone(v.held)
		if v.phase == Admitted {
			for k, n := range v.promised() {
				leaving[k] = max(0, leaving[k]-n)
			}
		}
		if l := v.loadOf(leaving); !l.charge.IsZero() {
			list = append(list, l)
		}
	}
	return list
}
