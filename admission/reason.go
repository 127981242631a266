package admission

import (
	"slices"
	"time"

	"sluice.dev/sluice/gang"
)

// Code is why a workload waits: one word of a closed list.
type Code string

// The codes in the order in which they are tested; the first that is true is told.
const (
	Held         Code = "Held"
	QueueClosed  Code = "QueueClosed"
	QueueMissing Code = "QueueMissing"
	Invalid      Code = "Invalid"
	NeverFits    Code = "NeverFits"
	Labels       Code = "Labels"
	Layout       Code = "Layout"
	Hardware     Code = "Hardware"
	Quota        Code = "Quota"
	Preempting   Code = "Preempting"
	Behind       Code = "Behind"
	Fragmented   Code = "Fragmented"
	Capacity     Code = "Capacity"
	Backoff      Code = "Backoff"
)

// Reason is why a workload waits, with the numbers behind it. Text is made of it
// by State.Text.
type Reason struct {
	Code   Code
	Queue  string // the queue it speaks of
	Detail string // in the words of who made it invalid, held or gated it
	// Bound is the quota that is too small, for NeverFits and Quota.
	Bound *Bound
	// Places is how near the gang came, for reasons about nodes.
	Places *Places
	// Names are the workloads it waits for: victims that stop, or who is first.
	Names []string
	Until time.Time // of Backoff, or of the reservation it is Behind
}

// Bound is a quota that is too small for the claim.
type Bound struct {
	Queue    string // "" is the cluster
	Resource string
	Borrow   bool   // what may be borrowed, not a max
	User     string // whose bound it is, if it is one for each user
	Pinned   bool   // what the queue owns, which bounds work that nobody may take back
	Limit    int64
	Used     int64
	Asked    int64
}

// Places is how near a gang came to a place.
type Places struct {
	Resource string // of which a pod takes the largest part
	Pod      int64  // of it, by one pod of the pod set that is hardest to place
	Asked    int64  // of it, by the whole gang at its minimum
	Free     int64  // of it, on nodes open to the gang
	Sets     []gang.SetShort
	Level    string
	Excluded []gang.Exclusion
	Cut      bool // the search ended at its bound
	// Recut are nodes that would hold the gang together if cards of theirs were cut or
	// shared otherwise.
	Recut []string
}

// Verdict is the reason why a workload waits.
type Verdict struct {
	Key    string
	Reason Reason
	Text   string // the reason as people read it
}

// same says whether r is o, number by number. What speaks of places counts as new.
func (r *Reason) same(o *Reason) bool {
	if r.Places != nil || o.Places != nil || (r.Bound == nil) != (o.Bound == nil) || r.Bound != nil && *r.Bound != *o.Bound {
		return false
	}
	return r.Code == o.Code && r.Queue == o.Queue && r.Detail == o.Detail && r.Until.Equal(o.Until) && slices.Equal(r.Names, o.Names)
}
