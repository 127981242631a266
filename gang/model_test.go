package gang

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/quota"
)

// The dimensions of the vectors in these tests.
const (
	gpu  = quota.Pods + 1
	nic  = quota.Pods + 2
	dims = quota.Pods + 3
)

// cluster is what an Inventory is made of, held plainly.
type cluster struct {
	nodes []*Node
	used  map[string]quota.Resources
}

// build makes the inventory, nodes in the given order.
func (c *cluster) build(nodes []*Node) *Inventory {
	v := NewInventory()
	for _, n := range nodes {
		v.Put(n)
	}
	for _, name := range slices.Sorted(maps.Keys(c.used)) {
		v.Take(name, c.used[name])
	}
	return v
}

func drawCluster(t *rapid.T) *cluster {
	c := &cluster{used: map[string]quota.Resources{}}
	amount := rapid.Int64Range(0, 6)
	for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
		n := &Node{Name: fmt.Sprintf("n-%d", i), Offer: make(quota.Resources, dims), Labels: map[string]string{}}
		for d := range n.Offer {
			n.Offer[d] = amount.Draw(t, "offer")
		}
		for _, key := range []string{"zone", "kind"} {
			if v := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, key); v != "" {
				n.Labels[key] = v
			}
		}
		if rapid.IntRange(0, 4).Draw(t, "tainted") == 0 {
			n.Taints = []Taint{{Key: "only", Value: "x", Effect: NoSchedule}}
		}
		if rapid.IntRange(0, 4).Draw(t, "outage") == 0 {
			n.Outages = []Outage{{What: "cordoned", Closed: rapid.Bool().Draw(t, "closed")}}
		}
		if rapid.Bool().Draw(t, "in use") {
			// More than it offers happens: hardware was lost under its pods.
			c.used[n.Name] = quota.Resources{0, amount.Draw(t, "used"), 1}
		}
		c.nodes = append(c.nodes, n)
	}
	return c
}

func drawLevel(t *rapid.T) Level {
	if rapid.IntRange(0, 3).Draw(t, "level") > 0 {
		return Level{}
	}
	return Level{Key: "zone", Required: rapid.Bool().Draw(t, "required")}
}

func drawSpec(t *rapid.T, sets, count int) *Spec {
	s := &Spec{Level: drawLevel(t)}
	for i := range rapid.IntRange(1, sets).Draw(t, "sets") {
		ps := PodSet{Name: fmt.Sprintf("s%d", i), Count: rapid.IntRange(0, count).Draw(t, "count"), Level: drawLevel(t)}
		ps.Min = rapid.IntRange(0, ps.Count).Draw(t, "min")
		ps.Request = quota.Resources{0, 0, 1}
		for d := range dims {
			if d != quota.Pods {
				ps.Request.Set(d, rapid.Int64Range(0, 3).Draw(t, "request"))
			}
		}
		if rapid.IntRange(0, 2).Draw(t, "filtered") == 0 {
			ps.Filter.All = []Requirement{{Key: "kind", Op: In, Values: []string{"a"}}}
		}
		if rapid.Bool().Draw(t, "tolerates") {
			ps.Filter.Tolerations = []Toleration{{Key: "only", Exists: true}}
		}
		s.PodSets = append(s.PodSets, ps)
	}
	return s
}

// may says whether pods of set i may be on the node at all.
func (s *Spec) may(i int, n *Node) bool {
	_, ok := n.Passes(&s.PodSets[i].Filter)
	return ok && n.Open()
}

// fitsByTryingAll tries every way to put the pods on the nodes. All of them are in
// one domain of level, if that asks for one.
func fitsByTryingAll(v *Inventory, nodes []*Node, spec *Spec, sizes []int, level Level) bool {
	if level.Required {
		return slices.ContainsFunc(nodes, func(first *Node) bool {
			zone, ok := first.Labels[level.Key]
			return ok && fitsByTryingAll(v, inZone(nodes, level.Key, zone), spec, sizes, Level{})
		})
	}
	free := make([]quota.Resources, len(nodes))
	for k, n := range nodes {
		free[k] = v.Free(n.Name).Clone()
	}
	var put func(i, k, left int, zone *string) bool
	put = func(i, k, left int, zone *string) bool {
		if i == len(sizes) {
			return true
		}
		if left == 0 {
			if i+1 == len(sizes) {
				return true
			}
			return put(i+1, 0, sizes[i+1], nil)
		}
		if k == len(nodes) {
			return false
		}
		if put(i, k+1, left, zone) { // no pod of set i here
			return true
		}
		n, ps := nodes[k], spec.PodSets[i]
		if ps.Level.Required {
			z, ok := n.Labels[ps.Level.Key]
			if !ok || zone != nil && *zone != z {
				return false || put(i, k+1, left, zone)
			}
			zone = &z
		}
		if !spec.may(i, n) || !ps.Request.Within(free[k]) {
			return false
		}
		free[k].Sub(ps.Request)
		defer free[k].Add(ps.Request)
		return put(i, k, left-1, zone)
	}
	if len(sizes) == 0 {
		return true
	}
	return put(0, 0, sizes[0], nil)
}

func inZone(nodes []*Node, key, zone string) []*Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool {
		z, ok := n.Labels[key]
		return !ok || z != zone
	})
}

// wrong says what is wrong with a plan for sizes pods, or "".
func wrong(v *Inventory, spec *Spec, sizes []int, plan Plan) string {
	if got := plan.Sizes(); !slices.Equal(got, sizes) {
		return fmt.Sprintf("it places %v pods of %v", got, sizes)
	}
	taken := map[string]quota.Resources{}
	gangZones := map[string]bool{}
	for i, s := range plan.Sets {
		zones := map[string]bool{}
		for k, slot := range s.Slots {
			if slot.Count <= 0 || k > 0 && compareNames(s.Slots[k-1].Node, slot.Node) >= 0 {
				return fmt.Sprintf("its slots are not in order: %v", s.Slots)
			}
			n := v.Node(slot.Node)
			if n == nil || !spec.may(i, n) {
				return fmt.Sprintf("%s may not be on %s", s.Name, slot.Node)
			}
			sum := taken[slot.Node]
			sum.Add(spec.PodSets[i].Request.Times(slot.Count))
			taken[slot.Node] = sum
			zones[n.Labels["zone"]], gangZones[n.Labels["zone"]] = true, true
		}
		if spec.PodSets[i].Level.Required && (len(zones) > 1 || zones[""]) {
			return fmt.Sprintf("%s must be in one zone and is in %v", s.Name, zones)
		}
	}
	for name, r := range taken {
		if !r.Within(v.Free(name)) {
			return fmt.Sprintf("it takes %v of %s, free are %v", r, name, v.Free(name))
		}
	}
	if spec.Level.Required && (len(gangZones) > 1 || gangZones[""]) {
		return fmt.Sprintf("the gang must be in one zone and is in %v", gangZones)
	}
	return ""
}

func (v *Inventory) draw() string {
	space := quota.NewSpace()
	space.Index("gpu")
	space.Index("nic")
	return v.Draw(space, quota.CPU, quota.Memory, quota.Pods, gpu, nic) + fmt.Sprint(" total ", v.Total(), " trials ", v.trial, len(v.undo))
}

func show(v *Inventory, spec *Spec, sizes []int) string {
	var b strings.Builder
	b.WriteString(v.draw() + "\n")
	for _, p := range v.nodes {
		if p.node != nil {
			fmt.Fprintf(&b, "%s %v free %v %v %v\n", p.name, p.node.Labels, p.free, p.node.Taints, p.node.Outages)
		}
	}
	fmt.Fprintf(&b, "level %v sizes %v\n", spec.Level, sizes)
	for _, ps := range spec.PodSets {
		fmt.Fprintf(&b, "%+v\n", ps)
	}
	return b.String()
}

// placeIsExact holds Place against trying everything: a plan is sound, and there
// is none only if there can be none, or the shortfall says that the search was cut.
// Alike pods are never cut. Nothing is taken, and the order in which nodes came
// does not matter, nor do nodes that came and went.
func placeIsExact(t *rapid.T) {
	c := drawCluster(t)
	spec := drawSpec(t, 3, 3)
	sizes := make([]int, len(spec.PodSets))
	for i, ps := range spec.PodSets {
		sizes[i] = rapid.IntRange(ps.Min, ps.Count).Draw(t, "size")
	}
	v := c.build(c.nodes)
	before := v.draw()
	plan, short := Place(v, spec, sizes)
	if after := v.draw(); after != before {
		t.Fatalf("Place changed the inventory from\n%s\nto\n%s", before, after)
	}
	fits := fitsByTryingAll(v, c.nodes, spec, sizes, spec.Level)
	if got := Fits(v, spec, sizes); got != (short == nil) {
		t.Fatalf("Fits says %t, Place %+v\n%s", got, short, show(v, spec, sizes))
	}
	switch {
	case short == nil:
		if w := wrong(v, spec, sizes, plan); w != "" {
			t.Fatalf("plan %s: %s\n%s", plan, w, show(v, spec, sizes))
		}
		preferred := Level{Key: spec.Level.Key, Required: true}
		tight := Spec{PodSets: spec.PodSets, Level: preferred}
		if spec.Level.Key != "" && !setLevels(spec) && wrong(v, &tight, sizes, plan) != "" && fitsByTryingAll(v, c.nodes, spec, sizes, preferred) {
			t.Fatalf("plan %s leaves the preferred level though a domain holds it\n%s", plan, show(v, spec, sizes))
		}
	case fits && (!short.Cut || alike(sizes)):
		t.Fatalf("no plan but %+v, though there is one\n%s", *short, show(v, spec, sizes))
	case short.Cut && !setLevels(spec):
		t.Fatalf("the search was cut on %d nodes\n%s", len(c.nodes), show(v, spec, sizes))
	case spec.Level.Key == "":
		checkShortfall(t, v, spec, sizes, short)
	}

	other := c.build(rapid.Permutation(c.nodes).Draw(t, "order"))
	other.Put(&Node{Name: "n-00", Offer: quota.Resources{9, 9, 9, 9, 9}})
	other.Remove("n-00")
	again, shortAgain := Place(other, spec, sizes)
	if fmt.Sprint(again) != fmt.Sprint(plan) || fmt.Sprint(shortAgain) != fmt.Sprint(short) {
		t.Fatalf("with nodes in another order:\n%v %+v\n%v %+v\n%s", plan, short, again, shortAgain, show(v, spec, sizes))
	}
}

// checkShortfall counts for each pod set alone how many find a place.
func checkShortfall(t *rapid.T, v *Inventory, spec *Spec, sizes []int, short *Shortfall) {
	for i, s := range short.Sets {
		found := 0
		for _, name := range v.Names() {
			if n := v.Node(name); n != nil && spec.may(i, n) {
				found += v.Free(name).Copies(spec.PodSets[i].Request, sizes[i])
			}
		}
		if s.Name != spec.PodSets[i].Name || s.Want != sizes[i] || s.Found != min(found, sizes[i]) {
			t.Fatalf("%+v, want %d of %d\n%s", s, min(found, sizes[i]), sizes[i], show(v, spec, sizes))
		}
	}
}

func setLevels(spec *Spec) bool {
	return slices.ContainsFunc(spec.PodSets, func(ps PodSet) bool { return ps.Level.Key != "" })
}

func alike(sizes []int) bool {
	return len(slices.DeleteFunc(slices.Clone(sizes), func(n int) bool { return n == 0 })) <= 1
}

func TestPlaceModel(t *testing.T) { rapid.Check(t, placeIsExact) }

// FuzzPlace looks for an inventory and a gang that TestPlaceModel does not draw by
// chance.
func FuzzPlace(f *testing.F) { f.Fuzz(rapid.MakeFuzz(placeIsExact)) }

// Amounts beyond anything real, in requests and on nodes: still no plan that takes
// what is not free, and no panic.
func TestPlaceHuge(t *testing.T) {
	amount := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, math.MaxInt64), rapid.Just[int64](math.MaxInt64))
	draw := func(t *rapid.T, name string) quota.Resources {
		r := make(quota.Resources, rapid.IntRange(0, dims).Draw(t, name+" length"))
		for d := range r {
			r[d] = amount.Draw(t, name)
		}
		return r
	}
	rapid.Check(t, func(t *rapid.T) {
		v := NewInventory()
		for i := range rapid.IntRange(0, 4).Draw(t, "nodes") {
			v.Put(&Node{Name: fmt.Sprint(i), Offer: draw(t, "offer")})
		}
		spec := &Spec{}
		var sizes []int
		for i := range rapid.IntRange(0, 3).Draw(t, "sets") {
			spec.PodSets = append(spec.PodSets, PodSet{Name: fmt.Sprint(i), Count: math.MaxInt, Request: draw(t, "request")})
			sizes = append(sizes, rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 1<<40)).Draw(t, "size"))
		}
		before := v.draw()
		plan, short := Place(v, spec, sizes)
		if short == nil {
			if w := wrong(v, spec, sizes, plan); w != "" {
				t.Fatalf("plan %s: %s\n%s", plan, w, show(v, spec, sizes))
			}
		}
		if after := v.draw(); after != before {
			t.Fatalf("Place changed the inventory from\n%s\nto\n%s", before, after)
		}
	})
}

// Grow keeps what the plan has, adds only what is sound, stays within full size and
// what it is allowed, and stops only when no further pod fits.
func TestGrowModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		spec := drawSpec(t, 3, 4)
		v := c.build(c.nodes)
		small, short := Place(v, spec, spec.Least())
		if short != nil || Total(spec.Least()) == 0 {
			return
		}
		quotas := make([]int, len(spec.PodSets)) // how many more of each set are allowed
		for i := range quotas {
			quotas[i] = rapid.IntRange(0, 4).Draw(t, "allowed")
		}
		allowed := slices.Clone(quotas)
		v.TakePlan(spec, small)
		before := v.draw()
		large := Grow(v, spec, small, func(set int) bool { allowed[set]--; return allowed[set] >= 0 })
		if after := v.draw(); after != before {
			t.Fatalf("Grow changed the inventory from\n%s\nto\n%s", before, after)
		}
		v.GivePlan(spec, small)
		sizes := large.Sizes()
		if w := wrong(v, spec, sizes, large); w != "" {
			t.Fatalf("plan %s, grown from %s: %s\n%s", large, small, w, show(v, spec, sizes))
		}
		v.TakePlan(spec, large)
		for i, ps := range spec.PodSets {
			if sizes[i] > ps.Count || sizes[i]-small.Sizes()[i] > quotas[i] {
				t.Fatalf("%s has %d pods, may have %d, grew from %d by at most %d", ps.Name, sizes[i], ps.Count, small.Sizes()[i], quotas[i])
			}
			for _, slot := range small.Sets[i].Slots {
				if count(large, i, slot.Node) < slot.Count {
					t.Fatalf("plan %s, grown from %s, moved a pod of %s off %s", large, small, ps.Name, slot.Node)
				}
			}
			if sizes[i] == ps.Count || sizes[i]-small.Sizes()[i] == quotas[i] {
				continue
			}
			for _, n := range c.nodes {
				more := large.Clone()
				more.Add(i, n.Name, 1)
				v.GivePlan(spec, large)
				w := wrong(v, spec, more.Sizes(), more)
				v.TakePlan(spec, large)
				if w == "" {
					t.Fatalf("plan %s, grown from %s: one more pod of %s fits on %s\n%s", large, small, ps.Name, n.Name, show(v, spec, sizes))
				}
			}
		}
	})
}

func count(p Plan, set int, node string) int {
	for _, s := range p.Sets[set].Slots {
		if s.Node == node {
			return s.Count
		}
	}
	return 0
}

// The inventory counts as plain maps do, whatever comes, goes, is taken, given
// back, tried and undone, also on nodes that are not there (any more).
func TestInventoryModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := NewInventory()
		nodes, used := map[string]*Node{}, map[string]quota.Resources{}
		var marks []int
		var saved []map[string]quota.Resources
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			name := fmt.Sprintf("n-%d", rapid.IntRange(0, 3).Draw(t, "node"))
			steps := []string{"take", "take", "give", "mark", "undo"}
			if len(marks) == 0 { // nodes do not change while something is tried
				steps = append(steps, "put", "put", "remove")
			}
			switch rapid.SampledFrom(steps).Draw(t, "step") {
			case "put":
				n := &Node{Name: name, Offer: quota.Resources{rapid.Int64Range(0, 9).Draw(t, "offer"), 1, 2}}
				nodes[name] = n
				v.Put(n)
			case "remove":
				delete(nodes, name)
				v.Remove(name)
			case "take":
				r := quota.Resources{rapid.Int64Range(0, 9).Draw(t, "take"), 0, 1}
				sum := used[name].Clone()
				sum.Add(r)
				used[name] = sum
				v.Take(name, r)
			case "give":
				r := used[name].Clone()
				for d := range r {
					r[d] = rapid.Int64Range(0, r[d]).Draw(t, "give")
				}
				if len(r) == 0 {
					break
				}
				left := used[name].Clone()
				left.Sub(r)
				used[name] = left
				v.Give(name, r)
			case "mark":
				marks, saved = append(marks, v.Mark()), append(saved, maps.Clone(used))
			case "undo":
				if n := len(marks) - 1; n >= 0 {
					v.Undo(marks[n])
					used = saved[n]
					marks, saved = marks[:n], saved[:n]
				}
			}
			var want []string
			var total quota.Resources
			for i := range 4 {
				name := fmt.Sprintf("n-%d", i)
				n := nodes[name]
				if n != nil {
					total.Add(n.Offer)
				}
				if n != nil || !used[name].IsZero() {
					want = append(want, name)
				}
				if !v.Used(name).Equal(used[name]) || v.Node(name) != n {
					t.Fatalf("%s is %+v with %v taken, want %+v with %v", name, v.Node(name), v.Used(name), n, used[name])
				}
				for d := range 3 {
					free := int64(0)
					if n != nil {
						free = max(0, n.Offer[d]-used[name].At(d))
					}
					if v.Free(name).At(d) != free {
						t.Fatalf("%d of dimension %d are free on %s, want %d", v.Free(name).At(d), d, name, free)
					}
				}
			}
			if len(marks) == 0 && !slices.Equal(v.Names(), want) {
				t.Fatalf("nodes are %v, want %v", v.Names(), want)
			}
			if !v.Total().Equal(total) {
				t.Fatalf("total is %v, want %v", v.Total(), total)
			}
		}
	})
}

// A vacant inventory offers what the nodes do with no pod there, and with labels or
// hardware disregarded as asked.
func TestVacant(t *testing.T) {
	v := NewInventory()
	v.Put(&Node{
		Name: "n", Offer: quota.Resources{0, 0, 4}, Whole: quota.Resources{0, 0, 8},
		Taints: []Taint{{Key: "only", Effect: NoSchedule}}, Outages: []Outage{{What: "cordoned", Closed: true}},
	})
	v.Take("n", quota.Resources{0, 0, 3})
	spec := &Spec{PodSets: []PodSet{{Name: "main", Count: 8, Request: quota.Resources{0, 0, 1}, Filter: Filter{All: []Requirement{{Key: "x", Op: Exists}}}}}}
	for _, c := range []struct {
		relax Relax
		spec  *Spec
		size  int
		want  bool
	}{
		{Relax{}, spec, 1, false},
		{Relax{Labels: true}, spec.Loosen(), 1, false},
		{Relax{Hardware: true}, spec.Loosen(), 1, false},
		{Relax{Labels: true, Hardware: true}, spec, 1, false},
		{Relax{Labels: true, Hardware: true}, spec.Loosen(), 8, true},
		{Relax{Labels: true, Hardware: true}, spec.Loosen(), 9, false},
	} {
		if got := Fits(v.Vacant(c.relax), c.spec, []int{c.size}); got != c.want {
			t.Errorf("relaxed %+v, %d pods fit: %t, want %t", c.relax, c.size, got, c.want)
		}
	}
	if got := v.Free("n").At(quota.Pods); got != 1 {
		t.Errorf("%d are free after that, want 1", got)
	}
}
