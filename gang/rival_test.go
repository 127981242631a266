package gang

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/quota"
)

// Classes of one rank take turns: of two kinds of nodes that pods rate alike, the
// first node is taken first, whichever kind it is. The walk over the nodes says so too.
func TestRivalsTakeTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		index, walk := NewInventory(), NewInventory()
		walk.plain = true
		for i := range rapid.IntRange(2, 8).Draw(t, "nodes") {
			// They differ in memory alone, of which nobody takes the largest part.
			n := &Node{Name: fmt.Sprintf("n-%d", i), Offer: quota.Resources{0, rapid.Int64Range(98, 99).Draw(t, "memory"), 9, 2}}
			index.Put(n)
			walk.Put(n)
		}
		spec := &Spec{PodSets: []PodSet{{Name: "main", Count: rapid.IntRange(1, 5).Draw(t, "pods"), Request: quota.Resources{0, 1, 1, 2}}}}
		a, shortA := Place(index, spec, spec.Sizes())
		b, shortB := Place(walk, spec, spec.Sizes())
		if a.String() != b.String() || (shortA == nil) != (shortB == nil) {
			t.Fatalf("by classes %s, by walking %s\n%s", a, b, walk.draw())
		}
	})
}
