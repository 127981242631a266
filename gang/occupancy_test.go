package gang

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/quota"
)

// A slice is cut where a start is free, on whichever card has one, and nowhere else;
// no other choice takes fewer starts from others.
func TestCutTakesLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := NewGrid(8, []Profile{
			{Name: "1g", Size: 1, Starts: []int{0, 1, 2, 3, 4, 5, 6}},
			{Name: "2g", Size: 2, Starts: []int{0, 2, 4}},
			{Name: "3g", Size: 4, Starts: []int{0, 4}},
			{Name: "4g", Size: 4, Starts: []int{0}},
			{Name: "7g", Size: 8, Starts: []int{0}},
		})
		cards := rapid.SliceOfN(rapid.Uint64Range(0, 255), 1, 3).Draw(t, "cards")
		profile := rapid.IntRange(0, 4).Draw(t, "profile")
		card, at, taken, ok := g.Cut(cards, profile)
		p := &g.profiles[profile]
		if ok && (cards[card]&p.span(at) != 0 || taken != cards[card]|p.span(at)) {
			t.Fatalf("%s at %d of card %d over %08b", p.Name, at, card, cards[card])
		}
		for c, used := range cards {
			for _, start := range p.Starts {
				if used&p.span(start) != 0 {
					continue
				}
				if !ok || g.Free(used)-g.Free(used|p.span(start)) < g.Free(cards[card])-g.Free(taken) {
					t.Fatalf("cut %t at %d of card %d, better at %d of %d: %08b", ok, at, card, start, c, cards)
				}
			}
		}
	})
	// The last unit of a card starts nothing but itself: a small slice belongs there.
	g := NewGrid(4, []Profile{{Name: "1g", Size: 1, Starts: []int{0, 1, 2, 3}}, {Name: "2g", Size: 2, Starts: []int{0, 2}}})
	if _, at, _, ok := g.Cut([]uint64{0b0001}, 0); !ok || at != 1 {
		t.Errorf("beside a slice at 0 it is cut at %d", at)
	}
}

// Of nodes that fit, the one where fewest kinds of free devices are left idle is
// taken, though another has fewer of the device asked for.
func TestFewestKindsIdle(t *testing.T) {
	v := NewInventory()
	v.Put(&Node{Name: "a", Offer: quota.Resources{0, 0, 9, 1, 1, 1}})
	v.Put(&Node{Name: "b", Offer: quota.Resources{0, 0, 9, 2, 2}})
	ask := &Spec{PodSets: []PodSet{{Name: "main", Count: 1, Request: quota.Resources{0, 0, 1, 1, 1}}}}
	if plan, short := Place(v, ask, []int{1}); short != nil || plan.String() != "b×1" {
		t.Errorf("on %s, %+v", plan, short)
	}
	v.Take("a", quota.Resources{0, 0, 1, 0, 0, 1}) // its third kind is in use now
	if plan, short := Place(v, ask, []int{1}); short != nil || plan.String() != "a×1" {
		t.Errorf("with that in use on %s, %+v", plan, short)
	}
}
