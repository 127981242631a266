package gang

import (
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/quota"
)

// Profile is a way to cut a slice out of a card. It covers Size units of the card's
// grid and may start only at Starts.
type Profile struct {
	Name   string
	Size   int
	Starts []int
	// Sole names something of which a card has only one, such as its media engines:
	// of the slices with the same Sole a card holds one. "" is nothing.
	Sole string
}

// Grid is in which ways a card of one model can be cut: all layouts to which no
// slice can be added. Every legal layout is part of one of them.
type Grid struct {
	units    int
	profiles []Profile
	full     [][]int // slices by profile
}

// NewGrid works out the layouts of a card of so many units, at most 64.
func NewGrid(units int, profiles []Profile) *Grid {
	if units < 1 || units > 64 {
		panic(fmt.Sprintf("gang: a grid of %d units", units))
	}
	g := &Grid{units: units, profiles: profiles}
	seen := map[string]bool{}
	var all [][]int
	have := make([]int, len(profiles))
	sole := map[string]int{}
	var from func(at int, taken uint64)
	from = func(at int, taken uint64) {
		if at == units {
			if key := fmt.Sprint(have); !seen[key] {
				seen[key] = true
				all = append(all, slices.Clone(have))
			}
			return
		}
		from(at+1, taken)
		for i := range profiles {
			p := &profiles[i]
			span := (uint64(1)<<p.Size - 1) << at
			if taken&span != 0 || at+p.Size > units || p.Sole != "" && sole[p.Sole] > 0 || !slices.Contains(p.Starts, at) {
				continue
			}
			have[i]++
			sole[p.Sole]++
			from(at+1, taken|span)
			sole[p.Sole]--
			have[i]--
		}
	}
	from(0, 0)
	g.full = largest(all)
	return g
}

// Units is how many units the grid has.
func (g *Grid) Units() int { return g.units }

// Profiles are the ways to cut a slice out of the card, not to be changed.
func (g *Grid) Profiles() []Profile { return g.profiles }

// largest are those of the counts that are not part of another.
func largest(all [][]int) [][]int {
	var out [][]int
	for i, a := range all {
		part := false
		for k, b := range all {
			if i != k && partOf(a, b) && (!partOf(b, a) || k < i) {
				part = true
				break
			}
		}
		if !part {
			out = append(out, a)
		}
	}
	return out
}

// partOf says whether a asks for no more than b has, profile by profile.
func partOf(a, b []int) bool {
	for i, n := range a {
		if n > b[i] {
			return false
		}
	}
	return true
}

// cutSteps bounds the search for layouts of one node's cards. Real grids and nodes
// stay far below it; beyond it a demand counts as one that does not fit.
const cutSteps = 100_000

// cutter searches layouts for the cards of a deck that hold a demand together.
type cutter struct {
	deck  *Deck
	cards []*Kind
	steps int
	dead  map[string]bool // demands that the cards from a number on cannot hold
}

// holds says whether the deck's cards in order can be cut so that they hold the
// demand: some of them left whole, the others cut into slices.
func (d *Deck) holds(demand quota.Resources) bool {
	c := cutter{deck: d, steps: cutSteps, dead: map[string]bool{}}
	for i := range d.Cards {
		if d.Cards[i].Out == "" {
			c.cards = append(c.cards, d.Cards[i].Kind)
		}
	}
	// Cards of one kind stand together, so that each layout is tried for the first.
	slices.SortStableFunc(c.cards, func(a, b *Kind) int { return strings.Compare(a.name(), b.name()) })
	left := make(quota.Resources, len(demand))
	for dim, v := range demand {
		if v > 0 && d.Governs(dim) {
			left[dim] = v
		}
	}
	return c.from(0, left)
}

// from says whether the cards from number i on can be cut so that they hold left.
func (c *cutter) from(i int, left quota.Resources) bool {
	if left.IsZero() {
		return true
	}
	if i == len(c.cards) || c.tooMuch(i, left) {
		return false
	}
	key := fmt.Sprint(i, left)
	if c.dead[key] {
		return false
	}
	if c.steps--; c.steps < 0 {
		return false
	}
	for _, use := range c.uses(c.cards[i], left) {
		rest := left.Clone()
		rest.Sub(use)
		if c.from(i+1, rest) {
			return true
		}
	}
	if c.steps >= 0 {
		c.dead[key] = true
	}
	return false
}

// tooMuch says, without a search, whether the demand covers more units than the
// cards from number i on have, if they are of one kind.
func (c *cutter) tooMuch(i int, left quota.Resources) bool {
	kind, n := c.cards[i], int64(len(c.cards)-i)
	if left.At(c.deck.Whole) > n {
		return true
	}
	if kind == nil || kind.Grid == nil || slices.ContainsFunc(c.cards[i:], func(k *Kind) bool { return k != kind }) {
		return false
	}
	n -= left.At(c.deck.Whole)
	units := int64(0)
	for at, dim := range kind.Slices {
		units = quota.Sum(units, quota.Product(left.At(dim), int64(kind.Grid.profiles[at].Size)))
	}
	return units > n*int64(kind.Grid.units)
}

// uses are what one card of the kind can hold of the demand, the most useful first,
// without those that are part of another.
func (c *cutter) uses(kind *Kind, left quota.Resources) []quota.Resources {
	var list []quota.Resources
	add := func(use quota.Resources) {
		for _, other := range list {
			if use.Within(other) {
				return
			}
		}
		list = slices.DeleteFunc(list, func(other quota.Resources) bool { return other.Within(use) })
		list = append(list, use)
	}
	nothing := make(quota.Resources, len(left))
	add(nothing)
	if left.At(c.deck.Whole) > 0 {
		use := nothing.Clone()
		use[c.deck.Whole] = 1
		add(use)
	}
	if kind == nil || kind.Grid == nil {
		return list
	}
	for _, layout := range kind.Grid.full {
		use := nothing.Clone()
		for at, n := range layout {
			if dim := kind.Slices[at]; dim < len(use) {
				use[dim] = min(use[dim]+int64(n), left[dim])
			}
		}
		add(use)
	}
	slices.SortStableFunc(list, func(a, b quota.Resources) int { return kind.covers(b) - kind.covers(a) })
	return list
}

// covers is how many units of the card the slices take.
func (k *Kind) covers(use quota.Resources) int {
	n := 0
	for at, dim := range k.Slices {
		n += int(use.At(dim)) * k.Grid.profiles[at].Size
	}
	return n
}

// best is, dimension by dimension, the most that the cards can be cut into.
func (d *Deck) best() quota.Resources {
	var sum quota.Resources
	for i := range d.Cards {
		c := &d.Cards[i]
		if c.Out != "" {
			continue
		}
		var most quota.Resources
		most.Set(d.Whole, 1)
		if c.Kind != nil && c.Kind.Grid != nil {
			for _, layout := range c.Kind.Grid.full {
				for at, n := range layout {
					if dim := c.Kind.Slices[at]; int64(n) > most.At(dim) {
						most.Set(dim, int64(n))
					}
				}
			}
		}
		sum.Add(most)
	}
	return sum
}

// recut is for how many of n pods of set i the place has room if its cards may be
// cut and shared anew, beside what is taken there. Replicas stack on their cards
// without end, so those of all pods together need as many cards left whole as the
// widest pod alone; of a gang with pods of unlike width, the widest counts wherever
// one of them is.
func (p *place) recut(spec *Spec, i, n int) int {
	d, req := p.node.Cards, spec.PodSets[i].Request
	cards, slices := false, false
	for dim, v := range req {
		switch {
		case v <= 0:
		case d.Governs(dim):
			cards, slices = true, slices || dim != d.Whole
		default:
			n = int(min(int64(n), p.free.At(dim)/v))
		}
	}
	if !cards || n == 0 {
		return n
	}
	width := spec.widest(d.Whole)
	fits := func(m int) bool {
		demand := p.used.Clone()
		demand.Add(req.Times(m))
		if width > 0 && demand.At(d.Whole) > 0 {
			demand[d.Whole] = width
		}
		return p.cuttable(demand)
	}
	if width > 0 && !slices {
		if fits(1) {
			return n
		}
		return 0
	}
	m := 0
	for m < n && fits(m+1) {
		m++
	}
	return m
}

// widest is the most replicas that one pod asks for, or 0 if the gang wants cards
// to itself.
func (s *Spec) widest(whole int) int64 {
	most := int64(0)
	for i := range s.PodSets {
		ps := &s.PodSets[i]
		if ps.Request.At(whole) > 0 && ps.Sharing == WholeCards {
			return 0
		}
		most = max(most, ps.Request.At(whole))
	}
	return most
}

// cuttable is Deck.holds, remembered for all nodes with such cards.
func (p *place) cuttable(demand quota.Resources) bool {
	d := p.node.Cards
	var key strings.Builder
	key.WriteString(d.key)
	for dim, v := range demand {
		if v > 0 && d.Governs(dim) {
			fmt.Fprintf(&key, " %d:%d", dim, v)
		}
	}
	ok, known := p.cuts[key.String()]
	if !known {
		ok = d.holds(demand)
		p.cuts[key.String()] = ok
	}
	return ok
}
