package tables

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// card is how a model can be cut, as its vendor documents it.
type card struct {
	units    int
	profiles []gang.Profile // from large to small
}

var (
	sevenSlices = card{8, []gang.Profile{
		{Name: "7g", Size: 8, Starts: []int{0}},
		{Name: "4g", Size: 4, Starts: []int{0}},
		{Name: "3g", Size: 4, Starts: []int{0, 4}},
		{Name: "2g", Size: 2, Starts: []int{0, 2, 4}},
		{Name: "1g", Size: 1, Starts: []int{0, 1, 2, 3, 4, 5, 6}},
	}}
	fourSlices = card{4, []gang.Profile{
		{Name: "4g", Size: 4, Starts: []int{0}},
		{Name: "2g", Size: 2, Starts: []int{0, 2}},
		{Name: "1g", Size: 1, Starts: []int{0, 1, 2, 3}},
	}}
	doubled = card{8, append(slices.Clone(sevenSlices.profiles), gang.Profile{Name: "1g.2x", Size: 2, Starts: []int{0, 2, 4, 6}})}
)

// state is one legal set of slices on a card: how many of each profile, and the
// units that they cover.
type state struct {
	have  []int
	taken uint64
	whole bool // no slice can be added
}

// states lists every legal set of placements, the empty one included.
func (c card) states() []state {
	var out []state
	have := make([]int, len(c.profiles))
	var from func(at int, taken uint64)
	from = func(at int, taken uint64) {
		if at == c.units {
			whole := true
			for _, p := range c.profiles {
				whole = whole && !free(p, taken)
			}
			out = append(out, state{slices.Clone(have), taken, whole})
			return
		}
		from(at+1, taken)
		for i, p := range c.profiles {
			if span := spanAt(p, at); slices.Contains(p.Starts, at) && taken&span == 0 {
				have[i]++
				from(at+1, taken|span)
				have[i]--
			}
		}
	}
	from(0, 0)
	return out
}

func spanAt(p gang.Profile, at int) uint64 { return (uint64(1)<<p.Size - 1) << at }

// free says whether some start of the profile is free.
func free(p gang.Profile, taken uint64) bool {
	return slices.ContainsFunc(p.Starts, func(at int) bool { return taken&spanAt(p, at) == 0 })
}

func (c card) text(have []int) string {
	var parts []string
	for i, n := range have {
		if n == 1 {
			parts = append(parts, c.profiles[i].Name)
		} else if n > 1 {
			parts = append(parts, fmt.Sprintf("%sx%d", c.profiles[i].Name, n))
		}
	}
	return strings.Join(parts, "+")
}

// maximal are the distinct multisets of the states to which no slice can be added.
func (c card) maximal() (texts []string, states int) {
	seen := map[string]bool{}
	for _, s := range c.states() {
		if s.whole {
			states++
			seen[c.text(s.have)] = true
		}
	}
	return slices.Sorted(maps.Keys(seen)), states
}

func TestLayoutsAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		card                      card
		valid, maximal, multisets int
	}{
		"A100": {sevenSlices, 298, 19, 14},
		"A30":  {fourSlices, 26, 5, 4},
	} {
		texts, maximal := c.card.maximal()
		if n := len(c.card.states()); n != c.valid || maximal != c.maximal || len(texts) != c.multisets {
			t.Errorf("%s: %d valid, %d maximal, %d multisets; want %d, %d, %d", name, n, maximal, len(texts), c.valid, c.maximal, c.multisets)
		}
	}
	if _, maximal := doubled.maximal(); len(doubled.states()) != 723 || maximal != 78 {
		t.Errorf("with 1g.2x: %d valid, %d maximal; want 723, 78", len(doubled.states()), maximal)
	}
	want := strings.Fields("7g 4g+3g 4g+2g+1g 4g+1gx3 3gx2 3g+2gx2 3g+2g+1gx2 3g+2g+1g 3g+1gx4 3g+1gx3 2gx3+1g 2gx2+1gx3 2g+1gx5 1gx7")
	slices.Sort(want)
	if got, _ := sevenSlices.maximal(); !slices.Equal(got, want) {
		t.Errorf("maximal multisets\n got %v\nwant %v", got, want)
	}
}

// Whether an idle card can be cut so that it holds a number of slices of each
// profile, the engine answers as trying every placement does: for every multiset
// that covers no more units than the card has, of which those that fit are the parts
// of the published maximal ones. Beside slices that stay, the same holds for one more.
func TestCutsMatchLayouts(t *testing.T) {
	for name, c := range map[string]card{"A100": sevenSlices, "A30": fourSlices, "with 1g.2x": doubled} {
		t.Run(name, func(t *testing.T) {
			legal := map[string]bool{}
			for _, s := range c.states() {
				legal[fmt.Sprint(s.have)] = true
			}
			e := newCutter(c)
			asked, fit := 0, 0
			e.multisets(func(have []int) {
				asked++
				want := legal[fmt.Sprint(have)]
				if want {
					fit++
				}
				if got := e.fits(have, nil); got != want {
					t.Errorf("%s: fits %t, want %t", c.text(have), got, want)
				}
			})
			if asked == 0 || fit != len(legal) {
				t.Errorf("%d asked, %d fit, %d are legal", asked, fit, len(legal))
			}
			// A slice more beside those of a state that may all be cut anew.
			for have := range maps.Keys(legal) {
				counts := parse(have)
				for i := range counts {
					counts[i]++
					if got, want := e.fits(one(i, len(counts)), less(counts, i)), legal[fmt.Sprint(counts)]; got != want {
						t.Errorf("%s beside %s: fits %t, want %t", c.profiles[i].Name, have, got, want)
					}
					counts[i]--
				}
			}
		})
	}
}

// What is free on a card as it is cut now is exact as well: in every state, a slice
// of a profile fits if and only if some start of it is free and it is cut there.
func TestStatesMatchStarts(t *testing.T) {
	for name, c := range map[string]card{"A100": sevenSlices, "A30": fourSlices} {
		for _, s := range c.states() {
			for i, p := range c.profiles {
				// The card is cut into what is there and, if a start is free, the slice.
				cut := slices.Clone(s.have)
				if free(p, s.taken) {
					cut[i]++
				}
				e := newCutter(c)
				if got, want := e.beside(cut, s.have, i), free(p, s.taken); got != want {
					t.Fatalf("%s: %s beside %s at %b: fits %t, want %t", name, p.Name, c.text(s.have), s.taken, got, want)
				}
			}
		}
	}
}

// cutter asks the engine about one card.
type cutter struct {
	card card
	kind *gang.Kind
	one  *gang.Inventory // one card that may be cut anew
}

const (
	whole      = quota.Pods + 1 // the dimension of whole cards
	firstSlice = whole + 1
)

func newCutter(c card) *cutter {
	k := &gang.Kind{Name: "card", Grid: gang.NewGrid(c.units, c.profiles)}
	for i := range c.profiles {
		k.Slices = append(k.Slices, firstSlice+i)
	}
	v := gang.NewInventory()
	v.Put(node(gang.Card{Kind: k, Offer: amounts(nil, 1)}))
	return &cutter{c, k, v}
}

// amounts are pods and cards without number beside so many slices of each profile.
func amounts(have []int, cards int64) quota.Resources {
	r := make(quota.Resources, firstSlice)
	r[whole] = cards
	for i, n := range have {
		r.Set(firstSlice+i, int64(n))
	}
	return r
}

func node(c gang.Card) *gang.Node {
	offer := c.Offer.Clone()
	offer.Set(quota.Pods, 1000)
	return gang.Equip(gang.Node{Name: "n", Offer: offer}, gang.NewDeck([]gang.Card{c}, whole, false))
}

func spec(have []int) *gang.Spec {
	req := amounts(have, 0)
	req[quota.Pods] = 1
	return &gang.Spec{PodSets: []gang.PodSet{{Name: "main", Count: 1, Min: 1, Request: req}}}
}

// fits says whether the engine finds room for one pod with so many slices of each
// profile, with those of beside taken, on a card that may be cut anew.
func (e *cutter) fits(have, beside []int) bool {
	v := e.one.Vacant(gang.Relax{Layout: true})
	if beside != nil {
		v.Take("n", spec(beside).PodSets[0].Request)
	}
	return gang.Fits(v, spec(have), []int{1})
}

// beside says whether one slice of profile i is free on a card that is cut into cut
// and of which have is taken.
func (e *cutter) beside(cut, have []int, i int) bool {
	v := gang.NewInventory()
	v.Put(node(gang.Card{Kind: e.kind, Cut: true, Offer: amounts(cut, 0)}))
	v.Take("n", spec(have).PodSets[0].Request)
	return gang.Fits(v, spec(one(i, len(have))), []int{1})
}

// multisets calls f with every number of slices that covers at most all units.
func (e *cutter) multisets(f func(have []int)) {
	have := make([]int, len(e.card.profiles))
	var from func(i, left int)
	from = func(i, left int) {
		if i == len(have) {
			f(have)
			return
		}
		for have[i] = 0; have[i]*e.card.profiles[i].Size <= left; have[i]++ {
			from(i+1, left-have[i]*e.card.profiles[i].Size)
		}
		have[i] = 0
	}
	from(0, e.card.units)
}

func one(i, n int) []int {
	have := make([]int, n)
	have[i] = 1
	return have
}

func less(have []int, i int) []int {
	out := slices.Clone(have)
	out[i]--
	return out
}

func parse(have string) []int {
	var out []int
	for _, f := range strings.Fields(strings.Trim(have, "[]")) {
		n := 0
		if _, err := fmt.Sscan(f, &n); err != nil {
			panic(err)
		}
		out = append(out, n)
	}
	return out
}
