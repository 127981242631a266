package answer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/simulations"
)

// busyDay is a day of jobs with time limits of which they use a third to all, on
// four nodes.
func busyDay(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	b.WriteString("name: a busy day\nnodes: [{name: h, count: 4, gpus: 8}]\nqueues: [{name: team-a, weight: 2}, {name: team-b}]\nevents:\n")
	at := 0
	for i := range 60 {
		at += r.IntN(20)
		limit := 30 + r.IntN(150)
		run := limit/3 + r.IntN(limit-limit/3)
		fmt.Fprintf(&b, "- {at: %dm, submit: [{name: j%d, queue: team-%c, pods: %d, requests: {nvidia.com/gpu: %d}, limit: %dm, runtime: %dm}]}\n",
			at, i, "ab"[r.IntN(2)], 1+r.IntN(4), 1<<r.IntN(4), limit, run)
	}
	b.WriteString("expect: [{at: 72h, quiet: 1s}]\n")
	return b.String()
}

// Nine in ten of the ranges hold what happened, though jobs go on coming. The last two
// days are none that the ranges were made with.
func TestRangesHold(t *testing.T) {
	asked, held, unknown := 0, 0, 0
	var misses []string
	for seed := range uint64(8) {
		s, err := simulations.Parse("busy-day.yaml", []byte(busyDay(seed)))
		if err != nil {
			t.Fatal(err)
		}
		started := starts(t, s)
		for at := time.Hour; at < 9*time.Hour; at += 100 * time.Minute {
			state, now, err := simulations.StateAt(s, simulations.Options{}, at)
			if err != nil {
				t.Fatal(err)
			}
			w := New(state.Image(), now)
			for i := range w.im.Workloads {
				m := &w.im.Workloads[i]
				if m.Phase != admission.Waiting {
					continue
				}
				e := w.eta(m, w.why[m.Name])
				i := slices.IndexFunc(started[m.Name], func(at time.Time) bool { return at.After(now) })
				if e.Unknown != "" || i < 0 {
					unknown++
					continue
				}
				when := started[m.Name][i]
				asked++
				if !when.Before(*e.Early) && !when.After(*e.Late) {
					held++
				} else {
					misses = append(misses, fmt.Sprintf("seed %d at %s: %s was said to start %s-%s, started %s", seed, at, m.Name, clock(*e.Early, now), clock(*e.Late, now), clock(when, now)))
				}
			}
		}
	}
	t.Logf("%d of %d ranges hold, %d unknown", held, asked, unknown)
	if asked < 100 || held*10 < asked*9 {
		t.Errorf("only %d of %d ranges hold\n%s", held, asked, strings.Join(misses[:min(len(misses), 12)], "\n"))
	}
}

// starts is when each gang of the scenario is admitted, by its trace.
func starts(t *testing.T, s *simulations.Scenario) map[string][]time.Time {
	t.Helper()
	_, zero, err := simulations.StateAt(s, simulations.Options{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]time.Time{}
	at := time.Duration(0)
	for line := range strings.Lines(simulations.Run(s, simulations.Options{}).Trace) {
		f := strings.Fields(line)
		switch {
		case len(f) == 2 && f[0] == "at":
			if at, err = time.ParseDuration(f[1]); err != nil {
				t.Fatal(err)
			}
		case len(f) > 1 && f[0] == "admit":
			out[f[1]] = append(out[f[1]], zero.Add(at))
		}
	}
	return out
}
