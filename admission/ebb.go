package admission

import (
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// ebb is a trial in which more or less of a list of gangs has ended: it moves from one
// number of them to another by what lies between, charges and places each on their
// own, so that places are only touched where there is the quota.
type ebb struct {
	p               *pass
	list            []*record
	sums            []int // places that the first n hold together
	charges, places int   // how many are off the books
}

func (b *ebb) lift(x *record, charge bool, sign int) {
	switch l := x.wholeLoad(); {
	case b.p.replaced[x]: // its nominee is on the books in its place
	case charge:
		b.p.liftCharge(l, b.p.later, sign)
	default:
		b.p.liftRooms(l, sign)
	}
}

func (b *ebb) to(n int, at *int, charge bool) {
	for ; *at < n; *at++ {
		b.lift(b.list[*at], charge, -1)
	}
	for *at > n {
		*at--
		b.lift(b.list[*at], charge, 1)
	}
}

// affords says whether r has the quota once the first n have ended.
func (b *ebb) affords(r *record, leaf int, charge quota.Resources, n int) bool {
	b.to(n, &b.charges, true)
	_, ok := b.p.later.Fits(leaf, charge)
	return ok && b.p.ownFits(r, leaf, charge)
}

// placed says whether it has its places then.
func (b *ebb) placed(r *record, o offer, n int) bool {
	b.to(n, &b.places, false)
	return gang.Fits(b.p.inv, o.spec, o.sizesFor(r))
}

// fewest is how many of the list, from its front, have to end for r to fit, and false
// if all are not enough. The first so many are asked first.
//
// The more has ended the more fits, exactly for alike pods; there the number is found
// from below, since few have to end for most claims. For unlike pods, of which the
// search for places may miss some, the same numbers are tried as ever. Either way
// what is counted in pass.lifts is what trying these numbers would cost.
func (p *pass) fewest(r *record, leaf int, o offer, list []*record, first int) (int, bool) {
	defer p.open(p.later)()
	b := &ebb{p: p, list: list, sums: make([]int, len(list)+1)}
	for i, x := range list {
		b.sums[i+1] = b.sums[i] + len(x.rooms)
	}
	fits := func(n int) bool { return b.affords(r, leaf, o.charge, n) && b.placed(r, o, n) }
	if !p.s.plain && len(o.spec.PodSets) == 1 && o.spec.Level.Key == "" && o.spec.PodSets[0].Level.Key == "" {
		least := b.least(r, leaf, o)
		fits = func(n int) bool { return n >= least }
	}
	fitsAfter := func(n int) bool {
		p.lifts += b.sums[n]
		return fits(n)
	}
	switch {
	case fitsAfter(first):
		return firstTrue(first, fitsAfter), true
	case fitsAfter(len(list)):
		return first + firstTrue(len(list)-first, func(n int) bool { return fitsAfter(first + n) }), true
	}
	return 0, false
}

// least is the fewest that have to end, one more than there are if all are too few.
func (b *ebb) least(r *record, leaf int, o offer) int {
	all := len(b.list)
	if !b.affords(r, leaf, o.charge, all) {
		return all + 1
	}
	from := firstTrue(all, func(n int) bool { return b.affords(r, leaf, o.charge, n) })
	for step := 1; ; step *= 2 {
		n := min(from+step-1, all)
		if b.placed(r, o, n) {
			return from + firstTrue(n-from, func(k int) bool { return b.placed(r, o, from+k) })
		}
		if n == all {
			return all + 1
		}
		from = n + 1
	}
}

// liftRooms takes the places of a load off the books (-1) or puts them back (1).
func (p *pass) liftRooms(l load, sign int) {
	for _, h := range l.rooms {
		if sign < 0 {
			p.inv.Give(h.node, h.amount)
		} else {
			p.inv.Take(h.node, h.amount)
		}
	}
}
