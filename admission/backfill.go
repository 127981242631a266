package admission

import (
	"maps"
	"slices"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// begin notes that r runs from now on, by this pass, on the given plan. From then on
// reservations count with its end as with that of any work that runs: those that are
// drawn later in the pass find it among what ends, and those that are drawn already
// and that it does not reach need not leave the room free that it gives back in time.
func (p *pass) begin(r *record, a *Admission, spec *gang.Spec, f *queue.Flavor, charge quota.Resources) {
	x := &record{
		key: r.key, w: r.w, phase: Admitted, admission: a, settled: true,
		spec: spec, queue: r.w.Queue, flavor: f, charge: charge, held: map[slotKey]int{},
	}
	for i, set := range a.Plan.Sets {
		for _, slot := range set.Slots {
			x.held[slotKey{i, slot.Node}] = slot.Count
			x.rooms = append(x.rooms, holding{slot.Node, spec.PodSets[i].Request.Times(slot.Count)})
		}
	}
	p.begun = append(p.begun, x)
	p.starts++
	p.crewed().join(p.s.tree, x)
	end := p.endOf(r.w)
	for i := range p.keeps {
		if k := &p.keeps[i]; !k.binds(end) {
			k.rooms = without(k.rooms, x.rooms)
			k.freed = maps.Clone(k.freed)
			k.free(x.rooms, 1)
			k.ending = append(slices.Clip(k.ending), x)
			if id, ok := p.s.tree.ID(x.queue); ok {
				k.book(id, charge, -1)
			}
		}
	}
}

// A gang that a pass starts may yet have to make room for a claim that comes later in the
// pass: one of its queue that was behind a reservation, or an owner behind a claim of
// its own that borrows. It would be taken back in the next pass, at the same instant.
// So it counts as running for who looks for victims, and is not started after all.

// outranked says whether a gang that this pass takes back could take r back in turn once
// it waits again. It is no claim yet, so r waits for the next pass, which comes at once.
func (p *pass) outranked(r *record, charge quota.Resources) bool {
	for i := range p.d.Evict {
		e := p.s.records[p.d.Evict[i].Key]
		q := p.s.queues[e.w.Queue]
		if q == nil || e.w.Held || p.d.Evict[i].Cause == Expired {
			continue
		}
		if e.w.Queue == r.w.Queue && lower(q.Within, e.w, r.w) {
			return true
		}
		if e.w.Queue != r.w.Queue && q.Reclaim != queue.ReclaimNever && (q.Reclaim != queue.ReclaimLower || r.w.Priority < e.w.Priority) && shares(e.charge, charge) {
			return true
		}
	}
	return false
}

// isBegun says whether x is what this pass starts of a gang.
func (p *pass) isBegun(x *record) bool { return slices.Contains(p.begun, x) }

// cancel does not start x after all.
func (p *pass) cancel(x *record) {
	p.unbook(x.wholeLoad())
	p.evicted[x] = true
	p.begun = slices.DeleteFunc(p.begun, func(b *record) bool { return b == x })
	p.starts++
	p.d.Admit = slices.DeleteFunc(p.d.Admit, func(a Admission) bool { return a.Key == x.w.Key })
}

// cutBack starts x without the surplus that is among the victims.
func (p *pass) cutBack(x *record, victims []victim) {
	a := *x.admission
	a.Plan = a.Plan.Clone()
	held := maps.Clone(x.held)
	for _, v := range victims {
		if v.r == x {
			a.Plan.Add(v.set, v.node, -1)
			held[slotKey{v.set, v.node}]--
			p.unbook(v.load)
		}
	}
	whole := x.loadOf(held)
	x.admission, x.held, x.rooms, x.charge = &a, held, whole.rooms, whole.charge
	p.evicted[x] = true // not touched again in this pass
	p.starts++
	for i := range p.d.Admit {
		if p.d.Admit[i].Key == a.Key {
			p.d.Admit[i] = a
		}
	}
}

// unbook takes what is not started off all books of the pass.
func (p *pass) unbook(l load) {
	p.loosened = true
	p.renounce([]load{l})
	p.liftRooms(l, -1)
	p.shiftOn(p.today, l.r, l.charge, -1)
	if p.later != p.today {
		p.shiftOn(p.later, l.r, l.charge, -1)
	}
	if id, ok := p.s.tree.ID(l.r.queue); ok && p.arena != nil {
		p.arena.Changed(id)
	}
}

// without is the rooms less what others give back there, never below nothing.
func without(rooms, back []holding) []holding {
	out := make([]holding, len(rooms))
	for i, h := range rooms {
		out[i] = holding{h.node, h.amount.Clone()}
		for _, b := range back {
			if b.node == h.node {
				out[i].amount.Sub(b.amount)
			}
		}
		for dim, v := range out[i].amount {
			out[i].amount[dim] = max(0, v)
		}
	}
	return out
}
