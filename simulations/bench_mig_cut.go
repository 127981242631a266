package simulations

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"

	"sluice.dev/sluice/gang"
)

// cutBench is a stream of requests for single slices to two cards that are cut on
// demand: a slice is cut where its rule says, and what was cut for a request that has
// left can be cut anew.
type cutBench struct {
	grid *gang.Grid
	asks []cutAsk
}

type cutAsk struct{ profile, until int }

// cutCards is how many cards there are. More make the exhaustive search long.
const cutCards = 2

// BenchCuts is BenchMIG for cards that are cut on demand. First fit takes the first
// free start of the first card, as drivers do.
func BenchCuts(product string, seed uint64, streams int) (Acceptance, error) {
	out := Acceptance{Product: product}
	card, _ := CardOf(product)
	if len(card.Profiles) == 0 {
		return out, fmt.Errorf("%s has no MIG", orUnnamed(product))
	}
	rnd := stream(seed, "cut "+product)
	for range streams {
		b := newCutBench(card, rnd)
		out.Requests += len(b.asks)
		out.Ours += b.online(b.grid.Cut)
		out.FirstFit += b.online(b.first)
		out.Accepting += b.best(false)
		out.Best += b.best(true)
	}
	return out, nil
}

func newCutBench(card Card, rnd *rand.Rand) *cutBench {
	b := &cutBench{grid: plainGrid(card)}
	for i := range 16 {
		b.asks = append(b.asks, cutAsk{rnd.IntN(len(b.grid.Profiles())), i + 2 + rnd.IntN(8)})
	}
	return b
}

// first takes the first card that has a start free, and its first free start.
func (b *cutBench) first(cards []uint64, profile int) (card, at int, taken uint64, ok bool) {
	p := &b.grid.Profiles()[profile]
	for c, used := range cards {
		for _, start := range p.Starts {
			if span := units(p, start); used&span == 0 {
				return c, start, used | span, true
			}
		}
	}
	return 0, 0, 0, false
}

func units(p *gang.Profile, start int) uint64 { return (uint64(1)<<p.Size - 1) << start }

func (b *cutBench) online(choose func(cards []uint64, profile int) (card, at int, taken uint64, ok bool)) int {
	cards, in := make([]uint64, cutCards), 0
	type spot struct {
		card int
		span uint64
	}
	at := make([]spot, len(b.asks))
	for i, a := range b.asks {
		for k := range i {
			if b.asks[k].until == i {
				cards[at[k].card] &^= at[k].span
			}
		}
		if c, _, taken, ok := choose(cards, a.profile); ok {
			at[i] = spot{c, taken &^ cards[c]}
			cards[c] = taken
			in++
		}
	}
	return in
}

// cutState is, for each unit of each card, the number of the request before which what
// is there leaves, or 0. That is all that matters of the past.
type cutState [cutCards][unitsMost]uint8

// unitsMost is the most units that a card of BenchProducts has.
const unitsMost = 8

// put takes the units of a span, and orders the cards, which are alike.
func (s cutState) put(card int, span uint64, until int) cutState {
	for u := range s[card] {
		if span>>u&1 == 1 {
			s[card][u] = uint8(until)
		}
	}
	slices.SortFunc(s[:], func(a, b [unitsMost]uint8) int { return bytes.Compare(a[:], b[:]) })
	return s
}

// leave is the state after all that leaves before request i has left.
func (s cutState) leave(i int) cutState {
	for c := range s {
		for u := range s[c] {
			if int(s[c][u]) <= i {
				s[c][u] = 0
			}
		}
	}
	return s
}

func (s *cutState) taken(card int) uint64 {
	used := uint64(0)
	for u, until := range s[card] {
		if until > 0 {
			used |= 1 << u
		}
	}
	return used
}

// best is the most requests that any choice of cards and starts could have let in; if
// it may refuse, also of whom to turn away though there is room.
func (b *cutBench) best(refuses bool) int {
	states := map[cutState]int{{}: 0}
	for i, a := range b.asks {
		before := states
		states = map[cutState]int{}
		put := func(s cutState, in int) {
			if was, seen := states[s]; !seen || in > was {
				states[s] = in
			}
		}
		p := &b.grid.Profiles()[a.profile]
		for s, in := range before {
			s, fits := s.leave(i), false
			for c := range s {
				used := s.taken(c)
				for _, start := range p.Starts {
					if span := units(p, start); used&span == 0 {
						fits = true
						put(s.put(c, span, a.until), in+1)
					}
				}
			}
			if refuses || !fits {
				put(s, in)
			}
		}
	}
	most := 0
	for _, in := range states {
		most = max(most, in)
	}
	return most
}
