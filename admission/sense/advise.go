package sense

import (
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// Need is what somebody wants of a device.
type Need struct {
	MemoryMiB int64
	Isolated  bool // memory and errors of others must not reach it
	Talks     bool // its pods talk to each other over NCCL
}

// Advice is what to ask for on cards of one product.
type Advice struct {
	Product  string
	Resource string // what to ask for; "" is nothing there
	Count    int64
	Sharing  string // value of the sharing annotation, "" if none is needed
	Why      string
	Offered  bool // some node offers it as its cards are cut and shared now
}

// Advise names, for each product that agents report, what meets the need: who talks
// over NCCL gets whole cards; who wants isolation gets the smallest slice with the
// memory; everybody else a time slice where cards are shared, if the card has the
// memory at all, since time slices do not bound it.
func (f *Facts) Advise(need Need) []Advice {
	var out []Advice
	seen := map[string]bool{}
	for i := range f.Nodes {
		r := f.Nodes[i].Report
		if r == nil {
			continue
		}
		for m := range r.Models {
			model := &r.Models[m]
			a := f.advise(r, model, cardMemory(r, model.Name), need)
			key := fmt.Sprint(a)
			if !seen[key] {
				seen[key] = true
				out = append(out, a)
			}
		}
	}
	slices.SortFunc(out, func(a, b Advice) int {
		return strings.Compare(a.Product+" "+a.Resource, b.Product+" "+b.Resource)
	})
	return out
}

// cardMemory is the memory of a card of the model, the smallest if they differ.
func cardMemory(r *v1alpha1.Report, model string) int64 {
	least := int64(0)
	for i := range r.Cards {
		if c := &r.Cards[i]; c.Model == model && c.MemoryMiB > 0 && (least == 0 || c.MemoryMiB < least) {
			least = c.MemoryMiB
		}
	}
	return least
}

func (f *Facts) advise(r *v1alpha1.Report, m *v1alpha1.Model, memory int64, need Need) Advice {
	a := Advice{Product: m.Name}
	whole := func(why string) Advice {
		n := int64(1)
		if memory > 0 {
			n = max(1, (need.MemoryMiB+memory-1)/memory)
		}
		a.Resource, a.Count, a.Why = v1alpha1.WholeCard, n, why
		a.Offered = f.offers(v1alpha1.WholeCard)
		return a
	}
	switch {
	case need.Talks:
		return whole("NCCL needs whole cards: slices and shares have no peer access")
	case memory > 0 && need.MemoryMiB > memory:
		return whole(fmt.Sprintf("one card has %d MiB", memory))
	case need.Isolated:
		p := smallest(m, need.MemoryMiB)
		if p == nil {
			return whole("no slice of it has that much memory")
		}
		a.Count, a.Resource = 1, r.SliceResource(p.Name)
		if a.Resource == "" {
			a.Resource = v1alpha1.SliceResource(p.Name)
		}
		a.Offered = f.offers(a.Resource)
		a.Why = fmt.Sprintf("the smallest slice with the memory: %s, %d MiB", p.Name, p.MemoryMiB)
		return a
	}
	if s := r.Share(v1alpha1.WholeCard); s != nil {
		a.Resource, a.Count, a.Sharing = r.WholeResource(), 1, "shared"
		if s.Renamed {
			a.Sharing = ""
		}
		a.Offered = f.offers(a.Resource)
		a.Why = fmt.Sprintf("one of %d shares of a card; nothing bounds its memory", s.Replicas)
		return a
	}
	return whole("its cards are not shared")
}

// smallest is the slice of the least size, then memory, that has the memory.
func smallest(m *v1alpha1.Model, memory int64) *v1alpha1.Profile {
	var best *v1alpha1.Profile
	for i := range m.Profiles {
		p := &m.Profiles[i]
		if p.MemoryMiB < memory || p.MemoryMiB == 0 || p.Sole != "" {
			continue
		}
		if best == nil || p.Size < best.Size || p.Size == best.Size && p.Compute < best.Compute {
			best = p
		}
	}
	return best
}
