package mock

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// placed is a slice in a layout.
type placed struct{ profile, start int }

// layouts walks every state that a card of the model can be cut into with these
// profiles, by cutting and destroying on the mock itself: each is visited once, however
// it can be reached.
func layouts(t *testing.T, m *Model, profiles []int, visit func(c *card, now []placed)) {
	t.Helper()
	n, err := New("n", m.Key)
	if err != nil {
		t.Fatal(err)
	}
	n.Must("mig 0 on")
	c := n.cards[0]
	seen := map[string]bool{}
	var from func(now []placed)
	from = func(now []placed) {
		key := slices.Clone(now)
		slices.SortFunc(key, func(a, b placed) int { return a.start - b.start })
		if seen[fmt.Sprint(key)] {
			return
		}
		seen[fmt.Sprint(key)] = true
		visit(c, key)
		for _, i := range profiles {
			p := &m.Profiles[i]
			for _, start := range p.Starts {
				gi, ret := c.create(p, start)
				if ret != gonvml.SUCCESS {
					continue
				}
				from(append(slices.Clone(now), placed{i, start}))
				if ret := gi.destroy(); ret != gonvml.SUCCESS {
					t.Fatal(ret)
				}
			}
		}
	}
	from(nil)
}

// geometry counts states, maximal layouts and the multisets of those. On the way it
// compares two answers in every state: whether the card takes one more of a profile,
// left to choose where, and whether some legal start is free.
func geometry(t *testing.T, m *Model, profiles []int) (states, maximal int, multisets map[string]bool) {
	multisets = map[string]bool{}
	layouts(t, m, profiles, func(c *card, now []placed) {
		states++
		full := true
		for _, i := range profiles {
			p := &m.Profiles[i]
			free := slices.ContainsFunc(p.Starts, func(start int) bool { return legal(m, now, i, start) })
			gi, ret := c.create(p, -1)
			if (ret == gonvml.SUCCESS) != free {
				t.Errorf("%s with %v: %s fits: %v, a legal start is free: %v", m.Key, now, p.Name, ret, free)
			}
			if ret == gonvml.SUCCESS {
				full = false
				_ = gi.destroy()
			}
		}
		if full {
			maximal++
			var names []string
			for _, s := range now {
				names = append(names, m.Profiles[s.profile].Name)
			}
			slices.Sort(names)
			multisets[strings.Join(names, " ")] = true
		}
	})
	return states, maximal, multisets
}

// legal is whether a slice may be added: the plain rule, apart from the mock's.
func legal(m *Model, now []placed, profile, start int) bool {
	taken := map[int]bool{}
	media := 0
	for _, s := range now {
		for u := range m.Profiles[s.profile].Size {
			taken[s.start+u] = true
		}
		if m.Profiles[s.profile].media() {
			media++
		}
	}
	for u := range m.Profiles[profile].Size {
		if taken[start+u] {
			return false
		}
	}
	return !m.Profiles[profile].media() || media == 0
}

// plain are the profiles without attributes; double says whether 1g with double memory
// is among them.
func plain(m *Model, double bool) []int {
	var out []int
	for i, p := range m.Profiles {
		if !strings.ContainsAny(p.Name, "+-") && (double || p.Enum != gonvml.GPU_INSTANCE_PROFILE_1_SLICE_REV2) {
			out = append(out, i)
		}
	}
	return out
}

func TestGeometry(t *testing.T) {
	for _, m := range Models() {
		t.Run(m.Key, func(t *testing.T) {
			want := [][3]int{{298, 19, 14}, {723, 78, 38}}
			if m.Units != 8 {
				want = [][3]int{{26, 5, 4}, {26, 5, 4}}
			}
			for i, double := range []bool{false, true} {
				states, maximal, multisets := geometry(t, &m, plain(&m, double))
				if got := [3]int{states, maximal, len(multisets)}; got != want[i] {
					t.Errorf("with double memory %t: %v states, maximal layouts, multisets, want %v", double, got, want[i])
				}
			}
		})
	}
}

// With every profile of the model, +me and the like included.
func TestFitsWhereAStartIsFree(t *testing.T) {
	for _, m := range Models() {
		if m.Units == 8 && m.Key != "A100-40GB" {
			continue // the grids are alike, see TestGeometry
		}
		all := make([]int, len(m.Profiles))
		for i := range all {
			all[i] = i
		}
		states, _, _ := geometry(t, &m, all)
		t.Logf("%s: %d states", m.Key, states)
		if plainStates, _, _ := geometry(t, &m, plain(&m, true)); states <= plainStates {
			t.Errorf("%s: %d states with +me, %d without", m.Key, states, plainStates)
		}
	}
}

// What the planner says of a grid is what the hardware does: a card that is free holds
// a multiset of slices if and only if some layout has them.
func TestPlannerAgrees(t *testing.T) {
	for _, m := range Models() {
		profiles := plain(&m, true)
		reachable := map[string]bool{}
		layouts(t, &m, profiles, func(_ *card, now []placed) { reachable[fmt.Sprint(counts(now, profiles))] = true })
		kind := &gang.Kind{Name: m.Key}
		var ways []gang.Profile
		for at, i := range profiles {
			p := m.Profiles[i]
			ways = append(ways, gang.Profile{Name: p.Name, Size: p.Size, Starts: p.Starts})
			kind.Slices = append(kind.Slices, quota.Pods+2+at)
		}
		kind.Grid = gang.NewGrid(m.Units, ways)
		tried := 0
		every(len(profiles), m.Compute, func(count []int) {
			tried++
			if got := holds(kind, count); got != reachable[fmt.Sprint(count)] {
				t.Errorf("%s: %v of %d profiles: the planner says %t", m.Key, count, len(profiles), got)
			}
		})
		t.Logf("%s: %d multisets tried, %d reachable", m.Key, tried, len(reachable))
	}
}

func counts(now []placed, profiles []int) []int {
	out := make([]int, len(profiles))
	for _, s := range now {
		out[slices.Index(profiles, s.profile)]++
	}
	return out
}

// every visits all counts of so many profiles whose sum is at most most.
func every(profiles, most int, visit func([]int)) {
	count := make([]int, profiles)
	var from func(at, left int)
	from = func(at, left int) {
		if at == profiles {
			visit(count)
			return
		}
		for n := 0; n <= left; n++ {
			count[at] = n
			from(at+1, left-n)
		}
		count[at] = 0
	}
	from(0, most)
}

// holds asks the planner whether one empty card could be cut so that a pod gets these
// slices.
func holds(kind *gang.Kind, count []int) bool {
	const whole = quota.Pods + 1
	offer := quota.Resources{}
	offer.Set(whole, 1)
	room := quota.Resources{}
	room.Set(quota.Pods, 1)
	room.Add(offer)
	inv := gang.NewInventory()
	inv.Put(gang.Equip(gang.Node{Name: "n", Offer: room}, gang.NewDeck([]gang.Card{{Kind: kind, Offer: offer}}, whole, false)))
	request := quota.Resources{}
	request.Set(quota.Pods, 1)
	for i, n := range count {
		request.Set(kind.Slices[i], int64(n))
	}
	spec := &gang.Spec{PodSets: []gang.PodSet{{Name: "main", Count: 1, Min: 1, Request: request}}}
	return gang.Fits(inv.Vacant(gang.Relax{Layout: true}), spec, []int{1})
}
