package simulations

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPlace compares Place with a plain walk through all states of a card of
// plain profiles, one slice after the other. The number of states and of those
// to which nothing can be added is known for each grid.
func TestPlace(t *testing.T) {
	tests := []struct {
		product     string
		double      bool // with the 1g profile of double memory
		states, top int
	}{
		{"NVIDIA-A100-SXM4-40GB", false, 298, 19},
		{"NVIDIA-A100-SXM4-40GB", true, 723, 78},
		{"NVIDIA-H200", false, 298, 19},
		{"NVIDIA-A30", true, 26, 5},
		{"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", true, 26, 5},
	}
	for _, tt := range tests {
		card, ok := CardOf(tt.product)
		if !ok {
			t.Fatalf("no card %s", tt.product)
		}
		plain := slices.DeleteFunc(slices.Clone(card.Profiles), func(p Profile) bool {
			return strings.ContainsAny(p.Name, "+-") || !tt.double && p.Compute == 1 && p.Size == 2
		})
		walk := stateWalk{card: card, plain: plain, seen: map[string]bool{}, possible: map[string]bool{}}
		walk.from(nil)
		if len(walk.seen) != tt.states || walk.top != tt.top {
			t.Errorf("%s, double %v: %d states and %d full ones, want %d and %d",
				tt.product, tt.double, len(walk.seen), walk.top, tt.states, tt.top)
		}
		walk.compare(t, nil, 0)
	}
}

// slot is a slice in its place.
type slot struct{ profile, start int }

// stateWalk visits every state of a card.
type stateWalk struct {
	card     Card
	plain    []Profile
	seen     map[string]bool // states
	possible map[string]bool // their layouts
	top      int
}

func (w *stateWalk) from(state []slot) {
	slices.SortFunc(state, func(a, b slot) int { return a.start - b.start })
	key := fmt.Sprint(state)
	if w.seen[key] {
		return
	}
	w.seen[key] = true
	var layout []int
	for _, s := range state {
		layout = append(layout, s.profile)
	}
	slices.Sort(layout)
	w.possible[fmt.Sprint(layout)] = true
	full := true
	for i, p := range w.plain {
		for _, start := range p.Starts {
			free := !slices.ContainsFunc(state, func(s slot) bool {
				return s.start < start+p.Size && start < s.start+w.plain[s.profile].Size
			})
			if free {
				full = false
				w.from(append(slices.Clone(state), slot{i, start}))
			}
		}
	}
	if full {
		w.top++
	}
}

// compare asks Place for every layout that extends this one by up to eight
// slices, and expects exactly those that some state has.
func (w *stateWalk) compare(t *testing.T, layout []int, from int) {
	var names []string
	for _, i := range layout {
		names = append(names, w.plain[i].Name)
	}
	_, err := w.card.Place(names)
	if want := w.possible[fmt.Sprint(layout)]; (err == nil) != want {
		t.Errorf("%s %v: Place says %v, possible %v", w.card.Product, names, err, want)
	}
	if len(layout) == 8 {
		return
	}
	for i := from; i < len(w.plain); i++ {
		w.compare(t, append(slices.Clone(layout), i), i)
	}
}

// TestPlaceIsLegal: starts are legal and slices do not overlap, also where
// first fit in the order of the layout fails.
func TestPlaceIsLegal(t *testing.T) {
	card, _ := CardOf("NVIDIA-A100-SXM4-40GB")
	for _, layout := range [][]string{
		{"1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"},
		{"1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb", "1g.10gb"},
		{"1g.5gb+me", "2g.10gb", "4g.20gb"},
		{},
	} {
		starts, err := card.Place(layout)
		if err != nil {
			t.Errorf("%v: %v", layout, err)
			continue
		}
		taken := make([]bool, card.Units)
		for i, name := range layout {
			p, _ := card.Profile(name)
			if !slices.Contains(p.Starts, starts[i]) {
				t.Errorf("%v: %s starts at %d", layout, name, starts[i])
			}
			for u := starts[i]; u < starts[i]+p.Size; u++ {
				if taken[u] {
					t.Errorf("%v: two slices on unit %d", layout, u)
				}
				taken[u] = true
			}
		}
	}
}

// TestCatalogueAgrees compares the catalogue with the handed facts about real
// cards, where the checkout has them.
func TestCatalogueAgrees(t *testing.T) {
	const path = "../../shared/facts/gpu-profiles.json"
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		t.Skipf("no %s: this checkout stands alone", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	var facts struct {
		Models []struct {
			GFDProductLabels  []string
			MemoryTotalMiB    int
			Architecture      string
			ComputeCapability string
			PlacementUnits    int
			Profiles          []struct {
				Name            string
				ResourceName    string
				ComputeSlices   int
				MemorySlices    int
				Multiprocessors int
				MemoryMiB       int
				Placements      []struct{ Start, Size int }
			}
		}
	}
	if err := json.Unmarshal(data, &facts); err != nil {
		t.Fatal(err)
	}
	products := 0
	for _, m := range facts.Models {
		for _, product := range m.GFDProductLabels {
			products++
			card, ok := CardOf(product)
			if !ok {
				t.Errorf("no card %s", product)
				continue
			}
			if card.MemoryMiB != m.MemoryTotalMiB || card.Family != m.Architecture || card.Compute != m.ComputeCapability || card.Units != m.PlacementUnits {
				t.Errorf("%s: %+v, facts say %d MiB, %s %s, %d units", product, card, m.MemoryTotalMiB, m.Architecture, m.ComputeCapability, m.PlacementUnits)
			}
			if len(card.Profiles) != len(m.Profiles) {
				t.Errorf("%s: %d profiles, facts say %d", product, len(card.Profiles), len(m.Profiles))
			}
			for _, want := range m.Profiles {
				got, ok := card.Profile(want.Name)
				if !ok {
					t.Errorf("%s: no profile %s", product, want.Name)
					continue
				}
				var starts []int
				for _, p := range want.Placements {
					starts = append(starts, p.Start)
					if p.Size != got.Size {
						t.Errorf("%s %s: size %d, facts say %d", product, want.Name, got.Size, p.Size)
					}
				}
				if !slices.Equal(got.Starts, starts) || got.Resource() != want.ResourceName || got.Compute != want.ComputeSlices ||
					got.SMs != want.Multiprocessors || got.MemoryMiB != want.MemoryMiB {
					t.Errorf("%s: got %+v, facts say %+v", product, got, want)
				}
			}
		}
	}
	if products == 0 {
		t.Error("the facts name no product")
	}
}
