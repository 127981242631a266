package answer

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/simulations"
)

// What a plan says of a gang happens when it is submitted: 50 of 50, in the middle
// of stories drawn by lot.
func TestPlanThenSubmit(t *testing.T) {
	held, admitted, stopping := 0, 0, 0
	for seed := uint64(100); held < 50; seed++ {
		s, err := simulations.Story(seed, 50)
		if err != nil {
			t.Fatal(err)
		}
		at := middles(s)[3]
		o := simulations.Options{Seed: seed}
		state, now, err := simulations.StateAt(s, o, at)
		if err != nil {
			t.Fatal(err)
		}
		w := New(state.Image(), now)
		if w.d.Acts() || len(w.im.Workloads) == 0 {
			continue
		}
		model := w.im.Workloads[int(seed)%len(w.im.Workloads)]
		if model.Gone || model.Workload.Invalid != "" {
			continue
		}
		asked := gangOf(t, s, model.Workload.Key)
		x := w.Snapshot().Workloads[slices.IndexFunc(w.im.Workloads, func(m admission.Remembered) bool { return m.Name == model.Name })]
		x.Key, x.Queued, x.Held, x.Gate, x.After = "new", now.Add(time.Millisecond), asked.Hold, asked.Gate, nil
		for i, ps := range asked.PodSets { // as it was submitted, whatever became of it
			x.PodSets[i].Count, x.PodSets[i].Min = int(ps.Pods), int(ps.Min)
		}
		if seed%2 == 0 { // so that some stop others
			asked.Priority += 50
		}
		x.Priority, x.Queue = asked.Priority, asked.Queue
		p, err := w.Plan(x)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		asked.Name = "new"
		after := submittedAt(t, s, o, at, asked)
		v, ok := after.View("new")
		if !ok {
			t.Fatalf("seed %d: it is not there", seed)
		}
		held++
		switch {
		case p.Admitted && len(p.Stops) == 0:
			admitted++
			if v.Phase != admission.Admitted && v.Phase != admission.Finished {
				t.Errorf("seed %d: %s was said to start and is %s: %s", seed, p.Needs, phases[v.Phase], v.Text)
			} else if v.Admission != nil && !reflect.DeepEqual(writePlan(v.Admission.Plan), p.Places) {
				t.Errorf("seed %d: it was said to go to %v and went to %v", seed, p.Places, v.Admission.Plan)
			}
		case p.Admitted:
			stopping++
			for _, key := range p.Stops {
				if u, _ := after.View(key); u.Phase == admission.Admitted {
					t.Errorf("seed %d: %s was said to stop and runs", seed, key)
				}
			}
		default:
			if v.Phase != admission.Waiting {
				t.Errorf("seed %d: it was said to wait (%s) and is %s", seed, p.Why.Code, phases[v.Phase])
			} else if code := string(v.Reason.Code); code != p.Why.Code {
				t.Errorf("seed %d: it was said to be %s and is %s", seed, p.Why.Code, code)
			}
		}
	}
	t.Logf("%d plans: %d start at once, %d after others stop", held, admitted, stopping)
	if admitted < 5 || stopping < 1 {
		t.Errorf("of %d only %d start and %d stop others", held, admitted, stopping)
	}
}

// gangOf is a copy of what the scenario asked for under the key, to be submitted
// with all of its pods to come.
func gangOf(t *testing.T, s *simulations.Scenario, key string) simulations.Workload {
	t.Helper()
	x := submitted(t, s, key)
	for i := range x.PodSets {
		x.PodSets[i].Running = nil
	}
	return x
}

func submittedAt(t *testing.T, s *simulations.Scenario, o simulations.Options, at time.Duration, x simulations.Workload) *admission.State {
	t.Helper()
	more := *s
	i := 0
	for i < len(s.Events) && s.Events[i].At <= at {
		i++
	}
	more.Events = append(slices.Clone(s.Events[:i]), simulations.Event{At: at + time.Millisecond, Action: simulations.Submit{Workloads: []simulations.Workload{x}}})
	state, _, err := simulations.StateAt(&more, o, at+2*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// What a what-if says of a weight happens when it is set.
func TestWhatIfThenApply(t *testing.T) {
	s, err := simulations.Load("testdata/scenarios/weights.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const at = 10 * time.Minute
	w := story(t, "weights", at)
	three := 3.0
	x, err := w.WhatIf(Edit{Queue: "team-b", Weight: &three})
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Stops) == 0 || len(x.Starts)+len(x.Sooner) == 0 {
		t.Fatalf("a weight of 3 changes nothing: %+v", x)
	}
	more := *s
	more.Events = append(slices.Clone(s.Events), simulations.Event{At: at + time.Millisecond, Action: simulations.ChangeQueue{
		Queue: simulations.Queue{Name: "team-b", WeightMillis: 3000}, Keys: []string{"weight"},
	}})
	state, now, err := simulations.StateAt(&more, simulations.Options{}, at+time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	after := New(state.Image(), now)
	queues, err := after.Queues("")
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range queues {
		if q.Used != x.After[i].Used {
			t.Errorf("queue %s was said to use %d and uses %d", q.Name, x.After[i].Used, q.Used)
		}
	}
	for _, key := range x.Stops {
		if v, _ := state.View(key); v.Phase == admission.Admitted {
			t.Errorf("%s was said to stop and runs", key)
		}
	}
	if after.Token() == x.Token || w.Token() != x.Token {
		t.Error("a token names one state, and only that")
	}
	if _, err := w.WhatIf(Edit{Queue: "nobody", Weight: &three}); err == nil {
		t.Error("a queue that is not there is edited")
	}
}
