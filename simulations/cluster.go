package simulations

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/admission"
)

// Cluster is a virtual cluster: the API server with its objects, the job
// controllers, kube-scheduler and the kubelets. It knows nothing of how the
// core decides; what it finds in the core's decisions that a real cluster could
// not do is a violation and ends the run.
//
// Objects change by scenario events, by time, and by the controller's writes in
// Carry. Each change is noted and delivered later, by Changes: never from
// inside Carry, as with a real watch.
type Cluster struct {
	clock *Clock
	fault Fault
	order *rand.Rand // shuffles what a real cluster does in parallel; nil: as it comes
	aside *rand.Rand // the same for those who only look, so that looking changes nothing
	trace *trace

	policy    Policy
	mostActs  int // of admission.Config
	nodes     map[string]*nodeObject
	queues    map[string]*Queue
	workloads map[string]*workloadObject
	foreign   map[string]*podObject
	pods      map[string]*podObject // all of them, by uid

	revision  uint64 // the version given last
	submitted int    // numbers workloads
	created   int    // numbers pods
	changes   []change
	dirty     map[*workloadObject]bool // whose job has to look again

	writes     int                          // that the controller has made
	deaths     []int64                      // how many more writes until the controller dies, by crash event
	dead       bool                         // it died and has not started again
	unanswered map[string]bool              // keys of objects whose last write had no answer
	violations []string                     // promises that were broken
	planned    map[*workloadObject]*planned // that have new places since the last audit
	past       history
	flags      []string             // what is no breach and should not be
	causes     causes               // of what the controller does, for unrest
	skewed     func() time.Duration // how far the controller's clock is off
	behind     func() bool          // whether the controller does not know all; nil: it does
}

// change is an object as it was after a change, for a watch event.
type change struct {
	node     *nodeObject
	queue    *Queue
	workload *workloadObject
	pod      *podObject
	gone     bool
	fresh    bool // read after a write whose answer was lost
}

// planned is what is new in the plan of a gang.
type planned struct {
	nodes map[string]bool // with more places than before
	grew  bool            // it has more places in all, and asked its queue for them
}

// history is what happened so far, by name: a name that is used again goes on.
type history struct {
	admitted map[string]time.Duration // first admitted at
	evicted  map[string]int64
	finished map[string]bool
	moves    []time.Duration // of every admission, eviction, shrink and growth
}

func newCluster(s *Scenario, clock *Clock, seed uint64, fault Fault, t *trace) *Cluster {
	c := &Cluster{
		clock: clock, fault: fault, trace: t, policy: s.Policy,
		nodes: map[string]*nodeObject{}, queues: map[string]*Queue{}, workloads: map[string]*workloadObject{},
		foreign: map[string]*podObject{}, pods: map[string]*podObject{},
		dirty: map[*workloadObject]bool{}, unanswered: map[string]bool{},
		planned: map[*workloadObject]*planned{}, skewed: func() time.Duration { return 0 },
		past: history{admitted: map[string]time.Duration{}, evicted: map[string]int64{}, finished: map[string]bool{}},
	}
	if seed != 0 {
		c.order, c.aside = stream(seed, "order"), stream(seed, "aside")
	}
	for _, q := range s.Queues {
		c.putQueue(q)
	}
	for _, n := range s.Nodes {
		c.addNode(n)
	}
	return c
}

// next is the version of an object that changes now.
func (c *Cluster) next() uint64 {
	c.revision++
	return c.revision
}

func (c *Cluster) violate(format string, args ...any) {
	c.violations = append(c.violations, fmt.Sprintf(format, args...))
}

func (c *Cluster) nodeChanged(n *nodeObject) {
	n.version = c.next()
	c.changes = append(c.changes, change{node: n.snapshot()})
}

func (c *Cluster) workloadChanged(w *workloadObject) {
	w.version = c.next()
	c.changes = append(c.changes, change{workload: w.snapshot()})
	c.dirty[w] = true
}

func (c *Cluster) podChanged(p *podObject) {
	p.version = c.next()
	c.changes = append(c.changes, change{pod: p.snapshot()})
	if p.owner != nil {
		c.dirty[p.owner] = true
	}
}

// Changes is what changed since it was last asked, in an order in which
// watches may deliver it: that of each object is kept.
func (c *Cluster) Changes() []change {
	list := c.changes
	c.changes = nil
	if c.order == nil || len(list) < 2 {
		return list
	}
	// Objects take turns by lot.
	var names []string
	lines := map[string][]change{}
	for _, ch := range list {
		name := ch.name()
		if lines[name] == nil {
			names = append(names, name)
		}
		lines[name] = append(lines[name], ch)
	}
	out := make([]change, 0, len(list))
	for len(names) > 0 {
		i := c.order.IntN(len(names))
		line := lines[names[i]]
		out = append(out, line[0])
		lines[names[i]] = line[1:]
		if len(line) == 1 {
			names = slices.Delete(names, i, i+1)
		}
	}
	return out
}

func (ch *change) name() string {
	switch {
	case ch.node != nil:
		return "node " + ch.node.Name
	case ch.queue != nil:
		return "queue " + ch.queue.Name
	case ch.workload != nil:
		return "workload " + ch.workload.key
	default:
		return "pod " + ch.pod.uid
	}
}

// Snapshot is everything that a controller finds when it starts, in an order in
// which it may find it.
func (c *Cluster) Snapshot(order *rand.Rand) []change {
	var all []change
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		all = append(all, change{node: c.nodes[name].snapshot()})
	}
	for _, name := range slices.Sorted(maps.Keys(c.queues)) {
		q := *c.queues[name]
		all = append(all, change{queue: &q})
	}
	for _, w := range c.gangs() {
		all = append(all, change{workload: w.snapshot()})
	}
	for _, uid := range slices.Sorted(maps.Keys(c.pods)) {
		all = append(all, change{pod: c.pods[uid].snapshot()})
	}
	if order != nil {
		order.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	return all
}

// gangs is all workloads in the order of their submission.
func (c *Cluster) gangs() []*workloadObject {
	list := slices.Collect(maps.Values(c.workloads))
	slices.SortFunc(list, func(a, b *workloadObject) int { return strings.Compare(a.uid, b.uid) })
	return list
}

// event is the change as the core sees it.
func (c converter) event(ch change) admission.Event {
	switch {
	case ch.node != nil && ch.gone:
		return admission.NodeGone{Name: ch.node.Name}
	case ch.node != nil:
		return admission.NodeSeen{Node: c.node(ch.node)}
	case ch.queue != nil && ch.gone:
		return admission.QueueGone{Name: ch.queue.Name}
	case ch.queue != nil:
		return admission.QueueSeen{Queue: c.queue(ch.queue)}
	case ch.workload != nil && ch.gone:
		return admission.WorkloadGone{Key: ch.workload.key}
	case ch.workload != nil:
		return c.seen(ch.workload, ch.fresh)
	case ch.gone:
		return admission.PodGone{UID: ch.pod.uid}
	default:
		return admission.PodSeen{Pod: c.pod(ch.pod), Fresh: ch.fresh}
	}
}
