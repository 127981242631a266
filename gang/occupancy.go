package gang

import "math/bits"

// Where cards are cut on demand, a slice is a span of units, and where it starts decides
// what else the card can still hold. A card is then the units that are in use, as bits.
// Of what a card has only one (Profile.Sole) nothing is known here.

// span is the units of a slice of the profile that starts there.
func (p *Profile) span(at int) uint64 { return (uint64(1)<<p.Size - 1) << at }

// Free is at how many starts, over all profiles, a slice could be cut out of the card.
func (g *Grid) Free(taken uint64) int {
	n := 0
	for i := range g.profiles {
		n += g.starts(taken, i)
	}
	return n
}

// starts is at how many starts a slice of the profile could be cut.
func (g *Grid) starts(taken uint64, profile int) int {
	n := 0
	for _, at := range g.profiles[profile].Starts {
		if g.fits(taken, profile, at) {
			n++
		}
	}
	return n
}

func (g *Grid) fits(taken uint64, profile, at int) bool {
	p := &g.profiles[profile]
	return at+p.Size <= g.units && taken&p.span(at) == 0
}

// Cut is the card and the start at which a slice of the profile should be cut, and the
// units that are in use there then: of all choices the one that takes away the fewest
// starts from others; of these on the card with the fewest units free; of these the
// first. It says no if no start of the profile is free on any card.
func (g *Grid) Cut(cards []uint64, profile int) (card, at int, taken uint64, ok bool) {
	least, free := 0, 0
	for c, used := range cards {
		for _, start := range g.profiles[profile].Starts {
			if !g.fits(used, profile, start) {
				continue
			}
			now := used | g.profiles[profile].span(start)
			lost, left := g.Free(used)-g.Free(now), g.units-bits.OnesCount64(used)
			if !ok || lost < least || lost == least && left < free {
				card, at, taken, ok, least, free = c, start, now, true, lost, left
			}
		}
	}
	return card, at, taken, ok
}
