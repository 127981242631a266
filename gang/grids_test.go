package gang

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// readGrids reads testdata/grids.txt: the figures of real cards, profiles with
// attributes left out, since what they ask beside their span is no matter of the grid.
func readGrids(t *testing.T) map[string]*Grid {
	data, err := os.ReadFile("testdata/grids.txt")
	if err != nil {
		t.Fatal(err)
	}
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	profiles, units, model := map[string][]Profile{}, map[string]int{}, ""
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "#"):
		case line[0] != ' ':
			model = fields[0]
			units[model] = number(fields[1])
		case !strings.ContainsAny(fields[0][1:], "+-"):
			p := Profile{Name: fields[0], Size: number(fields[1])}
			for _, s := range strings.Split(fields[2], ",") {
				p.Starts = append(p.Starts, number(s))
			}
			profiles[model] = append(profiles[model], p)
		}
	}
	grids := map[string]*Grid{}
	for model, n := range units {
		grids[model] = NewGrid(n, profiles[model])
	}
	return grids
}

// On every grid of real cards, in every state that a card can be in: a slice fits if
// and only if one of its starts is free, and what is cut is part of a full layout.
func TestEveryGrid(t *testing.T) {
	grids, seen := readGrids(t), map[string]bool{}
	if len(grids) < 10 {
		t.Fatalf("%d models", len(grids))
	}
	for model, g := range grids {
		var shape strings.Builder
		for _, p := range g.profiles {
			fmt.Fprint(&shape, p.Size, p.Starts, ";")
		}
		if seen[shape.String()] {
			continue
		}
		seen[shape.String()] = true
		states := map[string]bool{}
		var visit func(units []bool, at []string, have []int)
		visit = func(units []bool, at []string, have []int) {
			key := fmt.Sprint(at)
			if states[key] {
				return
			}
			states[key] = true
			if !slices.ContainsFunc(g.full, func(full []int) bool { return partOf(have, full) }) {
				t.Fatalf("%s: %v is part of no layout", model, at)
			}
			taken := uint64(0)
			for u, used := range units {
				if used {
					taken |= 1 << u
				}
			}
			for i, p := range g.profiles {
				free := false
				for _, start := range p.Starts {
					if start+p.Size > len(units) || slices.Contains(units[start:start+p.Size], true) {
						continue
					}
					free = true
					next := slices.Clone(units)
					for u := range p.Size {
						next[start+u] = true
					}
					more := slices.Clone(have)
					more[i]++
					spot := append(slices.Clone(at), fmt.Sprintf("%d@%d", i, start))
					slices.Sort(spot)
					visit(next, spot, more)
				}
				if _, start, _, ok := g.Cut([]uint64{taken}, i); ok != free || ok && !slices.Contains(p.Starts, start) {
					t.Fatalf("%s, %v: %s fits: %t, at %d; a start is free: %t", model, at, p.Name, ok, start, free)
				}
			}
		}
		visit(make([]bool, g.units), nil, make([]int, len(g.profiles)))
		if want := map[int]int{4: 26, 8: 723}[g.units]; want != 0 && len(states) != want {
			t.Errorf("%s: %d states, want %d", model, len(states), want)
		}
	}
}
