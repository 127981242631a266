package admission

import (
	"cmp"
	"maps"
	"slices"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// Two workloads never evict each other in turn. Within a queue a victim has
// strictly lower standing than the claim. Between queues a claim either stays
// within what its queue owns, and the victim's queue is above what it owns: the
// victim cannot come back the same way, since it would have to borrow. Or both
// borrow, and the claim's share after is at most the loser's after: to come back
// the loser would have to end at or below the claim's queue after losing, but its
// share would then be above what it is now, and the other's below.

// victim is a gang, or one pod of its surplus, that could be taken back.
type victim struct {
	load
	viable  bool // it may be taken, as far as can be said before others are
	going   bool // it stops anyway: nobody takes it back
	surplus bool
	rest    bool   // what is left of a gang whose surplus goes before it
	node    string // of a surplus pod, and
	set     int    // its pod set
	queue   int64  // priority of its queue
	part    part   // the dominant part of the hardware that the whole gang holds
}

// part is a fraction of the hardware, compared by cross-multiplying.
type part struct{ held, total int64 }

func (a part) compare(b part) int {
	return quota.Share{Above: a.held, Lent: max(a.total, 1), Weight: 1}.Compare(quota.Share{Above: b.held, Lent: max(b.total, 1), Weight: 1})
}

// compareVictims puts those first that are taken back first: all surplus before any
// whole gang, and of one gang's surplus the last pod set's last node first.
func compareVictims(a, b victim) int {
	return cmp.Or(
		queue.CompareBool(b.surplus, a.surplus),
		cmp.Compare(a.queue, b.queue),
		cmp.Compare(a.r.w.Priority, b.r.w.Priority),
		a.part.compare(b.part),
		b.r.admission.At.Compare(a.r.admission.At),
		b.r.w.Queued.Compare(a.r.w.Queued),
		cmp.Compare(b.r.w.Key, a.r.w.Key),
		cmp.Compare(b.set, a.set),
		cmp.Compare(b.node, a.node),
	)
}

// largestFirst puts the larger holder first among those of equal standing.
func largestFirst(a, b victim) int {
	return cmp.Or(
		queue.CompareBool(b.surplus, a.surplus),
		cmp.Compare(a.queue, b.queue),
		cmp.Compare(a.r.w.Priority, b.r.w.Priority),
		b.part.compare(a.part),
		compareVictims(a, b),
	)
}

// preempt takes gangs back for r, if that makes all of it fit. It tries the
// flavors in their order and reports whether victims were found.
func (p *pass) preempt(r *record, leaf int, q *queue.Queue, offers []offer) bool {
	if p.pointless {
		return false
	}
	for _, o := range offers {
		if o.fits || o.behind != "" && p.asked >= askedMost {
			continue
		}
		if o.behind != "" {
			p.asked++
		}
		if victims := p.victims(r, leaf, q, o); len(victims) > 0 {
			p.nominate(r, leaf, o, victims)
			return true
		}
	}
	return false
}

// askedMost bounds for how many claims that would fit, were it not for a reservation,
// one pass looks for victims. The others wait behind it.
const askedMost = 32

// victims finds whom to take back for the offer, or nobody. What stops anyway is
// counted on first; if that is enough, nobody is taken back. The smallest holders
// first, one gang alone and the largest holders first are tried, and the best outcome
// by the rules is taken.
func (p *pass) victims(r *record, leaf int, q *queue.Queue, o offer) []victim {
	going := p.going(r, o.charge)
	p.barren = p.barren && len(going) == 0
	if best := p.enough(r, leaf, o, going); len(best) > 0 {
		return best
	}
	candidates := p.candidates(r, leaf, q, o)
	if !p.viable(leaf, o.charge, going, candidates) {
		return nil
	}
	p.barren = false
	candidates = slices.DeleteFunc(candidates, func(v victim) bool { return !v.viable })
	slices.SortFunc(candidates, compareVictims)
	best := p.enough(r, leaf, o, slices.Concat(going, candidates))
	if len(best) < 1 {
		return nil
	}
	better := func(other []victim) {
		if len(other) > 0 && p.compareSets(other, best) < 0 {
			best = other
		}
	}
	for _, v := range slices.Clone(candidates[:min(len(candidates), singlesMost)]) {
		if !v.rest {
			better(p.enough(r, leaf, o, append(slices.Clone(going), v)))
		}
	}
	slices.SortStableFunc(candidates, largestFirst)
	better(p.enough(r, leaf, o, slices.Concat(going, candidates)))
	return best
}

// singlesMost bounds how many gangs, of those that could be taken at all, are tried as
// the only victim.
const singlesMost = 32

// going are the gangs that stop for other causes than a claim, and may be counted
// on: those that have been stopping for longer than the recovery window may never
// be gone.
func (p *pass) going(r *record, charge quota.Resources) []victim {
	var list []victim
	for _, x := range p.crewed().going {
		if (x != r || p.s.returns(r)) && !p.replaced[x] && !p.moved[x] && !p.stuck(x) && shares(x.charge, charge) {
			list = append(list, victim{load: x.wholeLoad(), going: true})
		}
	}
	return list
}

// stuck says whether the pods of x have been stopping for too long to count on.
func (p *pass) stuck(x *record) bool {
	return !x.leaving.IsZero() && !p.now.Before(x.leaving.Add(p.s.cfg.RecoveryWindow))
}

// candidates are all gangs that could be taken back for r.
func (p *pass) candidates(r *record, leaf int, q *queue.Queue, o offer) []victim {
	var list []victim
	hopes := map[int]hope{}
	for _, from := range p.crewed().queues {
		if len(from.takable) == 0 || from.name != r.w.Queue && (!p.reaches(leaf, q, from, o.charge) || !p.yields(r, leaf, q, from, o.charge, hopes)) {
			continue
		}
		for _, x := range from.takable {
			if !p.evicted[x] && !p.replaced[x] && eligible(r, q, x, o.charge) {
				list = p.candidate(list, x)
			}
		}
	}
	return list
}

// candidate adds x to the list, unless it cannot be taken now.
func (p *pass) candidate(list []victim, x *record) []victim {
	young := p.now.Before(x.admission.At.Add(max(p.s.cfg.MinRuntime, x.w.MinRuntime)))
	if young || p.moved[x] || p.waits(x) {
		p.unsure = true // not now, but perhaps later though nothing happens
		return list
	}
	id, _ := p.s.tree.ID(x.queue)
	return append(list, p.split(victim{load: x.wholeLoad(), queue: p.priority(id), part: p.partOf(x.charge)})...)
}

// split is the victim in the parts that can go: each surplus pod of an elastic gang
// alone, and the rest of it whole.
func (p *pass) split(v victim) []victim {
	r := v.r
	if !r.w.Spec.Elastic() {
		return []victim{v}
	}
	promised, least := r.promised(), r.w.LeastSizes()
	spare := make([]int, len(least))
	for k, n := range promised {
		spare[k.set] += n
	}
	for i := range spare {
		spare[i] -= max(0, least[i]-r.doneOf(i)) // pods that ended well count as there
	}
	rest := maps.Clone(r.held)
	var parts []victim
	keys := changedSlots(promised, nil)
	slices.Reverse(keys)
	for _, k := range keys {
		for n := promised[k]; n > 0 && spare[k.set] > 0; n-- {
			one := v
			one.surplus, one.set, one.node = true, k.set, k.node
			one.load = r.loadOf(map[slotKey]int{k: 1})
			parts = append(parts, one)
			rest[k]--
			spare[k.set]--
		}
	}
	v.load, v.rest = r.loadOf(rest), len(parts) > 0
	return append(parts, v)
}

// reaches asks, of a whole other queue, what does not depend on who else is taken back.
func (p *pass) reaches(leaf int, q *queue.Queue, from *squad, charge quota.Resources) bool {
	if q.Reclaim == queue.ReclaimNever || !from.known || from.id == leaf {
		return false
	}
	if owner := p.s.queues[from.name]; owner != nil && owner.Sheltered {
		return false
	}
	_, loses := p.s.tree.Below(leaf, from.id)
	return p.later.Above(loses, charge) // taking others back first does not raise it
}

// eligible asks the same of one gang in a queue that can be reached.
func eligible(r *record, q *queue.Queue, x *record, charge quota.Resources) bool {
	if x.queue == r.w.Queue {
		return lower(q.Within, r.w, x.w)
	}
	return (q.Reclaim != queue.ReclaimLower || x.w.Priority < r.w.Priority) && shares(x.charge, charge)
}

func lower(policy queue.Within, claim, x *queue.Workload) bool {
	switch policy {
	case queue.WithinNever:
		return false
	case queue.WithinNewer:
		return x.Priority < claim.Priority || x.Priority == claim.Priority && x.Queued.After(claim.Queued)
	default:
		return x.Priority < claim.Priority
	}
}

// shares says whether both hold or want some of the same.
func shares(a, b quota.Resources) bool {
	for i, v := range a {
		if v > 0 && b.At(i) > 0 {
			return true
		}
	}
	return false
}

// partOf is the largest part of the hardware that r is.
func (p *pass) partOf(r quota.Resources) part {
	best := part{0, 1}
	for i, v := range r {
		if x := (part{v, p.inv.Total().At(i)}); v > 0 && x.compare(best) > 0 {
			best = x
		}
	}
	return best
}

// enough takes candidates in order until the offer fits, then gives back whoever
// is not needed, the one taken last first. It leaves the books as they were.
func (p *pass) enough(r *record, leaf int, o offer, candidates []victim) []victim {
	ledger := p.later
	defer p.open(ledger)()
	if len(candidates) == 0 || !p.s.plain && !p.couldHold(r, leaf, o, candidates, ledger) {
		return nil
	}
	var taken []victim
	for _, v := range candidates {
		if !v.going && !p.may(leaf, v, o.charge, ledger) {
			continue
		}
		p.lift(v.load, ledger, -1)
		taken = append(taken, v)
		if p.holds(r, leaf, o, ledger, taken) {
			return p.needed(r, leaf, o, taken, ledger)
		}
	}
	return nil
}

// couldHold asks, before anything is tried in order, whether the offer would fit if
// every candidate were gone.
func (p *pass) couldHold(r *record, leaf int, o offer, candidates []victim, ledger *quota.Ledger) bool {
	defer p.open(ledger)()
	for _, v := range candidates {
		p.liftCharge(v.load, ledger, -1)
	}
	if _, ok := ledger.Fits(leaf, o.charge); !ok {
		return false
	}
	for _, v := range candidates {
		for _, h := range v.rooms {
			p.inv.Give(h.node, h.amount)
		}
	}
	return p.fitsNow(r, leaf, o, ledger)
}

// needed gives back, last first, every victim without which the offer still fits and
// the others may still be taken. Surplus of a gang that goes whole goes with it.
func (p *pass) needed(r *record, leaf int, o offer, taken []victim, ledger *quota.Ledger) []victim {
	for i := len(taken) - 1; i >= 0; i-- {
		v := taken[i]
		if v.surplus && goes(taken, v.r) {
			continue
		}
		p.lift(v.load, ledger, 1)
		rest := slices.Delete(slices.Clone(taken), i, i+1)
		if p.holds(r, leaf, o, ledger, rest) && p.mayAll(leaf, rest, o.charge, ledger) {
			taken = rest
		} else {
			p.lift(v.load, ledger, -1)
		}
	}
	return taken
}

// mayAll asks of each victim whether it may be taken on the books on which only the
// other victims are gone: those who were given back may have made room for it before.
func (p *pass) mayAll(leaf int, taken []victim, charge quota.Resources, ledger *quota.Ledger) bool {
	for _, v := range taken {
		if v.going {
			continue
		}
		id, _ := p.s.tree.ID(v.r.queue)
		ledger.Charge(id, v.charge)
		ok := p.may(leaf, v, charge, ledger)
		ledger.Release(id, v.charge)
		if !ok {
			return false
		}
	}
	return true
}

// goes says whether r is among the victims as a whole gang.
func goes(victims []victim, r *record) bool {
	return slices.ContainsFunc(victims, func(v victim) bool { return v.r == r && !v.surplus })
}

// may asks what depends on who was taken back already: between queues the victim's
// side must be above what it owns while the claim stays within what its side owns;
// or, both borrowing, the claim's share after must be at most the loser's after, and
// its queue's priority at least the loser's: in the order of claims that comes before
// the share, so the loser would be served first again.
func (p *pass) may(leaf int, v victim, charge quota.Resources, ledger *quota.Ledger) bool {
	if v.r.queue == p.s.tree.Name(leaf) {
		return true
	}
	id, _ := p.s.tree.ID(v.r.queue)
	gains, loses := p.s.tree.Below(leaf, id)
	if !ledger.Above(loses, charge) {
		return false
	}
	if gains == loses { // one queue is above the other
		return ledger.Owns(leaf, charge)
	}
	if ledger.Owns(leaf, charge) && ledger.Owns(gains, charge) {
		return true
	}
	if !p.s.cfg.FairReclaim || cmp.Or(cmp.Compare(p.priority(leaf), p.priority(id)), cmp.Compare(p.priority(gains), p.priority(loses))) < 0 {
		return false
	}
	mark := ledger.Mark()
	defer ledger.Undo(mark)
	ledger.Release(id, v.charge)
	ledger.Charge(leaf, charge)
	for i, x := range v.charge {
		if x > 0 && charge.At(i) > 0 && p.s.tree.Counts(i) && ledger.Usage(loses).At(i) < p.s.tree.Nominal(loses).At(i) {
			return false // below what it owns only for who stays within its own
		}
	}
	return ledger.Share(gains).Compare(ledger.Share(loses)) <= 0
}

// holds says whether the offer fits on the books, from which those taken are gone,
// and leaves reservations what they keep.
func (p *pass) holds(r *record, leaf int, o offer, ledger *quota.Ledger, taken []victim) bool {
	if !p.fitsNow(r, leaf, o, ledger) {
		return false
	}
	if len(p.keeps) == 0 {
		return true
	}
	end, gone := p.endOf(r.w), loadsOf(taken)
	if p.keptQuota(r, leaf, o.charge, end, gone) == "" {
		defer p.takeKeeps(end, gone)()
		if gang.Fits(p.inv, o.spec, o.sizesFor(r)) {
			return true
		}
	}
	p.unsure = true // reservations are drawn anew each time
	return false
}

// fitsNow says whether the offer fits on the books as they are.
func (p *pass) fitsNow(r *record, leaf int, o offer, ledger *quota.Ledger) bool {
	_, ok := ledger.Fits(leaf, o.charge)
	return ok && p.ownFits(r, leaf, o.charge) && gang.Fits(p.inv, o.spec, o.sizesFor(r))
}

// compareSets orders outcomes: the standing of those taken back, from the highest
// down; then the least taken, as a part of the hardware; then how many gangs; then the
// younger.
func (p *pass) compareSets(a, b []victim) int {
	taken := func(set []victim) []victim {
		return slices.DeleteFunc(slices.Clone(set), func(v victim) bool { return v.going })
	}
	a, b = taken(a), taken(b)
	whole := func(set []victim) bool {
		return slices.ContainsFunc(set, func(v victim) bool { return !v.surplus })
	}
	if c := queue.CompareBool(whole(a), whole(b)); c != 0 {
		return c
	}
	for i := range min(len(a), len(b)) {
		x, y := a[len(a)-1-i], b[len(b)-1-i]
		if c := cmp.Or(cmp.Compare(x.queue, y.queue), cmp.Compare(x.r.w.Priority, y.r.w.Priority)); c != 0 {
			return c
		}
	}
	sum := func(set []victim) (r quota.Resources) {
		for _, v := range set {
			r.Add(v.charge)
		}
		return r
	}
	least := p.partOf(sum(a)).compare(p.partOf(sum(b)))
	return cmp.Or(least, cmp.Compare(len(a), len(b)), slices.CompareFunc(a, b, compareVictims))
}
