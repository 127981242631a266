package gang

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/quota"
)

// deckOf is a deck of cards that are not cut, shared by as many pods as replicas says.
func deckOf(replicas []int) *Deck {
	var cards []Card
	for _, r := range replicas {
		c := Card{Replicas: r}
		c.Offer.Set(gpu, int64(r))
		cards = append(cards, c)
	}
	return NewDeck(cards, gpu, false)
}

// dealable tries every way to give n pods k different cards each, beside others
// single replicas that anybody holds.
func dealable(left []int, n, k, others int) bool {
	if n == 0 {
		room := 0
		for _, r := range left {
			room += r
		}
		return room >= others
	}
	return pick(left, 0, k, func() bool { return dealable(left, n-1, k, others) })
}

// pick tries every choice of k cards with a replica left, from number at on.
func pick(left []int, at, k int, then func() bool) bool {
	if k == 0 {
		return then()
	}
	for i := at; i < len(left); i++ {
		if left[i] == 0 {
			continue
		}
		left[i]--
		ok := pick(left, i+1, k-1, then)
		left[i]++
		if ok {
			return true
		}
	}
	return false
}

// A node has room for as many pods of several replicas each as can be dealt with all
// their replicas on different cards, beside single replicas that are counted there.
func TestDealIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.SliceOfN(rapid.IntRange(1, 3), 1, 4).Draw(t, "replicas")
		d := deckOf(replicas)
		total := 0
		for _, r := range replicas {
			total += r
		}
		others := rapid.IntRange(0, total).Draw(t, "taken")
		k := rapid.IntRange(1, 5).Draw(t, "asked")
		ps := PodSet{Request: quota.Resources{0, 0, 1}, Sharing: AnyCards}
		ps.Request.Set(gpu, int64(k))
		want := 0
		for dealable(slices.Clone(replicas), want+1, k, others) {
			want++
		}
		if got := d.deal(&ps, (total-others)/k); got != want {
			t.Fatalf("cards %v, %d taken: room for %d pods of %d, want %d", replicas, others, got, k, want)
		}
	})
}

// Whole work goes to whole cards only, shared work to shared ones, and either to
// neither of a node that mixes them, since nobody can say which it gets.
func TestSuits(t *testing.T) {
	for _, c := range []struct {
		replicas []int
		sharing  Sharing
		want     bool
	}{
		{[]int{1, 1}, WholeCards, true},
		{[]int{1, 1}, SharedCards, false},
		{[]int{1, 1}, AnyCards, true},
		{[]int{2, 4}, WholeCards, false},
		{[]int{2, 4}, SharedCards, true},
		{[]int{2, 4}, AnyCards, true},
		{[]int{1, 2}, WholeCards, false},
		{[]int{1, 2}, SharedCards, false},
		{[]int{1, 2}, AnyCards, true},
	} {
		ps := PodSet{Request: quota.Resources{0, 0, 1, 1}, Sharing: c.sharing}
		plain := PodSet{Request: quota.Resources{1, 1, 1}, Sharing: c.sharing}
		n := &Node{Cards: deckOf(c.replicas)}
		if n.Suits(&ps) != c.want || !n.Suits(&plain) {
			t.Errorf("%v for %q: %t, want %t; without cards %t", c.replicas, c.sharing, n.Suits(&ps), c.want, n.Suits(&plain))
		}
	}
}

// What a node offers is the smaller of what its cards are and what is claimed; with
// all cards in order it is what the agent says. Resources that cards do not offer
// are as claimed.
func TestEquip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var cards []Card
		now, sound := int64(0), int64(0)
		for range rapid.IntRange(0, 4).Draw(t, "cards") {
			c := Card{Replicas: rapid.IntRange(1, 3).Draw(t, "replicas"), Out: rapid.SampledFrom([]string{"", "", LostCard, Recutting}).Draw(t, "out")}
			c.Offer.Set(gpu, int64(c.Replicas))
			sound += int64(c.Replicas)
			if c.Out == "" {
				now += int64(c.Replicas)
			}
			cards = append(cards, c)
		}
		claimed := rapid.Int64Range(0, 12).Draw(t, "claimed")
		silent := rapid.IntRange(0, 3).Draw(t, "silent") == 0
		d := NewDeck(cards, gpu, silent)
		n := Equip(Node{Name: "n", Offer: quota.Resources{5, 6, 7, claimed, 8}}, d)
		want := min(now, claimed)
		if silent {
			want = 0
		}
		if n.Offer.At(gpu) != want || n.Whole.At(gpu) != sound || n.Offer.At(nic) != 8 || n.Whole.At(nic) != 8 || n.Offer.At(quota.CPU) != 5 {
			t.Fatalf("offers %v of %v, want %d of %d", n.Offer, n.Whole, want, sound)
		}
		if short := n.Offer.At(gpu) < sound; short != (len(n.Outages) > 0) && sound > 0 {
			t.Fatalf("offers %d of %d and has the outages %v", n.Offer.At(gpu), sound, n.Outages)
		}
		for _, o := range n.Outages {
			if o.Closed {
				t.Fatalf("%v closes the whole node", o)
			}
		}
	})
}

// A node whose cards are closed offers no devices and all else as before.
func TestCloseCards(t *testing.T) {
	for _, deck := range []*Deck{nil, deckOf([]int{1, 1})} {
		n := Node{Name: "n", Offer: quota.Resources{5, 6, 7, 2}}
		if deck != nil {
			n = *Equip(n, deck)
		}
		c := n.CloseCards(Outage{What: Refusing})
		if !c.Offer.Equal(quota.Resources{5, 6, 7, 0}) || !c.whole().Equal(quota.Resources{5, 6, 7, 2}) || !c.Open() || c.Outages[0].What != Refusing {
			t.Errorf("deck %v: %+v", deck != nil, c)
		}
		if n.Offer.At(gpu) != 2 || len(n.Outages) != 0 {
			t.Errorf("the node itself changed: %+v", n)
		}
	}
}

func TestDrifts(t *testing.T) {
	want := []Expected{{"product", "A", DriftLabels}, {"slices", "7", DriftLayout}, {"none", "", DriftLayout}, {"replicas", "2", DriftReplicas}}
	right := map[string]string{"product": "A", "slices": "7", "replicas": "2", "other": "x"}
	for _, c := range []struct {
		out     string
		claimed int64
		label   string
		value   string
		silent  bool
		want    string
	}{
		{"", 2, "", "", false, "[]"},
		{"", 1, "", "", false, "[allocatable]"},
		{"", 3, "", "", false, "[allocatable]"},
		{LostCard, 1, "", "", false, "[lost]"},
		{LostCard, 2, "", "", false, "[allocatable lost]"},
		{Recutting, 1, "", "", false, "[layout]"},
		{BrokenCut, 1, "", "", false, "[layout]"},
		{"", 2, "product", "B", false, "[labels]"},
		{"", 2, "product", "", false, "[labels]"},
		{"", 2, "slices", "6", false, "[layout]"},
		{"", 2, "none", "1", false, "[layout]"},
		{"", 2, "replicas", "1", false, "[replicas]"},
		{LostCard, 7, "replicas", "1", true, "[silent]"},
	} {
		cards := []Card{{Offer: quota.Resources{0, 0, 0, 1}, Out: c.out}, {Offer: quota.Resources{0, 0, 0, 1}}}
		labels := map[string]string{}
		for k, v := range right {
			labels[k] = v
		}
		if labels[c.label] = c.value; c.value == "" {
			delete(labels, c.label)
		}
		got := NewDeck(cards, gpu, c.silent).Drifts(quota.Resources{0, 0, 0, c.claimed}, labels, want)
		if fmt.Sprint(got) != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

// Slices that are offered under the name of whole cards serve those who take a part,
// each pod as many as are free, and nobody who wants a card to himself.
func TestSlicesUnderTheNameOfCards(t *testing.T) {
	cards := []Card{{Cut: true, Offer: quota.Resources{0, 0, 0, 7}}, {Cut: true, Offer: quota.Resources{0, 0, 0, 2}}}
	n := Equip(Node{Name: "n", Offer: quota.Resources{9, 9, 9, 9}}, NewDeck(cards, gpu, false))
	for _, c := range []struct {
		sharing Sharing
		each    int64
		want    int
	}{{WholeCards, 1, 0}, {SharedCards, 1, 9}, {AnyCards, 1, 9}, {SharedCards, 4, 2}, {SharedCards, 10, 0}} {
		ps := &PodSet{Request: quota.Resources{0, 0, 0, c.each}, Sharing: c.sharing}
		if got := n.Cards.deal(ps, int(9/c.each)); got != c.want {
			t.Errorf("%q, %d each: room for %d, want %d", c.sharing, c.each, got, c.want)
		}
	}
	if text := n.Cards.misfit(&PodSet{Request: quota.Resources{0, 0, 0, 1}}); text != "its cards are slices, under the name of whole ones" {
		t.Errorf("says %q", text)
	}
}

func TestDifferences(t *testing.T) {
	cards := []Card{{Offer: quota.Resources{0, 0, 0, 1}}, {Offer: quota.Resources{0, 0, 0, 1}, Out: LostCard}}
	got := NewDeck(cards, gpu, false).Differences(quota.Resources{0, 0, 0, 2}, map[string]string{"product": "B"},
		[]Expected{{"product", "A", DriftLabels}}, func(dim int) string { return fmt.Sprint("dimension ", dim) })
	want := "[{allocatable dimension 3 2 1} {labels product B A} {lost card 1  lost}]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
