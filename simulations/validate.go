package simulations

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// refKind says what a name must be where it is used.
type refKind int

const (
	refNode          refKind = iota // there now
	refNodeSeen                     // there now or before
	refNodeAnywhere                 // declared at any time
	refQueue                        // there now
	refQueueSeen                    // there now or before
	refQueueAnywhere                // declared at any time
	refWorkload                     // submitted, and not deleted; in an expectation submitted
	refPodSet                       // of the workload `of`
	refDeletable                    // a workload or a foreign pod, there now
	refLevel                        // of the topology
)

// ref is a use of a name.
type ref struct {
	kind     refKind
	name, of string
	line     int
}

// world is what the file has declared up to an instant of its story.
type world struct {
	p         *parser
	nodes     map[string]Node // there now
	queues    map[string]Queue
	children  map[string]int // of queues, by name of the parent
	workloads map[string]*declared
	foreign   map[string]*foreignPod
	levels    []string

	// When each name was first declared, over the whole file.
	nodesFrom, queuesFrom, workloadsFrom, foreignFrom map[string]time.Duration
	podSets                                           map[string]map[string]bool // by workload, of all that had the name
}

// declared is a workload that is not deleted.
type declared struct {
	Workload
	mayHaveEnded bool // by its runtime, by an event, or because it has no pods
}

// foreignPod is a pod that no queue manages.
type foreignPod struct {
	node    string
	perhaps bool // its node was lost or removed: it may be gone
}

// validate tells the story of the file and reports every name that nobody has
// declared, or somebody else has; it also fills in what needs the story, the
// pod set of a resize.
func (p *parser) validate(d *draft) {
	w := newWorld(p, d.s)
	w.start(d)
	for i := range d.s.Events {
		e := &d.s.Events[i]
		for _, r := range e.refs {
			w.check(r, e.At)
		}
		e.Action = w.apply(e)
		e.refs = nil
	}
	for i := range d.s.Expect {
		e := &d.s.Expect[i]
		for _, r := range e.refs {
			w.checkSeen(r, e.At)
		}
		e.refs = nil
	}
}

// newWorld notes when each name is first declared.
func newWorld(p *parser, s *Scenario) *world {
	w := &world{
		p: p, levels: s.Levels,
		nodes: map[string]Node{}, queues: map[string]Queue{}, children: map[string]int{},
		workloads: map[string]*declared{}, foreign: map[string]*foreignPod{},
		nodesFrom: map[string]time.Duration{}, queuesFrom: map[string]time.Duration{},
		workloadsFrom: map[string]time.Duration{}, foreignFrom: map[string]time.Duration{},
		podSets: map[string]map[string]bool{},
	}
	from := func(m map[string]time.Duration, name string, at time.Duration) {
		if _, known := m[name]; !known && name != "" {
			m[name] = at
		}
	}
	for _, n := range s.Nodes {
		from(w.nodesFrom, n.Name, 0)
	}
	for _, q := range s.Queues {
		from(w.queuesFrom, q.Name, 0)
	}
	for _, e := range s.Events {
		switch a := e.Action.(type) {
		case AddNode:
			for _, n := range a.Nodes {
				from(w.nodesFrom, n.Name, e.At)
			}
		case AddQueue:
			from(w.queuesFrom, a.Queue.Name, e.At)
		case Foreign:
			from(w.foreignFrom, a.Name, e.At)
		case Submit:
			for _, wl := range a.Workloads {
				from(w.workloadsFrom, wl.Name, e.At)
				w.notePodSets(wl)
			}
		}
	}
	return w
}

func (w *world) notePodSets(wl Workload) {
	sets := w.podSets[wl.Name]
	if sets == nil {
		sets = map[string]bool{}
		w.podSets[wl.Name] = sets
	}
	for _, s := range wl.PodSets {
		sets[s.Name] = true
	}
}

// start declares what is there at the beginning.
func (w *world) start(d *draft) {
	w.addNodes(d.s.Nodes)
	for _, q := range d.s.Queues {
		if _, used := w.queues[q.Name]; used {
			w.p.failf(q.Line, "queue name %q is in use", q.Name)
			continue
		}
		w.queues[q.Name] = q
		w.children[q.Parent]++
	}
	for _, r := range d.queueRefs {
		w.check(r, 0)
	}
	cyclic := map[string]bool{}
	for _, q := range d.s.Queues {
		if loop := w.cycle(q.Name); len(loop) > 0 && !cyclic[q.Name] {
			w.p.failf(q.Line, "queue %s is below itself: %s", q.Name, arrows(loop))
			for _, name := range loop {
				cyclic[name] = true
			}
		}
	}
}

// cycle is the way up from a queue back to it, empty if it ends elsewhere.
func (w *world) cycle(name string) []string {
	way := []string{name}
	for at := w.queues[name].Parent; at != "" && len(way) <= len(w.queues); at = w.queues[at].Parent {
		way = append(way, at)
		if at == name {
			return way
		}
	}
	return nil
}

func arrows(names []string) string {
	out := names[0]
	for _, name := range names[1:] {
		out += " under " + name
	}
	return out
}

// check reports a name that is not what it must be at this point of the story.
func (w *world) check(r ref, now time.Duration) {
	there := false
	switch r.kind {
	case refNode:
		_, there = w.nodes[r.name]
	case refQueue:
		_, there = w.queues[r.name]
	case refWorkload:
		there = w.workloads[r.name] != nil
	case refDeletable:
		there = w.workloads[r.name] != nil || w.foreign[r.name] != nil
	default:
		w.checkSeen(r, now)
		return
	}
	if !there {
		w.missing(r, now)
	}
}

// checkSeen reports a name that was not declared up to now; deleted ones have
// been.
func (w *world) checkSeen(r ref, now time.Duration) {
	ok := true
	switch r.kind {
	case refDeletable: // only events delete
	case refNode, refNodeSeen:
		ok = declaredBy(w.nodesFrom, r.name, now)
	case refNodeAnywhere:
		_, ok = w.nodesFrom[r.name]
	case refQueue, refQueueSeen:
		ok = declaredBy(w.queuesFrom, r.name, now)
	case refQueueAnywhere:
		_, ok = w.queuesFrom[r.name]
	case refWorkload:
		ok = declaredBy(w.workloadsFrom, r.name, now)
	case refPodSet:
		// An unknown workload, and one without readable pod sets, is reported
		// where it stands.
		sets := w.podSets[r.of]
		ok = len(sets) == 0 || sets[r.name]
	case refLevel:
		ok = slices.Contains(w.levels, r.name)
	}
	if !ok {
		w.missing(r, now)
	}
}

func declaredBy(from map[string]time.Duration, name string, now time.Duration) bool {
	at, known := from[name]
	return known && at <= now
}

// missing reports a name with the nearest reason: comes later, is gone, or is
// nowhere.
func (w *world) missing(r ref, now time.Duration) {
	noun, from := "", map[string]time.Duration(nil)
	switch r.kind {
	case refNode, refNodeSeen, refNodeAnywhere:
		noun, from = "node", w.nodesFrom
	case refQueue, refQueueSeen, refQueueAnywhere:
		noun, from = "queue", w.queuesFrom
	case refWorkload:
		noun, from = "workload", w.workloadsFrom
	case refDeletable:
		noun, from = "workload or foreign pod", maps.Clone(w.workloadsFrom)
		maps.Copy(from, w.foreignFrom)
	case refPodSet:
		known := slices.Sorted(maps.Keys(w.podSets[r.of]))
		w.p.failf(r.line, "workload %s has no pod set %q, it has %s", r.of, r.name, orList(known))
		return
	case refLevel:
		w.p.failf(r.line, "%q is not one of the levels, %s", r.name, orList(w.levels))
		return
	}
	at, known := from[r.name]
	switch {
	case known && at > now:
		w.p.failf(r.line, "%s %q is not there before %v", noun, r.name, at)
	case known:
		w.p.failf(r.line, "%s %q is no longer there", noun, r.name)
	case declaredBy(from, r.name+"-0", math.MaxInt64):
		w.p.failf(r.line, "no %s is named %q, did you mean %q?", noun, r.name, r.name+"-0")
	default:
		w.p.failf(r.line, "no %s is named %q%s", noun, r.name, closest(r.name, slices.Sorted(maps.Keys(from))))
	}
}

// apply lets an event happen and returns its action, completed.
func (w *world) apply(e *Event) Action {
	switch a := e.Action.(type) {
	case Submit:
		w.submit(e, a)
	case Finish:
		w.mayEnd(a.Workload)
	case FinishPod:
		w.mayEnd(a.Workload)
	case Delete:
		if w.workloads[a.Name] != nil {
			delete(w.workloads, a.Name)
		} else {
			delete(w.foreign, a.Name)
		}
	case Resize:
		return w.resize(e, a)
	case Foreign:
		if w.nameInUse(e.Line, "foreign pod", a.Name) {
			break
		}
		w.foreign[a.Name] = &foreignPod{node: a.Node}
	default:
		w.applyNode(e)
		w.applyQueue(e)
	}
	return e.Action
}

func (w *world) submit(e *Event, a Submit) {
	for _, wl := range a.Workloads {
		if wl.Name == "" || w.nameInUse(wl.Line, "workload", wl.Name) {
			continue
		}
		if wl.IsRunning() && e.At > 0 {
			w.p.failf(wl.Line, "workload %s is running since before time 0, submit it at 0s", wl.Name)
		}
		if w.children[wl.Queue] > 0 && wl.Queue != "" {
			w.p.failf(wl.Line, "workload %s is in queue %s, which has children", wl.Name, wl.Queue)
		}
		pods := int64(0)
		for _, s := range wl.PodSets {
			pods = max(pods, s.Pods)
		}
		w.workloads[wl.Name] = &declared{Workload: wl, mayHaveEnded: wl.Runtime != nil || pods == 0}
	}
}

// nameInUse reports a name that a workload or a foreign pod has. A foreign pod
// that may be gone with its node does not count.
func (w *world) nameInUse(line int, noun, name string) bool {
	f := w.foreign[name]
	if w.workloads[name] == nil && (f == nil || f.perhaps) {
		return false
	}
	w.p.failf(line, "%s name %q is in use", noun, name)
	return true
}

func (w *world) mayEnd(workload string) {
	if g := w.workloads[workload]; g != nil {
		g.mayHaveEnded = true
	}
}

// resize finds the pod set that is meant.
func (w *world) resize(e *Event, a Resize) Action {
	g := w.workloads[a.Workload]
	if g == nil || len(g.PodSets) == 0 {
		return a // reported where it stands
	}
	if a.Pods == 0 {
		g.mayHaveEnded = true
	}
	switch {
	case a.PodSet == "" && len(g.PodSets) == 1:
		a.PodSet = g.PodSets[0].Name
	case a.PodSet == "":
		w.p.failf(e.Line, "workload %s has %d pod sets, say which", a.Workload, len(g.PodSets))
	case !slices.ContainsFunc(g.PodSets, func(s PodSet) bool { return s.Name == a.PodSet }):
		var known []string
		for _, s := range g.PodSets {
			known = append(known, s.Name)
		}
		w.p.failf(e.Line, "workload %s has no pod set %q, it has %s", a.Workload, a.PodSet, orList(known))
	}
	return a
}

// applyNode lets an event on a node happen, and checks cards and layouts.
func (w *world) applyNode(e *Event) {
	switch a := e.Action.(type) {
	case AddNode:
		w.addNodes(a.Nodes)
	case RemoveNode:
		delete(w.nodes, a.Node)
		w.loseForeign(a.Node)
	case NotReady:
		w.loseForeign(a.Node)
	case LoseGPU:
		if a.GPU != nil && a.Of != "" {
			w.p.failf(e.Line, "gpuLost takes gpu or of, not both")
		}
		w.card(e.Line, a.Node, a.GPU)
	case RestoreGPU:
		w.card(e.Line, a.Node, a.GPU)
	case SetTimeSlices:
		w.card(e.Line, a.Node, nil)
	case Recut:
		if n, ok := w.nodes[a.Node]; ok && w.card(e.Line, a.Node, &a.GPU) {
			card, _ := CardOf(n.Product)
			w.p.possible(e.Line, card, a.Layout)
		}
	}
}

// addNodes declares nodes; of one entry only the first name in use is told.
func (w *world) addNodes(nodes []Node) {
	told := 0
	for _, n := range nodes {
		if _, used := w.nodes[n.Name]; used && n.Line != told {
			w.p.failf(n.Line, "node name %q is in use", n.Name)
			told = n.Line
		}
		w.nodes[n.Name] = n
	}
}

// loseForeign notes that the foreign pods of a node may be gone.
func (w *world) loseForeign(node string) {
	for _, f := range w.foreign {
		if f.node == node {
			f.perhaps = true
		}
	}
}

// card reports a card that the node does not have; nil stands for any.
func (w *world) card(line int, node string, gpu *int) bool {
	n, ok := w.nodes[node]
	switch {
	case !ok:
		return false // told where the node is named
	case n.GPUs() == 0:
		w.p.failf(line, "node %s has no gpus", node)
	case gpu != nil && *gpu >= n.GPUs():
		w.p.failf(line, "no card %s, node %s has %d", strconv.Itoa(*gpu), node, n.GPUs())
	default:
		return true
	}
	return false
}

// applyQueue lets an event on a queue happen, and keeps the tree a tree whose
// leaves alone hold work.
func (w *world) applyQueue(e *Event) {
	switch a := e.Action.(type) {
	case AddQueue:
		if _, used := w.queues[a.Queue.Name]; used {
			w.p.failf(e.Line, "queue name %q is in use", a.Queue.Name)
			return
		}
		w.put(e.Line, a.Queue, "")
	case ChangeQueue:
		if old, ok := w.queues[a.Queue.Name]; ok {
			w.children[old.Parent]--
			w.put(e.Line, old.With(a), old.Parent)
		}
	case DeleteQueue:
		if old, ok := w.queues[a.Queue]; ok {
			w.children[old.Parent]--
			delete(w.queues, a.Queue)
		}
	}
}

// put adds a queue to the tree, or back into it; before is its parent so far.
func (w *world) put(line int, q Queue, before string) {
	w.queues[q.Name] = q
	w.children[q.Parent]++
	if q.Parent == before || q.Parent == "" {
		return
	}
	if loop := w.cycle(q.Name); len(loop) > 0 {
		w.p.failf(line, "queue %s is below itself: %s", q.Name, arrows(loop))
	}
	if holder := w.holder(q.Parent); holder != "" {
		w.p.failf(line, "%s cannot be a parent, it holds workload %s", q.Parent, holder)
	}
}

// holder is a workload that is certainly still in the queue, or "".
func (w *world) holder(queue string) string {
	found := ""
	for name, g := range w.workloads {
		if g.Queue == queue && !g.mayHaveEnded && (found == "" || name < found) {
			found = name
		}
	}
	return found
}
