package admission

import (
	"slices"
	"time"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// Cycle decides what to do at now. It leaves the state as it was: everything is
// tried on the state's own books under a mark and undone before it returns.
//
// The order is that of the rules: broken gangs are mended first, since their place
// is theirs; claims for which victims stop come before others; then the best next
// claim, again and again; elastic gangs grow into what nobody wants; at last the
// gated pods of gangs that stay admitted are released.
func Cycle(s *State, now time.Time) Decision {
	p := newPass(s, now)
	defer p.close()
	p.run()
	if p.cut {
		p.d.looked = nil // others were not looked at; the next pass, which comes at once, says why they wait
		return p.d
	}
	p.explain()
	return p.d
}

// Trial is Cycle for those who ask what would be done and not why others wait: it
// decides the same, tells nobody a reason, and spends nothing on the numbers of one.
func Trial(s *State, now time.Time) Decision {
	p := newPass(s, now)
	defer p.close()
	p.mute = true
	p.run()
	p.d.looked = nil // a decision without reasons teaches nothing about shapes
	return p.d
}

func (p *pass) run() {
	p.mend()
	p.handOver()
	p.d.beside = slices.Clone(p.promised)
	p.loosened = !slices.EqualFunc(p.d.beside, p.s.beside, sameKept)
	p.contest()
	if !p.cut {
		p.grow()
	}
	p.release()
	if p.starts > 0 {
		p.d.kept = nil // what is kept was worked out before all was known to start
	}
}

// pass is one cycle: the state, the books it tries on, and what it decided so far.
type pass struct {
	mute  bool // reasons are a code alone: nobody is told them
	cut   bool // it admitted as many as it may
	s     *State
	now   time.Time
	d     Decision
	inv   *gang.Inventory
	today *quota.Ledger // what is charged now, with what this pass admits
	// later is what is charged once the victims are gone and their nominees have
	// what they died for. It is the same ledger as long as there are no victims.
	later *quota.Ledger

	invMark, nowMark int
	cursor           map[*queue.Group]int
	failed           map[*queue.Group]Reason
	fickle           map[*queue.Group]bool // failed, but time alone may help them
	unsure           bool                  // the search for victims passed over one that may be taken later
	hopeless         map[*queue.Group]bool // failed, and nobody could ever be taken back for them
	barren           bool                  // nobody could be taken back for the claim that is tried
	pointless        bool                  // so it was before, and it is known to be so still
	stopped          map[string]string     // strict queues whose first claim cannot go, with that claim
	evicted          map[*record]bool      // taken back by this pass
	shutNow          map[string]bool       // nodes that this pass found to refuse pods
	replaced         map[*record]bool      // victims whose nominee is in the later ledger instead
	moved            map[*record]bool
	begun            []*record       // what this pass admits, as it runs from now on
	returned         quota.Resources // what gangs that return hold and are promised
	loosened         bool            // there may be room or quota that the last pass did not see
	starts           int             // how often begun changed
	off              []shift         // what is off the books for the moment, of work with bounds of its own
	nominated        map[string]bool
	admitted         map[string]bool
	keeps            []keep       // of reservations
	shortFirst       map[int]bool // leaves in which the shortest limit goes first from now on
	promised         []kept       // room on the books for nominees
	lifts            int          // how many places of gangs were lifted off the books to reserve
	asked            int          // how many claims behind a reservation looked for victims
	looks            int          // how many nodes may still be looked at only to tell numbers
	arena            *queue.Contest
	lines            map[int]*lineup // by leaf
	lineOf           endLine         // who is counted on to end
	crew             *crew           // nil if not worked out
	priorities       []int64         // of queues by id; nil if not worked out
}

// looksMost bounds how many nodes one pass looks at only to bring told numbers up
// to date.
const looksMost = 200_000

func newPass(s *State, now time.Time) *pass {
	s.reopen(now)
	if s.settle() {
		s.ledger.Recount()
	}
	p := &pass{
		s: s, now: now, d: Decision{At: now, looked: map[string]glance{}, untold: map[string]bool{}, kept: map[string]keep{}}, inv: s.inv, today: s.ledger, later: s.ledger,
		cursor: map[*queue.Group]int{}, lines: map[int]*lineup{}, shortFirst: map[int]bool{}, failed: map[*queue.Group]Reason{}, fickle: map[*queue.Group]bool{}, hopeless: map[*queue.Group]bool{},
		stopped: map[string]string{}, evicted: map[*record]bool{}, shutNow: map[string]bool{}, replaced: map[*record]bool{}, moved: map[*record]bool{}, nominated: map[string]bool{}, admitted: map[string]bool{},
	}
	p.looks = looksMost
	p.remember()
	p.invMark, p.nowMark = s.inv.Mark(), s.ledger.Mark()
	return p
}

func (p *pass) close() {
	p.s.inv.Undo(p.invMark)
	p.s.ledger.Undo(p.nowMark)
}

// contest admits the best next claim until none is left that can be.
func (p *pass) contest() {
	p.arena = queue.NewContest(p.later, p.priority, p.head)
	for _, q := range p.crewed().queues {
		q.asked = false // gangs were moved since
	}
	for {
		if most := p.s.cfg.MostActs; most > 0 && len(p.d.Admit) >= most {
			p.cut = true
			return
		}
		claim := p.arena.Best()
		if claim.Workload == nil {
			return
		}
		p.try(claim)
		p.arena.Changed(claim.Leaf)
		if p.s.plain {
			p.arena = queue.NewContest(p.later, p.priority, p.head)
		}
	}
}

func (p *pass) priority(id int) int64 {
	if p.priorities == nil {
		p.priorities = make([]int64, p.s.tree.Len())
		for i := range p.priorities {
			if q := p.s.queues[p.s.tree.Name(i)]; q != nil {
				p.priorities[i] = q.Priority
			}
		}
	}
	return p.priorities[id]
}

// head is the next workload of a leaf, and what its queue would be charged for it.
func (p *pass) head(leaf int) (*queue.Workload, quota.Resources) {
	name := p.s.tree.Name(leaf)
	q := p.s.queues[name]
	if q == nil || q.Closed || p.stopped[name] != "" || p.s.tree.Ghost(leaf) {
		return nil, nil
	}
	var best *queue.Workload
	if q.Turns {
		best = p.firstByTurns(leaf, q)
	} else {
		best = p.first(leaf, name)
	}
	if best == nil {
		return nil, nil
	}
	return best, q.Choices()[0].Charge(best.Least())
}

// member is the next workload of a group that may be tried in this pass, or nil.
func (p *pass) member(g *queue.Group) *queue.Workload {
	for i := p.cursor[g]; i < len(g.Members); i++ {
		w := g.Members[i]
		r := p.s.records[w.Key]
		if !p.admitted[w.Key] && !p.nominated[w.Key] && !p.waits(r) && (!p.stuck(r) || !p.s.returns(r)) {
			p.cursor[g] = i
			return w
		}
	}
	p.cursor[g] = len(g.Members)
	return nil
}

// waits says whether r sits out this pass: its next try is later, or a write about
// it has not been answered yet.
func (p *pass) waits(r *record) bool {
	return !r.settled || r.retry.After(p.now) || r.phase == Waiting && r.w.After.After(p.now)
}

// try admits the claim, or makes room for it, or reserves it, or sets its shape
// aside with the reason why.
func (p *pass) try(c queue.Claim) {
	r := p.s.records[c.Workload.Key]
	q := p.s.queues[c.Workload.Queue]
	g := p.group(c.Workload)
	if gang.Total(c.Workload.Spec.Sizes()) == 0 && !p.s.returns(r) {
		p.admitted[c.Workload.Key] = true
		p.d.Finish = append(p.d.Finish, c.Workload.Key)
		return
	}
	if why := p.standing(r, q.Quota.Name); why.Code != "" {
		p.failed[g] = why
		// What can never go must not stop a strict queue for ever.
		if q.Strict && why.Code != NeverFits {
			p.stopped[q.Quota.Name] = r.w.Key
		}
		return
	}
	if !p.seen(r, c.Leaf, g, q) {
		p.unsure, p.barren = false, true
		p.pointless = p.stillBarren(r, c.Leaf, g, q)
		offers, done := p.settleOn(r, c.Leaf, q)
		if done {
			return
		}
		p.reserve(r, c.Leaf, offers)
		p.failed[g] = p.shortReason(r, offers)
		if p.unsure = p.unsure || p.lostTo(r, q); p.unsure {
			p.fickle[g] = true
		}
		if p.barren && !p.unsure && p.asked < askedMost {
			p.hopeless[g] = true
		}
	}
	if q.Strict {
		p.stopped[q.Quota.Name] = r.w.Key
	}
}

// settleOn goes through the flavors as the queue's owner wishes, and admits r or
// makes room for it in the first that serves. Else it returns what each has.
func (p *pass) settleOn(r *record, leaf int, q *queue.Queue) (offers []offer, done bool) {
	var borrowed *offer
	for _, f := range q.Choices() {
		o := p.offer(r, leaf, f)
		offers = append(offers, o)
		switch {
		case o.fits && (q.BorrowFirst || p.later.Owns(leaf, o.charge)):
			p.admit(r, leaf, o)
			return nil, true
		case o.fits && borrowed == nil:
			borrowed = &o
		case !o.fits && q.PreemptFirst && p.preempt(r, leaf, q, offers[len(offers)-1:]):
			return nil, true
		}
	}
	if borrowed != nil {
		p.admit(r, leaf, *borrowed)
		return nil, true
	}
	return offers, p.preempt(r, leaf, q, offers)
}

// seen says whether the shape failed before and nothing has happened since that
// could help it: then the answer is the same. A claim for which room is kept, or
// that is behind such a claim, is looked at in every cycle.
func (p *pass) seen(r *record, leaf int, g *queue.Group, q *queue.Queue) bool {
	last, ok := p.s.failed[g.Shape]
	if p.s.plain || p.loosened || !ok || !last.tried || last.changes != p.s.changes || last.reason.Code == Behind || p.roused(r, leaf, q, last.rises) {
		return false
	}
	why, holds := p.lacking(r, leaf, q, last)
	if !holds {
		return false
	}
	if p.blockedLong(r) && len(p.keeps) < p.s.cfg.Reservations && !p.keepAgain(r) {
		var offers []offer
		for _, f := range q.Choices() {
			if !p.spent() {
				offers = append(offers, p.offer(r, leaf, f))
			}
		}
		p.reserve(r, leaf, offers)
	}
	p.failed[g] = why
	return true
}

// lostTo says whether what r asks for is promised by this pass to a gang that returns.
// Who of the two is first may change without anything that is counted as a change.
func (p *pass) lostTo(r *record, q *queue.Queue) bool {
	return slices.ContainsFunc(q.Choices(), func(f *queue.Flavor) bool { return shares(p.returned, f.Charge(r.w.Least())) })
}

// stillBarren says whether nobody could be taken back for the shape when it was tried
// last, whatever reservations keep, and nothing has happened since that changes that.
func (p *pass) stillBarren(r *record, leaf int, g *queue.Group, q *queue.Queue) bool {
	last, ok := p.s.failed[g.Shape]
	return ok && !p.s.plain && !p.loosened && last.barren && last.changes == p.s.changes && !p.s.returns(r) && !p.roused(r, leaf, q, last.rises)
}

// lacking is the reason of r, which failed for the reason last, now that others were
// admitted: if in no flavor there is quota that nobody else is kept, that comes first.
// It says no where quota was missing and is not any more, as far as this pass has come.
func (p *pass) lacking(r *record, leaf int, q *queue.Queue, look glance) (Reason, bool) {
	var offers []offer
	last := look.reason
	for _, f := range q.Choices() {
		o := offer{flavor: f, charge: f.Charge(r.w.Least())}
		if p.affords(r, leaf, &o) && (look.rises != p.s.rises || last.Code == Quota) {
			o.behind = p.keptQuota(r, leaf, o.charge, p.endOf(r.w), nil)
		}
		if o.lack == nil && o.behind == "" {
			return last, last.Code != Quota
		}
		offers = append(offers, o)
	}
	return p.shortReason(r, offers), true
}

func (p *pass) group(w *queue.Workload) *queue.Group {
	if g := p.s.waiting.Group(w); g != nil {
		return g
	}
	panic("admission: a claim of " + w.Key + " that is in no group")
}

// offer is what one flavor has for a claim now.
type offer struct {
	sizes  []int // of its pod sets; nil is the claim's minimum
	flavor *queue.Flavor
	spec   *gang.Spec
	charge quota.Resources // for the minimum
	fits   bool
	plan   gang.Plan
	lack   *quota.Lack     // quota is missing
	user   bool            // the quota is that of its user
	pinned bool            // the quota is what the queue owns, for work that stays
	short  *gang.Shortfall // places are missing
	behind string          // it would fit, were it not for this claim's reservation
}

// offer looks for room for r's minimum, and takes nothing.
func (p *pass) offer(r *record, leaf int, f *queue.Flavor) offer {
	o := offer{flavor: f, spec: f.Spec(&r.w.Spec), charge: f.Charge(r.w.Least())}
	if !p.affords(r, leaf, &o) {
		return o
	}
	sizes := r.w.LeastSizes()
	end := p.endOf(r.w)
	if by := p.keptQuota(r, leaf, o.charge, end, nil); by != "" {
		o.behind = by
		return o
	}
	unmark := p.takeKeeps(end, nil)
	o.plan, o.short = gang.Place(p.inv, o.spec, sizes)
	unmark()
	if o.short != nil {
		if by := p.roomKeptBy(o.spec, sizes); by != "" {
			o.behind, o.short = by, nil
		}
	}
	o.fits = o.short == nil && o.behind == ""
	return o
}

// affords says whether there is quota for the offer, and notes in it what lacks.
func (p *pass) affords(r *record, leaf int, o *offer) bool {
	if lack, ok := p.fits(leaf, o.charge); !ok {
		o.lack = &lack
		return false
	}
	if bound, ok := p.pinnedFits(r, leaf, o.charge); !ok {
		o.lack, o.pinned = &bound, true
		return false
	}
	if bound, ok := p.userFits(r, o.charge); !ok {
		o.lack, o.user = &bound, true
		return false
	}
	return true
}

// fits asks both ledgers: what is charged now, and what will be once victims are
// gone and their nominees are in.
func (p *pass) fits(leaf int, charge quota.Resources) (quota.Lack, bool) {
	if lack, ok := p.today.Fits(leaf, charge); !ok {
		return lack, false
	}
	if p.later != p.today {
		return p.later.Fits(leaf, charge)
	}
	return quota.Lack{}, true
}

// admit takes what o offers, grown to the largest size that fits.
func (p *pass) admit(r *record, leaf int, o offer) {
	if p.outranked(r, o.charge) {
		p.admitted[r.w.Key] = true // not tried again in this pass
		return
	}
	if p.s.returns(r) {
		p.fork()
		p.returned.Add(o.charge)
		p.keepPlan(r, leaf, o, o.plan, nil)
		return
	}
	p.take(leaf, o.spec, o.flavor, o.plan)
	if r.w.Spec.Elastic() {
		grown := p.grown(r, leaf, o.spec, o.flavor, o.plan)
		p.giveBack(leaf, o.spec, o.flavor, o.plan)
		p.take(leaf, o.spec, o.flavor, grown)
		o.plan = grown
	}
	p.admitted[r.w.Key] = true
	a := Admission{
		Key: r.w.Key, UID: r.w.UID, Queue: r.w.Queue, Flavor: flavorName(o.flavor),
		Plan: o.plan, At: p.now, Based: r.version,
	}
	p.d.Admit = append(p.d.Admit, a)
	p.begin(r, &a, o.spec, o.flavor, o.flavor.Charge(o.spec.Request(o.plan.Sizes())))
}

func flavorName(f *queue.Flavor) string {
	if f == nil {
		return ""
	}
	return f.Name
}

// take charges the plan and takes its places on the pass's books.
func (p *pass) take(leaf int, spec *gang.Spec, f *queue.Flavor, plan gang.Plan) {
	p.inv.TakePlan(spec, plan)
	charge := f.Charge(spec.Request(plan.Sizes()))
	p.today.Charge(leaf, charge)
	for i := range p.keeps {
		p.keeps[i].book(leaf, charge, 1)
	}
	if p.later != p.today {
		p.later.Charge(leaf, charge)
	}
}

func (p *pass) giveBack(leaf int, spec *gang.Spec, f *queue.Flavor, plan gang.Plan) {
	p.inv.GivePlan(spec, plan)
	charge := f.Charge(spec.Request(plan.Sizes()))
	p.today.Release(leaf, charge)
	for i := range p.keeps {
		p.keeps[i].book(leaf, charge, -1)
	}
	if p.later != p.today {
		p.later.Release(leaf, charge)
	}
}

// grown is the plan, which is taken, with as many pods more as quota and room allow.
func (p *pass) grown(r *record, leaf int, spec *gang.Spec, f *queue.Flavor, plan gang.Plan) gang.Plan {
	end := p.endOf(r.w)
	unmark := p.takeKeeps(end, nil)
	defer unmark()
	var more quota.Resources
	return gang.Grow(p.inv, spec, plan, func(set int) bool {
		next := more.Clone()
		next.Add(f.Charge(spec.PodSets[set].Request))
		if _, ok := p.fits(leaf, next); !ok || p.keptQuota(r, leaf, next, end, nil) != "" {
			return false
		}
		if _, ok := p.pinnedFits(r, leaf, next); !ok {
			return false
		}
		if _, ok := p.userFits(r, next); !ok {
			return false
		}
		more = next
		return true
	})
}

// endOf is when w ends by its owner's word if it starts now, or zero.
func (p *pass) endOf(w *queue.Workload) time.Time {
	if w.Limit == 0 {
		return time.Time{}
	}
	return p.now.Add(w.Limit)
}

// grow gives elastic gangs that run below their full size what nobody wants, and
// gangs that were resized while they run the pods they ask for.
func (p *pass) grow() {
	for _, r := range p.s.running {
		if r.phase != Admitted || r.deleted || p.waits(r) || p.evicted[r] || p.moved[r] || p.now.Before(r.grown.Add(p.s.cfg.GrowEvery)) {
			continue
		}
		a := r.admission
		if r.sated = r.sated && !p.s.plain || !r.wantsMore(); r.sated {
			continue
		}
		leaf, ok := p.s.tree.ID(a.Queue)
		if !ok || p.s.tree.Ghost(leaf) {
			continue
		}
		if q := p.s.queues[a.Queue]; q == nil || q.Closed {
			continue
		}
		spec := r.flavor.Spec(&r.w.Spec)
		plan := a.Plan.Clone()
		grown := p.grown(r, leaf, spec, r.flavor, plan)
		if gang.Total(grown.Sizes()) == gang.Total(plan.Sizes()) {
			continue
		}
		more := difference(grown, plan)
		p.take(leaf, spec, r.flavor, more)
		b := *a
		b.Plan, b.Based = grown, r.version
		p.d.Move = append(p.d.Move, b)
	}
}

// wantsMore says whether the plan names fewer places than the gang asks for.
func (r *record) wantsMore() bool {
	for i, n := range r.admission.Plan.Sizes() {
		if n < r.w.Spec.PodSets[i].Count {
			return true
		}
	}
	return false
}

// difference is what a has beyond b, which is part of a.
func difference(a, b gang.Plan) gang.Plan {
	d := a.Clone()
	for i, set := range b.Sets {
		for _, slot := range slices.Clone(set.Slots) {
			d.Add(i, slot.Node, -slot.Count)
		}
	}
	return d
}
