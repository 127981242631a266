package admission

import (
	"maps"
	"slices"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// nominate decides that the victims stop, and keeps what they free for r.
func (p *pass) nominate(r *record, leaf int, o offer, victims []victim) {
	n := Nominee{Key: r.w.Key}
	var loads []load
	for i, v := range victims {
		loads = append(loads, v.load)
		if slices.ContainsFunc(victims[:i], func(x victim) bool { return x.r == v.r }) {
			continue // told with its first part
		}
		n.Victims = append(n.Victims, v.r.key)
		switch {
		case v.going:
			n.Awaited = true
		case goes(victims, v.r):
			p.takeFor(r, v.r)
		default:
			p.shrink(v.r, victims)
		}
	}
	slices.Sort(n.Victims)
	p.fork()
	p.keepFor(r, leaf, o, loads)
	p.d.Nominees = append(p.d.Nominees, n)
}

// takeFor evicts x whole for r.
func (p *pass) takeFor(r, x *record) {
	cause := Reclaimed
	if x.queue == r.w.Queue {
		cause = Preempted
	}
	p.evicted[x] = true
	p.d.Evict = append(p.d.Evict, Eviction{Key: x.w.Key, UID: x.w.UID, Cause: cause, For: r.w.Key, Based: x.version})
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

// keepFor puts r on the books in place of the victims: in the later ledger, and on
// the nodes as far as what the victims hold there does not cover it yet.
func (p *pass) keepFor(r *record, leaf int, o offer, victims []load) bool {
	mark := p.inv.Mark()
	freed := map[string]quota.Resources{}
	for _, v := range victims {
		for _, h := range v.rooms {
			p.inv.Give(h.node, h.amount)
			sum := freed[h.node]
			sum.Add(h.amount)
			freed[h.node] = sum
		}
	}
	plan, short := gang.Place(p.inv, o.spec, r.w.LeastSizes())
	p.inv.Undo(mark)
	if short != nil {
		return false
	}
	for _, v := range victims {
		id, _ := p.s.tree.ID(v.r.queue)
		p.later.Release(id, v.charge)
		p.replaced[v.r] = true
		if p.arena != nil {
			p.arena.Changed(id)
		}
	}
	p.later.Charge(leaf, o.charge)
	k := kept{key: r.w.Key}
	need := needs(o.spec, plan)
	for _, node := range plan.Nodes() {
		room := need[node]
		room.Sub(freed[node])
		for i := range room {
			room[i] = max(0, room[i])
		}
		p.inv.Take(node, room)
		k.rooms = append(k.rooms, holding{node, room})
	}
	p.promised = append(p.promised, k)
	p.nominated[r.w.Key] = true
	return true
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
// stop. It admits what fits now, and keeps the room for what will.
func (p *pass) handOver() {
	for _, key := range slices.Sorted(maps.Keys(p.s.retrying)) {
		if r := p.s.retrying[key]; r.retry.After(p.now) && p.s.waiting.Has(key) {
			p.keepPlace(r)
		}
	}
	for _, n := range p.s.nominees {
		r := p.s.records[n.Key]
		if r != nil && p.s.waiting.Has(n.Key) && !p.waits(r) {
			p.serve(n, r)
		}
	}
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

// serve admits the nominee r, or keeps for it what its victims free.
func (p *pass) serve(n Nominee, r *record) {
	leaf, q := p.standingQueue(r)
	victims := p.stopping(n)
	if q == nil || n.Awaited && slices.ContainsFunc(victims, func(l load) bool { return p.stuck(l.r) }) {
		return
	}
	if p.unanswered(n) {
		p.nominated[n.Key] = true
		p.d.Nominees = append(p.d.Nominees, n)
		return
	}
	for _, f := range q.Choices() {
		o := p.offer(r, leaf, f)
		if o.fits {
			p.admit(r, leaf, o)
			return
		}
		if len(victims) > 0 && p.fitsWithout(victims, leaf, o) && p.keepFor(r, leaf, o, victims) {
			p.d.Nominees = append(p.d.Nominees, n)
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
