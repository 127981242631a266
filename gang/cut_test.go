package gang

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/quota"
)

// firstSlice is the dimension of a drawn grid's first profile; the others follow.
const firstSlice = dims

// sevenSlices is the grid of a card of seven slices on eight units, the plain
// profiles and one with the media engines.
func sevenSlices() *Grid {
	return NewGrid(8, []Profile{
		{Name: "1g", Size: 1, Starts: []int{0, 1, 2, 3, 4, 5, 6}},
		{Name: "1g+me", Size: 1, Starts: []int{0, 1, 2, 3, 4, 5, 6}, Sole: "media"},
		{Name: "1g.double", Size: 2, Starts: []int{0, 2, 4, 6}},
		{Name: "2g", Size: 2, Starts: []int{0, 2, 4}},
		{Name: "3g", Size: 4, Starts: []int{0, 4}},
		{Name: "4g", Size: 4, Starts: []int{0}},
		{Name: "7g", Size: 8, Starts: []int{0}},
	})
}

func kindOf(name string, g *Grid) *Kind {
	k := &Kind{Name: name, Grid: g}
	for i := range g.profiles {
		k.Slices = append(k.Slices, firstSlice+i)
	}
	return k
}

func drawGrid(t *rapid.T, name string) *Grid {
	units := rapid.IntRange(1, 4).Draw(t, name+" units")
	var ps []Profile
	for i := range rapid.IntRange(1, 3).Draw(t, name+" profiles") {
		p := Profile{Name: fmt.Sprint("p", i), Size: rapid.IntRange(1, units).Draw(t, "size")}
		for at := 0; at+p.Size <= units; at++ {
			if rapid.IntRange(0, 3).Draw(t, "start") > 0 {
				p.Starts = append(p.Starts, at)
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "sole") == 0 {
			p.Sole = "media"
		}
		ps = append(ps, p)
	}
	return NewGrid(units, ps)
}

// cuttableByTrying puts slice after slice on every card at every start, or leaves
// cards whole, as the hardware would.
func cuttableByTrying(kinds []*Kind, demand quota.Resources) bool {
	taken := make([]uint64, len(kinds))
	media := make([]bool, len(kinds))
	kept := make([]bool, len(kinds))
	left := demand.Clone()
	var put func() bool
	put = func() bool {
		dim := slices.IndexFunc(left, func(v int64) bool { return v > 0 })
		if dim < 0 {
			return true
		}
		left[dim]--
		defer func() { left[dim]++ }()
		for i, k := range kinds {
			if dim == gpu {
				if !kept[i] && taken[i] == 0 {
					kept[i] = true
					if put() {
						return true
					}
					kept[i] = false
				}
				continue
			}
			if k == nil || kept[i] || !slices.Contains(k.Slices, dim) {
				continue
			}
			p := k.Grid.profiles[slices.Index(k.Slices, dim)]
			for _, start := range p.Starts {
				span := (uint64(1)<<p.Size - 1) << start
				if taken[i]&span != 0 || p.Sole != "" && media[i] {
					continue
				}
				taken[i] |= span
				was := media[i]
				media[i] = was || p.Sole != ""
				if put() {
					return true
				}
				taken[i] &^= span
				media[i] = was
			}
		}
		return false
	}
	return put()
}

// A demand fits the cards of a node, cut anew, if and only if slices can be put on
// them one by one.
func TestCutIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := []*Kind{nil, kindOf("a", drawGrid(t, "a")), kindOf("b", drawGrid(t, "b"))}
		var cards []Card
		var able []*Kind
		for range rapid.IntRange(0, 3).Draw(t, "cards") {
			c := Card{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
			if rapid.IntRange(0, 4).Draw(t, "lost") == 0 {
				c.Out = LostCard
			} else {
				able = append(able, c.Kind)
			}
			cards = append(cards, c)
		}
		d := NewDeck(cards, gpu, false, firstSlice, firstSlice+1, firstSlice+2)
		demand := make(quota.Resources, firstSlice+3)
		for _, dim := range []int{gpu, firstSlice, firstSlice + 1, firstSlice + 2} {
			demand[dim] = rapid.Int64Range(0, 3).Draw(t, "demand")
		}
		if got, want := d.holds(demand), cuttableByTrying(able, demand); got != want {
			t.Fatalf("cards %+v hold %v: %t, want %t", cards, demand, got, want)
		}
	})
}

// The grid of seven slices has 38 multisets of plain slices to which none can be added
// where they are, 14 without the double profile; of these 28 and 12 are not part of
// others. Demands that first fit in a bad order would miss are found.
func TestSevenSlices(t *testing.T) {
	full := sevenSlices()
	plain := slices.DeleteFunc(slices.Clone(full.profiles), func(p Profile) bool { return p.Sole != "" })
	if n := len(NewGrid(8, plain).full); n != 28 {
		t.Errorf("%d full layouts, want 28", n)
	}
	plain = slices.DeleteFunc(plain, func(p Profile) bool { return p.Name == "1g.double" })
	if n := len(NewGrid(8, plain).full); n != 12 {
		t.Errorf("%d full layouts without the double profile, want 12", n)
	}
	for _, c := range []struct {
		cards  int
		whole  int64
		slices []int64 // 1g, 1g+me, 1g.double, 2g, 3g, 4g, 7g
		want   bool
	}{
		{1, 0, []int64{7}, true},
		{1, 0, []int64{8}, false},
		{1, 0, []int64{6, 1}, true},
		{1, 0, []int64{5, 2}, false},
		{2, 0, []int64{12, 2}, true},
		{1, 0, []int64{0, 0, 4}, true},
		{1, 0, []int64{6, 0, 1}, true}, // the double one starts at 6
		{1, 0, []int64{7, 0, 1}, false},
		{1, 0, []int64{2, 0, 0, 1, 1}, true},
		{1, 0, []int64{0, 0, 0, 0, 1, 1}, true},
		{1, 0, []int64{0, 0, 0, 0, 0, 2}, false},
		{1, 0, []int64{0, 0, 0, 0, 2, 1}, false},
		{8, 0, []int64{8, 0, 0, 8, 8}, true},
		{8, 1, []int64{0, 0, 0, 0, 7, 7}, true},
		{8, 1, []int64{0, 0, 0, 0, 8, 7}, false},
		{8, 1, []int64{0, 0, 0, 0, 0, 0, 7}, true},
		{8, 0, []int64{16, 0, 2, 8, 4, 1}, true},
		{8, 0, []int64{20, 0, 3, 10, 4, 9}, false},
		{8, 0, []int64{57}, false},
		{8, 8, nil, true},
		{8, 9, nil, false},
	} {
		cards := make([]Card, c.cards)
		for i := range cards {
			cards[i].Kind = kindOf("seven", full)
		}
		demand := make(quota.Resources, firstSlice)
		demand[gpu] = c.whole
		for i, v := range c.slices {
			demand.Set(firstSlice+i, v)
		}
		if got := NewDeck(cards, gpu, false).holds(demand); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// A gang fits the empty cluster cut anew if and only if its pods can be spread over
// the nodes so that the cards of each can be cut for what is there.
func TestRecutPlacementIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grid := kindOf("a", drawGrid(t, "a"))
		v := NewInventory()
		var nodes []*Node
		for i := range rapid.IntRange(1, 2).Draw(t, "nodes") {
			var cards []Card
			for range rapid.IntRange(0, 2).Draw(t, "cards") {
				cards = append(cards, Card{Kind: rapid.SampledFrom([]*Kind{nil, grid}).Draw(t, "kind"), Cut: true})
			}
			d := NewDeck(cards, gpu, false)
			n := Equip(Node{Name: fmt.Sprint("n-", i), Offer: quota.Resources{4, 4, 4}}, d)
			nodes = append(nodes, n)
			v.Put(n)
		}
		spec := &Spec{}
		var sizes []int
		sharing := rapid.SampledFrom([]Sharing{WholeCards, WholeCards, SharedCards}).Draw(t, "sharing")
		width := rapid.Int64Range(1, 2).Draw(t, "width")
		for i := range rapid.IntRange(1, 2).Draw(t, "sets") {
			ps := PodSet{Name: fmt.Sprint("s", i), Count: rapid.IntRange(1, 3).Draw(t, "count"), Request: quota.Resources{1, 0, 1}, Sharing: sharing}
			if rapid.Bool().Draw(t, "cards") {
				ps.Request.Set(gpu, width)
			}
			for p := range grid.Slices {
				ps.Request.Set(firstSlice+p, rapid.SampledFrom([]int64{0, 0, 1}).Draw(t, "slices"))
			}
			spec.PodSets, sizes = append(spec.PodSets, ps), append(sizes, ps.Count)
		}
		got := Fits(v.Vacant(Relax{Layout: true}), spec, sizes)
		if want := recutByTrying(nodes, spec, sizes); got != want {
			t.Fatalf("fits: %t, want %t\n%+v\n%v", got, want, spec.PodSets, nodes)
		}
	})
}

// recutByTrying spreads pods over the nodes in every way.
func recutByTrying(nodes []*Node, spec *Spec, sizes []int) bool {
	demand := make([]quota.Resources, len(nodes))
	for i := range demand {
		demand[i] = make(quota.Resources, firstSlice+3)
	}
	var put func(set, left int) bool
	put = func(set, left int) bool {
		if left == 0 {
			if set+1 == len(sizes) {
				return true
			}
			return put(set+1, sizes[set+1])
		}
		ps := &spec.PodSets[set]
		for i, n := range nodes {
			demand[i].Add(ps.Request)
			if nodeHolds(n, demand[i], ps.Sharing, spec) && put(set, left-1) {
				return true
			}
			demand[i].Sub(ps.Request)
		}
		return false
	}
	return put(0, sizes[0])
}

func nodeHolds(n *Node, demand quota.Resources, sharing Sharing, spec *Spec) bool {
	if demand[quota.CPU] > 4 || demand[quota.Pods] > 4 {
		return false
	}
	cards := demand.Clone()
	cards[quota.CPU], cards[quota.Pods] = 0, 0
	if sharing != WholeCards && cards[gpu] > 0 { // replicas stack
		cards[gpu] = 0
		for _, ps := range spec.PodSets {
			cards[gpu] = max(cards[gpu], ps.Request.At(gpu))
		}
	}
	var kinds []*Kind
	for _, c := range n.Cards.Cards {
		kinds = append(kinds, c.Kind)
	}
	return cuttableByTrying(kinds, cards)
}
