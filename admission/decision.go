package admission

import (
	"time"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// Decision is what one cycle wants done.
type Decision struct {
	Seq uint64 // given by the journal
	At  time.Time
	// Admit starts gangs; Move changes the plan of gangs that are admitted, to
	// other nodes or another size; Evict takes gangs back whole.
	Admit []Admission
	Move  []Admission
	Evict []Eviction
	// Release lets gated pods of admitted gangs go to their nodes.
	Release []Release
	// Finish names gangs of no pods, which are done as soon as they are admitted.
	Finish []string
	// Verdicts says why workloads wait; only those whose answer changed.
	Verdicts []Verdict
	// Marks are times to remember.
	Marks []Mark
	// Nominees are claims for which victims stop, with all victims so far.
	Nominees []Nominee
	// Reservations are the places kept for blocked claims in this cycle.
	Reservations []Reservation

	// Unreserved is how many claims were due for a reservation when the cycle had spent
	// what it may on them; the next cycle starts again with the first.
	Unreserved int `json:",omitempty"`
	// Past is what queues used of late, if that joins their shares.
	Past *Past `json:",omitempty"`

	kept   map[string]keep   // the reservations, by workload
	looked map[string]glance // shapes that failed
	beside []kept            // what was kept for nominees while they were looked at
	untold map[string]bool   // shapes of which some member was not told the common answer
}

// Acts says whether something has to be done to the cluster beyond telling.
func (d *Decision) Acts() bool {
	return len(d.Admit)+len(d.Move)+len(d.Evict)+len(d.Release)+len(d.Finish) > 0
}

// Past is what queues used of late, on average, as of a time: by queue, then by the
// name of the resource.
type Past struct {
	At   time.Time
	Used map[string]map[string]int64
}

// Admission is a gang's place: what it was promised.
type Admission struct {
	Key, UID string
	Queue    string
	Flavor   string // "" if the queue has none
	Plan     gang.Plan
	At       time.Time // when it was admitted; a later Move keeps it
	Based    uint64    // the version of the workload that was decided on
}

// Stamp marks pods as released under this admission and no other.
func (a *Admission) Stamp() int64 { return a.At.Unix() }

// Eviction takes a gang back.
type Eviction struct {
	Key, UID string
	Cause    Cause
	For      string // the claim it makes room for, if Cause is Preempted or Reclaimed
	ForUID   string // of that claim
	Detail   string // the node or pod behind it, for people
	Based    uint64
}

// Cause is why a gang is taken back.
type Cause string

// The causes of an eviction.
const (
	Preempted Cause = "Preempted" // for a workload of its own queue
	Reclaimed Cause = "Reclaimed" // for a queue that owns, or has the smaller share of, what it uses
	Broken    Cause = "Broken"    // it misses pods that it needs, longer than the recovery window
	Misplaced Cause = "Misplaced" // before it ran, its nodes changed and no others were free
	Stopped   Cause = "Stopped"   // its owner holds it
	Expired   Cause = "Expired"   // it ran longer than its maximum
	// TurnedAway is a gang of which a kubelet did not let a pod in.
	TurnedAway Cause = "TurnedAway"
)

// Release lets one gated pod go to its node.
type Release struct {
	UID, Key string // of the pod
	Workload string
	Node     string
	Stamp    int64
}

// Nominee is a claim for which victims are stopping. What they free is kept for it.
type Nominee struct {
	Key, UID string
	Victims  []string // workload keys
	Flavor   string
	Plan     gang.Plan // the places that are kept for it
	// Awaited says that some of them stop for other causes: should that take too
	// long, the claim looks for others.
	Awaited bool
}

// Reservation is room that is kept for a blocked claim.
type Reservation struct {
	Key string
	// Start is when all of it is free by the limits of what runs there; zero if it
	// depends on work without a limit (a drain: the nodes are kept as they free up).
	Start  time.Time
	Plan   gang.Plan
	Charge quota.Resources
}
