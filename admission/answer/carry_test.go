package answer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/simulations"
)

// carriedOut runs the scenario with the change made at the given time, by the means
// of the simulator, and returns the gang's phase a moment later, and what it says.
func carriedOut(t *testing.T, s *simulations.Scenario, o simulations.Options, at time.Duration, w *World, key string, c Change) (admission.Phase, string) {
	t.Helper()
	more := *s
	more.Events = slices.Clone(s.Events)
	i := 0
	for i < len(more.Events) && more.Events[i].At <= at {
		i++
	}
	var events []simulations.Event
	for _, a := range actions(t, s, w, key, c) {
		events = append(events, simulations.Event{At: at + time.Millisecond, Action: a})
	}
	more.Events = slices.Concat(more.Events[:i], events)
	after := at + 2*time.Millisecond
	if len(c.Stops) > 0 {
		after = at + 5*time.Minute
	}
	state, _, err := simulations.StateAt(&more, o, after)
	if err != nil {
		t.Fatalf("%s: %v", c.Text, err)
	}
	v, ok := state.View(key)
	if !ok {
		t.Fatalf("%s: %s is gone", c.Text, key)
	}
	return v.Phase, v.Text
}

// actions do the change in the simulator.
func actions(t *testing.T, s *simulations.Scenario, w *World, key string, c Change) []simulations.Action {
	t.Helper()
	var out []simulations.Action
	again := func(change func(*simulations.Workload)) {
		x := submitted(t, s, key)
		change(&x)
		out = append(out, simulations.Delete{Name: key}, simulations.Submit{Workloads: []simulations.Workload{x}})
	}
	amounts := func(as simulations.Amounts, resource string, v int64) simulations.Amounts {
		as = slices.DeleteFunc(slices.Clone(as), func(a simulations.Amount) bool { return a.Resource == resource })
		if v > 0 {
			as = append(as, simulations.Amount{Resource: resource, Value: v})
		}
		return as
	}
	switch c.Kind {
	case Resume:
		out = append(out, simulations.Resume{Workload: key})
	case OpenQueue:
		out = append(out, simulations.OpenQueue{Queue: c.Queue})
	case Relabel:
		for _, n := range c.Nodes {
			out = append(out, simulations.SetLabel{Node: n, Key: c.Label, Value: &c.Value})
		}
	case Uncordon:
		for _, n := range c.Nodes {
			out = append(out, simulations.Uncordon{Node: n})
		}
	case Wait:
		for _, j := range c.Jobs {
			out = append(out, simulations.Finish{Workload: j})
		}
	case RaiseLimit:
		out = append(out, changeQueue(w, c, "max"))
	case RaiseOwn:
		out = append(out, changeQueue(w, c, "nominal"))
	case Recut:
		for _, card := range c.Cards {
			out = append(out, simulations.Recut{Node: card.Node, GPU: card.Card, Layout: simulations.Layout{MIG: len(c.Layout) > 0, Slices: c.Layout}})
		}
	case FewerPods:
		again(func(x *simulations.Workload) {
			x.MinTotal = nil
			for i := range x.PodSets {
				if ps := &x.PodSets[i]; ps.Name == c.PodSet {
					if ps.Min == ps.Pods {
						ps.Pods = c.Amount
					}
					ps.Min = c.Amount
				}
			}
		})
	case Smaller:
		again(func(x *simulations.Workload) {
			for i := range x.PodSets {
				for _, a := range x.PodSets[i].Requests {
					if strings.Contains(a.Resource, "/mig-") && strings.Contains(c.Text, "instead of "+Short(a.Resource)) {
						x.PodSets[i].Requests = amounts(amounts(x.PodSets[i].Requests, a.Resource, 0), c.Resource, a.Value)
					}
				}
			}
		})
	case SmallerPods:
		again(func(x *simulations.Workload) {
			for i := range x.PodSets {
				if v, _ := x.PodSets[i].Requests.Of(c.Resource); v > c.Amount {
					x.PodSets[i].Requests = amounts(x.PodSets[i].Requests, c.Resource, c.Amount)
				}
			}
		})
	case Shorter:
		limit := time.Duration(c.Seconds) * time.Second
		again(func(x *simulations.Workload) { x.Limit = &limit })
	case Tolerate:
		again(func(x *simulations.Workload) {
			for i := range x.PodSets {
				x.PodSets[i].Tolerations = append(slices.Clone(x.PodSets[i].Tolerations), simulations.Toleration{Key: c.Label, Value: c.Value, Effect: "NoSchedule"}, simulations.Toleration{Key: c.Label, Value: c.Value, Effect: "NoExecute"})
			}
		})
	case Unselect:
		again(func(x *simulations.Workload) {
			for i := range x.PodSets {
				ps := &x.PodSets[i]
				ps.Selector = slices.DeleteFunc(slices.Clone(ps.Selector), func(l simulations.Label) bool { return l.Key+"="+l.Value == c.Label })
				ps.NotNodes = nil
			}
		})
	default:
		t.Fatalf("no way to do %s", c.Kind)
	}
	return out
}

// changeQueue sets a bound of the queue, the others as they are.
func changeQueue(w *World, c Change, key string) simulations.Action {
	q := w.queueOf(c.Queue)
	bounds := q.Quota.Max
	if key == "nominal" {
		bounds = q.Quota.Nominal
	}
	as := simulations.Amounts{}
	for d, v := range bounds {
		name := w.s.Space.Name(d)
		if name == c.Resource {
			v = c.Amount
		}
		as = append(as, simulations.Amount{Resource: name, Value: v})
	}
	now := simulations.Queue{Name: c.Queue, Max: as, Nominal: as}
	return simulations.ChangeQueue{Queue: now, Keys: []string{key}}
}

// submitted is the workload as the scenario last submitted it.
func submitted(t *testing.T, s *simulations.Scenario, key string) simulations.Workload {
	t.Helper()
	var last *simulations.Workload
	for _, e := range s.Events {
		if a, ok := e.Action.(simulations.Submit); ok {
			for i := range a.Workloads {
				if a.Workloads[i].Name == key {
					last = &a.Workloads[i]
				}
			}
		}
	}
	if last == nil {
		t.Fatalf("%s is not submitted", key)
	}
	x := *last
	x.PodSets = slices.Clone(last.PodSets)
	return x
}

// Every change that is told is made, by other means, and admits the gang.
func TestChangesAdmit(t *testing.T) {
	seen := map[ChangeKind]int{}
	for _, name := range []string{"labels-lost", "quota-full", "fragmented", "mig-layout", "behind-reservation", "never-fits", "held"} {
		s, err := simulations.Load("testdata/scenarios/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		const at = 20 * time.Minute
		w := story(t, name, at)
		for _, m := range w.im.Workloads {
			if m.Phase != admission.Waiting {
				continue
			}
			a, err := w.Why(m.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range a.Changes {
				seen[c.Kind]++
				if phase, text := carriedOut(t, s, simulations.Options{}, at, w, m.Name, c); phase != admission.Admitted {
					t.Errorf("%s: %s: %s: it is %s and says %s", name, m.Name, c.Text, phases[phase], text)
				}
			}
		}
	}
	for _, k := range []ChangeKind{Resume, OpenQueue, Relabel, Uncordon, FewerPods, Smaller, SmallerPods, Shorter, Wait, RaiseLimit, Recut} {
		if seen[k] == 0 {
			t.Errorf("no scenario is helped by %s", k)
		}
	}
}

// The same in the middle of stories drawn by lot.
func TestChangesAdmitInStories(t *testing.T) {
	told := 0
	kinds := map[ChangeKind]int{}
	for seed := range uint64(stories()) {
		s, err := simulations.Story(seed, 60)
		if err != nil {
			t.Fatal(err)
		}
		o := simulations.Options{Seed: seed}
		for _, at := range middles(s)[2:4] {
			state, now, err := simulations.StateAt(s, o, at)
			if err != nil {
				t.Fatal(err)
			}
			w := New(state.Image(), now)
			if w.d.Acts() {
				continue // not settled: something is due at this very instant
			}
			for _, m := range w.im.Workloads {
				if m.Phase != admission.Waiting {
					continue
				}
				a, err := w.Why(m.Name)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range a.Changes {
					told++
					kinds[c.Kind]++
					if phase, text := carriedOut(t, s, o, at, w, m.Name, c); phase != admission.Admitted && phase != admission.Finished {
						t.Errorf("seed %d at %s: %s (%s): %s: it is %s and says %s", seed, at, m.Name, a.Code, c.Text, phases[phase], text)
					}
				}
			}
		}
	}
	t.Logf("%d changes: %v", told, kinds)
	if told < 20 {
		t.Errorf("only %d changes were told", told)
	}
}

func stories() int {
	if testing.Short() {
		return 5
	}
	return 50
}
