package gang

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/quota"
)

// Two inventories are told the same; one of them answers by walking over its nodes.
// Whatever happens, and in whatever trial they are asked, they answer alike.
func TestIndexIsTheWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		index, walk := NewInventory(), NewInventory()
		walk.plain = true
		both := func(f func(v *Inventory)) { f(index); f(walk) }
		n := rapid.IntRange(2, 9).Draw(t, "size")
		alike := drawCluster(t).nodes
		put := func(i int) {
			c := *rapid.SampledFrom(alike).Draw(t, "like")
			c.Name = fmt.Sprintf("n-%d", i)
			c.Doubtful = rapid.IntRange(0, 9).Draw(t, "doubtful") == 0
			if rapid.IntRange(0, 3).Draw(t, "cards") == 0 {
				c.Cards = deckOf(rapid.SliceOfN(rapid.IntRange(1, 3), 1, 3).Draw(t, "replicas"))
			}
			both(func(v *Inventory) { v.Put(&c) })
		}
		for i := range n {
			put(i)
		}
		var marks [][2]int
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			name := fmt.Sprintf("n-%d", rapid.IntRange(0, n).Draw(t, "node"))
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0:
				if len(marks) == 0 {
					put(rapid.IntRange(0, n-1).Draw(t, "node"))
				}
			case 1:
				if len(marks) == 0 {
					both(func(v *Inventory) { v.Remove(name) })
				}
			case 2:
				r := quota.Resources{0, rapid.Int64Range(0, 3).Draw(t, "amount"), 1, rapid.Int64Range(0, 2).Draw(t, "amount")}
				both(func(v *Inventory) { v.Take(name, r) })
			case 3:
				if used := index.Used(name); used != nil {
					r := used.Clone()
					both(func(v *Inventory) { v.Give(name, r) })
				}
			case 4:
				marks = append(marks, [2]int{index.Mark(), walk.Mark()})
			case 5:
				if k := len(marks) - 1; k >= 0 {
					index.Undo(marks[k][0])
					walk.Undo(marks[k][1])
					marks = marks[:k]
				}
			default:
				compareAnswers(t, index, walk)
			}
		}
		compareAnswers(t, index, walk)
	})
}

func compareAnswers(t *rapid.T, index, walk *Inventory) {
	spec := drawSpec(t, 2, 5)
	a, b := answers(index, spec), answers(walk, spec)
	for i := range a {
		if !reflect.DeepEqual(a[i], b[i]) {
			t.Fatalf("answer %d by classes %+v, by walking %+v\n%s", i, a[i], b[i], walk.draw())
		}
	}
}

func answers(v *Inventory, spec *Spec) []any {
	plan, short := Place(v, spec, spec.Sizes())
	look := Look(v, spec)
	for i := range look.Excluded {
		look.Excluded[i].Nodes = slices.Clone(look.Excluded[i].Nodes)
	}
	grown := Grow(v, spec, Empty(spec), func(int) bool { return true })
	return []any{plan, short, Fits(v, spec, spec.Sizes()), look, grown}
}
