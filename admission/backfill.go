package admission

import (
	"slices"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// begin notes that r runs from now on, by this pass, on the given plan. From then on
// reservations count with its end as with that of any work that runs: those that are
// drawn later in the pass find it among what ends, and those that are drawn already
// and that it does not reach need not leave the room free that it gives back in time.
func (p *pass) begin(r *record, a *Admission, spec *gang.Spec, charge quota.Resources) {
	x := &record{key: r.key, w: r.w, phase: Admitted, admission: a, queue: r.w.Queue, charge: charge, held: map[slotKey]int{}}
	for i, set := range a.Plan.Sets {
		for _, slot := range set.Slots {
			x.held[slotKey{i, slot.Node}] = slot.Count
			x.rooms = append(x.rooms, holding{slot.Node, spec.PodSets[i].Request.Times(slot.Count)})
		}
	}
	p.begun = append(p.begun, x)
	end := p.endOf(r.w)
	for i := range p.keeps {
		if k := &p.keeps[i]; !k.binds(end) {
			k.rooms = without(k.rooms, x.rooms)
			k.ending = append(slices.Clip(k.ending), x)
			if id, ok := p.s.tree.ID(x.queue); ok {
				k.book(id, charge, -1)
			}
		}
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
