package admission

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// keep is what a reservation asks of everybody who comes after it in the pass and
// would still run when it starts: room that is free now and must stay free, and
// quota that must be there then.
type keep struct {
	key    string
	start  time.Time // zero: unknown, so everybody would still run
	rooms  []holding
	plan   gang.Plan
	need   map[string]quota.Resources // what the plan takes, by node,
	freed  map[string]quota.Resources // and what the ending free there
	leaf   int
	charge quota.Resources
	ending []*record     // who has ended by then
	beside []kept        // what else was kept when it was worked out,
	at     time.Time     // and when that was
	then   *quota.Ledger // what is charged once they have; nil if not worked out
}

// book charges (1) or releases (-1) what the pass does on the books of then as well.
func (k *keep) book(leaf int, charge quota.Resources, sign int) {
	switch {
	case k.then == nil:
	case sign > 0:
		k.then.Charge(leaf, charge)
	default:
		k.then.Release(leaf, charge)
	}
}

// binds says whether something that ends at end could delay the reservation.
func (k *keep) binds(end time.Time) bool {
	return k.start.IsZero() || end.IsZero() || end.After(k.start)
}

// reserve keeps the earliest room for r, if it has been blocked long enough and
// not too many claims have room kept already.
//
// What a pass spends on this is bounded: when so many places of gangs were lifted off
// the books, only the first claim still gets its room, and Decision.Unreserved counts
// the others.
func (p *pass) reserve(r *record, leaf int, offers []offer) {
	if len(p.keeps) >= p.s.cfg.Reservations || !p.blockedLong(r) {
		return
	}
	if p.spent() {
		p.d.Unreserved++
		return
	}
	for _, o := range offers {
		k, ok := p.earliest(r, leaf, o)
		if ok && len(k.ending) == 0 && !k.start.After(p.now) {
			// Room and quota are there, and kept for others. It must not have them, and so
			// must not keep them from those who would be gone in time: it is no worse off
			// for them, and has its own room kept once the others have theirs.
			return
		}
		if ok {
			k.beside, k.at = slices.Clone(p.promised), p.now
			p.keep(k)
			return
		}
	}
}

// spent says whether the pass has spent on reservations what it may.
func (p *pass) spent() bool { return len(p.keeps) > 0 && p.lifts > liftsMost }

// liftsMost bounds how many places one pass lifts off the books to reserve.
const liftsMost = 50_000

func (p *pass) keep(k keep) {
	k.then = nil // the books of this pass are others
	p.keeps = append(p.keeps, k)
	p.shortFirst[k.leaf] = p.s.cfg.ShortestFirst
	p.d.kept[k.key] = k
	p.d.Reservations = append(p.d.Reservations, Reservation{Key: k.key, Start: k.start, Plan: k.plan, Charge: k.charge})
}

// keepAgain keeps the room that the last cycle found for r. It holds as long as
// nothing has been freed since, nobody was admitted, who may have taken part of it, the
// same is kept for nominees, and its start has not passed without what was to end.
func (p *pass) keepAgain(r *record) bool {
	k, ok := p.s.kept[r.w.Key]
	if p.s.plain {
		return false
	}
	if len(p.d.Admit)+len(p.d.Evict)+len(p.d.Move) > 0 {
		return false
	}
	if !ok || !k.start.IsZero() && k.start.Before(p.now) || p.stuckSince(k.at) || !slices.EqualFunc(k.beside, p.promised, sameKept) {
		return false
	}
	if len(p.keeps) < p.s.cfg.Reservations {
		p.keep(k)
	}
	return true
}

// stuckSince says whether something that stops has become too slow to count on since then.
func (p *pass) stuckSince(at time.Time) bool {
	return slices.ContainsFunc(p.crewed().going, func(x *record) bool {
		return p.stuck(x) && at.Before(x.leaving.Add(p.s.cfg.RecoveryWindow))
	})
}

func sameKept(a, b kept) bool {
	return a.key == b.key && a.charge.Equal(b.charge) && slices.EqualFunc(a.rooms, b.rooms, func(x, y holding) bool {
		return x.node == y.node && x.amount.Equal(y.amount)
	})
}

// blockedLong says whether r has waited longer than ReserveAfter. Its wait counts
// from when it was queued, which the cluster remembers, so that a restart of the
// controller does not set back a gang that is starved.
func (p *pass) blockedLong(r *record) bool {
	return !p.now.Before(r.w.Queued.Add(p.s.cfg.ReserveAfter))
}

// earliest finds when and where r would fit if what runs ends by its limits, and if
// that is not enough, which work without a limit it has to wait for: for as little of
// it, smallest first, as has to end.
func (p *pass) earliest(r *record, leaf int, o offer) (keep, bool) {
	limited, open := p.endings(o.charge)
	list := slices.Concat(limited, open)
	n, ok := p.fewest(r, leaf, o, list, len(limited))
	switch {
	case !ok:
		return keep{}, false
	case n > len(limited):
		return p.keepAt(r, leaf, o, time.Time{}, list[:n])
	}
	start := p.now
	if n > 0 {
		start = p.ends(limited[n-1])
	}
	for n < len(limited) && !p.ends(limited[n]).After(start) {
		n++
	}
	return p.keepAt(r, leaf, o, start, limited[:n])
}

// endings are the running gangs that hold something of what is asked: those with a
// limit, soonest end first, and those without, smallest first.
func (p *pass) endings(charge quota.Resources) (limited, open []*record) {
	if p.lineOf.limited == nil && p.lineOf.open == nil || p.lineOf.begun != p.starts {
		p.lineOf = p.endLine()
	}
	asks := func(list []*record) (out []*record) {
		for _, x := range list {
			if !p.moved[x] && shares(x.charge, charge) {
				out = append(out, x)
			}
		}
		return out
	}
	return asks(p.lineOf.limited), asks(p.lineOf.open)
}

// endLine is everything that runs, in the order in which it is counted on to end.
type endLine struct {
	limited, open []*record
	begun         int // pass.starts as it was
}

func (p *pass) endLine() endLine {
	l := endLine{begun: p.starts}
	parts := map[*record]part{}
	for _, x := range slices.Concat(p.s.running, p.begun) {
		switch {
		case len(x.held) == 0:
		case !p.ends(x).IsZero():
			l.limited = append(l.limited, x)
		default:
			l.open = append(l.open, x)
			parts[x] = p.partOf(x.charge)
		}
	}
	slices.SortStableFunc(l.limited, func(a, b *record) int { return p.ends(a).Compare(p.ends(b)) })
	slices.SortStableFunc(l.open, func(a, b *record) int {
		return cmp.Or(queue.CompareBool(p.stuck(a), p.stuck(b)), parts[a].compare(parts[b]))
	})
	return l
}

// ends is when what r holds is given back, by its owner's word: zero if nobody
// said, and now if it stops already or is overdue.
func (p *pass) ends(r *record) time.Time {
	if r.phase != Admitted && p.stuck(r) {
		return time.Time{} // such pods may never be gone
	}
	if r.phase != Admitted {
		return p.now
	}
	if r.w.Limit == 0 {
		return time.Time{}
	}
	if end := r.admission.At.Add(r.w.Limit); end.After(p.now) {
		return end
	}
	return p.now
}

// firstTrue is the least n up to most for which ok holds, which holds for most and,
// once it holds, for all that is more.
func firstTrue(most int, ok func(n int) bool) int {
	lo, hi := 0, most
	for lo < hi {
		if mid := (lo + hi) / 2; ok(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// lifted runs f on the books from which the given gangs are gone.
func (p *pass) lifted(gone []*record, f func()) {
	defer p.open(p.later)()
	for _, x := range gone {
		p.lifts += len(x.rooms)
		if !p.replaced[x] { // else its nominee is on the books in its place
			p.lift(x.wholeLoad(), p.later, -1)
		}
	}
	f()
}

// keepAt works out what of the room that is free now has to stay free.
func (p *pass) keepAt(r *record, leaf int, o offer, start time.Time, ending []*record) (keep, bool) {
	k := keep{key: r.w.Key, start: start, leaf: leaf, charge: o.charge, ending: ending}
	var plan gang.Plan
	var short *gang.Shortfall
	p.lifted(ending, func() { plan, short = gang.Place(p.inv, o.spec, r.w.LeastSizes()) })
	if short != nil {
		return keep{}, false
	}
	k.plan, k.need, k.freed = plan, needs(o.spec, plan), map[string]quota.Resources{}
	for _, x := range ending {
		if !p.replaced[x] { // else its nominee has it
			k.free(x.rooms, 1)
		}
	}
	for _, node := range plan.Nodes() {
		k.rooms = append(k.rooms, holding{node, clipped(k.short(node), p.inv.Free(node))})
	}
	return k, true
}

// free counts the rooms among what ends by the start of the reservation (1), or no
// more (-1).
func (k *keep) free(rooms []holding, sign int) {
	for _, h := range rooms {
		if _, asked := k.need[h.node]; !asked {
			continue
		}
		sum := k.freed[h.node].Clone()
		if sign > 0 {
			sum.Add(h.amount)
		} else {
			sum.Sub(h.amount)
		}
		k.freed[h.node] = sum
	}
}

// short is what the reservation needs on the node beyond what ends there by its start.
func (k *keep) short(node string) quota.Resources {
	room := k.need[node].Clone()
	room.Sub(k.freed[node])
	for i := range room {
		room[i] = max(0, room[i])
	}
	return room
}

// clipped is r, but never more than most, nor less than nothing.
func clipped(r, most quota.Resources) quota.Resources {
	for i := range r {
		r[i] = max(0, min(r[i], most.At(i)))
	}
	return r
}

// takeKeeps takes, for the time of one look, the room that reservations keep from
// something that ends at end and for which the gone are taken back: what of them a
// reservation counts on has to stay free as well. The returned function gives it back.
func (p *pass) takeKeeps(end time.Time, gone []load) func() {
	mark := p.inv.Mark()
	for i := range p.keeps {
		if k := &p.keeps[i]; k.binds(end) {
			for _, h := range k.roomsWithout(gone) {
				p.inv.Take(h.node, h.amount)
			}
		}
	}
	return func() { p.inv.Undo(mark) }
}

// roomsWithout is the room that has to be free now if the gone end now and not when the
// reservation counts on them.
func (k *keep) roomsWithout(gone []load) []holding {
	var lost []holding
	for _, l := range gone {
		if k.countsOn(l.r) {
			lost = append(lost, l.rooms...)
		}
	}
	if len(lost) == 0 {
		return k.rooms
	}
	freed := k.freed
	k.freed = maps.Clone(freed) // others look at the same
	k.free(lost, -1)
	rooms := make([]holding, len(k.rooms))
	for i, h := range k.rooms {
		rooms[i] = holding{h.node, k.short(h.node)}
	}
	k.freed = freed
	return rooms
}

func (k *keep) countsOn(x *record) bool { return slices.Contains(k.ending, x) }

// renounce lets the reservations count no more on those who are taken back for another.
func (p *pass) renounce(victims []load) {
	for i := range p.keeps {
		k := &p.keeps[i]
		k.then = nil
		stay := slices.DeleteFunc(slices.Clone(k.ending), func(x *record) bool {
			return slices.ContainsFunc(victims, func(l load) bool { return l.r == x })
		})
		if len(stay) == len(k.ending) {
			continue
		}
		k.freed, k.rooms = maps.Clone(k.freed), slices.Clone(k.rooms)
		for _, x := range k.ending {
			if !slices.Contains(stay, x) {
				k.free(x.rooms, -1)
			}
		}
		k.ending = stay
		for j, h := range k.rooms {
			k.rooms[j].amount = clipped(k.short(h.node), p.inv.Free(h.node))
		}
	}
}

// keptQuota names the reservation that charge would take the quota from, or "", on the
// books of later, from which the gone are taken already.
func (p *pass) keptQuota(r *record, leaf int, charge quota.Resources, end time.Time, gone []load) (by string) {
	for i := range p.keeps {
		k := &p.keeps[i]
		if !k.binds(end) {
			continue
		}
		if !p.leaves(k, r, leaf, charge, gone) {
			return k.key
		}
	}
	return ""
}

// leaves says whether the reservation still has its quota when it starts, though
// charge is charged to leaf for r and the gone are taken back for it.
func (p *pass) leaves(k *keep, r *record, leaf int, charge quota.Resources, gone []load) bool {
	claim := p.s.records[k.key]
	if q := p.s.queues[claim.w.Queue]; claim.w.Pinned || claim.w.User != "" && q != nil && len(q.UserMax) > 0 {
		return p.leavesOwn(k, claim, r, leaf, charge, gone)
	}
	fits := func(l *quota.Ledger) bool {
		mark := l.Mark()
		defer l.Undo(mark)
		l.Charge(leaf, charge)
		_, ok := l.Fits(k.leaf, k.charge)
		return ok
	}
	if fits(p.later) {
		return true // nobody has to end first
	}
	if k.then == nil {
		k.then = p.later.Clone()
		for _, l := range gone {
			p.shiftOn(k.then, l.r, l.charge, 1)
		}
		for _, x := range k.ending {
			if !p.replaced[x] {
				p.shiftOn(k.then, x, x.charge, -1)
			}
		}
	}
	mark := k.then.Mark()
	defer k.then.Undo(mark)
	for _, l := range gone {
		if !k.countsOn(l.r) {
			p.shiftOn(k.then, l.r, l.charge, -1)
		}
	}
	return fits(k.then)
}

// shiftOn charges (1) or releases (-1) the amount for x on a ledger of the pass.
func (p *pass) shiftOn(l *quota.Ledger, x *record, amount quota.Resources, sign int) {
	id, _ := p.s.tree.ID(x.queue)
	if sign > 0 {
		l.Charge(id, amount)
	} else {
		l.Release(id, amount)
	}
}

// leavesOwn is leaves for a claim that has bounds of its own.
func (p *pass) leavesOwn(k *keep, claim, r *record, leaf int, charge quota.Resources, gone []load) bool {
	defer p.open(p.later)()
	for _, l := range gone {
		if k.countsOn(l.r) { // it goes with the ending
			p.liftCharge(l, p.later, 1)
		}
	}
	for _, x := range k.ending {
		if !p.replaced[x] {
			p.liftCharge(x.wholeLoad(), p.later, -1)
		}
	}
	p.later.Charge(leaf, charge)
	p.off = append(p.off, shift{&record{queue: r.w.Queue, w: r.w}, charge, 1})
	_, ok := p.later.Fits(k.leaf, k.charge)
	return ok && p.ownFits(claim, k.leaf, k.charge)
}

// kept is room that is free and that this pass took off its books for a claim.
type kept struct {
	key    string
	charge quota.Resources
	rooms  []holding
}

// roomKeptBy names the claim for which room is kept, by a reservation or because
// victims stop for it, without which the gang would find its places; or "".
func (p *pass) roomKeptBy(spec *gang.Spec, sizes []int) string {
	if len(p.keeps) == 0 && len(p.promised) == 0 {
		return ""
	}
	mark := p.inv.Mark()
	defer p.inv.Undo(mark)
	if len(p.keeps) > 0 && gang.Fits(p.inv, spec, sizes) {
		return p.keeps[0].key
	}
	for _, k := range p.promised {
		for _, h := range k.rooms {
			p.inv.Give(h.node, h.amount)
		}
		if gang.Fits(p.inv, spec, sizes) {
			return k.key
		}
	}
	return ""
}
