package kube

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
	"sluice.dev/sluice/quota"
)

// cardReader turns what agents report into cards of the core. It keeps the ways to
// cut a model, which take a while to work out and are the same on every node.
type cardReader struct {
	space *quota.Space
	kinds map[string]*gang.Kind
}

func newCardReader(space *quota.Space) *cardReader {
	return &cardReader{space: space, kinds: map[string]*gang.Kind{}}
}

// device says whether only cards offer the resource.
func device(name corev1.ResourceName) bool {
	base := strings.TrimSuffix(string(name), ".shared")
	return base == v1alpha1.WholeCard || strings.HasPrefix(base, v1alpha1.SliceResource(""))
}

// deck is the cards of the node, or nil if nobody tells more of them than what the
// node offers. silent says that the report is old.
func (c *cardReader) deck(n *corev1.Node, inv *v1alpha1.SliceInventory, silent bool) *gang.Deck {
	if inv == nil {
		return c.labelled(n)
	}
	r := &inv.Report
	switch r.State {
	case v1alpha1.NoPermission: // an agent that may not look is none
		return c.labelled(n)
	case v1alpha1.DriverChanged, v1alpha1.Failed:
		silent = true
	case v1alpha1.Ready, v1alpha1.Degraded, v1alpha1.NoDevices, v1alpha1.NoDriver:
	}
	out := outOfAll(n, r)
	cards := make([]gang.Card, len(r.Cards))
	for i := range r.Cards {
		cards[i] = c.card(r, &r.Cards[i])
		if cards[i].Out == "" && (cards[i].Kind != nil || cards[i].Cut || out == refusedCut) {
			cards[i].Out = out
		}
	}
	return gang.NewDeck(cards, c.space.Index(r.WholeResource()), silent, c.governed(n)...)
}

// governed are the dimensions of devices that the node claims to offer.
func (c *cardReader) governed(n *corev1.Node) []int {
	var dims []int
	for _, name := range sortedResources(n.Status.Allocatable) {
		if device(name) {
			dims = append(dims, c.space.Index(string(name)))
		}
	}
	return dims
}

func (c *cardReader) card(r *v1alpha1.Report, from *v1alpha1.Card) gang.Card {
	card := gang.Card{Kind: c.kind(r, r.Model(from.Model)), Cut: from.InMIGMode(), Layout: from.Layout(), Out: string(from.Out), Offer: quota.Resources{}}
	for _, o := range r.Offers(from) {
		card.Offer.Set(c.space.Index(o.Resource), o.Count)
	}
	if !card.Cut {
		card.Replicas = int(r.Replicas())
	}
	return card
}

// kind is how cards of the model can be cut, or nil if they cannot be or slices have
// no names of their own.
func (c *cardReader) kind(r *v1alpha1.Report, m *v1alpha1.Model) *gang.Kind {
	if m == nil || m.Units == 0 || len(m.Profiles) == 0 || r.Sharing.MIGStrategy != v1alpha1.MIGMixed {
		return nil
	}
	var key strings.Builder
	fmt.Fprintf(&key, "%s %d", m.Name, m.Units)
	for i := range m.Profiles {
		p := &m.Profiles[i]
		fmt.Fprintf(&key, ";%s %s %d %v %s", p.Name, r.SliceResource(p.Name), p.Size, p.Starts, p.Sole)
	}
	if k := c.kinds[key.String()]; k != nil {
		return k
	}
	k := &gang.Kind{Name: m.Name}
	var profiles []gang.Profile
	for i := range m.Profiles {
		p := &m.Profiles[i]
		starts := make([]int, len(p.Starts))
		for j, s := range p.Starts {
			starts[j] = int(s)
		}
		profiles = append(profiles, gang.Profile{Name: p.Name, Size: int(p.Size), Starts: starts, Sole: p.Sole})
		k.Slices = append(k.Slices, c.space.Index(r.SliceResource(p.Name)))
	}
	k.Grid = gang.NewGrid(int(m.Units), profiles)
	c.kinds[key.String()] = k
	return k
}

// What is said of all cards of a node beside what its agent says of each.
const (
	pluginPaused = "pluginPaused"
	refusedCut   = "refusedByPlugin"
)

// outOfAll is why none of the node's cards that can be cut takes a pod now, or "":
// they are being cut, that failed, or the device plugin offers none as they are cut.
func outOfAll(n *corev1.Node, r *v1alpha1.Report) string {
	switch n.Labels[v1alpha1.LabelMIGState] {
	case "pending", "rebooting":
		return gang.Recutting
	case "failed":
		return gang.BrokenCut
	}
	switch {
	case n.Labels[v1alpha1.LabelPluginPaused] == v1alpha1.PausedForMIG:
		return pluginPaused
	case r.Refusal() != "":
		return refusedCut
	default:
		return ""
	}
}

// labelled is what the node's labels tell of its cards where no agent does: that they
// are shared, or that what is called a card is a slice.
func (c *cardReader) labelled(n *corev1.Node) *gang.Deck {
	offered := n.Status.Allocatable[v1alpha1.WholeCard]
	count, err := strconv.Atoi(n.Labels[v1alpha1.LabelCount])
	if err != nil || count < 1 || count > 4096 || offered.Sign() <= 0 {
		return nil
	}
	replicas, err := strconv.Atoi(n.Labels[v1alpha1.LabelReplicas])
	if err != nil || replicas < 1 {
		replicas = 1
	}
	cut := n.Labels[v1alpha1.LabelStrategy] == string(v1alpha1.MIGSingle) && strings.Contains(n.Labels[v1alpha1.LabelProduct], "-MIG-")
	if !cut && (replicas == 1 || offered.Value() < int64(replicas)) {
		return nil // renamed shares, or nothing shared
	}
	whole := c.space.Index(v1alpha1.WholeCard)
	cards := make([]gang.Card, count)
	for i := range cards {
		cards[i] = gang.Card{Cut: cut, Replicas: replicas, Offer: quota.Resources{}}
		cards[i].Offer.Set(whole, int64(replicas))
	}
	// Of how many are in order nobody tells: what the node offers counts.
	return gang.NewDeck(cards, whole, false)
}
