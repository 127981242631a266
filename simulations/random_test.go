package simulations

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestRandomStories runs stories drawn by lot: queues of all policies, gangs of
// all kinds, nodes that come and go, and, in every other one, writes that fail
// and a controller that dies. No promise may break on the way, and when all is
// mended at the end, everything that can run comes to its end.
//
// SLUICE_STORIES=FROM:TO runs other seeds than the usual few; SLUICE_STORY_DIR
// keeps the files of those that fail.
func TestRandomStories(t *testing.T) {
	from, to := uint64(0), uint64(40)
	if v := os.Getenv("SLUICE_STORIES"); v != "" {
		a, b, _ := strings.Cut(v, ":")
		from, _ = strconv.ParseUint(a, 10, 64)
		to, _ = strconv.ParseUint(b, 10, 64)
	}
	for seed := from; seed < to; seed++ {
		text := newStory(seed).write()
		s, err := Parse(fmt.Sprintf("story-%d.yaml", seed), []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		o := Options{Seed: seed}
		if seed%2 == 1 {
			o.Fault = unlucky(seed)
		}
		r := Run(s, o)
		lines := r.Lines()
		lines = append(lines, starved(r)...)
		for _, l := range lines {
			t.Error(l)
		}
		if dir := os.Getenv("SLUICE_STORY_DIR"); len(lines) > 0 && dir != "" {
			_ = os.WriteFile(filepath.Join(dir, s.File), []byte(text), 0o644)
			_ = os.WriteFile(filepath.Join(dir, s.File+".trace"), []byte(r.Trace), 0o644)
		}
	}
}

// unlucky lets a write in thirty go wrong, in all ways.
func unlucky(seed uint64) func() Fault {
	return func() Fault {
		rnd := rand.New(rand.NewPCG(seed, 3))
		return func(w Write) Fate {
			fate := Fate(rnd.IntN(4)) + Refused
			if rnd.IntN(30) > 0 || w.At > storyEnd || w.Act == "tell" && fate != Fatal {
				return Done
			}
			return fate
		}
	}
}

const (
	storyEnd = 30 * time.Minute
	storyFar = 12 * time.Hour
)

// starved are the gangs that have not ended long after everything was mended,
// though nothing says that they never can.
func starved(r *Report) []string {
	if r.Broken != nil {
		return nil
	}
	var out []string
	for name, why := range r.waiting {
		for strings.HasPrefix(why, "Behind: ") { // a strict queue stands still if its first can never go
			first, _, _ := strings.Cut(strings.TrimPrefix(why, "Behind: "), " is first")
			if why = r.waiting[first]; why == "" {
				why = "Behind " + first + ", which does not wait"
			}
		}
		code, _, _ := strings.Cut(why, ":")
		if !slices.Contains([]Reason{ReasonNeverFits, ReasonLabels, ReasonInvalid, ReasonQueueMissing}, Reason(code)) {
			out = append(out, fmt.Sprintf("%s: at the end %s still waits: %s", r.File, name, why))
		}
	}
	slices.Sort(out)
	return out
}

// story draws a scenario.
type story struct {
	*rand.Rand
	b      strings.Builder
	nodes  map[string]bool // present
	all    []string        // names of nodes, ever
	leaves []string
	gangs  []string
	alien  []string
	held   map[string]bool
	count  int
}

func newStory(seed uint64) *story {
	return &story{Rand: rand.New(rand.NewPCG(seed, 1)), nodes: map[string]bool{}, held: map[string]bool{}}
}

func (s *story) p(format string, args ...any) { fmt.Fprintf(&s.b, format+"\n", args...) }

func (s *story) one(of ...string) string { return of[s.IntN(len(of))] }

func (s *story) write() string {
	s.p("nodes:")
	for i := range 2 + s.IntN(5) {
		name := fmt.Sprintf("n%d", i)
		s.p("- %s", s.node(name))
	}
	s.p("levels: [rack]")
	s.p("queues:")
	s.queues()
	s.p("policy: {recoveryWindow: %s, reserveAfter: %s, growEvery: %s, minRuntime: %s, fairReclaim: %s}",
		s.one("10s", "60s"), s.one("30s", "2m"), s.one("5s", "30s"), s.one("0s", "0s", "20s"), s.one("true", "false"))
	s.p("events:")
	for at := time.Duration(0); at < storyEnd; at += time.Duration(s.IntN(40)) * time.Second / 2 {
		s.event(at)
	}
	s.mend()
	s.p("expect: [{at: %s, quiet: 1s}]", Spoken(storyFar))
	return s.b.String()
}

func (s *story) node(name string) string {
	s.nodes[name] = true
	if !slices.Contains(s.all, name) {
		s.all = append(s.all, name)
	}
	extra := ""
	if s.IntN(4) == 0 {
		extra = `, taints: ["own=x:NoSchedule"]`
	}
	return fmt.Sprintf("{name: %s, gpus: %d, cpu: %d, labels: {rack: r%d, kind: k%d}%s}", name, 1+s.IntN(8), 8+s.IntN(60), s.IntN(2), s.IntN(3), extra)
}

func (s *story) queues() {
	top := s.IntN(3) > 0
	if top {
		s.p("- {name: org%s}", s.one("", ", nominal: {nvidia.com/gpu: 12}", ", max: {nvidia.com/gpu: 14}"))
	}
	for i := range 1 + s.IntN(4) {
		name := fmt.Sprintf("q%d", i)
		s.leaves = append(s.leaves, name)
		text := "- {name: " + name
		if top && s.IntN(4) > 0 {
			text += ", parent: org"
		}
		if s.IntN(3) > 0 {
			text += fmt.Sprintf(", nominal: {nvidia.com/gpu: %d}", s.IntN(9))
		}
		if s.IntN(4) == 0 {
			text += fmt.Sprintf(", max: {nvidia.com/gpu: %d, cpu: %d}", 4+s.IntN(12), 20+s.IntN(100))
		}
		text += fmt.Sprintf(", weight: %s, strategy: %s, withinQueue: %s, reclaim: %s, reclaimable: %s, priority: %d}",
			s.one("0", "1", "1", "2", "0.5"), s.one("BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"),
			s.one("Never", "LowerPriority", "LowerOrNewerEqualPriority"), s.one("Never", "LowerPriority", "Any", "Any"),
			s.one("true", "true", "false"), s.IntN(2))
		s.p("%s", text)
	}
}

func (s *story) at(at time.Duration, format string, args ...any) {
	s.p("- {at: %s, %s}", at, fmt.Sprintf(format, args...))
}

func (s *story) event(at time.Duration) {
	node := s.all[s.IntN(len(s.all))]
	if kind := s.IntN(30); kind < 12 || len(s.gangs) == 0 {
		s.submit(at)
	} else if kind < 20 {
		s.gangEvent(at, s.gangs[s.IntN(len(s.gangs))], node)
	} else if kind < 27 {
		s.nodeEvent(at, node)
	} else {
		s.queueEvent(at, s.leaves[s.IntN(len(s.leaves))])
	}
}

func (s *story) submit(at time.Duration) {
	name := fmt.Sprintf("g%d", s.count)
	s.count++
	s.gangs = append(s.gangs, name)
	text := fmt.Sprintf("name: %s, queue: %s, runtime: %ds, priority: %d, stops: %ds", name, s.leaves[s.IntN(len(s.leaves))], 5+s.IntN(240), s.IntN(3), s.IntN(3)*s.IntN(15))
	if s.IntN(2) == 0 {
		text += fmt.Sprintf(", limit: %ds", 60+s.IntN(300))
	}
	if s.IntN(6) == 0 {
		text += ", preemptible: false"
	}
	if s.IntN(5) == 0 {
		text += s.one(", selector: {kind: k0}", ", selector: {rack: r1}", ", topology: {required: rack}", ", topology: {preferred: rack}")
	}
	if s.IntN(3) == 0 {
		text += `, tolerations: ["own=x:NoSchedule"]`
	}
	switch s.IntN(5) {
	case 0:
		total := ""
		if s.IntN(3) == 0 {
			total = ", minTotal: 3"
		}
		text += fmt.Sprintf("%s, podSets: [{name: l, pods: %d, requests: {cpu: %d}}, {name: w, %s, requests: {nvidia.com/gpu: %d}}]", total, 1+s.IntN(2), 1+s.IntN(8), s.size(), 1+s.IntN(4))
	default:
		text += fmt.Sprintf(", %s, requests: {nvidia.com/gpu: %d, cpu: %d}", s.size(), s.IntN(4), 1+s.IntN(4))
	}
	s.at(at, "submit: [{%s}]", text)
}

// size is the pods of a set, elastic or not, and now and then none.
func (s *story) size() string {
	n := 1 + s.IntN(8)
	if s.IntN(12) == 0 {
		n = 0
	}
	if n > 1 && s.IntN(3) == 0 {
		return fmt.Sprintf("pods: %d, min: %d", n, 1+s.IntN(n))
	}
	return fmt.Sprintf("pods: %d", n)
}

func (s *story) gangEvent(at time.Duration, gang, node string) {
	if !s.nodes[node] {
		return
	}
	switch s.IntN(8) {
	case 0, 1:
		s.at(at, "failPod: {workload: %s, node: %s}", gang, node)
	case 2:
		s.at(at, "finishPod: {workload: %s, node: %s}", gang, node)
	case 3:
		s.held[gang] = true
		s.at(at, "hold: %s", gang)
	case 4:
		delete(s.held, gang)
		s.at(at, "resume: %s", gang)
	case 5:
		s.at(at, "priority: {workload: %s, value: %d}", gang, s.IntN(4))
	case 6:
		s.gangs = slices.DeleteFunc(s.gangs, func(g string) bool { return g == gang })
		delete(s.held, gang)
		s.at(at, "delete: %s", gang)
	case 7:
		s.at(at, "crash: {after: %d}", s.IntN(6))
	}
}

func (s *story) nodeEvent(at time.Duration, node string) {
	if !s.nodes[node] {
		s.at(at, "addNode: %s", s.node(node))
		return
	}
	switch s.IntN(9) {
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
		if s.IntN(2) == 0 {
			delete(s.nodes, node)
			s.at(at, "removeNode: %s", node)
		} else {
			s.at(at, `taint: {node: %s, taint: "gone=now:NoExecute"}`, node)
			s.at(at+5*time.Second, `untaint: {node: %s, taint: "gone=now:NoExecute"}`, node)
		}
	case 8:
		s.count++
		s.alien = append(s.alien, fmt.Sprintf("f%d", s.count))
		s.at(at, "foreign: {node: %s, name: f%d, requests: {cpu: %d, nvidia.com/gpu: %d}}", node, s.count, 1+s.IntN(4), s.IntN(2))
	}
}

func (s *story) queueEvent(at time.Duration, q string) {
	switch s.IntN(3) {
	case 0:
		s.at(at, "closeQueue: %s", q)
		s.at(at+20*time.Second, "openQueue: %s", q)
	case 1:
		s.at(at, "queue: {name: %s, weight: %s}", q, s.one("1", "3"))
	case 2:
		s.at(at, "queue: {name: %s, nominal: {nvidia.com/gpu: %d}}", q, s.IntN(9))
	}
}

// mend brings everything back that was taken away.
func (s *story) mend() {
	at := storyEnd + time.Minute
	for _, n := range s.all {
		if !s.nodes[n] {
			s.at(at, "addNode: %s", s.node(n))
			continue
		}
		s.at(at, "uncordon: %s", n)
		s.at(at, "ready: %s", n)
	}
	for _, f := range s.alien {
		s.at(at, "delete: %s", f)
	}
	for _, g := range s.gangs {
		if s.held[g] {
			s.at(at, "resume: %s", g)
		}
	}
}
