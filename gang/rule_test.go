package gang

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/quota"
)

// others is the dimension in which pods of a group are counted in these tests.
const others = dims

// drawRules has the pod sets mind each other, and the pods of others in one group.
func drawRules(t *rapid.T, s *Spec) {
	group := func() Group {
		g := Group{Sets: make([]bool, len(s.PodSets))}
		for i := range g.Sets {
			g.Sets[i] = rapid.Bool().Draw(t, "in group")
		}
		if rapid.IntRange(0, 2).Draw(t, "others") == 0 {
			g.Dim = others
		}
		return g
	}
	key := rapid.SampledFrom([]string{NameField, NameField, "zone", "kind"})
	s.Level = Level{}
	for i := range s.PodSets {
		ps := &s.PodSets[i]
		ps.Level = Level{}
		for range rapid.IntRange(0, 2).Draw(t, "aparts") {
			r := Apart{Key: key.Draw(t, "key"), Group: group(), Most: rapid.IntRange(1, 2).Draw(t, "most")}
			if rapid.IntRange(0, 2).Draw(t, "wish") == 0 {
				r.Weight = rapid.IntRange(-3, 3).Draw(t, "weight")
			}
			ps.Apart = append(ps.Apart, r)
		}
		if rapid.Bool().Draw(t, "spreads") {
			ps.Spread = append(ps.Spread, Spread{
				Key: key.Draw(t, "key"), Group: group(), Skew: rapid.IntRange(1, 2).Draw(t, "skew"),
				Must: rapid.IntRange(0, 2).Draw(t, "wish") > 0, Domains: rapid.IntRange(0, 3).Draw(t, "domains"),
				All: rapid.Bool().Draw(t, "all"), Open: rapid.Bool().Draw(t, "open"),
			})
		}
		if rapid.IntRange(0, 3).Draw(t, "near") == 0 {
			ps.Near = append(ps.Near, Near{Key: key.Draw(t, "key"), Dim: others, Self: rapid.Bool().Draw(t, "self")})
		}
		if rapid.IntRange(0, 2).Draw(t, "wishes") == 0 {
			ps.Wishes = append(ps.Wishes, Wish{[]Requirement{{Key: "zone", Op: In, Values: []string{"b"}}}, 5})
		}
	}
}

// breaks says which rule the pods break if they are where the plan has them, or "".
// It counts from the plan and the nodes, and from nothing else.
func breaks(v *Inventory, spec *Spec, plan Plan) string {
	domain := func(key, node string) (string, bool) {
		if key == NameField {
			return node, true
		}
		d, ok := v.Node(node).Labels[key]
		return d, ok
	}
	tell := func(g *Group, key string) map[string]int {
		n := map[string]int{}
		for _, name := range v.Names() {
			if d, ok := domain(key, name); ok && g.Dim != 0 && v.Used(name).At(g.Dim) > 0 {
				n[d] += int(v.Used(name).At(g.Dim))
			}
		}
		for i, set := range plan.Sets {
			for _, slot := range set.Slots {
				if d, ok := domain(key, slot.Node); ok && g.has(i) {
					n[d] += slot.Count
				}
			}
		}
		return n
	}
	for i, set := range plan.Sets {
		ps := &spec.PodSets[i]
		for _, slot := range set.Slots {
			for _, r := range ps.Apart {
				d, ok := domain(r.Key, slot.Node)
				if n := tell(&r.Group, r.Key)[d]; ok && r.Weight == 0 && (n > r.Most || n == r.Most && !r.Group.has(i)) {
					return fmt.Sprintf("%s on %s has %d in its %s, %+v", ps.Name, slot.Node, n, r.Key, r)
				}
			}
			for _, r := range ps.Near {
				d, ok := domain(r.Key, slot.Node)
				counts := tell(&Group{Dim: others}, r.Key)
				if !ok || counts[d] == 0 && (len(counts) > 0 || !r.Self) {
					return fmt.Sprintf("%s on %s is near nobody by %s", ps.Name, slot.Node, r.Key)
				}
			}
			for _, r := range ps.Spread {
				if !r.Must {
					continue
				}
				d, ok := domain(r.Key, slot.Node)
				if !ok {
					return fmt.Sprintf("%s on %s is in no %s", ps.Name, slot.Node, r.Key)
				}
				counts := tell(&r.Group, r.Key)
				if n, least := counts[d], fewest(v, ps, &r, counts); n > least+r.Skew {
					return fmt.Sprintf("%s on %s has %d in its %s, another %d, %+v", ps.Name, slot.Node, n, r.Key, least, r)
				}
			}
		}
	}
	return ""
}

// fewest is how many pods the domain has that has the fewest.
func fewest(v *Inventory, ps *PodSet, r *Spread, counts map[string]int) int {
	seen := map[string]bool{}
	least := -1
	for _, name := range v.Names() {
		n := v.Node(name)
		bare := *n
		bare.Taints = nil
		_, labels := bare.Passes(&ps.Filter)
		bare = *n
		bare.Labels = nil
		_, taints := bare.Passes(&Filter{Tolerations: ps.Filter.Tolerations})
		everywhere := true
		for _, o := range ps.Spread {
			if _, ok := n.value(o.Key); o.Must && !ok {
				everywhere = false
			}
		}
		if !everywhere || !r.All && !labels || r.Open && (!n.Open() || !taints) {
			continue
		}
		d, ok := n.value(r.Key)
		if !ok || seen[d] {
			continue
		}
		seen[d] = true
		if least < 0 || counts[d] < least {
			least = counts[d]
		}
	}
	if least < 0 || len(seen) < r.Domains {
		return 0
	}
	return least
}

// planByTryingAll tries every way to put the pods on the nodes, rules in mind.
func planByTryingAll(v *Inventory, nodes []*Node, spec *Spec, sizes []int) bool {
	plan := Empty(spec)
	var put func(i, k, left int) bool
	put = func(i, k, left int) bool {
		switch {
		case i == len(sizes):
			return breaks(v, spec, plan) == ""
		case left == 0 && i+1 == len(sizes):
			return put(i+1, 0, 0)
		case left == 0:
			return put(i+1, 0, sizes[i+1])
		case k == len(nodes):
			return false
		case put(i, k+1, left):
			return true
		}
		n := nodes[k]
		if !spec.may(i, n) {
			return false
		}
		free := v.Free(n.Name).Clone()
		for j := range sizes {
			free.Sub(spec.PodSets[j].Request.Times(count(plan, j, n.Name)))
		}
		if !spec.PodSets[i].Request.Within(free) {
			return false
		}
		plan.Add(i, n.Name, 1)
		defer plan.Add(i, n.Name, -1)
		return put(i, k, left-1)
	}
	return put(0, 0, sizes[0])
}

func drawRuled(t *rapid.T) (*cluster, *Spec) {
	c := drawCluster(t)
	for _, n := range c.nodes {
		if rapid.Bool().Draw(t, "others here") {
			r := c.used[n.Name].Clone()
			r.Set(others, rapid.Int64Range(1, 2).Draw(t, "others"))
			c.used[n.Name] = r
		}
	}
	spec := drawSpec(t, 2, 4)
	drawRules(t, spec)
	return c, spec
}

// Pods that mind other pods are placed as trying everything does: a plan breaks no
// rule, and there is none only if there can be none, or the shortfall says that the
// search was cut.
func TestRulesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, spec := drawRuled(t)
		sizes := spec.Sizes()
		v := c.build(c.nodes)
		before := v.draw()
		plan, short := Place(v, spec, sizes)
		if got := Fits(v, spec, sizes); got != (short == nil) {
			t.Fatalf("Fits says %t, Place %+v\n%s", got, short, show(v, spec, sizes))
		}
		Look(v, spec)
		if after := v.draw(); after != before {
			t.Fatalf("Place changed the inventory from\n%s\nto\n%s", before, after)
		}
		if short == nil {
			if w := wrong(v, spec, sizes, plan); w != "" {
				t.Fatalf("plan %s: %s\n%s", plan, w, show(v, spec, sizes))
			}
			if w := breaks(v, spec, plan); w != "" {
				t.Fatalf("plan %s: %s\n%s", plan, w, show(v, spec, sizes))
			}
			return
		}
		if !short.Cut && planByTryingAll(v, c.nodes, spec, sizes) {
			t.Fatalf("no plan but %+v, though there is one\n%s", *short, show(v, spec, sizes))
		}
	})
}

// Pods that are added later mind those that are there, and stop only when none fits.
func TestRulesGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, spec := drawRuled(t)
		for i := range spec.PodSets {
			spec.PodSets[i].Near = nil // who is there already may be the gang itself
			for _, r := range spec.PodSets[i].Apart {
				if r.Group.Dim == others && r.Group.has(i) {
					spec.PodSets[i].Groups = []int{others}
				}
			}
		}
		for i := range spec.PodSets { // who is counted among the others is so for every rule
			in := len(spec.PodSets[i].Groups) > 0
			for j := range spec.PodSets {
				for k := range spec.PodSets[j].Apart {
					if g := &spec.PodSets[j].Apart[k].Group; g.Dim == others {
						g.Sets[i] = in
					}
				}
				for k := range spec.PodSets[j].Spread {
					if g := &spec.PodSets[j].Spread[k].Group; g.Dim == others {
						g.Sets[i] = in
					}
				}
			}
		}
		v := c.build(c.nodes)
		small, short := Place(v, spec, spec.Least())
		if short != nil {
			return
		}
		v.TakePlan(spec, small)
		large := Grow(v, spec, small, func(int) bool { return true })
		v.GivePlan(spec, small)
		if w := wrong(v, spec, large.Sizes(), large) + breaks(v, spec, large); w != "" {
			t.Fatalf("plan %s, grown from %s: %s\n%s", large, small, w, show(v, spec, large.Sizes()))
		}
		for i, ps := range spec.PodSets {
			for _, n := range c.nodes {
				more := large.Clone()
				more.Add(i, n.Name, 1)
				if more.Sizes()[i] <= ps.Count && wrong(v, spec, more.Sizes(), more)+breaks(v, spec, more) == "" {
					t.Fatalf("plan %s, grown from %s: one more pod of %s fits on %s\n%s", large, small, ps.Name, n.Name, show(v, spec, more.Sizes()))
				}
			}
		}
	})
}

// Specs that differ in a rule are not taken for the same.
func TestRuleKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t, 2, 2)
		drawRules(t, spec)
		other := *spec
		other.PodSets = slices.Clone(spec.PodSets)
		drawRules(t, &other)
		same := strings.EqualFold(fmt.Sprintf("%+v", spec.PodSets), fmt.Sprintf("%+v", other.PodSets)) && spec.Level == other.Level
		if (spec.Key() == other.Key()) != same {
			t.Fatalf("%s\n%s", spec.Key(), other.Key())
		}
	})
	spec := Spec{PodSets: []PodSet{{Name: "main", Request: quota.Resources{0, 0, 1}}}}
	with := spec
	with.Roomy = true
	if spec.Key() == with.Key() {
		t.Error("spread and pack have one key")
	}
}
