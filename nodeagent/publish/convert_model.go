package publish

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"sluice.dev/sluice/nodeagent"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// Bounds of the API: see the markers of the types.
const (
	maxModels, maxProfiles, maxUnits = 16, 32, 64
)

// models are the cards' models, and each card's by its place in the report. Cards of
// one product that can be cut in different ways are different models; one whose
// grid could not be read is of the first with a grid.
func (c *conversion) models(from []nodeagent.Card) []string {
	names := make([]string, len(from))
	for _, known := range []bool{true, false} {
		for i := range from {
			card := &from[i]
			if card.Product == "" || (card.Grid != nil) != known {
				continue
			}
			names[i] = c.model(card)
		}
	}
	slices.SortFunc(c.out.Models, func(a, b v1alpha1.Model) int { return cmp.Compare(a.Name, b.Name) })
	return names
}

// model is the name of the card's model, which is added if it is new.
func (c *conversion) model(card *nodeagent.Card) string {
	product := clip(card.Product, 90)
	m := v1alpha1.Model{Name: product}
	if card.Grid != nil {
		c.grid(&m, card)
	}
	for n := 2; ; n++ {
		at := slices.IndexFunc(c.out.Models, func(o v1alpha1.Model) bool { return o.Name == m.Name })
		switch {
		case at < 0 && len(c.out.Models) == maxModels:
			c.leftOut("models", "more than %d models", maxModels)
			return ""
		case at < 0:
			c.out.Models = append(c.out.Models, m)
			return m.Name
		case m.Profiles == nil || reflect.DeepEqual(c.out.Models[at], m):
			return m.Name
		}
		m.Name = fmt.Sprintf("%s #%d", product, n)
	}
}

// grid sets the ways to cut the model. A profile that contradicts itself is left out.
func (c *conversion) grid(m *v1alpha1.Model, card *nodeagent.Card) {
	g := card.Grid
	if g.Units < 1 || g.Units > maxUnits {
		c.leftOut("grid", "card %d has a grid of %d units", card.Index, g.Units)
		return
	}
	m.Units = int32(g.Units)
	for i := range g.Profiles {
		p := &g.Profiles[i]
		out := v1alpha1.Profile{
			Name: clip(p.Name, 48), ID: within(p.ID, -1<<31), Compute: within(min(p.Compute, maxUnits), 0), Size: int32(p.Size),
			MemoryMiB: max(p.MemoryMiB, 0), Multiprocessors: within(p.Multiprocessors, 0), Sole: clip(p.Sole, 32),
		}
		for _, s := range p.Starts {
			if s >= 0 && s+p.Size <= g.Units {
				out.Starts = append(out.Starts, int32(s))
			}
		}
		slices.Sort(out.Starts)
		out.Starts = slices.Compact(out.Starts)
		switch {
		case p.Name == "" || p.Size < 1 || p.Size > g.Units || m.Profile(out.Name) != nil:
			c.leftOut("grid", "profile %q (id %d, %d of %d units) of %s has no name, no place or is there twice", p.Name, p.ID, p.Size, g.Units, m.Name)
		case len(m.Profiles) == maxProfiles:
			c.leftOut("grid", "%s has more than %d profiles", m.Name, maxProfiles)
			return
		default:
			m.Profiles = append(m.Profiles, out)
		}
	}
}
