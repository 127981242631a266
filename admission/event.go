package admission

import (
	"time"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// Event is something that was seen in the cluster, or done to it.
type Event interface{ event() }

// NodeSeen says what a node is like now.
type NodeSeen struct{ Node *gang.Node }

// NodeGone says that a node no longer exists.
type NodeGone struct{ Name string }

// QueueSeen says what a queue is like now.
type QueueSeen struct{ Queue *queue.Queue }

// QueueGone says that a queue no longer exists. What runs there goes on.
type QueueGone struct{ Name string }

// WorkloadSeen says what a workload is like now.
type WorkloadSeen struct {
	Workload *queue.Workload
	// Version orders observations of one workload; an older one is ignored.
	Version uint64
	// Fresh says that it was read after the last write to the workload had ended, so
	// that it holds even if its version is not new.
	Fresh     bool
	Admission *Admission // as the cluster has it, or nil
	Stopping  bool       // evicted: its pods are being stopped
	// StopsFor is the claim that it was taken back for, as the eviction was written; zero
	// if it stops for another cause. It matters as long as pods of it exist.
	StopsFor Claimant
	Finished bool
	// Done is how many pods of each pod set have ended well and gave their place
	// back, by pod set name, where the cluster counts them without the pods.
	Done map[string]int
}

// Claimant names a workload for which others stop. The cluster keeps it on those who
// stop, so that a controller that starts anew still knows whose room they free.
type Claimant struct{ Key, UID string }

// WorkloadGone says that a workload no longer exists. Pods of it may.
type WorkloadGone struct{ Key string }

// PodPhase is how far a pod has come.
type PodPhase int

// The phases of a pod. Gated pods have no node; placed ones have one or are
// released to one; succeeded and failed ones hold nothing any more.
const (
	PodGated PodPhase = iota
	PodPlaced
	PodSucceeded
	PodFailed
)

// Pod is a pod that is gated for sluice, or that takes room on a node.
type Pod struct {
	UID, Key string
	Version  uint64
	// Workload is the key of the workload it belongs to, "" for a foreign pod.
	Workload string
	Set      string // name of its pod set
	Node     string // where it runs or is released to
	Phase    PodPhase
	Stopping bool
	// Refused says that it failed because its kubelet did not let it in; Accepted
	// that it was let in once.
	Refused, Accepted bool
	// Stamp is that of the admission under which it was released.
	Stamp int64
	// Request is what it takes; for a pod with a workload, that of its pod set
	// counts instead.
	Request quota.Resources
	// Queue is charged for it where the workload itself is gone.
	Queue string
}

// PodSeen says what a pod is like now.
type PodSeen struct {
	Pod Pod
	// Fresh says that it was read after the last write to the pod had ended, so that
	// it holds even if its version is not new.
	Fresh bool
}

// PodGone says that a pod no longer exists.
type PodGone struct{ UID string }

// PastSeen says what queues used of late, as the journal remembers it.
type PastSeen struct{ Past Past }

// ConfigSeen replaces the policy.
type ConfigSeen struct{ Config Config }

// Assumed says that a decision is durable and will be carried out: from now on
// the state counts it as done.
type Assumed struct{ Decision Decision }

// Result is how a write to the cluster ended.
type Result int

// The results of a write. After Unknown (no answer came) the state goes on as if
// it was done, until the next observation says which it was.
const (
	Committed Result = iota
	Refused
	Unknown
)

// Outcome says how one write of a decision ended.
type Outcome struct {
	Act     Act
	Key     string // the workload; for Release, the pod's UID
	Result  Result
	Version uint64 // of the object after the write, if Committed and known
	At      time.Time
}

// Act is a kind of write.
type Act int

// The kinds of writes that an Outcome answers.
const (
	ActAdmit Act = iota
	ActMove
	ActEvict
	ActRelease
	ActFinish
)

func (NodeSeen) event()     {}
func (NodeGone) event()     {}
func (QueueSeen) event()    {}
func (QueueGone) event()    {}
func (WorkloadSeen) event() {}
func (WorkloadGone) event() {}
func (PodSeen) event()      {}
func (PodGone) event()      {}
func (ConfigSeen) event()   {}
func (PastSeen) event()     {}
func (Assumed) event()      {}
func (Outcome) event()      {}
