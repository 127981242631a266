package admission

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/gang"
)

// TestVictimsAreFew: of those who are taken back for a claim none could stay. In stories
// drawn by lot each is put back in turn, and the claim then has no place or no quota,
// by a look of its own at the books.
//
// The stories are the same in every run; -rapid.seed=N draws others.
func TestVictimsAreFew(t *testing.T) {
	sameStories(t)
	tried := 0
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(t, rt)
		c := w.s.Config()
		c.ReserveAfter = 1000 * time.Hour // what is kept for others is no part of this look,
		c.FairReclaim = false             // nor whom a smaller share may take back, as long as who goes
		w.s.Apply(ConfigSeen{c})
		for range rapid.IntRange(60, 120).Draw(rt, "steps") {
			rt.Log(w.turn(t, rt))
			tried += w.needed(rt)
			w.advance(rt)
		}
	})
	if tried < 20 {
		t.Errorf("only %d victims were put back: the stories have too few", tried)
	}
}

// needed fails if a victim of what would be decided now could stay, and returns how many
// were tried. It looks at decisions alone that do nothing but make room for one claim, while
// no room is kept for others whose write was refused: else it depends on what else is.
func (w *world) needed(rt *rapid.T) (tried int) {
	d := Cycle(w.s, w.now)
	if len(d.Evict) == 0 || len(d.Admit)+len(d.Move)+len(d.Reservations)+len(w.s.nominees)+len(w.s.retrying) > 0 {
		return 0
	}
	r := w.s.records[d.Evict[0].For]
	if r == nil || r.phase != Waiting || r.w.Pinned || r.w.User != "" { // the latter two have bounds of their own
		return 0
	}
	for _, e := range d.Evict {
		if e.For != r.w.Key {
			return 0
		}
	}
	leaf, ok := w.s.tree.ID(r.w.Queue)
	if !ok {
		rt.Fatalf("%s is nominated, and there is no queue %s", r.w.Key, r.w.Queue)
	}
	for i := range d.Evict {
		places, charges := w.s.inv.Mark(), w.s.ledger.Mark()
		others := false // of another queue are taken back
		for j := range d.Evict {
			if j != i {
				w.lift(d.Evict[j].Key)
				others = others || w.s.records[d.Evict[j].Key].queue != r.w.Queue
			}
		}
		_, short := gang.Place(w.s.inv, &r.w.Spec, r.w.LeastSizes())
		_, fits := w.s.ledger.Fits(leaf, r.w.Least())
		if others && !w.s.ledger.Owns(leaf, r.w.Least()) {
			fits = false // who takes from other queues stays within its own, and without this one it does not
		}
		w.s.inv.Undo(places)
		w.s.ledger.Undo(charges)
		if short == nil && fits {
			rt.Fatalf("%s is evicted for %s, and could stay\n%s", d.Evict[i].Key, r.w.Key, w.story())
		}
		tried++
	}
	return tried
}

// lift takes what a gang holds off the books.
func (w *world) lift(key string) {
	x := w.s.records[key]
	for _, h := range x.rooms {
		w.s.inv.Give(h.node, h.amount)
	}
	if id, ok := w.s.tree.ID(x.queue); ok {
		w.s.ledger.Release(id, x.charge)
	}
}
