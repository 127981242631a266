package simulations

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// The cards of virtual nodes: what becomes of each, and the device plugin, which
// offers them and deals them to pods.

// cardState is what a card is beside its layout.
type cardState struct {
	lost    bool
	cutting *Layout // what it is being cut into; it has no slices until then
	failed  bool    // it was not cut as it should be, and is out of use
	cuts    int     // numbers its layouts
}

// out says that pods can have nothing of the card.
func (s *cardState) out() bool { return s.lost || s.cutting != nil || s.failed }

// dealt is one device that a pod was given.
type dealt struct {
	card     int
	resource string
}

// offers is what a card of this layout offers when it is in order.
func (n *nodeObject) offers(l Layout) Amounts {
	if !l.MIG {
		return Amounts{{ResourceGPU, int64(max(1, n.TimeSlices))}}
	}
	var as Amounts
	card, _ := CardOf(n.Product)
	for _, name := range l.Slices {
		p, _ := card.Profile(name)
		as = more(as, p.Resource(), 1)
	}
	return as
}

// more is amounts with v more of the resource.
func more(as Amounts, resource string, v int64) Amounts {
	i := slices.IndexFunc(as, func(a Amount) bool { return a.Resource == resource })
	if i < 0 {
		return append(as, Amount{resource, v})
	}
	as[i].Value = quota.Sum(as[i].Value, v)
	return as
}

// hardware is what the node has for pods: of its cards those in order.
func (n *nodeObject) hardware() Amounts {
	as := Amounts{{ResourceCPU, n.CPU}, {ResourceMemory, n.Memory}, {ResourcePods, n.Pods}}
	for i, l := range n.Layouts {
		if n.state[i].out() {
			continue
		}
		for _, a := range n.offers(l) {
			as = more(as, a.Resource, a.Value)
		}
	}
	return as
}

// allocatable is what the node claims to have for pods.
func (n *nodeObject) allocatable() Amounts {
	as := n.hardware()
	for _, resource := range slices.Sorted(maps.Keys(n.claims)) {
		has, _ := as.Of(resource)
		as = more(as, resource, n.claims[resource]-has)
	}
	return as
}

// offer is what pods can really have: what is there and is claimed.
func (n *nodeObject) offer() Amounts {
	as := n.hardware()
	for i, a := range as {
		if v, ok := n.claims[a.Resource]; ok {
			as[i].Value = min(a.Value, v)
		}
	}
	return as
}

// deck is the cards as the node's agent reports them; nil if there is nothing to
// report.
func (c converter) deck(n *nodeObject) *gang.Deck {
	if n.GPUs() == 0 && len(n.claims) == 0 && !n.silent {
		return nil
	}
	kind := c.kind(n.Product)
	cards := make([]gang.Card, n.GPUs())
	for i, l := range n.Layouts {
		s := &n.state[i]
		if s.cutting != nil {
			l = *s.cutting
		}
		cards[i] = gang.Card{Kind: kind, Cut: l.MIG, Offer: c.vector(n.offers(l)), Layout: l.String()}
		if !l.MIG {
			cards[i].Replicas = max(1, n.TimeSlices)
		}
		switch {
		case s.lost:
			cards[i].Out = gang.LostCard
		case s.cutting != nil:
			cards[i].Out = gang.Recutting
		case s.failed:
			cards[i].Out = gang.BrokenCut
		}
	}
	var governs []int
	for _, resource := range slices.Sorted(maps.Keys(n.claims)) {
		if strings.HasPrefix(resource, vendor) {
			governs = append(governs, c.space.Index(resource))
		}
	}
	return gang.NewDeck(cards, c.space.Index(ResourceGPU), n.silent, governs...)
}

const vendor = "nvidia.com/"

// kind is what cards of a product can be cut into.
func (c converter) kind(product string) *gang.Kind {
	card, _ := CardOf(product)
	k := &gang.Kind{Name: product, Grid: gridOf(card)}
	for _, p := range card.Profiles {
		k.Slices = append(k.Slices, c.space.Index(p.Resource()))
	}
	return k
}

// grids are worked out once for each product.
var grids sync.Map

func gridOf(card Card) *gang.Grid {
	if len(card.Profiles) == 0 {
		return nil
	}
	if g, ok := grids.Load(card.Product); ok {
		return g.(*gang.Grid)
	}
	var ps []gang.Profile
	for _, p := range card.Profiles {
		sole := ""
		if p.media() {
			sole = "media engines"
		}
		ps = append(ps, gang.Profile{Name: p.Name, Size: p.Size, Starts: p.Starts, Sole: sole})
	}
	g, _ := grids.LoadOrStore(card.Product, gang.NewGrid(card.Units, ps))
	return g.(*gang.Grid)
}

func sharing(s Sharing) gang.Sharing {
	switch s {
	case SharingShared:
		return gang.SharedCards
	case SharingAny:
		return gang.AnyCards
	default:
		return gang.WholeCards
	}
}

// unlike is why the cards are not of the kind that a gang's pods want, or "".
func (n *nodeObject) unlike(s Sharing, requests Amounts) string {
	if v, _ := requests.Of(ResourceGPU); v == 0 || s == SharingAny {
		return ""
	}
	if shared := n.TimeSlices > 1; shared != (s == SharingShared) {
		return fmt.Sprintf("it wants cards that are %s, they have %d replicas each", orWhole(s), max(1, n.TimeSlices))
	}
	return ""
}

func orWhole(s Sharing) Sharing {
	if s == "" {
		return SharingWhole
	}
	return s
}

// run lets a pod take its room on the node, and gives it cards.
func (n *nodeObject) run(p *podObject) {
	n.pods[p.uid] = p
	if n.deal(p) {
		return
	}
	// Replicas of one pod must be on different cards. Only counts are promised, so
	// the replicas of all pods are dealt anew, widest pod first, emptiest card first:
	// if they can be dealt at all, that succeeds.
	pods := n.podsOn()
	slices.SortStableFunc(pods, func(a, b *podObject) int { return int(b.cardsWanted() - a.cardsWanted()) })
	for _, x := range pods {
		x.cards = slices.DeleteFunc(x.cards, func(d dealt) bool { return d.resource == ResourceGPU })
	}
	for _, x := range pods {
		n.dealCards(x, true)
	}
}

func (p *podObject) cardsWanted() int64 {
	v, _ := p.requests.Of(ResourceGPU)
	return v
}

// deal gives a pod what it asks for, cards in the order of their numbers.
func (n *nodeObject) deal(p *podObject) bool {
	ok := n.dealCards(p, false)
	for _, a := range p.requests {
		if !strings.HasPrefix(a.Resource, vendor) || a.Resource == ResourceGPU {
			continue
		}
		left := a.Value
		for i := range n.Layouts {
			for ; left > 0 && n.left(i, a.Resource) > 0; left-- {
				p.cards = append(p.cards, dealt{i, a.Resource})
			}
		}
		ok = ok && left == 0
	}
	return ok
}

// dealCards gives a pod as many different cards, or replicas on them, as it asks
// for: in the order of their numbers, or the emptiest first.
func (n *nodeObject) dealCards(p *podObject, emptiest bool) bool {
	want := p.cardsWanted()
	if want == 0 {
		return true
	}
	var able []int
	for i := range n.Layouts {
		if n.left(i, ResourceGPU) > 0 {
			able = append(able, i)
		}
	}
	if emptiest {
		slices.SortStableFunc(able, func(a, b int) int { return int(n.left(b, ResourceGPU) - n.left(a, ResourceGPU)) })
	}
	for _, i := range able[:min(want, int64(len(able)))] {
		p.cards = append(p.cards, dealt{i, ResourceGPU})
	}
	return int64(len(able)) >= want
}

// left is what a card still has of a resource.
func (n *nodeObject) left(card int, resource string) int64 {
	if n.state[card].out() {
		return 0
	}
	has, _ := n.offers(n.Layouts[card]).Of(resource)
	for _, p := range n.pods {
		for _, d := range p.cards {
			if d == (dealt{card, resource}) {
				has--
			}
		}
	}
	return max(0, has)
}

// has says whether the pod has something of the card.
func (p *podObject) has(card int) bool {
	return slices.ContainsFunc(p.cards, func(d dealt) bool { return d.card == card })
}

// actOnCards lets an event about cards happen.
func (c *Cluster) actOnCards(a Action) bool {
	switch a := a.(type) {
	case LoseGPU:
		c.loseCard(c.nodes[a.Node], a)
	case RestoreGPU:
		c.changeNode(a.Node, func(n *nodeObject) {
			for i := range n.state {
				if a.GPU == nil || *a.GPU == i {
					n.state[i].lost = false
				}
			}
		})
	case Recut:
		c.recut(c.nodes[a.Node], a)
	case SetTimeSlices:
		c.changeNode(a.Node, func(n *nodeObject) {
			n.relabel(func() { n.TimeSlices = a.Value })
		})
	case SetAllocatable:
		c.changeNode(a.Node, func(n *nodeObject) {
			if a.Value == nil {
				delete(n.claims, a.Resource)
			} else {
				n.claims[a.Resource] = *a.Value
			}
		})
	case AgentSilent:
		c.changeNode(a.Node, func(n *nodeObject) { n.silent = true })
	case AgentBack:
		c.changeNode(a.Node, func(n *nodeObject) { n.silent = false })
	case Refuses:
		c.nodes[a.Node].refuses = a.Value // nobody sees that before a pod is refused
	default:
		return false
	}
	return true
}

// loseCard takes a card out, and the pods on it fail.
func (c *Cluster) loseCard(n *nodeObject, a LoseGPU) {
	i := n.choose(a)
	if i < 0 {
		c.trace.add("no card of %s has a pod of %s", n.Name, a.Of)
		return
	}
	n.state[i].lost = true
	c.nodeChanged(n)
	c.clear(n, i)
}

// clear ends the pods on a card.
func (c *Cluster) clear(n *nodeObject, card int) {
	for _, p := range n.podsOn() {
		if p.has(card) {
			c.lose(p)
		}
	}
}

// choose is the card that an event means, or -1 if there is none such.
func (n *nodeObject) choose(a LoseGPU) int {
	if a.GPU != nil {
		return *a.GPU
	}
	for i := range n.state {
		busy, its := false, false
		for _, p := range n.pods {
			busy = busy || p.has(i)
			its = its || p.has(i) && p.owner != nil && p.owner.key == a.Of
		}
		if !n.state[i].lost && (a.Of == "" && !busy || its) {
			return i
		}
	}
	if a.Of != "" {
		return -1
	}
	return len(n.state) - 1
}

// recut cuts a card anew. The pods on it fail: their slices are gone.
func (c *Cluster) recut(n *nodeObject, a Recut) {
	i, s := a.GPU, &n.state[a.GPU]
	s.cuts++
	cut := s.cuts
	done := func() {
		if c.nodes[n.Name] != n || s.cuts != cut {
			return
		}
		n.relabel(func() {
			s.cutting, s.failed = nil, a.Fails
			n.Layouts[i] = a.Layout
			if a.Fails {
				n.Layouts[i] = Layout{MIG: true}
			}
		})
		c.nodeChanged(n)
	}
	c.clear(n, i)
	if a.Takes == 0 {
		done()
		return
	}
	n.relabel(func() {
		layout := a.Layout
		s.cutting, s.failed = &layout, false
		n.Layouts[i] = Layout{MIG: true}
	})
	c.nodeChanged(n)
	c.clock.At(c.clock.Now()+a.Takes, done)
}

// relabel changes the cards and lets feature discovery set its labels anew. A label
// that somebody has set or removed otherwise stays as it is.
func (n *nodeObject) relabel(change func()) {
	before := map[string]string{}
	for _, l := range n.discovered() {
		before[l.Key] = l.Value
	}
	change()
	after := map[string]string{}
	for _, l := range n.discovered() {
		after[l.Key] = l.Value
	}
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for key := range keys {
		was, ok := before[key]
		if has, there := n.labels[key]; there != ok || has != was {
			continue
		}
		if v, ok := after[key]; ok {
			n.labels[key] = v
		} else {
			delete(n.labels, key)
		}
	}
}

func (n *nodeObject) discovered() []Label { return FeatureLabels(n.Product, n.Layouts, n.TimeSlices) }

// expected are the labels that feature discovery would set now, with what differs
// if one of them does. A slice of which there is none has no count.
func (n *nodeObject) expected() []gang.Expected {
	var list []gang.Expected
	has := map[string]bool{}
	for _, l := range n.discovered() {
		has[l.Key] = true
		list = append(list, gang.Expected{Key: l.Key, Value: l.Value, About: aboutLabel(l.Key)})
	}
	card, _ := CardOf(n.Product)
	for _, p := range card.Profiles {
		if key := vendor + p.label() + ".count"; !has[key] {
			list = append(list, gang.Expected{Key: key, About: gang.DriftLayout})
		}
	}
	return list
}

// aboutLabel is what is wrong with a node of which the label says something else.
func aboutLabel(key string) gang.Drift {
	switch {
	case strings.HasPrefix(key, vendor+"mig-") && strings.HasSuffix(key, ".count"):
		return gang.DriftLayout
	case strings.HasSuffix(key, ".replicas") || strings.HasSuffix(key, ".sharing-strategy"):
		return gang.DriftReplicas
	default:
		return gang.DriftLabels
	}
}

// drifts compares what is claimed of a node with what it is, as the controller
// would.
func (c *Cluster) drifts(k Drifts) (want, got string) {
	var found []gang.Drift
	if n := c.nodes[k.Node]; n != nil {
		conv := converter{quota.NewSpace()}
		if d := conv.deck(n); d != nil {
			found = d.Drifts(conv.vector(n.allocatable()), n.labels, n.expected())
		}
	}
	return driftText(k.What), driftText(found)
}

// driftText lists drifts in the order of the closed list.
func driftText[D ~string](list []D) string {
	var out []string
	for _, d := range drifts {
		if slices.Contains(list, D(d)) {
			out = append(out, string(d))
		}
	}
	return "[" + strings.Join(out, ", ") + "]"
}
