package quota

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Divide agrees with exact water filling: everyone within one of its exact part,
// everything given away that someone wants, and what rounding leaves goes to the
// largest remainders, then to the earlier part.
func TestDivideModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.OneOf(rapid.Int64Range(0, 40), rapid.Int64Range(0, Most))
		weight := rapid.OneOf(rapid.Int64Range(0, 5), rapid.Int64Range(0, 1<<50))
		total := amount.Draw(t, "total")
		parts := make([]Part, rapid.IntRange(0, 6).Draw(t, "parts"))
		for i := range parts {
			parts[i] = Part{Weight: weight.Draw(t, "weight"), Want: amount.Draw(t, "want")}
		}
		got := Divide(total, parts)
		exact := waterFill(total, parts)
		given, wanted := new(big.Int), new(big.Int)
		floor, rest := make([]int64, len(parts)), make([]*big.Rat, len(parts))
		for i, p := range parts {
			given.Add(given, big.NewInt(got[i]))
			if p.Weight > 0 {
				wanted.Add(wanted, big.NewInt(p.Want))
			}
			floor[i] = new(big.Int).Quo(exact[i].Num(), exact[i].Denom()).Int64()
			rest[i] = new(big.Rat).Sub(exact[i], new(big.Rat).SetInt64(floor[i]))
			if got[i] != floor[i] && got[i] != floor[i]+1 || got[i] > p.Want {
				t.Fatalf("part %d of %v gets %d of %d, exactly it is %s\n%v", i, parts, got[i], total, exact[i].FloatString(3), got)
			}
		}
		if want := minBig(wanted, big.NewInt(total)); given.Cmp(want) != 0 {
			t.Fatalf("%v of %d are given, want %v: %v to %v", given, total, want, got, parts)
		}
		for i := range parts {
			for k := range parts {
				c := rest[i].Cmp(rest[k])
				if got[i] == floor[i] && got[k] > floor[k] && (c > 0 || c == 0 && i < k) {
					t.Fatalf("part %d is owed more than part %d, which got what was left: %v to %v", i, k, got, parts)
				}
			}
		}
	})
}

// waterFill is the exact division: the level rises until all is given or all are full.
func waterFill(total int64, parts []Part) []*big.Rat {
	out := make([]*big.Rat, len(parts))
	open := map[int]bool{}
	for i, p := range parts {
		out[i] = new(big.Rat)
		open[i] = p.Weight > 0
	}
	left := new(big.Rat).SetInt64(total)
	for {
		sum := new(big.Rat)
		for i, p := range parts {
			if open[i] {
				sum.Add(sum, new(big.Rat).SetInt64(p.Weight))
			}
		}
		if sum.Sign() == 0 {
			return out
		}
		level := new(big.Rat).Quo(left, sum)
		full := -1 // the part that is full first
		for i, p := range parts {
			if !open[i] {
				continue
			}
			if at := new(big.Rat).SetFrac64(p.Want, p.Weight); at.Cmp(level) <= 0 {
				full, level = i, at
			}
		}
		if full < 0 {
			for i, p := range parts {
				if open[i] {
					out[i].Mul(level, new(big.Rat).SetInt64(p.Weight))
				}
			}
			return out
		}
		out[full].SetInt64(parts[full].Want)
		left.Sub(left, out[full])
		open[full] = false
	}
}

func minBig(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// Shares compare as the fractions they are, up to the largest amounts. Of weight 0
// they come after all others, and among themselves as if of weight 1.
func TestShareModel(t *testing.T) {
	type exact struct {
		last bool
		part *big.Rat
	}
	model := func(s Share) exact {
		if s.Above <= 0 {
			return exact{part: new(big.Rat)}
		}
		part := new(big.Rat).SetFrac64(s.Above, max(s.Lent, 1))
		return exact{s.Weight <= 0, part.Quo(part, new(big.Rat).SetInt64(max(s.Weight, 1)))}
	}
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.OneOf(rapid.Int64Range(-1, 6), rapid.Int64Range(0, Most), rapid.Just[int64](Most))
		draw := func(name string) Share {
			return Share{Above: amount.Draw(t, name+" above"), Lent: amount.Draw(t, name+" lent"), Weight: amount.Draw(t, name+" weight")}
		}
		a, b := draw("a"), draw("b")
		x, y := model(a), model(b)
		want := x.part.Cmp(y.part)
		switch {
		case x.last && !y.last:
			want = 1
		case y.last && !x.last:
			want = -1
		}
		if got := a.Compare(b); got != want {
			t.Fatalf("%+v compares to %+v as %d, want %d", a, b, got, want)
		}
		if got := b.Compare(a); got != -want {
			t.Fatalf("%+v compares to %+v as %d, want %d", b, a, got, -want)
		}
	})
}

// Sums and products are exact or Most.
func TestSaturation(t *testing.T) {
	exact := func(v *big.Int) int64 {
		if !v.IsInt64() {
			return Most
		}
		return v.Int64()
	}
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Int64Range(0, Most).Draw(t, "a")
		b := rapid.OneOf(rapid.Int64Range(0, 9), rapid.Int64Range(0, Most)).Draw(t, "b")
		if got, want := Sum(a, b), exact(new(big.Int).Add(big.NewInt(a), big.NewInt(b))); got != want {
			t.Fatalf("%d + %d = %d, want %d", a, b, got, want)
		}
		if got, want := Product(a, b), exact(new(big.Int).Mul(big.NewInt(a), big.NewInt(b))); got != want {
			t.Fatalf("%d * %d = %d, want %d", a, b, got, want)
		}
	})
}

// world is a random tree with charges, and the same held plainly.
type world struct {
	queues  map[string]Queue
	ghosts  []string
	tree    *Tree
	ledger  *Ledger
	charges map[string]Resources
	names   []string // of everything in the tree
	dims    int
}

func drawWorld(t *rapid.T) *world {
	w := &world{queues: map[string]Queue{}, charges: map[string]Resources{}, dims: 2}
	amounts := rapid.MapOfN(rapid.IntRange(0, w.dims-1), rapid.Int64Range(0, 9), 0, w.dims)
	maybe := func(label string) map[int]int64 {
		if rapid.Bool().Draw(t, "has "+label) {
			return amounts.Draw(t, label)
		}
		return nil
	}
	var queues []Queue
	for i := range rapid.IntRange(1, 7).Draw(t, "queues") {
		q := Queue{
			Name:     fmt.Sprintf("q%d", i),
			Weight:   rapid.Int64Range(0, 3).Draw(t, "weight"),
			Nominal:  maybe("nominal"),
			Max:      maybe("max"),
			Lendable: maybe("lendable"),
		}
		if up := rapid.IntRange(-1, i-1).Draw(t, "parent"); up >= 0 {
			q.Parent = fmt.Sprintf("q%d", up)
		}
		w.queues[q.Name] = q
		queues = append(queues, q)
	}
	if rapid.Bool().Draw(t, "ghost") {
		w.ghosts = []string{"gone"}
	}
	queues = rapid.Permutation(queues).Draw(t, "order")
	tree, problems := Build(queues, w.ghosts)
	if len(problems) > 0 {
		t.Fatalf("a sound tree has problems: %q", problems)
	}
	w.tree = tree
	w.names = append(slices.Sorted(maps.Keys(w.queues)), w.ghosts...)
	wants := map[string]Resources{}
	for _, name := range w.names {
		wants[name] = drawResources(t, w.dims, 12)
	}
	tree.Settle(drawResources(t, w.dims, 40), func(leaf int) Resources { return wants[tree.Name(leaf)] })
	w.checkSettled(t, wants)
	w.ledger = NewLedger(tree, nil)
	return w
}

func drawResources(t *rapid.T, dims int, most int64) Resources {
	r := make(Resources, rapid.IntRange(0, dims).Draw(t, "length"))
	for i := range r {
		r[i] = rapid.Int64Range(0, most).Draw(t, "amount")
	}
	return r
}

// children returns the names below name; "" is the root.
func (w *world) children(name string) []string {
	var out []string
	for _, n := range w.names {
		if q, ok := w.queues[n]; n != name && (ok && q.Parent == name || !ok && name == "") {
			out = append(out, n)
		}
	}
	return out
}

func (w *world) nominal(name string, i int) int64 { return w.tree.Nominal(w.id(name)).At(i) }

func (w *world) id(name string) int {
	if name == "" {
		return Root
	}
	id, ok := w.tree.ID(name)
	if !ok {
		panic("no queue " + name)
	}
	return id
}

// declared says whether the queue or one below it has a nominal of its own.
func (w *world) declared(name string) bool {
	return w.queues[name].Nominal != nil || slices.ContainsFunc(w.children(name), w.declared)
}

// want is what the leaves at or below name want.
func (w *world) want(name string, wants map[string]Resources, i int) int64 {
	children := w.children(name)
	if len(children) == 0 {
		return wants[name].At(i)
	}
	sum := int64(0)
	for _, c := range children {
		sum += w.want(c, wants, i)
	}
	return sum
}

// checkSettled holds what queues own against the rules, one by one.
func (w *world) checkSettled(t *rapid.T, wants map[string]Resources) {
	for _, name := range append([]string{""}, w.names...) {
		for i := range w.dims {
			sum, rest, asked := int64(0), w.nominal(name, i), int64(0)
			var heirs []string
			for _, c := range w.children(name) {
				switch {
				case !slices.Contains(w.ghosts, c) && !w.declared(c):
					heirs = append(heirs, c)
				default:
					rest -= w.nominal(c, i)
				}
				sum += w.nominal(c, i)
			}
			q := w.queues[name]
			switch {
			case name == "":
			case slices.Contains(w.ghosts, name):
				if w.nominal(name, i) != 0 {
					t.Fatalf("%s is gone and owns %d of %d", name, w.nominal(name, i), i)
				}
			case q.Nominal != nil:
				if w.nominal(name, i) != q.Nominal[i] {
					t.Fatalf("%s owns %d of %d, it says %d", name, w.nominal(name, i), i, q.Nominal[i])
				}
			case w.declared(name):
				if w.nominal(name, i) != sum {
					t.Fatalf("%s owns %d of %d, its children %d", name, w.nominal(name, i), i, sum)
				}
			}
			given := int64(0)
			for _, h := range heirs {
				most := w.want(h, wants, i)
				if m, ok := w.queues[h].Max[i]; ok {
					most = min(most, m)
				}
				if w.nominal(h, i) > most {
					t.Fatalf("%s is given %d of %d and may want %d", h, w.nominal(h, i), i, most)
				}
				if w.queues[h].Weight > 0 {
					asked += most
				}
				given += w.nominal(h, i)
			}
			if want := max(0, min(rest, asked)); given != want && w.tree.Counts(i) {
				t.Fatalf("the children of %q without a nominal own %d of %d, want %d", name, given, i, want)
			}
		}
	}
}

// usage is what the queue and everything below it is charged.
func (w *world) usage(name string, i int) int64 {
	sum := w.charges[name].At(i)
	for _, c := range w.children(name) {
		sum += w.usage(c, i)
	}
	return sum
}

// taken is what nobody beside the queue can have: what it uses, and what it keeps.
func (w *world) taken(name string, i int) int64 {
	sum := w.charges[name].At(i)
	for _, c := range w.children(name) {
		sum += w.taken(c, i)
	}
	if lend, ok := w.queues[name].Lendable[i]; ok {
		sum = max(sum, w.nominal(name, i)-lend)
	}
	return sum
}

// fits charges r, counts everything anew and looks.
func (w *world) fits(name string, r Resources) bool {
	before := w.charges[name]
	after := before.Clone()
	after.Add(r)
	w.charges[name] = after
	defer func() { w.charges[name] = before }()
	for i, v := range r {
		if v == 0 || !w.tree.Counts(i) {
			continue
		}
		owned := false
		for at := name; ; at = w.queues[at].Parent {
			if m, ok := w.queues[at].Max[i]; ok && w.usage(at, i) > m {
				return false
			}
			owned = owned || w.taken(at, i) <= w.nominal(at, i)
			if at == "" {
				break
			}
		}
		if !owned {
			return false
		}
	}
	return true
}

func (w *world) check(t *rapid.T) {
	if bad := w.ledger.Check(); len(bad) > 0 {
		t.Fatalf("%q\n%s", bad, w.tree)
	}
	for _, name := range append([]string{""}, w.names...) {
		for i := range w.dims {
			if got, want := w.ledger.Usage(w.id(name)).At(i), w.usage(name, i); got != want {
				t.Fatalf("%q uses %d of %d, want %d\n%s", name, got, i, want, w.tree)
			}
			if got, want := w.ledger.taken[w.id(name)].At(i), w.taken(name, i); got != want {
				t.Fatalf("%q takes %d of %d, want %d\n%s", name, got, i, want, w.tree)
			}
		}
	}
}

// Whatever is charged, released, tried and undone, in whatever tree: the ledger
// counts as adding everything up anew would, and says of any charge what charging
// it and looking would say.
func TestLedgerModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		var marks []int
		var saved []map[string]Resources
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			name := rapid.SampledFrom(w.names).Draw(t, "queue")
			switch rapid.SampledFrom([]string{"charge", "charge", "release", "mark", "undo"}).Draw(t, "step") {
			case "charge":
				r := drawResources(t, w.dims, 12)
				if _, got := w.ledger.Fits(w.id(name), r); got != w.fits(name, r) {
					t.Fatalf("%v fits %s: %t\n%s", r, name, got, w.tree)
				}
				w.ledger.Charge(w.id(name), r)
				sum := w.charges[name].Clone()
				sum.Add(r)
				w.charges[name] = sum
			case "release":
				r := make(Resources, w.dims)
				for i := range r {
					r[i] = rapid.Int64Range(0, w.charges[name].At(i)).Draw(t, "amount")
				}
				w.ledger.Release(w.id(name), r)
				left := w.charges[name].Clone()
				left.Sub(r)
				w.charges[name] = left
			case "mark":
				marks, saved = append(marks, w.ledger.Mark()), append(saved, maps.Clone(w.charges))
			case "undo":
				if n := len(marks) - 1; n >= 0 {
					w.ledger.Undo(marks[n])
					w.charges = saved[n]
					marks, saved = marks[:n], saved[:n]
				}
			}
			w.check(t)
		}
		for i := len(marks) - 1; i >= 0; i-- {
			w.ledger.Undo(marks[i])
			w.charges = saved[i]
			w.check(t)
		}
	})
}

// Within what a queue and everyone above it owns, a charge always fits; above a
// max it never does; and what does not fit names a bound that truly is too small.
func TestFitsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for range rapid.IntRange(0, 8).Draw(t, "charges") {
			name := rapid.SampledFrom(w.names).Draw(t, "queue")
			r := drawResources(t, w.dims, 6)
			w.ledger.Charge(w.id(name), r)
		}
		id := w.id(rapid.SampledFrom(w.names).Draw(t, "asks"))
		r := drawResources(t, w.dims, 12)
		lack, ok := w.ledger.Fits(id, r)
		if ok {
			return
		}
		if r.At(lack.Resource) != lack.Asked || lack.Asked == 0 {
			t.Fatalf("%+v for %v", lack, r)
		}
		if lack.Borrow {
			var asked Resources
			asked.Set(lack.Resource, lack.Asked)
			if len(w.tree.Children(id)) == 0 && w.ledger.Owns(id, asked) {
				t.Fatalf("%+v: what is owned needs not be borrowed\n%s", lack, w.tree)
			}
			// The level that has too little: the hardware, or, for what is no hardware,
			// the queue right below it.
			level := id
			for w.tree.Parent(level) != Root {
				level = w.tree.Parent(level)
			}
			if w.tree.Nominal(Root).At(lack.Resource) > 0 {
				level = Root
			}
			if w.id(lack.Queue) != level || lack.Bound != w.tree.Nominal(level).At(lack.Resource) || lack.Used != w.ledger.taken[level].At(lack.Resource) {
				t.Fatalf("%+v, want that of %q\n%s", lack, w.tree.Name(level), w.tree)
			}
			return
		}
		at := w.id(lack.Queue)
		if lack.Bound != w.tree.Max(at, lack.Resource) || lack.Used != w.ledger.Usage(at).At(lack.Resource) || lack.Used+lack.Asked <= lack.Bound {
			t.Fatalf("%+v at %s\n%s", lack, lack.Queue, w.tree)
		}
	})
}

// Below finds the two queues that are compared when a takes back from b.
func TestBelow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		up := func(id int) []int {
			path := []int{id}
			for id != Root {
				id = w.tree.Parent(id)
				path = append([]int{id}, path...)
			}
			return path
		}
		a, b := rapid.IntRange(1, w.tree.Len()-1).Draw(t, "a"), rapid.IntRange(1, w.tree.Len()-1).Draw(t, "b")
		x, y := w.tree.Below(a, b)
		pa, pb := up(a), up(b)
		if a == b {
			if x != a || y != a {
				t.Fatalf("below %d and itself: %d %d", a, x, y)
			}
			return
		}
		if slices.Contains(pa, b) || slices.Contains(pb, a) {
			return // one holds the other: nobody takes back from its own parent
		}
		i := 0
		for pa[i] == pb[i] {
			i++
		}
		if x != pa[i] || y != pb[i] {
			t.Fatalf("below %s and %s: %s and %s\n%s", w.tree.Name(a), w.tree.Name(b), w.tree.Name(x), w.tree.Name(y), w.tree)
		}
	})
}

// The tree does not depend on the order in which queues are declared.
func TestBuildOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var queues []Queue
		n := rapid.IntRange(1, 6).Draw(t, "queues")
		for i := range n {
			// Any parent, itself and missing ones included: circles are welcome here.
			parent := rapid.SampledFrom([]string{"", "q0", "q1", "q2", "q3", "nobody"}).Draw(t, "parent")
			queues = append(queues, Queue{Name: fmt.Sprintf("q%d", i), Parent: parent, Weight: 1, Nominal: map[int]int64{0: int64(i)}})
		}
		draw := func(queues []Queue) string {
			tree, problems := Build(queues, []string{"gone", "q0"})
			tree.Settle(Resources{10}, func(int) Resources { return nil })
			return fmt.Sprint(tree, problems)
		}
		if one, other := draw(queues), draw(rapid.Permutation(queues).Draw(t, "order")); one != other {
			t.Fatalf("built in another order:\n%s\n%s", one, other)
		}
		// Everyone leads up to the root, and who does not by itself is a ghost.
		tree, problems := Build(queues, nil)
		ghosts := 0
		for id := 1; id < tree.Len(); id++ {
			at := id
			for steps := 0; at != Root; steps++ {
				if at = tree.Parent(at); steps > tree.Len() {
					t.Fatalf("queue %s never reaches the root", tree.Name(id))
				}
			}
			if tree.Ghost(id) {
				ghosts++
			}
		}
		if ghosts != len(problems) {
			t.Fatalf("%d ghosts, problems %q", ghosts, problems)
		}
	})
}
