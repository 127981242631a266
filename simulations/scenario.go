package simulations

import (
	"time"
)

// Scenario is one valid file, with everything written out.
type Scenario struct {
	File   string
	Name   string
	Nodes  []Node
	Levels []string // topology levels as label keys, widest first; the last is the hostname
	Queues []Queue
	Policy Policy
	Events []Event       // in the order in which they happen
	Expect []Expectation // by time, file order within an instant

	uses []use // every key, verb and choice that the file uses, for Unsupported
}

// Policy is the part of the controller's configuration that a scenario sets.
type Policy struct {
	ReserveAfter   time.Duration // a claim blocked longer gets a reservation
	RecoveryWindow time.Duration // so long may a gang run below its minimum
	MinRuntime     time.Duration // so long nobody is preempted
	Placement      string        // pack
	GrowEvery      time.Duration // elastic gangs are offered more so often
	FairReclaim    bool          // the larger share of two borrowers gives to the smaller
	ShortestFirst  bool          // behind a reservation the shortest limit goes first
}

// Node is one machine at the time when it appears.
type Node struct {
	Name       string
	Line       int
	CPU        int64 // millicores
	Memory     int64 // bytes
	Pods       int64
	Product    string   // "" if the file names none
	Layouts    []Layout // one per card, by index
	TimeSlices int      // replicas of each whole card; below 2 they are not shared
	Overrides  []LabelOverride
	Taints     []Taint
}

// LabelOverride sets a label of a node, or removes it if Value is nil.
type LabelOverride struct {
	Key   string
	Value *string
}

// Taint keeps pods away that do not tolerate it.
type Taint struct{ Key, Value, Effect string }

// Toleration lets a pod onto nodes with a taint of this key and effect, and of
// this value unless AnyValue.
type Toleration struct {
	Key, Value, Effect string
	AnyValue           bool
}

// Strategy says whether a queue's later workloads may pass a blocked one.
type Strategy string

// The strategies.
const (
	BestEffortFIFO Strategy = "BestEffortFIFO"
	StrictFIFO     Strategy = "StrictFIFO"
)

// Preemption says whose work may be taken: within a queue, or by reclaim.
type Preemption string

// The values of withinQueue and reclaim.
const (
	PreemptNever             Preemption = "Never"
	PreemptLowerPriority     Preemption = "LowerPriority"
	PreemptLowerOrNewerEqual Preemption = "LowerOrNewerEqualPriority" // within a queue only
	PreemptAny               Preemption = "Any"                       // reclaim only
)

// Queue is one queue of the tree.
type Queue struct {
	Name         string
	Line         int
	Parent       string  // "": under the root
	WeightMillis int64   // thousandths
	Nominal      Amounts // nil: the key is absent, the queue owns by weight
	Max          Amounts // nil: absent; silent about a resource: no bound
	Lendable     Amounts // nil: absent, all of nominal
	Priority     int64
	Strategy     Strategy
	WithinQueue  Preemption
	Reclaim      Preemption
	Reclaimable  bool
	Closed       bool
}

// Sharing is the kind of card that a request for nvidia.com/gpu means.
type Sharing string

// The kinds of cards.
const (
	SharingWhole  Sharing = "whole"
	SharingShared Sharing = "shared"
	SharingAny    Sharing = "any"
)

// Topology asks for nodes that share a level: the narrowest possible up to
// this one if Required, this one if possible otherwise.
type Topology struct {
	Level    string // a label key; "": no wish
	Required bool
}

// Workload is one gang.
type Workload struct {
	Name        string
	Queue       string
	Line        int
	PodSets     []PodSet // at least one; the short form makes one named DefaultPodSet
	MinTotal    *int64   // over all pod sets; nil: the sum of their minima
	Priority    int64
	Preemptible bool
	Topology    Topology // of the gang as a whole; pod sets may have their own
	Sharing     Sharing
	Runtime     *time.Duration // nil: for ever
	Limit       *time.Duration // nil: its owner declared none
	Hold        bool
	Stops       time.Duration // how long its pods take to stop
	NeverStops  bool          // they do not; Stops means nothing
	Gate        string        // "": none
}

// DefaultPodSet is the name of the pod set of a workload that lists none.
const DefaultPodSet = "main"

// PodSet is pods that are alike. What the workload says for all its pod sets
// (selector, notNodes, tolerations) is merged in.
type PodSet struct {
	Name        string
	Line        int
	Pods        int64
	Min         int64 // equals Pods unless elastic
	Requests    Amounts
	Selector    []Label
	NotNodes    []string
	Tolerations []Toleration
	Topology    Topology
	Running     []NodePods // in place before time 0
}

// NodePods is so many pods on one node.
type NodePods struct {
	Node string
	Pods int64
}

// Elastic says that the pod set may run with fewer pods than it wants.
func (s PodSet) Elastic() bool { return s.Min < s.Pods }

// IsRunning says that the gang was in place before time 0.
func (w Workload) IsRunning() bool {
	for _, p := range w.PodSets {
		if len(p.Running) > 0 {
			return true
		}
	}
	return false
}

// GPUs is the number of cards.
func (n Node) GPUs() int { return len(n.Layouts) }

// Labels are what the node carries when it appears: its hostname, what feature
// discovery sets for its cards, and the overrides; sorted by key.
func (n Node) Labels() []Label {
	set := labelSet{LabelHostname: n.Name}
	for _, l := range FeatureLabels(n.Product, n.Layouts, n.TimeSlices) {
		set[l.Key] = l.Value
	}
	for _, o := range n.Overrides {
		if o.Value == nil {
			delete(set, o.Key)
		} else {
			set[o.Key] = *o.Value
		}
	}
	return set.sorted()
}

// With is the queue after a change: the keys that the change names are the
// change's, all others stay.
func (q Queue) With(c ChangeQueue) Queue {
	for _, key := range c.Keys {
		switch key {
		case "parent":
			q.Parent = c.Queue.Parent
		case "weight":
			q.WeightMillis = c.Queue.WeightMillis
		case "nominal":
			q.Nominal = c.Queue.Nominal
		case "max":
			q.Max = c.Queue.Max
		case "lendable":
			q.Lendable = c.Queue.Lendable
		case "priority":
			q.Priority = c.Queue.Priority
		case "strategy":
			q.Strategy = c.Queue.Strategy
		case "withinQueue":
			q.WithinQueue = c.Queue.WithinQueue
		case "reclaim":
			q.Reclaim = c.Queue.Reclaim
		case "reclaimable":
			q.Reclaimable = c.Queue.Reclaimable
		case "closed":
			q.Closed = c.Queue.Closed
		}
	}
	return q
}
