package queue

import (
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// Within says whom a queue's workloads may preempt in their own queue.
type Within string

// The values of Within. LowerPriority is the default.
const (
	WithinNever Within = "Never"
	WithinLower Within = "LowerPriority"
	WithinNewer Within = "LowerOrNewerEqualPriority"
)

// Reclaim says whom a queue may take back from others.
type Reclaim string

// The values of Reclaim. Any is the default.
const (
	ReclaimNever Reclaim = "Never"
	ReclaimLower Reclaim = "LowerPriority"
	ReclaimAny   Reclaim = "Any"
)

// Queue is a team's queue: its quota and the policies beside it.
type Queue struct {
	Quota    quota.Queue
	Priority int64 // higher is served first and gives last
	Strict   bool  // the first workload that cannot go stops those behind it
	Within   Within
	Reclaim  Reclaim
	// Sheltered says that nobody may reclaim from it.
	Sheltered bool
	Closed    bool // nothing more is admitted
	// Turns lets users take turns: of claims of one priority, that of the user who has
	// the smaller part of the hardware in this queue goes first.
	Turns bool
	// UserMax bounds what one user may use of the queue at a time, by dimension of the
	// quota; absent is unbounded.
	UserMax map[int]int64
	// BorrowFirst takes a flavor in which the claim has to borrow rather than look
	// whether a later one would do without; PreemptFirst takes others back in a
	// flavor rather than look whether a later one is free.
	BorrowFirst, PreemptFirst bool
	// Flavors are the pools of nodes it may use, tried in this order. None means
	// every node, charged in the resources of the pods themselves.
	Flavors []Flavor
}

// Flavor is a pool of nodes and the quota that is charged for it.
type Flavor struct {
	Name        string
	All         []gang.Requirement // labels of its nodes
	Tolerations []gang.Toleration
	// Dims says in which dimension of the quota a resource of the pods is charged,
	// by dimension; what is absent is charged in its own.
	Dims map[int]int
	// Parts says, of devices that the queue counts as parts of cards, how many
	// thousandths of a card one is, by dimension; they are charged in Card.
	Parts map[int]int64
	Card  int
	// Roomy takes the emptiest of its nodes first, not the fullest.
	Roomy bool
}

// Charge translates what pods take into what the queue is charged.
func (f *Flavor) Charge(r quota.Resources) quota.Resources {
	if f == nil || len(f.Dims)+len(f.Parts) == 0 {
		return r
	}
	out := make(quota.Resources, 0, len(r))
	for i, v := range r {
		if v == 0 {
			continue
		}
		d, ok := f.Dims[i]
		if part, counts := f.Parts[i]; counts {
			d, v = f.Card, quota.Product(v, part)
		} else if !ok {
			d = i
		}
		out.Set(d, quota.Sum(out.At(d), v))
	}
	return out
}

// Spec returns the gang's spec as it is on this flavor's nodes.
func (f *Flavor) Spec(s *gang.Spec) *gang.Spec {
	if f == nil || len(f.All) == 0 && len(f.Tolerations) == 0 && !f.Roomy {
		return s
	}
	c := *s
	c.Roomy = c.Roomy || f.Roomy
	c.PodSets = make([]gang.PodSet, len(s.PodSets))
	for i, ps := range s.PodSets {
		ps.Filter = ps.Filter.With(f.All, f.Tolerations)
		c.PodSets[i] = ps
	}
	return &c
}

// Choices returns the flavors to try, in order: at least one, which may be nil.
func (q *Queue) Choices() []*Flavor {
	if len(q.Flavors) == 0 {
		return []*Flavor{nil}
	}
	out := make([]*Flavor, len(q.Flavors))
	for i := range q.Flavors {
		out[i] = &q.Flavors[i]
	}
	return out
}

// Flavor returns the flavor called name, or nil.
func (q *Queue) Flavor(name string) *Flavor {
	for i := range q.Flavors {
		if q.Flavors[i].Name == name {
			return &q.Flavors[i]
		}
	}
	return nil
}
