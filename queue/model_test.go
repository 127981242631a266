package queue

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

func drawWorkload(t *rapid.T, n int, queues []string) *Workload {
	w := &Workload{
		Key:      fmt.Sprintf("ns/w-%d", n),
		UID:      fmt.Sprintf("%d-%d", rapid.IntRange(0, 9).Draw(t, "uid"), n),
		Queue:    rapid.SampledFrom(queues).Draw(t, "queue"),
		Priority: rapid.Int64Range(-1, 1).Draw(t, "priority"),
		Queued:   midnight.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "queued")) * time.Second),
		Spec: gang.Spec{PodSets: []gang.PodSet{{
			Name: "main", Count: 2, Min: rapid.IntRange(0, 2).Draw(t, "min"),
			Request: quota.Resources{gpu: rapid.Int64Range(0, 3).Draw(t, "gpu")},
		}}},
	}
	w.Settle()
	return w
}

func keys(all []*Workload) []string {
	out := make([]string, len(all))
	for i, w := range all {
		out[i] = w.Key
	}
	return out
}

// Whatever is put, replaced and removed, the set holds what a map would, each queue
// in the order of Compare, each group of one shape; and the order in which
// workloads came does not show.
func TestSetModel(t *testing.T) {
	queues := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		s, model := NewSet(), map[string]*Workload{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			n := rapid.IntRange(0, 9).Draw(t, "workload")
			if rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
				key := fmt.Sprintf("ns/w-%d", n)
				s.Remove(key)
				delete(model, key)
			} else {
				w := drawWorkload(t, n, queues)
				s.Put(w)
				model[w.Key] = w
			}
			if bad := s.Check(); len(bad) > 0 {
				t.Fatalf("%q", bad)
			}
		}
		other := NewSet()
		for _, key := range rapid.Permutation(slices.Sorted(maps.Keys(model))).Draw(t, "order") {
			other.Put(model[key])
		}
		if s.Len() != len(model) || !slices.Equal(s.Queues(), other.Queues()) {
			t.Fatalf("%d wait in %v, put in another order in %v, want %d", s.Len(), s.Queues(), other.Queues(), len(model))
		}
		for _, q := range queues {
			var want []*Workload
			for _, w := range model {
				if w.Queue == q {
					want = append(want, w)
				}
				if !s.Has(w.Key) {
					t.Fatalf("%s does not wait", w.Key)
				}
			}
			slices.SortFunc(want, Compare)
			if got := s.Order(q); !slices.Equal(keys(got), keys(want)) {
				t.Fatalf("in %s wait %v, want %v", q, keys(got), keys(want))
			}
			if (len(want) > 0) != slices.Contains(s.Queues(), q) {
				t.Fatalf("queues in which something waits: %v; %d in %s", s.Queues(), len(want), q)
			}
			if got, want := groups(t, s, q), groups(t, other, q); got != want {
				t.Fatalf("groups of %s are %s, put in another order %s", q, got, want)
			}
		}
	})
}

func groups(t *rapid.T, s *Set, queue string) string {
	out, shapes := "", map[string]bool{}
	for _, g := range s.Groups(queue) {
		if shapes[g.Shape] {
			t.Fatalf("two groups of %s have the shape %s", queue, g.Shape)
		}
		shapes[g.Shape] = true
		for _, w := range g.Members {
			if w.Shape() != g.Shape {
				t.Fatalf("%s of shape %s is among those of %s", w.Key, w.Shape(), g.Shape)
			}
		}
		out += fmt.Sprint(keys(g.Members))
	}
	return out
}

// The order of workloads is total.
func TestCompareIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawWorkload(t, 1, []string{"q"}), drawWorkload(t, 2, []string{"q"}), drawWorkload(t, 3, []string{"q"})
		if Compare(a, a) != 0 || Compare(a, b) == 0 || Compare(a, b) != -Compare(b, a) {
			t.Fatalf("%+v and %+v compare as %d and %d", a, b, Compare(a, b), Compare(b, a))
		}
		if Compare(a, b) < 0 && Compare(b, c) < 0 && Compare(a, c) >= 0 {
			t.Fatalf("%+v, %+v, %+v go in a circle", a, b, c)
		}
	})
}

// The smallest size is at least every minimum and MinTotal, and never above full.
func TestLeastSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &Workload{}
		for i := range rapid.IntRange(0, 4).Draw(t, "sets") {
			n := rapid.IntRange(0, 5).Draw(t, "count")
			w.Spec.PodSets = append(w.Spec.PodSets, gang.PodSet{Name: fmt.Sprint(i), Count: n, Min: rapid.IntRange(0, n).Draw(t, "min")})
		}
		full := gang.Total(w.Spec.Sizes())
		w.Spec.MinTotal = rapid.IntRange(0, full).Draw(t, "min total")
		sizes := w.LeastSizes()
		for i, ps := range w.Spec.PodSets {
			if sizes[i] < ps.Min || sizes[i] > ps.Count {
				t.Fatalf("%d of %+v", sizes[i], ps)
			}
		}
		if got, want := gang.Total(sizes), max(gang.Total(w.Spec.Least()), w.Spec.MinTotal); got != want {
			t.Fatalf("%v of %+v are %d, want %d", sizes, w.Spec, got, want)
		}
	})
}

// arena is a random tree in which workloads wait.
type arena struct {
	ledger   *quota.Ledger
	priority map[int]int64
	waiting  map[int][]*Workload // by leaf, in order
}

func drawArena(t *rapid.T, flat bool) *arena {
	var queues []quota.Queue
	n := rapid.IntRange(1, 6).Draw(t, "queues")
	for i := range n {
		q := quota.Queue{Name: fmt.Sprintf("q%d", i), Weight: rapid.Int64Range(0, 3).Draw(t, "weight"), Nominal: map[int]int64{gpu: rapid.Int64Range(0, 4).Draw(t, "nominal")}}
		if up := rapid.IntRange(-1, i-1).Draw(t, "parent"); up >= 0 && !flat {
			q.Parent = fmt.Sprintf("q%d", up)
		}
		queues = append(queues, q)
	}
	tree, problems := quota.Build(queues, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	tree.Settle(quota.Resources{gpu: 20}, func(int) quota.Resources { return nil })
	a := &arena{ledger: quota.NewLedger(tree, nil), priority: map[int]int64{}, waiting: map[int][]*Workload{}}
	serial := 0
	for id := 1; id < tree.Len(); id++ {
		a.priority[id] = rapid.Int64Range(0, 1).Draw(t, "queue priority")
		if len(tree.Children(id)) > 0 {
			continue
		}
		a.ledger.Charge(id, quota.Resources{gpu: rapid.Int64Range(0, 5).Draw(t, "uses")})
		for range rapid.IntRange(0, 3).Draw(t, "waiting") {
			serial++
			a.waiting[id] = append(a.waiting[id], drawWorkload(t, serial, []string{tree.Name(id)}))
		}
		slices.SortFunc(a.waiting[id], Compare)
	}
	return a
}

func (a *arena) contest() *Contest {
	return NewContest(a.ledger, func(id int) int64 { return a.priority[id] }, func(leaf int) (*Workload, quota.Resources) {
		if all := a.waiting[leaf]; len(all) > 0 {
			return all[0], all[0].Least()
		}
		return nil, nil
	})
}

// take removes the claim from what waits, and charges it or not.
func (a *arena) take(c Claim, charge bool) {
	a.waiting[c.Leaf] = slices.Delete(slices.Clone(a.waiting[c.Leaf]), 0, 1)
	if charge {
		a.ledger.Charge(c.Leaf, c.Charge)
	}
}

// What a contest remembers never shows: it finds what a new one would, claim after
// claim, and every workload once.
func TestContestRemembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawArena(t, false)
		total := 0
		for _, all := range a.waiting {
			total += len(all)
		}
		c := a.contest()
		for {
			got, want := c.Best(), a.contest().Best()
			if got.Workload != want.Workload || got.Leaf != want.Leaf || got.Owned != want.Owned {
				t.Fatalf("best is %+v, anew %+v", got, want)
			}
			if got.Workload == nil {
				break
			}
			total--
			a.take(got, rapid.Bool().Draw(t, "met"))
			c.Changed(got.Leaf)
		}
		if total != 0 {
			t.Fatalf("%d claims never came up", total)
		}
	})
}

// Among queues side by side, the best claim is the one that the rules put before
// every other, one rule after the other.
func TestContestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawArena(t, true)
		tree := a.ledger.Tree()
		got := a.contest().Best()
		var claims []Claim
		for id := 1; id < tree.Len(); id++ {
			if all := a.waiting[id]; len(all) > 0 {
				claims = append(claims, Claim{Workload: all[0], Leaf: id, Charge: all[0].Least()})
			}
		}
		owned := func(c Claim) bool {
			asked := c.Charge.At(gpu)
			return asked == 0 || a.ledger.Usage(c.Leaf).At(gpu)+asked <= tree.Nominal(c.Leaf).At(gpu)
		}
		// before is the first rule that tells the two apart.
		before := func(x, y Claim) bool {
			if owned(x) != owned(y) {
				return owned(x)
			}
			if a.priority[x.Leaf] != a.priority[y.Leaf] {
				return a.priority[x.Leaf] > a.priority[y.Leaf]
			}
			idleX, idleY := !owned(x) && tree.Weight(x.Leaf) == 0, !owned(y) && tree.Weight(y.Leaf) == 0
			if idleX != idleY {
				return idleY
			}
			if c := a.ledger.Share(x.Leaf).Compare(a.ledger.Share(y.Leaf)); c != 0 {
				return c < 0
			}
			return Compare(x.Workload, y.Workload) < 0
		}
		for _, other := range claims {
			if other.Workload != got.Workload && before(other, got) {
				t.Fatalf("%+v comes up, but %+v is before it", got, other)
			}
		}
		if (got.Workload == nil) != (len(claims) == 0) {
			t.Fatalf("%+v of %v", got, claims)
		}
	})
}

// A flavor charges its own dimensions, adds up what meets in one, and adds its
// labels and tolerations to every pod set without changing the gang's own.
func TestFlavor(t *testing.T) {
	f := &Flavor{
		Name: "h100", Dims: map[int]int{gpu: gpu + 1, quota.CPU: gpu + 1},
		All:         []gang.Requirement{{Key: "kind", Op: gang.In, Values: []string{"h100"}}},
		Tolerations: []gang.Toleration{{Key: "gpu", Exists: true}},
	}
	if got, want := f.Charge(quota.Resources{quota.CPU: 3, quota.Pods: 2, gpu: 4}), (quota.Resources{quota.Pods: 2, gpu + 1: 7}); !got.Equal(want) {
		t.Errorf("charges %v, want %v", got, want)
	}
	spec := &gang.Spec{PodSets: []gang.PodSet{{Name: "main", Filter: gang.Filter{All: []gang.Requirement{{Key: "zone", Op: gang.Exists}}}}}}
	here := f.Spec(spec)
	if n := len(here.PodSets[0].Filter.All); n != 2 || len(here.PodSets[0].Filter.Tolerations) != 1 {
		t.Errorf("on the flavor: %+v", here.PodSets[0].Filter)
	}
	if len(spec.PodSets[0].Filter.All) != 1 || spec.PodSets[0].Filter.Tolerations != nil {
		t.Errorf("the gang's own filter became %+v", spec.PodSets[0].Filter)
	}
	var none *Flavor
	if r := (quota.Resources{1}); !none.Charge(r).Equal(r) || none.Spec(spec) != spec {
		t.Error("no flavor changes something")
	}
	q := &Queue{Flavors: []Flavor{*f}}
	if q.Flavor("h100") == nil || q.Flavor("a100") != nil || len(q.Choices()) != 1 || len((&Queue{}).Choices()) != 1 {
		t.Error("flavors are not found by name")
	}
}

// Workloads share a shape exactly when one answer serves both.
func TestShapes(t *testing.T) {
	base := func() *Workload {
		return &Workload{Key: "ns/a", UID: "1", Queue: "q", Queued: midnight, Spec: gang.Spec{PodSets: []gang.PodSet{{Name: "main", Count: 2, Min: 1, Request: quota.Resources{gpu: 1}}}}}
	}
	for name, c := range map[string]struct {
		change func(w *Workload)
		same   bool
	}{
		"another gang":        {func(w *Workload) { w.Key, w.UID, w.Queued = "ns/b", "2", midnight.Add(time.Hour) }, true},
		"another user":        {func(w *Workload) { w.User = "eve" }, false},
		"another queue":       {func(w *Workload) { w.Queue = "r" }, false},
		"another priority":    {func(w *Workload) { w.Priority = 1 }, false},
		"a limit":             {func(w *Workload) { w.Limit = time.Hour }, false},
		"not preemptible":     {func(w *Workload) { w.Pinned = true }, false},
		"another request":     {func(w *Workload) { w.Spec.PodSets[0].Request = quota.Resources{gpu: 2} }, false},
		"another size":        {func(w *Workload) { w.Spec.PodSets[0].Count = 3 }, false},
		"another minimum":     {func(w *Workload) { w.Spec.PodSets[0].Min = 2 }, false},
		"a minimum in all":    {func(w *Workload) { w.Spec.MinTotal = 2 }, false},
		"a level":             {func(w *Workload) { w.Spec.Level = gang.Level{Key: "rack"} }, false},
		"a required level":    {func(w *Workload) { w.Spec.Level = gang.Level{Key: "rack", Required: true} }, false},
		"a selector":          {func(w *Workload) { w.Spec.PodSets[0].Filter.All = []gang.Requirement{{Key: "zone", Op: gang.Exists}} }, false},
		"a level of its pods": {func(w *Workload) { w.Spec.PodSets[0].Level = gang.Level{Key: "rack"} }, false},
	} {
		a, b := base(), base()
		c.change(b)
		a.Settle()
		b.Settle()
		if (a.Shape() == b.Shape()) != c.same {
			t.Errorf("%s: shapes %s and %s", name, a.Shape(), b.Shape())
		}
	}
}
