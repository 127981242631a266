package answer

import (
	"testing"
	"time"

	"sluice.dev/sluice/simulations"
)

// story is the world of a scenario of testdata at a time.
func story(t testing.TB, name string, at time.Duration) *World {
	t.Helper()
	s, err := simulations.Load("testdata/scenarios/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	state, now, err := simulations.StateAt(s, simulations.Options{}, at)
	if err != nil {
		t.Fatal(err)
	}
	return New(state.Image(), now)
}
