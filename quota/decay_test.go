package quota

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestDecayModel compares whole-number decay with the formula, to a part in ten
// thousand of a half-life's step, and one unit for rounding in each factor.
func TestDecayModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64Range(0, 1<<50).Draw(t, "v")
		half := time.Duration(rapid.Int64Range(1, int64(30*24*time.Hour)).Draw(t, "half-life"))
		dt := time.Duration(rapid.Int64Range(0, int64(half)*8).Draw(t, "dt"))
		want := float64(v) * math.Exp2(-float64(dt)/float64(half))
		got := float64(Decay(v, dt, half))
		if math.Abs(got-want) > float64(v)*1e-4+float64(len(halvings)+1) {
			t.Fatalf("%d after %v of half-life %v: %v, want %v", v, dt, half, got, want)
		}
	})
}

// TestAverageSettles: what is used all the time is the average; what ended is forgotten.
func TestAverageSettles(t *testing.T) {
	var a Resources
	for range 200 {
		a = Average(a, Resources{8000}, time.Hour, 24*time.Hour)
	}
	if a.At(0) < 7900 || a.At(0) > 8000 {
		t.Errorf("after 200 hours of 8000: %d", a.At(0))
	}
	before := a.At(0)
	a = Average(a, nil, 24*time.Hour, 24*time.Hour)
	if d := a.At(0) - before/2; d < -1 || d > 1 {
		t.Errorf("a half-life after %d: %d", before, a.At(0))
	}
}
