package answer

import (
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
)

// cardsChanged bounds how many cards a change may cut anew.
const cardsChanged = 16

// idleCard is a card that no pod can be on: of what it offers nothing is used on
// its node.
type idleCard struct {
	node *gang.Node
	at   int
}

// recut cuts idle cards into what the gang asks for, as few as will do.
func (b *bench) recut(admission.Reason, []NodeGroup) *Change {
	asked := map[int]bool{}
	for _, ps := range b.m.Workload.Spec.PodSets {
		for d, v := range ps.Request {
			if v > 0 {
				asked[d] = true
			}
		}
	}
	if b.w.wantsWhole(asked) {
		cards := b.idle(func(d *gang.Deck, c *gang.Card) bool { return c.Cut && asked[d.Whole] })
		if c := b.cut(cards, nil); c != nil {
			return c
		}
	}
	for _, k := range b.w.kinds() {
		_, profiles := gridParts(k.Grid)
		for i, dim := range k.Slices {
			if !asked[dim] {
				continue
			}
			n := most(&profiles[i])
			layout := slices.Repeat([]string{profiles[i].Name}, n)
			cards := b.idle(func(_ *gang.Deck, c *gang.Card) bool {
				return c.Kind != nil && c.Kind.Name == k.Name && c.Offer.At(dim) == 0
			})
			if c := b.cut(cards, layout); c != nil {
				return c
			}
		}
	}
	return nil
}

func (w *World) wantsWhole(asked map[int]bool) bool {
	return slices.ContainsFunc(w.im.Nodes, func(n *gang.Node) bool { return n.Cards != nil && asked[n.Cards.Whole] })
}

// idle are the cards in order for which ok holds and on which nobody can be.
func (b *bench) idle(ok func(*gang.Deck, *gang.Card) bool) []idleCard {
	var out []idleCard
	inv := b.w.s.Inventory()
	for _, n := range b.w.im.Nodes {
		if n.Cards == nil || n.Cards.Silent || !n.Open() {
			continue
		}
		for i := range n.Cards.Cards {
			c := &n.Cards.Cards[i]
			if c.Out != "" || !ok(n.Cards, c) {
				continue
			}
			free := true
			for d, v := range c.Offer {
				free = free && (v == 0 || inv.Used(n.Name).At(d) == 0)
			}
			if free {
				out = append(out, idleCard{n, i})
			}
		}
	}
	return out
}

// cut tries to cut as few of the cards as will do into the layout; nil is whole.
func (b *bench) cut(cards []idleCard, layout []string) *Change {
	return b.fewest(len(cards), cardsChanged, func(k int) *Change {
		c := &Change{Kind: Recut, Layout: layout}
		into := "back to whole"
		if len(layout) > 0 {
			into = fmt.Sprintf("to %d x %s", len(layout), layout[0])
		}
		nodes := map[string]*gang.Node{}
		var order, texts []string
		for _, x := range cards[:k] {
			n := nodes[x.node.Name]
			if n == nil {
				n = x.node
				order = append(order, n.Name)
			}
			nodes[n.Name] = cutCard(n, x.at, layout)
			c.Cards = append(c.Cards, CardName{n.Name, x.at})
			texts = append(texts, fmt.Sprintf("%s/%d", n.Name, x.at))
		}
		for _, name := range order {
			c.events = append(c.events, admission.NodeSeen{Node: nodes[name]})
		}
		if len(texts) > 4 {
			texts = append(texts[:4:4], fmt.Sprintf("and %d more", k-4))
		}
		c.Text = fmt.Sprintf("cut idle card %s %s", strings.Join(texts, ", "), into)
		return c
	})
}

// cutCard is the node with a card cut anew.
func cutCard(n *gang.Node, at int, layout []string) *gang.Node {
	out := *n
	old := n.Cards
	cards := slices.Clone(old.Cards)
	was := &old.Cards[at]
	now := gang.Card{Kind: was.Kind, Cut: len(layout) > 0, Layout: strings.Join(layout, " ")}
	if len(layout) == 0 {
		now.Replicas = 1
		now.Offer.Set(old.Whole, 1)
	}
	for _, name := range layout {
		_, profiles := gridParts(was.Kind.Grid)
		i := slices.IndexFunc(profiles, func(p gang.Profile) bool { return p.Name == name })
		now.Offer.Set(was.Kind.Slices[i], now.Offer.At(was.Kind.Slices[i])+1)
	}
	cards[at] = now
	var governs []int
	for d := range max(len(n.Offer), len(now.Offer)) {
		if old.Governs(d) {
			governs = append(governs, d)
		}
	}
	out.Cards = gang.NewDeck(cards, old.Whole, old.Silent, governs...)
	out.Offer = n.Offer.Clone()
	out.Offer.Sub(was.Offer)
	out.Offer.Add(now.Offer)
	if n.Whole != nil {
		out.Whole = n.Whole.Clone()
		out.Whole.Sub(was.Offer)
		out.Whole.Add(now.Offer)
	}
	for d := range out.Offer { // a plugin that claims less than the cards are
		out.Offer[d] = max(0, out.Offer[d])
	}
	return &out
}

// most is how many slices of the profile one card holds.
func most(p *gang.Profile) int {
	if p.Sole != "" {
		return 1
	}
	n, end := 0, 0
	for _, start := range slices.Sorted(slices.Values(p.Starts)) {
		if start >= end {
			n++
			end = start + p.Size
		}
	}
	return n
}
