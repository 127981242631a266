package simulations

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
)

// brokenCluster is a cluster of two nodes with a gang that runs and one that waits, for
// tests that break a rule by hand and want it seen.
func brokenCluster(t *testing.T) *Cluster {
	t.Helper()
	s, err := Parse("f.yaml", []byte(`
nodes: [{name: h, count: 2, gpus: 2}]
queues: [{name: A, max: {nvidia.com/gpu: 3}}]
events:
- {at: 0s, submit: [{name: runs, queue: A, pods: 2, requests: {nvidia.com/gpu: 1}, stops: 10s, running: {h-0: 2}}]}
- {at: 0s, submit: [{name: waits, queue: A, pods: 2, requests: {nvidia.com/gpu: 1}}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	clock := &Clock{}
	c := newCluster(s, clock, 0, nil, newTrace(clock))
	for _, e := range s.Events {
		c.act(e.Action)
	}
	return c
}

func planOn(node string, pods int) gang.Plan {
	return gang.Plan{Sets: []gang.SetPlan{{Name: DefaultPodSet, Slots: []gang.Slot{{Node: node, Count: pods}}}}}
}

func (c *Cluster) lets(node string) {
	const key, pods = "waits", 2
	w := c.workloads[key]
	c.Carry(context.Background(), &admission.Decision{Admit: []admission.Admission{
		{Key: key, UID: w.uid, Queue: "A", Plan: planOn(node, pods), At: c.clock.Time(), Based: w.version},
	}})
}

func (c *Cluster) sendAway(key, forWhom string) {
	w := c.workloads[key]
	c.Carry(context.Background(), &admission.Decision{Evict: []admission.Eviction{
		{Key: key, UID: w.uid, Based: w.version, Cause: admission.Preempted, For: forWhom},
	}})
}

// pass lets time go by.
func (c *Cluster) later(d time.Duration) {
	c.clock.now += d
	c.clock.Fire()
	c.react()
}

func wants(t *testing.T, got []string, want string) {
	t.Helper()
	if want == "" && len(got) > 0 || !strings.Contains(strings.Join(got, "; "), want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestEvictedInVainIsSeen: once nobody stops any more, the claim has to be in.
func TestEvictedInVainIsSeen(t *testing.T) {
	c := brokenCluster(t)
	c.sendAway("runs", "waits")
	wants(t, c.inVain(), "") // it stops still
	c.later(10 * time.Second)
	wants(t, c.inVain(), "[runs] evicted in vain: waits waits")

	c = brokenCluster(t)
	c.sendAway("runs", "waits")
	c.later(10 * time.Second)
	c.lets("h-0")
	wants(t, c.inVain(), "")

	c = brokenCluster(t)
	c.sendAway("runs", "waits")
	c.later(10 * time.Second)
	c.outside() // then it may have become impossible
	wants(t, c.inVain(), "")
}

// TestTakingTurnsIsSeen: two gangs that evict each other, though nothing happens
// that they did not do, break a promise; with an event in between they do not.
func TestTakingTurnsIsSeen(t *testing.T) {
	for _, event := range []bool{false, true} {
		c := brokenCluster(t)
		c.sendAway("runs", "waits")
		c.later(10 * time.Second)
		c.lets("h-0")
		c.later(time.Second)
		want := "waits is evicted for runs, and runs was for waits, though nothing else happened"
		if event {
			c.outside()
			want = ""
		}
		c.sendAway("waits", "runs")
		wants(t, c.violations, want)
	}
}

// TestInAndOutAtOnceIsFlagged: a gang that is let in and sent away at one instant is
// told, and breaks no promise.
func TestInAndOutAtOnceIsFlagged(t *testing.T) {
	for _, later := range []time.Duration{0, time.Second} {
		c := brokenCluster(t)
		c.lets("h-1")
		c.later(later)
		c.sendAway("waits", "runs")
		want := "waits is evicted for runs at the instant at which it was admitted"
		if later > 0 {
			want = ""
		}
		wants(t, c.flags, want)
		wants(t, c.violations, "")
	}
}

// TestUnrestIsSeen: a controller that lets in and sends away without end, though
// nothing happens, breaks a promise even if no two gangs take turns.
func TestUnrestIsSeen(t *testing.T) {
	c := brokenCluster(t)
	for i := range maxMoves*len(c.workloads) + maxMoves {
		if i%2 == 0 {
			c.lets("h-1")
		} else {
			c.sendAway("waits", "")
		}
		c.later(20 * time.Second)
	}
	wants(t, c.violations, "")
	c.lets("h-1")
	wants(t, c.violations, "13 admissions and evictions of 2 gangs, though nothing happens")
}

// TestIdleFitIsSeen: who is told that there is no room, and would find some, is told.
func TestIdleFitIsSeen(t *testing.T) {
	c := brokenCluster(t)
	w := c.workloads["waits"]
	w.reason, w.message = ReasonCapacity, "so it says"
	wants(t, c.idleFits(), "waits is told Capacity (so it says), and would fit: h-1 h-1")
	c.act(LoseGPU{Node: "h-1"})
	wants(t, c.idleFits(), "")
	w.reason = ReasonQuota
	c.act(RestoreGPU{Node: "h-1"})
	wants(t, c.idleFits(), "")
}

// TestStoppingPodsOfTheEndedCount: a gang that was shrunk and has ended since has its room
// until the pods stop that it had too many of.
func TestStoppingPodsOfTheEndedCount(t *testing.T) {
	c := brokenCluster(t)
	w := c.workloads["runs"]
	c.stop(w.pods[0])
	c.finish(w)
	nodes, queues := c.claims()
	if nodes["h-0"][ResourceGPU] != 1 || queues["A"][ResourceGPU] != 1 {
		t.Errorf("while a pod of the ended stops %v and %v are taken", nodes, queues)
	}
	c.later(10 * time.Second)
	if nodes, _ = c.claims(); nodes["h-0"][ResourceGPU] != 0 {
		t.Errorf("after it stopped %v are taken", nodes)
	}
}

// TestOverdrawnIsSeen: plans for more than a node has, and more than a queue may have.
func TestOverdrawnIsSeen(t *testing.T) {
	c := brokenCluster(t)
	c.lets("h-0")
	got := c.overdrawn()
	wants(t, got, "node h-0 has nvidia.com/gpu 2, 4 are promised since waits has places there")
	wants(t, got, "queue A may have nvidia.com/gpu 3, it has 4 since waits was admitted")
}

// TestForgottenEventIsSeen: a controller that was never told something is not as one
// that starts now; of each event that matters, and there are some.
func TestForgottenEventIsSeen(t *testing.T) {
	c := brokenCluster(t)
	all := c.Changes()
	seen := 0
	for skip := range all {
		s := admission.NewState(config(&c.policy))
		for i, ch := range c.Snapshot(nil) {
			if i != skip {
				s.Apply(converter{s.Space}.event(ch))
			}
		}
		if len(c.differences(s)) > 0 {
			seen++
		}
	}
	// A node without pods, and gated pods of a gang that waits, change no charge.
	if seen < 4 {
		t.Errorf("of %d events forgotten one by one only %d are seen", len(all), seen)
	}
}

// TestWatchKeepsOrder: however a watch hangs, lists and repeats, what it tells of an
// object never goes back, and in the end all is told.
func TestWatchKeepsOrder(t *testing.T) {
	hung, repeated, listed := 0, 0, 0
	for seed := range uint64(200) {
		c := brokenCluster(t)
		c.Changes()
		w := newWatch(seed, c.clock, time.Minute)
		told := map[string]uint64{}
		for i := range 120 {
			c.later(time.Second)
			if i%3 == 0 {
				c.change("waits", func(o *workloadObject) { o.Priority++ })
			}
			if i%4 == 0 {
				c.changeNode("h-1", func(n *nodeObject) { n.cordoned = !n.cordoned })
			}
			for _, ch := range w.deliver(c, c.Changes()) {
				v := version(&ch)
				if v < told[ch.name()] {
					t.Fatalf("seed %d: %s goes back from %d to %d", seed, ch.name(), told[ch.name()], v)
				}
				if v == told[ch.name()] {
					repeated++
				}
				told[ch.name()] = v
			}
			if w.late() {
				hung++
			}
		}
		listed += strings.Count(c.trace.String(), " lists ")
		if !w.empty() || told["workload waits"] != c.workloads["waits"].version || told["node h-1"] != c.nodes["h-1"].version {
			t.Errorf("seed %d: at the end it has told %v", seed, told)
		}
	}
	if hung == 0 || repeated == 0 || listed == 0 {
		t.Errorf("hung %d times, repeated %d, listed %d", hung, repeated, listed)
	}
}

func version(ch *change) uint64 {
	switch {
	case ch.node != nil:
		return ch.node.version
	case ch.workload != nil:
		return ch.workload.version
	case ch.pod != nil:
		return ch.pod.version
	default:
		return 0
	}
}

// TestClockIsSteppedBothWays, and is right in the end.
func TestClockIsSteppedBothWays(t *testing.T) {
	clock := &Clock{}
	s := newSkew(1, 3*time.Hour)
	seen := map[int]bool{}
	for range 200 {
		clock.now += time.Minute
		off := s.at(clock.now, newTrace(clock))
		switch {
		case off > maxSkew || off < -maxSkew:
			t.Fatalf("off by %v", off)
		case off > 0:
			seen[1] = true
		case off < 0:
			seen[-1] = true
		default:
			seen[0] = true
		}
	}
	if len(seen) != 3 || s.at(clock.now, newTrace(clock)) != 0 {
		t.Errorf("it was %v, and is off by %v", slices.Sorted(maps.Keys(seen)), s.off)
	}
}

// TestFaultsText: what Faults are written as is read again.
func TestFaultsText(t *testing.T) {
	for seed := range uint64(8) {
		f := FaultsOf(seed)
		if g, err := ParseFaults(f.String()); err != nil || f != g {
			t.Errorf("%v is read as %v, %v", f, g, err)
		}
	}
	if f, err := ParseFaults("all"); err != nil || f != FaultsOf(7) {
		t.Error(f, err)
	}
	if _, err := ParseFaults("write"); err == nil || !strings.Contains(fmt.Sprint(err), `not "write"`) {
		t.Error(err)
	}
}
