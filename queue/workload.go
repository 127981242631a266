package queue

import (
	"cmp"
	"fmt"
	"time"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// Workload is a gang that a team has submitted. Values are replaced, not changed.
type Workload struct {
	Key      string // namespace/name
	UID      string
	Queue    string
	User     string // for turns and bounds per user; "" takes no part in them
	Priority int64
	Queued   time.Time // since when it waits; kept when it is taken back
	Spec     gang.Spec
	// Pinned says that nobody may take the gang back (not preemptible).
	Pinned bool
	// Limit is the longest that it runs by its owner's word; 0 is unknown.
	Limit time.Duration
	// MaxRun is how long it may run after its admission before it is taken back for
	// good; 0 is for ever. What it ran before it was last taken back is in it already.
	MaxRun time.Duration
	// Held says that its owner asked to hold it.
	Held bool
	// Invalid is why it can never be admitted as it is written, or "".
	Invalid string
	// After is the earliest time of its next try; zero is at once.
	After time.Time
	// Gate names what outside of sluice has to happen first, or is "".
	Gate string
	// MinRuntime protects it that long after its admission.
	MinRuntime time.Duration

	shape string
	least quota.Resources
}

// Settle works out what follows from the other fields. It is called once, before
// the workload is put anywhere.
func (w *Workload) Settle() {
	w.least = w.Spec.Request(w.leastSizes())
	w.shape = fmt.Sprintf("%s %q %d %d %t %s", w.Queue, w.User, w.Priority, w.Limit, w.Pinned, w.Spec.Key())
}

// Least is what the workload is charged with the smallest number of pods with
// which it may run, in the resources of nodes.
func (w *Workload) Least() quota.Resources { return w.least }

// Shape is equal for workloads that ask for the same from the same queue.
func (w *Workload) Shape() string { return w.shape }

// LeastSizes are the fewest pods by pod set with which it may run. What MinTotal
// asks beyond the minima is added to the pod sets in their order.
func (w *Workload) LeastSizes() []int { return w.leastSizes() }

func (w *Workload) leastSizes() []int {
	sizes := w.Spec.Least()
	missing := w.Spec.MinTotal - gang.Total(sizes)
	for i := range sizes {
		if add := min(missing, w.Spec.PodSets[i].Count-sizes[i]); add > 0 {
			sizes[i] += add
			missing -= add
		}
	}
	return sizes
}

// Compare orders workloads of one queue: higher priority, then the longer wait,
// then the UID.
func Compare(a, b *Workload) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority),
		a.Queued.Compare(b.Queued),
		cmp.Compare(a.UID, b.UID),
	)
}
