package kube

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"sluice.dev/sluice/quota"
)

// Whoever comes and goes: who was told last knows what is true now, everybody is in
// the groups of those that mind others, and in no group are pods that nobody chose.
func TestGroupsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spaces := map[string]labels.Set{"a": {"team": "x"}, "b": {"team": "y"}}
		g := newGroups(quota.NewSpace(), func(ns string) labels.Set { return spaces[ns] })
		value := rapid.SampledFrom([]string{"1", "2"})
		drawSet := func() labels.Set {
			set := labels.Set{}
			for _, k := range []string{"k", "l"} {
				if rapid.Bool().Draw(t, "labelled") {
					set[k] = value.Draw(t, "value")
				}
			}
			return set
		}
		drawChosen := func() chosen {
			text := rapid.SampledFrom([]string{"k=1", "k in (1,2)", "k", "k=2,l=1", "!l", ""}).Draw(t, "selector")
			sel, err := labels.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			switch rapid.IntRange(0, 2).Draw(t, "spaces") {
			case 0:
				return newChosen([]string{"a"}, nil, sel)
			case 1:
				return newChosen([]string{"b", "a"}, nil, sel)
			default:
				return newChosen(nil, labels.SelectorFromSet(labels.Set{"team": "x"}), sel)
			}
		}
		known := map[string][][]int{} // as the core was told
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			id := fmt.Sprintf("w/%d", rapid.IntRange(0, 3).Draw(t, "id"))
			isGang := rapid.Bool().Draw(t, "gang")
			if !isGang {
				id = "p" + id[1:]
			}
			if rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
				g.drop(id)
				delete(known, id)
			} else {
				o := &social{id: id, space: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "space"), gang: isGang}
				n := 1
				if isGang {
					n = rapid.IntRange(1, 2).Draw(t, "sets")
				}
				for range n {
					o.sets = append(o.sets, drawSet())
				}
				for range rapid.IntRange(0, 2).Draw(t, "bonds") {
					b := bond{chosen: drawChosen(), set: rapid.IntRange(0, n-1).Draw(t, "set")}
					if !isGang || rapid.Bool().Draw(t, "shy") {
						b.shy = rapid.SampledFrom([]string{"zone", "rack"}).Draw(t, "key")
					}
					o.bonds = append(o.bonds, b)
				}
				g.put(o)
				known[id] = dimsOf(g, g.all[id])
			}
			for id := range g.settle() {
				if o := g.all[id]; o != nil {
					known[id] = dimsOf(g, o)
				}
			}
			checkGroups(t, g, known)
		}
		for _, id := range slices.Sorted(maps.Keys(g.all)) {
			g.drop(id)
		}
		g.settle()
		if len(g.minded)+len(g.byLabel)+len(g.loose)+len(g.have)+len(g.dirty) > 0 || slices.Contains(g.used, true) {
			t.Fatalf("left behind: %v %v %v %v", g.minded, g.byLabel, g.have, g.used)
		}
	})
}

func dimsOf(g *groups, o *social) [][]int {
	var list [][]int
	for i := range o.sets {
		list = append(list, g.dims(o, i))
	}
	return list
}

func checkGroups(t *rapid.T, g *groups, known map[string][][]int) {
	for id, o := range g.all {
		if now := dimsOf(g, o); !reflect.DeepEqual(now, known[id]) {
			t.Fatalf("%s was told %v, is in %v", id, known[id], now)
		}
		for _, b := range o.bonds {
			for other, x := range g.all {
				if other == id || !g.choosesAny(&b.chosen, x) {
					continue
				}
				m := g.minded[b.key]
				if o.gang && m.dim == 0 {
					t.Fatalf("%s minds %s, and there is no group of %s", id, other, b.key)
				}
				for i, set := range x.sets {
					if m.dim > 0 && g.chooses(&b.chosen, x, set) != slices.Contains(known[other][i], m.dim) {
						t.Fatalf("%s of %s is in %v, and not as %s chooses in %d", other, b.key, known[other], id, m.dim)
					}
				}
				if s := m.shy[b.shy]; b.shy != "" && x.gang && (s.dim == 0 || !slices.Contains(known[id][b.set], s.dim)) {
					t.Fatalf("%s keeps apart from %s by %s, and is in %v", id, other, b.shy, known[id])
				}
			}
		}
	}
}

// More selectors than there are groups: those that find none say so, and have one as
// soon as one is left.
func TestGroupsRunOut(t *testing.T) {
	g := newGroups(quota.NewSpace(), func(string) labels.Set { return nil })
	ask := func(n int) *social {
		set := labels.Set{"n": fmt.Sprint(n)}
		g.put(&social{id: fmt.Sprintf("p/%d", n), space: "a", sets: []labels.Set{set}})
		o := &social{id: fmt.Sprintf("w/%d", n), space: "a", gang: true, sets: []labels.Set{{}}, bonds: []bond{{chosen: newChosen([]string{"a"}, nil, labels.SelectorFromSet(set))}}}
		g.put(o)
		return o
	}
	for n := range groupsMost {
		ask(n)
	}
	last := ask(groupsMost)
	g.settle()
	starved := 0
	for _, m := range g.minded {
		if m.dim < 0 {
			starved++
		}
	}
	if starved != 1 {
		t.Fatalf("%d have no group", starved)
	}
	for n := range groupsMost {
		g.drop(fmt.Sprintf("w/%d", n))
	}
	g.settle()
	if m := g.minded[last.bonds[0].key]; m == nil || m.dim <= 0 {
		t.Errorf("the last has %+v", m)
	}
}
