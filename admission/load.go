package admission

import "sluice.dev/sluice/quota"

// load is what a gang, or part of it, holds: what leaves the books when it goes.
type load struct {
	r      *record
	charge quota.Resources
	rooms  []holding
}

// wholeLoad is all that r holds.
func (r *record) wholeLoad() load { return load{r, r.charge, r.rooms} }

// loadOf is what so many pods of r hold.
func (r *record) loadOf(pods map[slotKey]int) load {
	l := load{r: r}
	for _, k := range changedSlots(pods, nil) {
		amount := r.spec.PodSets[k.set].Request.Times(pods[k])
		l.charge.Add(r.flavor.Charge(amount))
		l.rooms = append(l.rooms, holding{k.node, amount})
	}
	return l
}

// lift takes a load off the books (-1) or puts it back (1).
func (p *pass) lift(l load, ledger *quota.Ledger, sign int) {
	id, _ := p.s.tree.ID(l.r.queue)
	if sign < 0 {
		ledger.Release(id, l.charge)
	} else {
		ledger.Charge(id, l.charge)
	}
	for _, h := range l.rooms {
		if sign < 0 {
			p.inv.Give(h.node, h.amount)
		} else {
			p.inv.Take(h.node, h.amount)
		}
	}
}

// holding is what a gang takes up on one node.
type holding struct {
	node   string
	amount quota.Resources
}
