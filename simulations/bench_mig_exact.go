package simulations

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"sluice.dev/sluice/gang"
)

// Exact is which part of the requests of an endless stream each rule lets in.
type Exact struct {
	Product string
	Cards   int
	// Best is that of the best of all rules that do not know what is to come and turn
	// nobody away whom they have room for.
	Ours, FirstFit, Best float64
}

// exactStates bounds how many states a cluster of BenchExact may have.
const exactStates = 5000

// BenchExact offers an endless stream of requests for single slices, each profile as
// likely, to the most cards of the product for which every rule can be tried: for
// every layout that the cards can have, and every request, every choice. Requests come
// at random, as many as two a card while one stays on average. Nothing is drawn: the
// parts are those that the stream settles at.
func BenchExact(product string) (Exact, error) {
	out := Exact{Product: product}
	card, _ := CardOf(product)
	if len(card.Profiles) == 0 {
		return out, fmt.Errorf("%s has no MIG", orUnnamed(product))
	}
	grid := plainGrid(card)
	var chain *chain
	for cards := 1; ; cards++ {
		next := newChain(grid, cards)
		if next == nil {
			break
		}
		chain, out.Cards = next, cards
	}
	if chain == nil {
		return out, fmt.Errorf("a card of %s has more than %d layouts", product, exactStates)
	}
	out.Ours = chain.accepts(func(s *exactState, profile int) []int { return s.only(s.ours[profile]) })
	out.FirstFit = chain.accepts(func(s *exactState, profile int) []int { return s.only(s.first[profile]) })
	out.Best = chain.accepts(func(s *exactState, profile int) []int { return s.next[profile] })
	return out, nil
}

// plainGrid has the profiles of a card that differ in size or starts.
func plainGrid(card Card) *gang.Grid {
	var profiles []gang.Profile
	for _, p := range card.Profiles {
		if !strings.ContainsAny(p.Name[1:], "+-") {
			profiles = append(profiles, gang.Profile{Name: p.Name, Size: p.Size, Starts: p.Starts})
		}
	}
	return gang.NewGrid(card.Units, profiles)
}

// layouts is, card by card and unit by unit, the profile of the slice that starts
// there, counted from 1, or 0. Cards are alike and stand in order.
type layouts []byte

// exactState is what may follow after some layouts.
type exactState struct {
	layouts     layouts
	next        [][]int // by profile: the states after it was let in, by choice
	ours, first []int   // the choice of each rule, -1 for none
	leave       []int   // the states after one of the slices has left
}

func (s *exactState) only(next int) []int {
	if next < 0 {
		return nil
	}
	return []int{next}
}

type chain struct {
	grid   *gang.Grid
	cards  int
	states []*exactState
	ids    map[string]int
}

// newChain finds all states that cards can come to, or is nil if these are too many.
func newChain(grid *gang.Grid, cards int) *chain {
	c := &chain{grid: grid, cards: cards, ids: map[string]int{}}
	c.id(make(layouts, cards*grid.Units()))
	for at := 0; at < len(c.states); at++ {
		if len(c.states) > exactStates {
			return nil
		}
		c.follow(c.states[at])
	}
	return c
}

func (c *chain) id(l layouts) int {
	n := c.grid.Units()
	parts := slices.SortedFunc(slices.Chunk(l, n), func(a, b layouts) int { return bytes.Compare(a, b) })
	l = slices.Concat(parts...)
	id, known := c.ids[string(l)]
	if !known {
		id = len(c.states)
		c.ids[string(l)] = id
		c.states = append(c.states, &exactState{layouts: l})
	}
	return id
}

// taken are the units in use on each card.
func (c *chain) taken(l layouts) []uint64 {
	n, used := c.grid.Units(), make([]uint64, c.cards)
	for i, p := range l {
		if p > 0 {
			used[i/n] |= units(&c.grid.Profiles()[p-1], i%n)
		}
	}
	return used
}

func (c *chain) follow(s *exactState) {
	used, n := c.taken(s.layouts), c.grid.Units()
	with := func(card, at, what int) int {
		l := slices.Clone(s.layouts)
		l[card*n+at] = byte(what)
		return c.id(l)
	}
	rule := func(i int, choose func([]uint64, int) (card, at int, taken uint64, ok bool)) int {
		if card, at, _, ok := choose(used, i); ok {
			return with(card, at, i+1)
		}
		return -1
	}
	first := &cutBench{grid: c.grid}
	for i := range c.grid.Profiles() {
		p := &c.grid.Profiles()[i]
		var next []int
		for card := range used {
			for _, at := range p.Starts {
				if used[card]&units(p, at) == 0 {
					next = append(next, with(card, at, i+1))
				}
			}
		}
		s.next = append(s.next, next)
		s.ours, s.first = append(s.ours, rule(i, c.grid.Cut)), append(s.first, rule(i, first.first))
	}
	for i, p := range s.layouts {
		if p > 0 {
			s.leave = append(s.leave, with(i/n, i%n, 0))
		}
	}
}

// accepts is the part of requests that is let in if of the choices the best is taken.
// A step is one event: of all that could happen at a time, a request or the end of one
// of as many slices as there could be, one is as likely as its rate.
func (c *chain) accepts(choices func(s *exactState, profile int) []int) float64 {
	kinds := float64(len(c.grid.Profiles()))
	arrive, most := 2*float64(c.cards), float64(c.cards*c.grid.Units())
	worth, gain := make([]float64, len(c.states)), 0.0
	for range 3000 {
		low, high := math.Inf(1), math.Inf(-1)
		after := make([]float64, len(worth))
		for id, s := range c.states {
			sum := 0.0
			for i := range s.next {
				best := worth[id]
				for k, to := range choices(s, i) {
					if v := 1 + worth[to]; k == 0 || v > best {
						best = v
					}
				}
				sum += arrive / kinds * best
			}
			for _, to := range s.leave {
				sum += worth[to]
			}
			after[id] = (sum + (most-float64(len(s.leave)))*worth[id]) / (arrive + most)
			low, high = min(low, after[id]-worth[id]), max(high, after[id]-worth[id])
		}
		// Each step gains between low and high, in the long run.
		worth, gain = after, (low+high)/2
		if high-low < 1e-9 {
			break
		}
	}
	return gain * (arrive + most) / arrive
}
