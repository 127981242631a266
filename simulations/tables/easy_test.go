package tables

import (
	"math"
	"testing"

	"sluice.dev/sluice/simulations/traces"
)

func dir(t *testing.T) string {
	t.Helper()
	d, err := traces.Dir()
	if err != nil {
		t.Skip(err)
	}
	return d
}

// The engine's own backfill, on one pool without structure, starts every job of the
// smallest log when the published schedules do.
func TestStartsArePublished(t *testing.T) {
	d, l := dir(t), Logs[0]
	for _, policy := range Policies() {
		if policy.Published < 0 {
			continue
		}
		r, err := l.Run(d, policy, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Jobs != l.Jobs || r.Differ != 0 || math.Abs(r.Slowdown-l.Slowdown[policy.Published]) > 1e-6 {
			t.Errorf("%s, %s: %d jobs, %d differ, first %d, slowdown %.6f, want %.6f", l.Name, policy.Name, r.Jobs, r.Differ, r.First, r.Slowdown, l.Slowdown[policy.Published])
		}
	}
}
