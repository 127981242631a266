package queue

import (
	"testing"

	"sluice.dev/sluice/gang"
)

// A flavor that spreads its gangs says so of each, and changes no spec of theirs.
func TestRoomyFlavor(t *testing.T) {
	spec := &gang.Spec{PodSets: []gang.PodSet{{Name: "main"}}}
	if got := (&Flavor{Roomy: true}).Spec(spec); !got.Roomy || spec.Roomy {
		t.Errorf("spread: %t, its own spec: %t", got.Roomy, spec.Roomy)
	}
	if got := (&Flavor{}).Spec(spec); got != spec {
		t.Errorf("a flavor that asks nothing makes %+v", got)
	}
}
