package gang

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/quota"
)

// Sharing says on which cards a pod's request for whole cards may be served. It
// means nothing to pods that ask for none.
type Sharing string

// The kinds of cards. A pod that says nothing wants cards to itself.
const (
	WholeCards  Sharing = ""
	SharedCards Sharing = "shared" // time-sliced ones only
	AnyCards    Sharing = "any"
)

// Kind is what all cards of one model have in common. Values are shared between
// cards and never changed.
type Kind struct {
	Name   string // of the model: kinds of one name are cut alike
	Grid   *Grid  // how it can be cut; nil if it cannot
	Slices []int  // the dimension in which each profile of the grid is offered
}

func (k *Kind) name() string {
	if k == nil {
		return ""
	}
	return k.Name
}

// Card is one GPU of a node.
type Card struct {
	Kind *Kind
	// Offer is what the card offers as it is cut and shared now, were it in order:
	// one whole card, as many replicas of it as it is shared by, or its slices.
	Offer quota.Resources
	// Cut says that it is in MIG mode, so that nobody gets it whole. Its slices may
	// be offered under the name of whole cards; whoever wants a card to himself gets
	// none of them.
	Cut bool
	// Replicas is by how many pods a card that is not cut may be used; below 2 it is
	// not shared.
	Replicas int
	Layout   string // how it is cut, for people
	// Out is why the card is out of use now, as Outage.What; "" if it is in order.
	Out string
}

func (c *Card) shared() bool { return !c.Cut && c.Replicas > 1 }

// Deck is the cards of one node as its agent reports them. A plan claims a number
// of a resource on a node; which card a pod then gets is dealt by the device plugin
// and never promised. Values are never changed in place.
//
// Replicas of one pod are on different cards. Since only counts are promised, a
// node has room for further pods that ask for k replicas each if some legal dealing
// of them exists beside the replicas that are counted there, whoever holds those:
// so many replicas must be free, and enough cards must be there to give each pod k
// different ones.
type Deck struct {
	Cards []Card
	// Whole is the dimension in which whole cards, and replicas of them, are offered.
	Whole int
	// Silent says that the agent reports nothing, so that all of this is old.
	Silent bool

	now, sound    quota.Resources // offered by the cards in order, and by all
	governs       []bool          // by dimension: offered by cards alone
	whole, shared int             // cards in order for one pod each, and for several under the same name
	replicas      []int           // of each card in order that is not cut, or of its slices under that name
	key           string          // decks with equal keys can be cut alike
}

// NewDeck works out what the cards offer together. governs are the dimensions that
// only cards offer, beside those that these cards can offer anyhow.
func NewDeck(cards []Card, whole int, silent bool, governs ...int) *Deck {
	d := &Deck{Cards: cards, Whole: whole, Silent: silent}
	d.govern(append(governs, whole)...)
	var key strings.Builder
	for i := range cards {
		c := &cards[i]
		d.sound.Add(c.Offer)
		for dim := range c.Offer {
			d.govern(dim)
		}
		if c.Kind != nil {
			d.govern(c.Kind.Slices...)
		}
		if c.Out != "" {
			continue
		}
		d.now.Add(c.Offer)
		key.WriteString(c.Kind.name() + ";")
		switch slices := c.Offer.At(whole); {
		case c.Cut && slices > 0: // each is a device of its own
			d.shared++
			for range slices {
				d.replicas = append(d.replicas, 1)
			}
		case c.Cut:
		case c.shared():
			d.shared++
			d.replicas = append(d.replicas, c.Replicas)
		default:
			d.whole++
			d.replicas = append(d.replicas, 1)
		}
	}
	d.key = key.String()
	return d
}

func (d *Deck) govern(dims ...int) {
	for _, dim := range dims {
		if dim <= quota.Pods {
			continue
		}
		for len(d.governs) <= dim {
			d.governs = append(d.governs, false)
		}
		d.governs[dim] = true
	}
}

// Governs says whether only cards offer this dimension.
func (d *Deck) Governs(dim int) bool { return dim < len(d.governs) && d.governs[dim] }

// mended is the deck with every card in order.
func (d *Deck) mended() *Deck {
	if !d.Silent && !slices.ContainsFunc(d.Cards, func(c Card) bool { return c.Out != "" }) {
		return d
	}
	cards := slices.Clone(d.Cards)
	for i := range cards {
		cards[i].Out = ""
	}
	m := NewDeck(cards, d.Whole, false)
	m.governs = d.governs
	return m
}

// suits says whether cards that are shared as these are may serve the pod. A device
// plugin offers whole cards and replicas under one name, so that a node with both
// can promise neither.
func (d *Deck) suits(ps *PodSet) bool {
	switch {
	case ps.Request.At(d.Whole) == 0 || ps.Sharing == AnyCards:
		return true
	case ps.Sharing == SharedCards:
		return d.whole == 0
	default:
		return d.shared == 0
	}
}

// deal is for how many of n pods a legal dealing exists, if so many replicas are
// free as they ask for together: the rows of a table of pods and cards can be given
// k marks each, and its columns at most their replicas, if and only if the columns
// have room for all marks once none counts more than there are rows.
func (d *Deck) deal(ps *PodSet, n int) int {
	k := ps.Request.At(d.Whole)
	if k == 0 || n == 0 {
		return n
	}
	if !d.suits(ps) {
		return 0
	}
	if k == 1 || d.shared == 0 {
		return n
	}
	lo := 0 // the room grows slower with every row, so there is one last n that fits
	for lo < n {
		mid := lo + (n-lo+1)/2
		if d.columns(mid) >= quota.Product(k, int64(mid)) {
			lo = mid
		} else {
			n = mid - 1
		}
	}
	return lo
}

// alike says whether the cards of two nodes serve the same pods, beside what is free.
func (d *Deck) alike(o *Deck) bool {
	if d == nil || o == nil {
		return d == o
	}
	return d.whole == o.whole && d.shared == o.shared && d.key == o.key && d.Whole == o.Whole && slices.Equal(d.replicas, o.replicas)
}

// columns is the room of all cards for n pods, of which each is on a card at most once.
func (d *Deck) columns(n int) int64 {
	room := int64(0)
	for _, r := range d.replicas {
		room += int64(min(r, n))
	}
	return room
}

// misfit is how the cards are cut or shared otherwise than the pod wants, or "".
func (d *Deck) misfit(ps *PodSet) string {
	if len(d.Cards) == 0 {
		return ""
	}
	m := d.mended()
	if !m.suits(ps) {
		if ps.Sharing == SharedCards {
			return "its cards are not shared"
		}
		if slices.ContainsFunc(m.Cards, func(c Card) bool { return c.Cut && c.Offer.At(m.Whole) > 0 }) {
			return "its cards are slices, under the name of whole ones"
		}
		return "its cards are shared between pods"
	}
	for dim, v := range ps.Request {
		if v > 0 && d.Governs(dim) && m.now.At(dim) == 0 {
			return m.cutText()
		}
	}
	return ""
}

// cutText says how the cards are cut.
func (d *Deck) cutText() string {
	var parts []string
	for i := 0; i < len(d.Cards); {
		n := i + 1
		for n < len(d.Cards) && d.Cards[n].Cut == d.Cards[i].Cut && d.Cards[n].Layout == d.Cards[i].Layout {
			n++
		}
		text := "whole"
		if d.Cards[i].Cut {
			text = "cut into " + d.Cards[i].Layout
			if d.Cards[i].Layout == "" {
				text = "in MIG mode without slices"
			}
		}
		parts = append(parts, numbers(i, n-1)+" "+text)
		i = n
	}
	return strings.Join(parts, ", ")
}

// numbers names cards by their numbers, from first to last.
func numbers(first, last int) string {
	if first == last {
		return "card " + strconv.Itoa(first)
	}
	return fmt.Sprintf("cards %d-%d", first, last)
}

// What outages of cards are called.
const (
	LostCard    = "lost"
	Recutting   = "repartitioning"
	BrokenCut   = "repartitionFailed"
	Misreported = "misreported"
	Silent      = "silent"
	Refusing    = "refusing"
)

// Equip joins what a node claims to offer, in n.Offer (its allocatable), with the
// cards that its agent reports. What cards offer is the smaller of the two; what it
// would be with all of them in order is the agent's word alone. The outages that
// follow are added to those that n has.
func Equip(n Node, d *Deck) *Node {
	claimed := n.Offer
	n.Cards, n.Offer, n.Whole = d, claimed.Clone(), claimed.Clone()
	n.Outages = slices.Concat(n.Outages, d.outages(claimed))
	for dim := range d.governs {
		if !d.Governs(dim) {
			continue
		}
		have := d.now.At(dim)
		if d.Silent {
			have = 0
		}
		if v := min(have, claimed.At(dim)); v > 0 || claimed.At(dim) > 0 {
			n.Offer.Set(dim, v)
		}
		if v := d.sound.At(dim); v > 0 || claimed.At(dim) > 0 {
			n.Whole.Set(dim, v)
		}
	}
	return &n
}

// outages are those of the cards, the gravest first.
func (d *Deck) outages(claimed quota.Resources) []Outage {
	var out []Outage
	if d.Silent {
		out = append(out, Outage{What: Silent, Detail: "its agent reports nothing"})
	}
	var whys []string
	cards := map[string][]string{}
	for i, c := range d.Cards {
		if c.Out == "" {
			continue
		}
		if cards[c.Out] == nil {
			whys = append(whys, c.Out)
		}
		cards[c.Out] = append(cards[c.Out], strconv.Itoa(i))
	}
	for _, why := range whys {
		word := "card "
		if len(cards[why]) > 1 {
			word = "cards "
		}
		out = append(out, Outage{What: why, Detail: word + strings.Join(cards[why], ", ")})
	}
	for dim, v := range d.now {
		if has := claimed.At(dim); has < v && !d.Silent {
			out = append(out, Outage{What: Misreported, Detail: fmt.Sprintf("the device plugin claims %d, its cards are %d", has, v)})
		}
	}
	return out
}

// Suits says whether the node's cards, cut and shared as they are, may serve a pod
// of the set at all, whatever is free.
func (n *Node) Suits(ps *PodSet) bool { return n.Cards == nil || n.Cards.deal(ps, 1) == 1 }

// CloseCards returns the node without its devices, for the given reason: other pods
// may still use it.
func (n *Node) CloseCards(o Outage) *Node {
	c := *n
	c.Offer, c.Whole = n.Offer.Clone(), n.whole()
	for dim := range c.Offer {
		if n.device(dim) {
			c.Offer[dim] = 0
		}
	}
	c.Outages = slices.Concat([]Outage{o}, n.Outages)
	return &c
}

// device says whether the dimension counts devices here: what the node's cards
// offer or, where nobody reports cards, everything but the basic resources.
func (n *Node) device(dim int) bool {
	if n.Cards != nil {
		return n.Cards.Governs(dim)
	}
	return dim > quota.Pods
}

// Devices is the part of r that is devices on this node.
func (n *Node) Devices(r quota.Resources) quota.Resources {
	d := r.Clone()
	for dim := range d {
		if !n.device(dim) {
			d[dim] = 0
		}
	}
	return d
}

// Asks says whether a pod with this request asks for devices of the node.
func (n *Node) Asks(r quota.Resources) bool { return !n.Devices(r).IsZero() }
