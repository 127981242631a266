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
// are met or set aside. What it found below a queue is remembered until Changed.
type Contest struct {
	ledger   *quota.Ledger
	priority func(id int) int64
	head     func(leaf int) (*Workload, quota.Resources)
	best     []Claim
	known    []bool
}

// NewContest returns a contest over the ledger's tree. priority gives the priority
// of a queue; head the next workload of a leaf and what it would be charged, or nil.
func NewContest(l *quota.Ledger, priority func(id int) int64, head func(leaf int) (*Workload, quota.Resources)) *Contest {
	n := l.Tree().Len()
	return &Contest{ledger: l, priority: priority, head: head, best: make([]Claim, n), known: make([]bool, n)}
}

// Best returns the best next claim, or one without a workload if none is left.
func (c *Contest) Best() Claim { return c.below(quota.Root) }

// Changed says that what is charged to queue id, or who is next in it, changed.
func (c *Contest) Changed(id int) {
	for ; id != -1; id = c.ledger.Tree().Parent(id) {
		c.known[id] = false
	}
}

func (c *Contest) below(id int) Claim {
	if c.known[id] {
		return c.best[id]
	}
	var best Claim
	at := 0 // the child of id that best comes from
	children := c.ledger.Tree().Children(id)
	if len(children) == 0 {
		if w, charge := c.head(id); w != nil {
			best = Claim{Workload: w, Leaf: id, Charge: charge, Owned: true}
		}
	}
	for _, child := range children {
		claim := c.below(child)
		if claim.Workload == nil {
			continue
		}
		claim.Owned = claim.Owned && c.ledger.Owns(child, claim.Charge)
		if best.Workload == nil || c.compare(claim, child, best, at) < 0 {
			best, at = claim, child
		}
	}
	c.best[id], c.known[id] = best, true
	return best
}

// compare orders two claims that come from the siblings ca and cb.
func (c *Contest) compare(a Claim, ca int, b Claim, cb int) int {
	return cmp.Or(
		compareBool(b.Owned, a.Owned),
		cmp.Compare(c.priority(b.Leaf), c.priority(a.Leaf)),
		cmp.Compare(c.priority(cb), c.priority(ca)),
		compareBool(c.idle(a, ca), c.idle(b, cb)),
		c.ledger.Standing(ca).Compare(c.ledger.Standing(cb)),
		Compare(a.Workload, b.Workload),
	)
}

// idle says that the claim may only have what nobody of weight above 0 wants.
func (c *Contest) idle(a Claim, child int) bool {
	return !a.Owned && c.ledger.Tree().Weight(child) <= 0
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}
