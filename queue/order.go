package queue

import (
	"cmp"

	"sluice.dev/sluice/quota"
)

// Claim is a workload that would be next in its part of the tree.
type Claim struct {
	Workload *Workload
	Leaf     int             // the id of its queue
	Charge   quota.Resources // what its queue would be charged for its minimum
	// Owned says that it stays within what its queue owns, and within what every
	// queue above owns up to the level at which it is compared.
	Owned bool
}

// Contest finds the best next claim over the tree, again and again, while claims
// are met or set aside. What it found below a queue is remembered until Changed: the
// children of a queue meet in pairs, the winners again, and so on, so that after a
// change only those meet again whom the changed one could meet.
type Contest struct {
	ledger   *quota.Ledger
	priority func(id int) int64
	head     func(leaf int) (*Workload, quota.Resources)
	best     []Claim
	known    []bool
	rounds   []rounds
}

// rounds are the meetings of the children of one queue.
type rounds struct {
	claims []Claim // by position of the child, as they are compared with one another
	wins   []int32 // 1 is the last meeting; i is between the winners of 2i and 2i+1; -1 is nobody
	stale  []int32 // positions of children that changed
	at     int     // the position of the queue itself among its siblings
}

// NewContest returns a contest over the ledger's tree. priority gives the priority
// of a queue; head the next workload of a leaf and what it would be charged, or nil.
func NewContest(l *quota.Ledger, priority func(id int) int64, head func(leaf int) (*Workload, quota.Resources)) *Contest {
	n := l.Tree().Len()
	c := &Contest{ledger: l, priority: priority, head: head, best: make([]Claim, n), known: make([]bool, n), rounds: make([]rounds, n)}
	for id := range n {
		for at, child := range l.Tree().Children(id) {
			c.rounds[child].at = at
		}
	}
	return c
}

// Best returns the best next claim, or one without a workload if none is left.
func (c *Contest) Best() Claim { return c.below(quota.Root) }

// Changed says that what is charged to queue id, or who is next in it, changed.
func (c *Contest) Changed(id int) {
	for id != -1 && c.known[id] { // above one that is not known nobody is
		c.known[id] = false
		up := c.ledger.Tree().Parent(id)
		if up != -1 {
			c.rounds[up].stale = append(c.rounds[up].stale, int32(c.rounds[id].at))
		}
		id = up
	}
}

func (c *Contest) below(id int) Claim {
	if c.known[id] {
		return c.best[id]
	}
	c.known[id] = true
	children := c.ledger.Tree().Children(id)
	if len(children) == 0 {
		c.best[id] = Claim{}
		if w, charge := c.head(id); w != nil {
			c.best[id] = Claim{Workload: w, Leaf: id, Charge: charge, Owned: true}
		}
		return c.best[id]
	}
	r := &c.rounds[id]
	if r.wins == nil {
		c.open(r, children)
	}
	for _, at := range r.stale {
		c.enter(r, children, int(at))
		for i := (len(r.wins)/2 + int(at)) / 2; i > 0; i /= 2 {
			r.wins[i] = c.meet(r, children, r.wins[2*i], r.wins[2*i+1])
		}
	}
	r.stale = r.stale[:0]
	c.best[id] = Claim{}
	if at := r.wins[1]; at >= 0 {
		c.best[id] = r.claims[at]
	}
	return c.best[id]
}

// open lets all children meet for the first time.
func (c *Contest) open(r *rounds, children []int) {
	size := 2
	for size < len(children) {
		size *= 2
	}
	r.claims, r.wins = make([]Claim, len(children)), make([]int32, 2*size)
	for i := range r.wins {
		r.wins[i] = -1
	}
	for at := range children {
		c.enter(r, children, at)
	}
	for i := size - 1; i > 0; i-- {
		r.wins[i] = c.meet(r, children, r.wins[2*i], r.wins[2*i+1])
	}
	r.stale = r.stale[:0]
}

// enter asks the child at a position for its claim.
func (c *Contest) enter(r *rounds, children []int, at int) {
	claim, slot := c.below(children[at]), len(r.wins)/2+at
	if claim.Workload == nil {
		r.wins[slot] = -1
		return
	}
	claim.Owned = claim.Owned && c.ledger.Owns(children[at], claim.Charge)
	r.claims[at], r.wins[slot] = claim, int32(at)
}

// meet is who of two is before the other; of equals, the first.
func (c *Contest) meet(r *rounds, children []int, a, b int32) int32 {
	if a < 0 || b >= 0 && c.compare(r.claims[b], children[b], r.claims[a], children[a]) < 0 {
		return b
	}
	return a
}

// compare orders two claims that come from the siblings ca and cb.
func (c *Contest) compare(a Claim, ca int, b Claim, cb int) int {
	return cmp.Or(
		CompareBool(b.Owned, a.Owned),
		cmp.Compare(c.priority(b.Leaf), c.priority(a.Leaf)),
		cmp.Compare(c.priority(cb), c.priority(ca)),
		CompareBool(c.idle(a, ca), c.idle(b, cb)),
		c.ledger.Standing(ca).Compare(c.ledger.Standing(cb)),
		Compare(a.Workload, b.Workload),
	)
}

// idle says that the claim may only have what nobody of weight above 0 wants.
func (c *Contest) idle(a Claim, child int) bool {
	return !a.Owned && c.ledger.Tree().Weight(child) <= 0
}

// CompareBool puts false before true.
func CompareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}
