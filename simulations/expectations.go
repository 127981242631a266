package simulations

import (
	"fmt"
	"time"
)

// Expectation is what must be true as of an instant, after everything due then
// has settled.
type Expectation struct {
	At     time.Duration
	Line   int
	Checks []Check // all of them, in file order; a list or map gives one per entry

	refs []ref // the names that it uses, for validate
}

// Check is one thing that must be true: one of the types below, by key.
type Check interface {
	// Subject names what is checked, as messages show it: "pending[J2]".
	Subject() string
}

// Reason is a code of a pending workload.
type Reason string

// The closed list of codes, in the order in which they are tested.
const (
	ReasonHeld         Reason = "Held"
	ReasonQueueClosed  Reason = "QueueClosed"
	ReasonQueueMissing Reason = "QueueMissing"
	ReasonInvalid      Reason = "Invalid"
	ReasonNeverFits    Reason = "NeverFits"
	ReasonLabels       Reason = "Labels"
	ReasonLayout       Reason = "Layout"
	ReasonHardware     Reason = "Hardware"
	ReasonQuota        Reason = "Quota"
	ReasonPreempting   Reason = "Preempting"
	ReasonBehind       Reason = "Behind"
	ReasonFragmented   Reason = "Fragmented"
	ReasonCapacity     Reason = "Capacity"
	ReasonBackoff      Reason = "Backoff"
)

var reasons = []Reason{
	ReasonHeld, ReasonQueueClosed, ReasonQueueMissing, ReasonInvalid, ReasonNeverFits, ReasonLabels, ReasonLayout,
	ReasonHardware, ReasonQuota, ReasonPreempting, ReasonBehind, ReasonFragmented, ReasonCapacity, ReasonBackoff,
}

// Drift is a way in which a node's claims and its hardware differ.
type Drift string

// The ways in which a node's claims and its hardware may differ.
const (
	DriftAllocatable Drift = "allocatable"
	DriftLabels      Drift = "labels"
	DriftLayout      Drift = "layout"
	DriftReplicas    Drift = "replicas"
	DriftLost        Drift = "lost"
	DriftSilent      Drift = "silent"
)

var drifts = []Drift{DriftAllocatable, DriftLabels, DriftLayout, DriftReplicas, DriftLost, DriftSilent}

// Admitted wants the workload admitted and not ended.
type Admitted struct{ Workload string }

// NotAdmitted wants the opposite of Admitted.
type NotAdmitted struct{ Workload string }

// Pending wants the workload waiting, for this reason unless it is "".
type Pending struct {
	Workload string
	Reason   Reason
}

// Finished wants the workload ended well.
type Finished struct{ Workload string }

// Whole wants 0 pods of the workload, or at least its minimum.
type Whole struct{ Workload string }

// Evicted wants the workload evicted so many times so far.
type Evicted struct {
	Workload string
	Times    int64
}

// Evictions wants so many gangs evicted so far, without shrinking.
type Evictions struct{ N int64 }

// Pods wants so many pods of the workload released and not ended.
type Pods struct {
	Workload string
	N        int64
}

// PodSetPods is Pods of one pod set.
type PodSetPods struct {
	Workload, PodSet string
	N                int64
}

// OnNodes wants so many pods of the workload on each of these nodes.
type OnNodes struct {
	Workload string
	Nodes    []NodePods
}

// NotOnNodes wants no pod of the workload on any of these nodes.
type NotOnNodes struct {
	Workload string
	Nodes    []string
}

// SameLevel wants all pods of the workload on nodes with one value of a label.
type SameLevel struct{ Workload, Level string }

// Usage wants a queue and its subtree charged with exactly so much of each
// resource that is listed.
type Usage struct {
	Queue string
	Want  Amounts
}

// Free wants exactly so much of each listed resource unused on a node.
type Free struct {
	Node string
	Want Amounts
}

// AdmittedBy wants the workload first admitted no later than an instant.
type AdmittedBy struct {
	Workload string
	By       time.Duration
}

// Says wants a text in the pending message of the workload.
type Says struct{ Workload, Text string }

// Drifts wants exactly these differences on a node.
type Drifts struct {
	Node string
	What []Drift
}

// Quiet wants no admission, eviction, shrink or growth for so long from the
// instant of the expectation on.
type Quiet struct{ For time.Duration }

// Never wants the workload not admitted at any instant so far.
type Never struct{ Workload string }

// CountAdmitted wants N of these workloads admitted.
type CountAdmitted struct {
	N     int64
	Among []string
}

// AnyOf wants all checks of at least one alternative to hold.
type AnyOf struct{ Alternatives [][]Check }

func about(key, what string) string { return fmt.Sprintf("%s[%s]", key, what) }

func (c Admitted) Subject() string      { return about("admitted", c.Workload) }
func (c NotAdmitted) Subject() string   { return about("notAdmitted", c.Workload) }
func (c Pending) Subject() string       { return about("pending", c.Workload) }
func (c Finished) Subject() string      { return about("finished", c.Workload) }
func (c Whole) Subject() string         { return about("whole", c.Workload) }
func (c Evicted) Subject() string       { return about("evicted", c.Workload) }
func (c Evictions) Subject() string     { return "evictions" }
func (c Pods) Subject() string          { return about("pods", c.Workload) }
func (c PodSetPods) Subject() string    { return about("podSets", c.Workload+"."+c.PodSet) }
func (c OnNodes) Subject() string       { return about("nodes", c.Workload) }
func (c NotOnNodes) Subject() string    { return about("notNodes", c.Workload) }
func (c SameLevel) Subject() string     { return about("sameLevel", c.Workload) }
func (c Usage) Subject() string         { return about("usage", c.Queue) }
func (c Free) Subject() string          { return about("free", c.Node) }
func (c AdmittedBy) Subject() string    { return about("admittedBy", c.Workload) }
func (c Says) Subject() string          { return about("says", c.Workload) }
func (c Drifts) Subject() string        { return about("drift", c.Node) }
func (c Quiet) Subject() string         { return "quiet" }
func (c Never) Subject() string         { return about("never", c.Workload) }
func (c CountAdmitted) Subject() string { return "count" }
func (c AnyOf) Subject() string         { return "anyOf" }
