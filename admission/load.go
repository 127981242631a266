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
		ps := &r.spec.PodSets[k.set]
		l.charge.Add(r.flavor.Charge(ps.Request.Times(pods[k])))
		l.rooms = append(l.rooms, holding{k.node, ps.Load().Times(pods[k])})
	}
	return l
}

// lift takes a load off the books (-1) or puts it back (1).
func (p *pass) lift(l load, ledger *quota.Ledger, sign int) {
	p.liftCharge(l, ledger, sign)
	p.liftRooms(l, sign)
}

// liftCharge is lift without the places.
func (p *pass) liftCharge(l load, ledger *quota.Ledger, sign int) {
	p.shiftOn(ledger, l.r, l.charge, sign)
	if l.r.w.Pinned || l.r.w.User != "" {
		p.off = append(p.off, shift{l.r, l.charge, sign})
	}
}

// shift is a charge that a look has taken off the books, or put back.
type shift struct {
	r      *record
	charge quota.Resources
	sign   int
}

// open opens a trial on the places, on the ledger and on the bounds that work has of
// its own; the returned function ends it.
func (p *pass) open(ledger *quota.Ledger) (restore func()) {
	inv, books, off := p.inv.Mark(), ledger.Mark(), len(p.off)
	return func() {
		p.inv.Undo(inv)
		ledger.Undo(books)
		p.off = p.off[:off]
	}
}

// holding is what a gang takes up on one node.
type holding struct {
	node   string
	amount quota.Resources
}
