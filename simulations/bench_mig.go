package simulations

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// Acceptance is how many of the requests of random streams were let in, by rule.
type Acceptance struct {
	Product                  string
	Requests, Ours, FirstFit int
	// Accepting is the most that any choice of places could have let in that turns
	// nobody away whom it has room for, Best the most if it may. Both know what is to come.
	Accepting, Best int
}

// BenchProducts are cards of different grids.
var BenchProducts = []string{"NVIDIA-A30", "NVIDIA-A100-SXM4-40GB", "NVIDIA-H100-80GB-HBM3", "NVIDIA-H200", "NVIDIA-B200"}

// BenchMIG offers streams of requests for slices to small clusters of the product,
// cut by lot, one pod after the other; what does not fit is turned away, what is in
// leaves after some time. Ours is gang.Place; first fit takes the first node.
func BenchMIG(product string, seed uint64, streams int) (Acceptance, error) {
	out := Acceptance{Product: product}
	card, _ := CardOf(product)
	if len(card.Profiles) == 0 {
		return out, fmt.Errorf("%s has no MIG", orUnnamed(product))
	}
	rnd := stream(seed, "mig "+product)
	for range streams {
		b, err := newMigBench(card, rnd)
		if err != nil {
			return out, err
		}
		out.Requests += len(b.asks)
		out.Ours += b.online(b.ours)
		out.FirstFit += b.online(b.first)
		out.Accepting += b.best(false)
		out.Best += b.best(true)
	}
	return out, nil
}

type migBench struct {
	space *quota.Space
	nodes []*gang.Node
	asks  []migAsk
}

type migAsk struct {
	request quota.Resources
	until   int // the number of the request before which it leaves
}

func newMigBench(card Card, rnd *rand.Rand) (*migBench, error) {
	var text strings.Builder
	text.WriteString("nodes:\n")
	for i := range 3 {
		fmt.Fprintf(&text, "- {name: m%d, gpus: 1, product: %s, mig: [%s]}\n", i, card.Product, strings.Join(randomLayout(card, rnd), ", "))
	}
	s, err := Parse("bench.yaml", []byte(text.String()))
	if err != nil {
		return nil, err
	}
	clock := &Clock{}
	c := newCluster(s, clock, 0, nil, newTrace(clock))
	b := &migBench{space: quota.NewSpace()}
	conv := converter{b.space}
	offered := map[string]bool{}
	for i := range 3 {
		n := c.nodes[fmt.Sprintf("m%d", i)]
		b.nodes = append(b.nodes, conv.node(n))
		for _, a := range n.offer() {
			if strings.HasPrefix(a.Resource, vendor) {
				offered[a.Resource] = true
			}
		}
	}
	var names []string
	for _, p := range card.Profiles {
		if offered[p.Resource()] && !slices.Contains(names, p.Resource()) {
			names = append(names, p.Resource())
		}
	}
	for i := range 14 {
		as := Amounts{}
		for range 1 + rnd.IntN(3) {
			as = more(as, names[rnd.IntN(len(names))], 1)
		}
		b.asks = append(b.asks, migAsk{conv.vector(needs(as)), i + 2 + rnd.IntN(8)})
	}
	return b, nil
}

// randomLayout fills a card with profiles by lot until none fits any more.
func randomLayout(card Card, rnd *rand.Rand) []string {
	var layout []string
	for _, i := range rnd.Perm(4 * len(card.Profiles)) {
		p := card.Profiles[i%len(card.Profiles)]
		if strings.ContainsAny(p.Name[1:], "+-") {
			continue
		}
		if _, err := card.Place(append(slices.Clone(layout), p.Name)); err == nil {
			layout = append(layout, p.Name)
		}
	}
	return layout
}

func (b *migBench) online(choose func(*gang.Inventory, quota.Resources) string) int {
	v := gang.NewInventory()
	for _, n := range b.nodes {
		v.Put(n)
	}
	at, in := make([]string, len(b.asks)), 0
	for i, a := range b.asks {
		for k := range i {
			if at[k] != "" && b.asks[k].until == i {
				v.Give(at[k], b.asks[k].request)
			}
		}
		if at[i] = choose(v, a.request); at[i] != "" {
			v.Take(at[i], a.request)
			in++
		}
	}
	return in
}

func (b *migBench) ours(v *gang.Inventory, r quota.Resources) string {
	spec := &gang.Spec{PodSets: []gang.PodSet{{Name: "main", Count: 1, Min: 1, Request: r}}}
	plan, short := gang.Place(v, spec, []int{1})
	if short != nil {
		return ""
	}
	return plan.Nodes()[0]
}

func (b *migBench) first(v *gang.Inventory, r quota.Resources) string {
	for _, n := range b.nodes {
		if v.Free(n.Name).Copies(r, 1) == 1 {
			return n.Name
		}
	}
	return ""
}

// best tries every choice of nodes and, if it may refuse, of whom to turn away though
// there is room.
func (b *migBench) best(refuses bool) int {
	free := make([]quota.Resources, len(b.nodes))
	for i, n := range b.nodes {
		free[i] = n.Offer.Clone()
	}
	at := make([]int, len(b.asks))
	most := 0
	var try func(i, in int)
	try = func(i, in int) {
		most = max(most, in)
		if i == len(b.asks) || in+len(b.asks)-i <= most {
			return
		}
		for k := range i {
			if at[k] >= 0 && b.asks[k].until == i {
				free[at[k]].Add(b.asks[k].request)
			}
		}
		fits := false
		for n := range free {
			if free[n].Copies(b.asks[i].request, 1) == 1 {
				fits = true
				free[n].Sub(b.asks[i].request)
				at[i] = n
				try(i+1, in+1)
				free[n].Add(b.asks[i].request)
			}
		}
		at[i] = -1
		if refuses || !fits {
			try(i+1, in)
		}
		for k := range i {
			if at[k] >= 0 && b.asks[k].until == i {
				free[at[k]].Sub(b.asks[k].request)
			}
		}
	}
	try(0, 0)
	return most
}
