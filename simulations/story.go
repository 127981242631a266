package simulations

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// stream is chance by seed and by what it is for: drawing more of one thing does
// not change another.
func stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// story draws the text of a scenario: queues of all policies, gangs of all kinds,
// nodes that come and go. At the end all is mended, so that whatever can run runs.
type story struct {
	*rand.Rand
	hardware *rand.Rand // draws what becomes of cards and agents; nil: nothing
	head     []string   // everything before the events
	events   []string   // one line each
	mends    []string   // the last events
	keep     []string   // what stays when the story is made shorter
	expect   string
	calm     time.Duration // when all is mended

	nodes  map[string]bool // present
	all    []string        // names of nodes, ever
	queues []string        // that take gangs
	gangs  []gangDrawn     // not deleted, oldest first
	alien  []string
	busy   map[string]time.Duration // until when a node or queue is left alone
	count  int
}

type gangDrawn struct {
	name, set string // set is "" if it has several
	held      bool
}

// drawStory makes a story with so many events before it is mended.
func drawStory(seed uint64, events int, hardware *rand.Rand) *story {
	s := &story{Rand: stream(seed, "story"), nodes: map[string]bool{}, busy: map[string]time.Duration{}}
	s.hardware = hardware
	s.setting()
	at := time.Duration(0)
	for range events {
		s.event(at)
		s.wear(at)
		at += time.Duration(s.IntN(40)) * time.Second / 2
	}
	s.calm = at + time.Minute
	s.mend(s.calm)
	return s
}

// storyRest is how long a story goes on after everything is mended.
const storyRest = 12 * time.Hour

// text is the story as a file with the given events.
func (s *story) text(events []string) string {
	return strings.Join(slices.Concat(s.head, events, []string{s.expect, ""}), "\n")
}

// whole is the story as it was drawn.
func (s *story) whole() string { return s.text(slices.Concat(s.events, s.mends)) }

func (s *story) one(of ...string) string { return of[s.IntN(len(of))] }

func (s *story) chance(one, in int) bool { return s.IntN(in) < one }

func (s *story) setting() {
	s.head = append(s.head, "nodes:")
	for i := range 2 + s.IntN(5) {
		s.head = append(s.head, "- "+s.node(fmt.Sprintf("n%d", i)))
	}
	s.head = append(s.head, "levels: [rack]", "queues:")
	s.tree()
	s.head = append(s.head, fmt.Sprintf("policy: {recoveryWindow: %s, reserveAfter: %s, growEvery: %s, minRuntime: %s, fairReclaim: %s}",
		s.one("10s", "60s"), s.one("30s", "2m"), s.one("5s", "30s"), s.one("0s", "0s", "20s"), s.one("true", "false")), "events:")
}

func (s *story) node(name string) string {
	s.nodes[name] = true
	if !slices.Contains(s.all, name) {
		s.all = append(s.all, name)
	}
	extra := ""
	if s.chance(1, 4) {
		extra = `, taints: ["own=x:NoSchedule"]`
	}
	return fmt.Sprintf("{name: %s, gpus: %d, cpu: %d, labels: {rack: r%d, kind: k%d}%s}", name, 1+s.IntN(8), 8+s.IntN(60), s.IntN(2), s.IntN(3), extra)
}

func (s *story) tree() {
	parents := []string{""}
	for i := range s.IntN(3) {
		name := fmt.Sprintf("org%d", i)
		s.head = append(s.head, fmt.Sprintf("- {name: %s%s%s}", name, s.parent(parents), s.one("", ", nominal: {nvidia.com/gpu: 12}", ", max: {nvidia.com/gpu: 14}", ", weight: 2")))
		parents = append(parents, name)
	}
	for i := range 1 + s.IntN(4) {
		name := fmt.Sprintf("q%d", i)
		s.queues = append(s.queues, name)
		s.head = append(s.head, "- "+s.queue(name, s.parent(parents)))
	}
}

func (s *story) parent(of []string) string {
	if p := s.one(of...); p != "" {
		return ", parent: " + p
	}
	return ""
}

func (s *story) queue(name, parent string) string {
	text := "{name: " + name + parent
	if s.chance(2, 3) {
		n := s.IntN(9)
		text += fmt.Sprintf(", nominal: {nvidia.com/gpu: %d}", n)
		if s.chance(1, 4) {
			text += fmt.Sprintf(", lendable: {nvidia.com/gpu: %d}", s.IntN(n+1))
		}
	}
	if s.chance(1, 4) {
		text += fmt.Sprintf(", max: {nvidia.com/gpu: %d, cpu: %d}", 4+s.IntN(12), 20+s.IntN(100))
	}
	return text + fmt.Sprintf(", weight: %s, strategy: %s, withinQueue: %s, reclaim: %s, reclaimable: %s, priority: %d}",
		s.one("0", "1", "1", "2", "0.5"), s.one("BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"),
		s.one("Never", "LowerPriority", "LowerOrNewerEqualPriority"), s.one("Never", "LowerPriority", "Any", "Any"),
		s.one("true", "true", "false"), s.IntN(2))
}

func (s *story) at(at time.Duration, format string, args ...any) {
	s.events = append(s.events, fmt.Sprintf("- {at: %s, %s}", at, fmt.Sprintf(format, args...)))
}

// most is how many gangs a story keeps around; the oldest are deleted.
const most = 60

func (s *story) event(at time.Duration) {
	if len(s.gangs) > most {
		s.at(at, "delete: %s", s.gangs[0].name)
		s.gangs = s.gangs[1:]
		return
	}
	node := s.all[s.IntN(len(s.all))]
	switch kind := s.IntN(30); {
	case kind < 12 || len(s.gangs) == 0:
		s.submit(at)
	case kind < 20:
		s.gangEvent(at, s.IntN(len(s.gangs)), node)
	case kind < 27:
		s.nodeEvent(at, node)
	default:
		s.queueEvent(at, s.queues[s.IntN(len(s.queues))])
	}
}

func (s *story) submit(at time.Duration) {
	g := gangDrawn{name: fmt.Sprintf("g%d", s.count), set: DefaultPodSet}
	s.count++
	text := fmt.Sprintf("name: %s, queue: %s, runtime: %ds, priority: %d, stops: %ds", g.name, s.queues[s.IntN(len(s.queues))], 5+s.IntN(240), s.IntN(3), s.IntN(3)*s.IntN(15))
	if s.chance(1, 2) {
		text += fmt.Sprintf(", limit: %ds", 60+s.IntN(300))
	}
	if s.chance(1, 6) {
		text += ", preemptible: false"
	}
	if s.chance(1, 5) {
		text += s.one(", selector: {kind: k0}", ", selector: {rack: r1}", ", topology: {required: rack}", ", topology: {preferred: rack}")
	}
	if s.chance(1, 3) {
		text += `, tolerations: ["own=x:NoSchedule"]`
	}
	if s.chance(1, 5) {
		g.set = ""
		total := ""
		if s.chance(1, 3) {
			total = ", minTotal: 3"
		}
		text += fmt.Sprintf("%s, podSets: [{name: l, pods: %d, requests: {cpu: %d}}, {name: w, %s, requests: {nvidia.com/gpu: %d}}]", total, 1+s.IntN(2), 1+s.IntN(8), s.size(), 1+s.IntN(4))
	} else {
		text += fmt.Sprintf(", %s, requests: {nvidia.com/gpu: %d, cpu: %d}", s.size(), s.IntN(4), 1+s.IntN(4))
	}
	s.gangs = append(s.gangs, g)
	s.at(at, "submit: [{%s}]", text)
}

// size is the pods of a set, elastic or not, and now and then none.
func (s *story) size() string {
	n := 1 + s.IntN(8)
	if s.chance(1, 12) {
		n = 0
	}
	if n > 1 && s.chance(1, 3) {
		return fmt.Sprintf("pods: %d, min: %d", n, 1+s.IntN(n))
	}
	return fmt.Sprintf("pods: %d", n)
}

func (s *story) gangEvent(at time.Duration, i int, node string) {
	g := &s.gangs[i]
	switch s.IntN(10) {
	case 0, 1:
		if s.nodes[node] {
			s.at(at, "failPod: {workload: %s, node: %s}", g.name, node)
		}
	case 2:
		if s.nodes[node] {
			s.at(at, "finishPod: {workload: %s, node: %s}", g.name, node)
		}
	case 3:
		g.held = true
		s.at(at, "hold: %s", g.name)
	case 4:
		g.held = false
		s.at(at, "resume: %s", g.name)
	case 5:
		s.at(at, "priority: {workload: %s, value: %d}", g.name, s.IntN(4))
	case 6:
		s.at(at, "delete: %s", g.name)
		s.gangs = slices.Delete(s.gangs, i, i+1)
	case 7:
		s.at(at, "crash: {after: %d}", s.IntN(6))
	case 8:
		set := g.set
		if set == "" {
			set = "w"
		}
		s.at(at, "resize: {workload: %s, podSet: %s, pods: %d}", g.name, set, s.IntN(9))
	case 9:
		s.at(at, "finish: %s", g.name)
	}
}

func (s *story) nodeEvent(at time.Duration, node string) {
	if at < s.busy[node] {
		return
	}
	if !s.nodes[node] {
		s.at(at, "addNode: %s", s.node(node))
		return
	}
	switch s.IntN(10) {
	case 0:
		s.at(at, "cordon: %s", node)
	case 1, 2:
		s.at(at, "uncordon: %s", node)
	case 3:
		s.at(at, "drain: %s", node)
	case 4:
		s.at(at, "notReady: %s", node)
	case 5, 6:
		s.at(at, "ready: %s", node)
	case 7:
		delete(s.nodes, node)
		s.at(at, "removeNode: %s", node)
	case 8:
		s.busy[node] = at + 5*time.Second
		s.at(at, `taint: {node: %s, taint: "gone=now:NoExecute"}`, node)
		s.at(at+5*time.Second, `untaint: {node: %s, taint: "gone=now:NoExecute"}`, node)
	case 9:
		s.count++
		s.alien = append(s.alien, fmt.Sprintf("f%d", s.count))
		s.at(at, "foreign: {node: %s, name: f%d, requests: {cpu: %d, nvidia.com/gpu: %d}}", node, s.count, 1+s.IntN(4), s.IntN(2))
	}
}

// wear lets cards be lost and come back, and agents fall silent and speak again:
// about once in ten events, on a node that is there.
func (s *story) wear(at time.Duration) {
	if s.hardware == nil || s.hardware.IntN(10) > 0 {
		return
	}
	node := s.all[s.hardware.IntN(len(s.all))]
	kind := s.hardware.IntN(8)
	if !s.nodes[node] {
		return
	}
	switch kind {
	case 0, 1:
		s.at(at, "gpuLost: {node: %s, gpu: 0}", node)
	case 2:
		s.at(at, "gpuLost: {node: %s}", node)
	case 3, 4:
		s.at(at, "gpuBack: {node: %s}", node)
	case 5:
		s.at(at, "agentSilent: %s", node)
	default:
		s.at(at, "agentBack: %s", node)
	}
}

func (s *story) queueEvent(at time.Duration, q string) {
	if at < s.busy[q] {
		return
	}
	back := at + 20*time.Second
	switch s.IntN(4) {
	case 0:
		s.busy[q] = back
		s.at(at, "closeQueue: %s", q)
		s.at(back, "openQueue: %s", q)
	case 1:
		s.busy[q] = back
		s.at(at, "deleteQueue: %s", q)
		s.at(back, "addQueue: %s", s.queue(q, ""))
	case 2:
		s.at(at, "queue: {name: %s, weight: %s}", q, s.one("1", "3"))
	case 3:
		s.at(at, "queue: {name: %s, nominal: {nvidia.com/gpu: %d}}", q, s.IntN(9))
	}
}

// mend brings everything back that was taken away.
func (s *story) mend(at time.Duration) {
	before := s.events
	s.events = nil
	for _, n := range s.all {
		if !s.nodes[n] {
			s.at(at, "addNode: %s", s.node(n))
			continue
		}
		s.at(at, "uncordon: %s", n)
		s.at(at, "ready: %s", n)
		s.at(at, "gpuBack: {node: %s}", n)
		s.at(at, "agentBack: %s", n)
	}
	for _, f := range s.alien {
		s.at(at, "delete: %s", f)
	}
	for _, g := range s.gangs {
		if g.held {
			s.at(at, "resume: %s", g.name)
		}
	}
	s.mends, s.events = s.events, before
	s.expect = fmt.Sprintf("expect: [{at: %s, quiet: 1s}]", Spoken(at+storyRest))
}
