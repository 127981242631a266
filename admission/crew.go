package admission

import (
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// crew is what runs, sorted once a pass by what is asked about it, so that a claim
// looks at those who could matter to it and at nobody else. The phase of what runs
// does not change within a pass.
type crew struct {
	queues []*squad // in the order of their first member
	byName map[string]*squad
	going  []*record // those that stop, or stopped, and still hold something
}

// squad is what is counted in one queue.
type squad struct {
	name    string
	id      int
	known   bool      // the queue is in the tree
	all     []*record // by key
	takable []*record // those that could be taken back at all, with what the pass starts

	asked, wavers bool // see pass.wavers
}

// crewed is the crew of this pass.
func (p *pass) crewed() *crew {
	if p.crew != nil {
		return p.crew
	}
	c := &crew{byName: map[string]*squad{}}
	for _, x := range p.s.running {
		q := c.squad(p.s.tree, x.queue)
		q.all = append(q.all, x)
		switch {
		case len(x.held) == 0:
		case x.phase != Admitted:
			c.going = append(c.going, x)
		case !x.deleted && !x.w.Pinned:
			q.takable = append(q.takable, x)
		}
	}
	p.crew = c
	return c
}

func (c *crew) squad(t *quota.Tree, name string) *squad {
	q := c.byName[name]
	if q == nil {
		q = &squad{name: name}
		q.id, q.known = t.ID(name)
		c.byName[name] = q
		c.queues = append(c.queues, q)
	}
	return q
}

// join counts what the pass starts among those who could be taken back.
func (c *crew) join(t *quota.Tree, x *record) {
	if !x.w.Pinned && len(x.held) > 0 {
		q := c.squad(t, x.queue)
		q.takable, q.asked = append(q.takable, x), false
	}
}

// under says whether queue id is at or below top.
func (p *pass) under(id, top int) bool {
	for ; id != -1; id = p.s.tree.Parent(id) {
		if id == top {
			return true
		}
	}
	return false
}

// viable marks those candidates that enough could ever take, whatever it takes before
// them. Taking others back can only lower the share of the claim's side, by those on
// that side, and never raises that of the loser's; so who may not be taken when the
// claim's whole side is gone and the loser's is not touched never may. It reports
// whether anybody is left.
func (p *pass) viable(leaf int, charge quota.Resources, going, candidates []victim) bool {
	if p.s.plain {
		for i := range candidates {
			candidates[i].viable = true
		}
		return len(candidates) > 0
	}
	any, done := false, map[int]bool{}
	for i := range candidates {
		v := &candidates[i]
		gains, loses := leaf, leaf
		if v.r.queue != p.s.tree.Name(leaf) {
			id, _ := p.s.tree.ID(v.r.queue)
			gains, loses = p.s.tree.Below(leaf, id)
		}
		if gains == loses { // of one line: taking others back may raise what is asked here
			v.viable, any = true, true
			continue
		}
		if done[gains] {
			continue
		}
		done[gains] = true
		any = p.viableFor(leaf, gains, charge, going, candidates) || any
	}
	return any
}

// viableFor is viable for the candidates before whom the claim stands on the side of
// the queue gains.
func (p *pass) viableFor(leaf, gains int, charge quota.Resources, going, candidates []victim) (any bool) {
	defer p.open(p.later)()
	for _, list := range [][]victim{going, candidates} {
		for _, v := range list {
			if id, _ := p.s.tree.ID(v.r.queue); p.under(id, gains) {
				p.liftCharge(v.load, p.later, -1)
			}
		}
	}
	for i := range candidates {
		v := &candidates[i]
		id, _ := p.s.tree.ID(v.r.queue)
		if side, loses := p.s.tree.Below(leaf, id); side == gains && loses != gains && p.may(leaf, *v, charge, p.later) {
			v.viable, any = true, true
		}
	}
	return any
}

// hope is the best standing that a claim could have on the side of a queue: with all
// that could be taken back on that side gone.
type hope struct {
	owns  bool // within what it owns
	share quota.Share
}

// yields says whether any gang of the queue could ever be taken back for the claim: no
// if even with the best standing of the claim's side the share of the other, before
// it loses anything, is too small. A queue of which some gang may be taken only later
// is looked at in any case.
func (p *pass) yields(r *record, leaf int, q *queue.Queue, from *squad, charge quota.Resources, hopes map[int]hope) bool {
	gains, loses := p.s.tree.Below(leaf, from.id)
	if gains == loses || p.wavers(from) || p.s.plain {
		return true
	}
	h, known := hopes[gains]
	if !known {
		h = p.hopeOf(r, leaf, q, gains, charge)
		hopes[gains] = h
	}
	return h.owns || p.s.cfg.FairReclaim && h.share.Compare(p.later.Share(loses)) <= 0
}

func (p *pass) hopeOf(r *record, leaf int, q *queue.Queue, gains int, charge quota.Resources) hope {
	defer p.open(p.later)()
	lift := func(x *record) {
		if !p.replaced[x] {
			p.liftCharge(x.wholeLoad(), p.later, -1)
		}
	}
	c := p.crewed()
	if own := c.byName[p.s.tree.Name(leaf)]; gains == leaf && own != nil {
		for _, x := range own.takable {
			if !p.evicted[x] && eligible(r, q, x, charge) {
				lift(x)
			}
		}
	}
	for _, from := range c.queues {
		if gains != leaf && from.known && p.under(from.id, gains) {
			for _, x := range from.takable {
				if !p.evicted[x] && eligible(r, q, x, charge) {
					lift(x)
				}
			}
		}
	}
	for _, x := range c.going {
		if id, ok := p.s.tree.ID(x.queue); ok && p.under(id, gains) {
			lift(x)
		}
	}
	h := hope{owns: p.later.Owns(leaf, charge) && p.later.Owns(gains, charge)}
	p.later.Charge(leaf, charge)
	h.share = p.later.Share(gains)
	return h
}

// wavers says whether some gang of the squad may not be taken now but perhaps later.
func (p *pass) wavers(q *squad) bool {
	if !q.asked {
		q.asked = true
		for _, x := range q.takable {
			young := p.now.Before(x.admission.At.Add(max(p.s.cfg.MinRuntime, x.w.MinRuntime)))
			q.wavers = q.wavers || young || p.moved[x] || p.waits(x)
		}
	}
	return q.wavers
}
