package answer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/queue"
)

// ChangeKind is what a change changes.
type ChangeKind string

// The kinds of changes, the cheapest first.
const (
	Resume      ChangeKind = "Resume"      // end the hold on the job
	OpenQueue   ChangeKind = "OpenQueue"   // let the queue admit again
	Relabel     ChangeKind = "Relabel"     // set Label to Value on Nodes
	Uncordon    ChangeKind = "Uncordon"    // open Nodes
	Tolerate    ChangeKind = "Tolerate"    // the job tolerates Label=Value
	Unselect    ChangeKind = "Unselect"    // the job no longer asks for Label
	FewerPods   ChangeKind = "FewerPods"   // Amount pods in PodSet
	Smaller     ChangeKind = "Smaller"     // Resource instead of the slice it asks for
	SmallerPods ChangeKind = "SmallerPods" // at most Amount of Resource a pod
	Shorter     ChangeKind = "Shorter"     // a time limit of Seconds
	Wait        ChangeKind = "Wait"        // Jobs end
	RaiseLimit  ChangeKind = "RaiseLimit"  // Queue may use Amount of Resource
	RaiseOwn    ChangeKind = "RaiseOwn"    // Queue owns Amount of Resource
	Recut       ChangeKind = "Recut"       // Cards are cut into Layout
)

// Change is something that would admit a gang now, and has been tried on a copy.
type Change struct {
	Kind ChangeKind `json:"kind"`
	Text string     `json:"text"`
	// Command does it, where one command can.
	Command string `json:"command,omitempty"`
	// Stops are the gangs that would be taken back for it.
	Stops []string `json:"stops,omitempty"`

	Nodes    []string   `json:"nodes,omitempty"`
	Label    string     `json:"label,omitempty"`
	Value    string     `json:"value,omitempty"`
	PodSet   string     `json:"podSet,omitempty"`
	Jobs     []string   `json:"jobs,omitempty"`
	Queue    string     `json:"queue,omitempty"`
	Resource string     `json:"resource,omitempty"`
	Amount   int64      `json:"amount,omitempty"`
	Seconds  int64      `json:"seconds,omitempty"`
	Cards    []CardName `json:"cards,omitempty"`
	Layout   []string   `json:"layout,omitempty"` // [] is a whole card
	At       *time.Time `json:"at,omitempty"`     // of Wait: when the last of them ends by its limit

	events []admission.Event
}

// CardName is one card of a node.
type CardName struct {
	Node string `json:"node"`
	Card int    `json:"card"`
}

// changesShown is how many changes are told.
const changesShown = 3

// bench tries changes for one gang. It first asks a state in which nobody else
// waits, which is quick; what passes there is tried on a full copy.
type bench struct {
	w       *World
	m       *admission.Remembered
	alone   *admission.State
	version uint64 // of observations that are made up
	tried   int
	left    int // how many full copies may still be made
}

// copiesMost bounds how many full copies one question makes; on a cluster of more
// than copiesNodes nodes, where each costs half a second, copiesFew.
const (
	copiesMost  = 24
	copiesNodes = 2000
	copiesFew   = 3
)

func (w *World) bench(m *admission.Remembered) *bench {
	im := w.im
	im.Workloads = slices.DeleteFunc(slices.Clone(im.Workloads), func(x admission.Remembered) bool {
		return x.Phase == admission.Waiting && x.Name != m.Name && len(x.Pods) == 0
	})
	b := &bench{w: w, m: m, alone: admission.NewStateOf(im), version: 1 << 60, left: copiesMost}
	if len(im.Nodes) > copiesNodes {
		b.left = copiesFew
	}
	return b
}

// seen is the gang as it would be seen after change.
func (b *bench) seen(change func(x *queue.Workload)) admission.Event {
	x := *b.m.Workload
	x.Spec.PodSets = slices.Clone(x.Spec.PodSets)
	change(&x)
	b.version++
	return admission.WorkloadSeen{Workload: &x, Version: b.version, Fresh: true, Done: b.m.Done}
}

// passes says whether the events admit the gang if nobody else waits, and takes
// them back.
func (b *bench) passes(events []admission.Event) bool {
	b.tried++
	for _, e := range events {
		b.alone.Apply(e)
	}
	d := admission.Trial(b.alone, b.w.now)
	for i := len(events) - 1; i >= 0; i-- {
		for _, e := range b.undo(events[i]) {
			b.alone.Apply(e)
		}
	}
	_, ok := outcome(&d, b.m.Name)
	return ok
}

// undo is what takes an event back in the state that the world was made of.
func (b *bench) undo(e admission.Event) []admission.Event {
	b.version++
	switch e := e.(type) {
	case admission.NodeSeen:
		for _, n := range b.w.im.Nodes {
			if n.Name == e.Node.Name {
				return []admission.Event{admission.NodeSeen{Node: n}}
			}
		}
	case admission.QueueSeen:
		return []admission.Event{admission.QueueSeen{Queue: b.w.queueOf(e.Queue.Quota.Name)}}
	case admission.WorkloadSeen:
		m := b.w.known[e.Workload.Key]
		x := *m.Workload
		x.Spec.PodSets = slices.Clone(x.Spec.PodSets)
		out := []admission.Event{admission.WorkloadSeen{
			Workload: &x, Version: b.version, Fresh: true, Admission: m.Admission, Done: m.Done, StopsFor: m.StopsFor,
			Stopping: m.Phase == admission.Stopping, Finished: m.Phase == admission.Finished,
		}}
		if m.Phase != admission.Waiting {
			for _, p := range m.Pods {
				out = append(out, admission.PodSeen{Pod: p.Pod, Fresh: true})
			}
		}
		return out
	case admission.PodGone: // seen again with its workload
		return nil
	}
	panic(fmt.Sprintf("answer: no way back from %T", e))
}

// outcome says whether the decision admits the gang, at once or as soon as others
// have stopped for it.
func outcome(d *admission.Decision, key string) (stops []string, ok bool) {
	for _, a := range d.Admit {
		if a.Key == key {
			return nil, true
		}
	}
	if slices.Contains(d.Finish, key) {
		return nil, true
	}
	for _, n := range d.Nominees {
		if n.Key == key {
			return n.Victims, true
		}
	}
	return nil, false
}

// holds tries the change on a full copy, and notes who stops for it.
func (b *bench) holds(c *Change) bool {
	if b.left == 0 || !b.passes(c.events) {
		return false
	}
	b.left--
	s := admission.NewStateOf(b.w.im)
	for _, e := range c.events {
		s.Apply(e)
	}
	d := admission.Trial(s, b.w.now)
	stops, ok := outcome(&d, b.m.Name)
	c.Stops = stops
	return ok
}

// changes are at most three that would admit the gang, the cheapest first, and how
// many were tried.
func (w *World) changes(m *admission.Remembered, why admission.Reason, groups []NodeGroup) ([]Change, int) {
	if why.Code == admission.Preempting || m.Unanswered || why.Code == admission.Backoff {
		return nil, 0 // it is on its way
	}
	b := w.bench(m)
	var out, costly []Change
	for _, propose := range []func(admission.Reason, []NodeGroup) *Change{
		b.resume, b.openQueue, b.relabel, b.uncordon, b.tolerate, b.fewer, b.shorter, b.smaller, b.wait, b.smallerPods, b.unselect, b.raise, b.recut,
	} {
		if len(out) == changesShown {
			break
		}
		c := propose(why, groups)
		switch {
		case c == nil:
		case len(c.Stops) > 0:
			c.Text += ", which stops " + strings.Join(c.Stops, ", ")
			costly = append(costly, *c)
		default:
			out = append(out, *c)
		}
	}
	out = append(out, costly[:min(len(costly), changesShown-len(out))]...)
	return out, b.tried
}

// fewest is the smallest prefix of a list, at most most long, for which make gives a
// change that passes; nil if there is none.
func (b *bench) fewest(n, most int, make func(k int) *Change) *Change {
	n = min(n, most)
	if n == 0 || !b.passes(make(n).events) {
		return nil
	}
	lo, hi := 1, n
	for lo < hi {
		mid := (lo + hi) / 2
		if b.passes(make(mid).events) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if c := make(lo); b.holds(c) {
		return c
	}
	return nil
}
