package simulations

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
)

// seeds are tried for every scenario: 0 is the order in which things come.
const seeds = 4

// TestScenarios runs the scenario files of this folder.
func TestScenarios(t *testing.T) {
	for _, file := range scenarioFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) { holds(t, load(t, file)) })
	}
}

// TestCases runs every handed case: those that use only what is built must
// hold, the others are known as not built yet.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("../../shared/cases/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no ../../shared/cases here")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s, err := Load(file)
			if err != nil {
				t.Fatal(err)
			}
			if uses := Unsupported(s); len(uses) > 0 {
				t.Skipf("not supported yet: %v", uses)
			}
			holds(t, s)
		})
	}
}

func holds(t *testing.T, s *Scenario) {
	t.Helper()
	for seed := range uint64(seeds) {
		r := Run(s, Options{Seed: seed})
		for _, l := range r.Lines() {
			t.Errorf("seed %d: %s", seed, l)
		}
	}
}

// TestTwoGangsThatNeedAllNodes submits two gangs that each need every node, in
// all orders and with many shapes and seeds: one runs, the other holds nothing,
// and both end.
func TestTwoGangsThatNeedAllNodes(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		nodes, gpus := 1+rnd.IntN(12), 1+rnd.IntN(8)
		gangs := []string{"J1", "J2"}
		if rnd.IntN(2) == 1 {
			gangs[0], gangs[1] = gangs[1], gangs[0]
		}
		queues, apart := []string{"A", "B"}, rnd.IntN(3)
		if apart == 0 {
			queues[1] = "A"
		}
		var b strings.Builder
		fmt.Fprintf(&b, "nodes: [{name: h, count: %d, gpus: %d}]\n", nodes+1, gpus)
		b.WriteString("queues: [{name: A}, {name: B, weight: 2}]\nevents:\n")
		for i, name := range gangs {
			pods, per := nodes+1, gpus
			if rnd.IntN(2) == 1 {
				pods, per = (nodes+1)*gpus, 1
			}
			fmt.Fprintf(&b, "- {at: %dms, submit: [{name: %s, queue: %s, pods: %d, requests: {nvidia.com/gpu: %d}, runtime: 60s, stops: %ds}]}\n",
				i*apart, name, queues[i], pods, per, rnd.IntN(3))
		}
		b.WriteString(`expect:
- {at: 10s, count: {admitted: 1, among: [J1, J2]}, whole: [J1, J2]}
- {at: 90s, count: {admitted: 1, among: [J1, J2]}, whole: [J1, J2], evictions: 0}
- {at: 121s, finished: [J1, J2], evictions: 0}
`)
		s, err := Parse("two-gangs.yaml", []byte(b.String()))
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		if r := Run(s, Options{Seed: seed}); !r.OK() {
			t.Fatalf("seed %d: %v\n%s\n%s", seed, r.Lines(), b.String(), r.Trace)
		}
	}
}

// TestSameSeedSameTrace: a seed changes the order of what happens at once, and
// one seed gives one trace.
func TestSameSeedSameTrace(t *testing.T) {
	s := load(t, "testdata/scenarios/weights.yaml")
	traces := map[string]bool{}
	for seed := range uint64(seeds) {
		a, b := Run(s, Options{Seed: seed}), Run(s, Options{Seed: seed})
		if a.Trace != b.Trace {
			t.Errorf("seed %d: %s", seed, firstDifference(a.Trace, b.Trace))
		}
		traces[a.Trace] = true
	}
	if len(traces) < 2 {
		t.Errorf("%d seeds give the same trace: a seed changes nothing", seeds)
	}
}

// TestRunNotTheSameTwice: a run that goes another way the second time is broken.
func TestRunNotTheSameTwice(t *testing.T) {
	s := load(t, "testdata/scenarios/writes.yaml")
	runs := 0
	r := Run(s, Options{Fault: func() Fault {
		runs++
		return once(runs, Refused)()
	}})
	if r.Broken == nil || !strings.Contains(r.Broken.String(), "a second run goes another way: line ") {
		t.Errorf("got %v", r.Broken)
	}
}

// TestDeadControllerStartsAgain: the scenario's crash comes after its Nth write
// and at no other, and what happens is as if nobody had died.
func TestDeadControllerStartsAgain(t *testing.T) {
	file := `
nodes: [{name: h, gpus: 2}]
queues: [{name: A}]
events:
- {at: 1s, crash: {after: %d}}
- {at: 2s, submit: [{name: J, queue: A, pods: 2, requests: {nvidia.com/gpu: 1}}]}
expect:
- {at: 3s, admitted: [J], pods: {J: 2}}
`
	for n, want := range []string{"at 1s", "at 2s", "at 2s", "at 2s", ""} {
		s, err := Parse("f.yaml", fmt.Appendf(nil, file, n))
		if err != nil {
			t.Fatal(err)
		}
		r := Run(s, Options{})
		if !r.OK() {
			t.Errorf("after %d: %v", n, r.Lines())
		}
		got := ""
		before, _, died := strings.Cut(r.Trace, "the controller dies")
		if died {
			at := before[strings.LastIndex(before, "at "):]
			got, _, _ = strings.Cut(at, "\n")
		}
		if got != want {
			t.Errorf("after %d writes the controller dies %q, want %q\n%s", n, got, want, r.Trace)
		}
	}
}

// TestBadDecisionsAreSeen hands decisions to a cluster that a core must never
// make, and wants each of them told.
func TestBadDecisionsAreSeen(t *testing.T) {
	const file = `
nodes:
- {name: full, gpus: 1}
- {name: away, gpus: 1, labels: {zone: b}}
- {name: tainted, gpus: 1, taints: ["own=x:NoSchedule"]}
- {name: closed, gpus: 1}
- {name: good, gpus: 1}
queues: [{name: A}]
events:
- {at: 0s, cordon: closed}
- {at: 0s, foreign: {node: full, name: f, requests: {nvidia.com/gpu: 1}}}
- {at: 0s, submit: [{name: J, queue: A, pods: 2, requests: {nvidia.com/gpu: 1}, notNodes: [away]}]}
- {at: 0s, submit: [{name: S, queue: A, pods: 2, requests: {nvidia.com/gpu: 1}, selector: {zone: c}}]}
- {at: 0s, submit: [{name: G, queue: A, pods: 1, requests: {nvidia.com/gpu: 1}, gate: "a friend has to come"}]}
`
	for _, c := range []struct{ gang, node, want string }{
		{"J", "good", ""},
		{"J", "full", "pod J-main-0 was released to node full and cannot run there: it needs 1 of nvidia.com/gpu, 1 of 1 are in use"},
		{"J", "away", "it excludes the node by name"},
		{"J", "tainted", "it does not tolerate own=x:NoSchedule"},
		{"J", "closed", "the node is cordoned"},
		{"J", "nowhere", "there is no such node"},
		{"S", "good", "it selects zone=c"},
		{"G", "good", "pod G-main-0 is released though a friend has to come"},
	} {
		t.Run(c.gang+" to "+c.node, func(t *testing.T) {
			s, err := Parse("f.yaml", []byte(file))
			if err != nil {
				t.Fatal(err)
			}
			clock := &Clock{}
			cluster := newCluster(s, clock, 0, nil, newTrace(clock))
			for _, e := range s.Events {
				cluster.act(e.Action)
			}
			w := cluster.workloads[c.gang]
			plan := gang.Plan{Sets: []gang.SetPlan{{Name: DefaultPodSet, Slots: []gang.Slot{{Node: c.node, Count: int(w.PodSets[0].Pods)}}}}}
			a := admission.Admission{Key: w.key, UID: w.uid, Queue: "A", Plan: plan, At: clock.Time(), Based: w.version}
			d := &admission.Decision{Admit: []admission.Admission{a}}
			if o := cluster.Carry(context.Background(), d); o[0].Result != admission.Committed {
				t.Fatalf("the admission got %v", o)
			}
			p := w.pods[0]
			d = &admission.Decision{Release: []admission.Release{{UID: p.uid, Key: p.name, Workload: w.key, Node: c.node, Stamp: a.Stamp()}}}
			cluster.Carry(context.Background(), d)
			got := strings.Join(cluster.violations, "; ")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if halves := cluster.halves(); c.node == "good" && len(halves) == 0 && c.gang != "G" {
				t.Error("one pod of two is released, and nobody says that the gang is there in part")
			}
		})
	}
}

// TestStaleDecisionsAreRefused: a write for an object that has changed since
// has no effect.
func TestStaleDecisionsAreRefused(t *testing.T) {
	s := load(t, "testdata/scenarios/all-or-none.yaml")
	clock := &Clock{}
	c := newCluster(s, clock, 0, nil, newTrace(clock))
	c.act(s.Events[0].Action)
	w := c.workloads["J1"]
	a := admission.Admission{Key: "J1", UID: w.uid, Queue: "A", Plan: runningPlan(&w.Workload), At: clock.Time(), Based: w.version}
	c.act(SetPriority{Workload: "J1", Value: 7})
	for what, d := range map[string]*admission.Decision{
		"an older version":      {Admit: []admission.Admission{a}},
		"another uid":           {Admit: []admission.Admission{{Key: "J1", UID: "other", Based: w.version}}},
		"nobody":                {Admit: []admission.Admission{{Key: "J9"}}},
		"a move of the waiting": {Move: []admission.Admission{{Key: "J1", UID: w.uid, Based: w.version}}},
		"evicting the waiting":  {Evict: []admission.Eviction{{Key: "J1", UID: w.uid, Based: w.version}}},
		"a pod that is not":     {Release: []admission.Release{{UID: "pod"}}},
	} {
		before := w.version
		o := c.Carry(context.Background(), d)
		if len(o) != 1 || o[0].Result != admission.Refused || w.version != before || w.admission != nil {
			t.Errorf("%s: outcome %v, version %d then %d, admission %v", what, o, before, w.version, w.admission)
		}
	}
}

// TestNothingIsDeliveredFromInsideAWrite: changes wait until they are asked for.
func TestNothingIsDeliveredFromInsideAWrite(t *testing.T) {
	s := load(t, "testdata/scenarios/all-or-none.yaml")
	clock := &Clock{}
	c := newCluster(s, clock, 0, nil, newTrace(clock))
	c.Changes()
	c.act(s.Events[1].Action)
	list := c.Changes()
	if len(list) != 1 || list[0].workload.key != "J2" || list[0].workload.version != c.workloads["J2"].version {
		t.Fatalf("a submit is seen as %+v", list)
	}
	if more := c.Changes(); len(more) != 0 {
		t.Errorf("seen twice: %+v", more)
	}
}

// TestClock: what is due at an instant happens in the order in which it was put
// down, also what is put down meanwhile.
func TestClock(t *testing.T) {
	c := &Clock{}
	var got []string
	note := func(s string) func() { return func() { got = append(got, s) } }
	c.At(2*time.Second, note("late"))
	c.At(0, func() { note("first")(); c.At(0, note("third")); c.At(-time.Second, note("fourth")) })
	c.At(0, note("second"))
	if n := c.Fire(); n != 4 || strings.Join(got, " ") != "first second third fourth" {
		t.Errorf("%d fired: %v", n, got)
	}
	if at, ok := c.Next(); at != 2*time.Second || !ok {
		t.Errorf("next at %v, %v", at, ok)
	}
}

func TestSpoken(t *testing.T) {
	for text, d := range map[string]time.Duration{
		"0s": 0, "10s": 10 * time.Second, "4m": 4 * time.Minute, "1h": time.Hour, "1h30m": 90 * time.Minute,
		"2m5s": 125 * time.Second, "1h0m5s": time.Hour + 5*time.Second, "10m": 10 * time.Minute, "1ms": time.Millisecond,
	} {
		if got := Spoken(d); got != text {
			t.Errorf("%v is spoken %q, want %q", d, got, text)
		}
	}
}
