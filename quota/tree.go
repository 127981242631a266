package quota

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Unbounded stands for "no bound" in a vector of bounds.
const Unbounded = -1

// Queue is what the owner of a queue says about its quota. Amounts are keyed by
// dimension; a dimension that is absent is not named.
type Queue struct {
	Name   string
	Parent string // "" hangs the queue under the root
	Weight int64  // relative to its siblings; 0 goes last and has no part
	// Nominal is what the queue owns. nil means that it has no nominal of its own:
	// an inner queue then owns the sum of its children's, a leaf its part of what
	// its parent's other children do not own. In a Nominal that is not nil, a
	// dimension that some queue names and this one omits counts as 0.
	Nominal  map[int]int64
	Max      map[int]int64 // owned plus borrowed; absent is unbounded
	Lendable map[int]int64 // how much of Nominal others may use; absent is all
}

// Root is the id of the hardware, the parent of every queue without one.
const Root = 0

// node is one queue in the tree with everything that bounds it worked out.
type node struct {
	name     string
	parent   int
	children []int
	depth    int
	queue    Queue
	ghost    bool // deleted, or its parents form a circle: nothing new may be charged
	declared bool // it or a queue below it has a nominal of its own

	nominal Resources // what it owns now; set by Settle for those without their own
	kept    Resources // what it owns and does not lend: nominal - lendable
	lent    Resources // what its children can borrow from their level in all
}

// Tree is the shape of the quota: who owns, lends and bounds what. Ids are
// stable until the next Build; the order of siblings is by name.
type Tree struct {
	nodes   []node
	ids     map[string]int
	counted []bool // dimensions that some queue names; the others are not counted
	heirs   bool   // a queue owns its part by weight
	all     bool   // a queue lives off its weight in the hardware: everything counts
}

// Build makes the tree of queues. ghosts are names that still hold charges though
// nobody declares them; they hang under the root and own nothing. Queues whose
// parents form a circle or do not exist become ghosts too, and a problem says so.
func Build(queues []Queue, ghosts []string) (*Tree, []string) {
	t := &Tree{nodes: []node{{parent: -1, queue: Queue{Weight: 1}}}, ids: map[string]int{}}
	queues = slices.Clone(queues)
	slices.SortFunc(queues, func(a, b Queue) int { return cmp.Compare(a.Name, b.Name) })
	byName := map[string]Queue{}
	for _, q := range queues {
		byName[q.Name] = q
	}
	var problems []string
	lost := map[string]bool{}
	for _, q := range queues {
		if why := unrooted(byName, q.Name); why != "" {
			problems = append(problems, why)
			lost[q.Name] = true
		}
	}
	for _, q := range queues {
		t.add(q, lost[q.Name])
	}
	for _, g := range slices.Sorted(slices.Values(ghosts)) {
		if _, ok := t.ids[g]; !ok {
			t.add(Queue{Name: g, Weight: 1}, true)
		}
	}
	t.link()
	t.count()
	return t, problems
}

// unrooted says why the queue does not lead up to the root, or "".
func unrooted(byName map[string]Queue, name string) string {
	at := byName[name]
	for range len(byName) {
		if at.Parent == "" {
			return ""
		}
		up, ok := byName[at.Parent]
		if !ok {
			return fmt.Sprintf("queue %s: parent %s of queue %s does not exist", name, at.Parent, at.Name)
		}
		at = up
	}
	return fmt.Sprintf("queue %s: its parents form a circle", name)
}

func (t *Tree) add(q Queue, ghost bool) {
	id := len(t.nodes)
	t.nodes = append(t.nodes, node{name: q.Name, queue: q, ghost: ghost})
	t.ids[q.Name] = id
}

func (t *Tree) link() {
	for id := 1; id < len(t.nodes); id++ {
		n := &t.nodes[id]
		if !n.ghost && n.queue.Parent != "" {
			n.parent = t.ids[n.queue.Parent]
		}
		t.nodes[n.parent].children = append(t.nodes[n.parent].children, id)
	}
	for id := 1; id < len(t.nodes); id++ {
		declared := t.nodes[id].queue.Nominal != nil
		for at := id; at != Root; at = t.nodes[at].parent {
			t.nodes[id].depth++
			if declared {
				t.nodes[at].declared = true
			}
		}
	}
}

// count finds the dimensions that count: those that a queue names, and all of
// them when some queue without a nominal divides the hardware itself by weight.
func (t *Tree) count() {
	for _, n := range t.nodes {
		for _, m := range []map[int]int64{n.queue.Nominal, n.queue.Max, n.queue.Lendable} {
			for i := range m {
				for len(t.counted) <= i {
					t.counted = append(t.counted, false)
				}
				t.counted[i] = true
			}
		}
	}
	for _, n := range t.nodes[1:] {
		t.heirs = t.heirs || !n.declared && !n.ghost
	}
	for _, c := range t.nodes[Root].children {
		t.all = t.all || (!t.nodes[c].declared && !t.nodes[c].ghost)
	}
}

// Counts says whether dimension i is counted at all.
func (t *Tree) Counts(i int) bool { return t.all || i < len(t.counted) && t.counted[i] }

// Heirs says whether any queue owns a part by its weight, which follows the demand.
// If not, what queues own follows from the hardware alone.
func (t *Tree) Heirs() bool { return t.heirs }

// ID returns the id of the queue called name.
func (t *Tree) ID(name string) (int, bool) {
	id, ok := t.ids[name]
	return id, ok
}

// Name returns the name of queue id; the root is called "".
func (t *Tree) Name(id int) string { return t.nodes[id].name }

// Parent returns the parent of queue id; of the root, -1.
func (t *Tree) Parent(id int) int { return t.nodes[id].parent }

// Children returns the ids of the queues right under id, by name.
func (t *Tree) Children(id int) []int { return t.nodes[id].children }

// Len returns the number of ids, the root included.
func (t *Tree) Len() int { return len(t.nodes) }

// Ghost says whether id stands only for charges of a queue that is gone or broken.
func (t *Tree) Ghost(id int) bool { return t.nodes[id].ghost }

// Nominal returns what queue id owns now.
func (t *Tree) Nominal(id int) Resources { return t.nodes[id].nominal }

// Max returns the bound of queue id in dimension i, or Unbounded.
func (t *Tree) Max(id, i int) int64 {
	if v, ok := t.nodes[id].queue.Max[i]; ok {
		return v
	}
	return Unbounded
}

// Weight returns the weight of queue id.
func (t *Tree) Weight(id int) int64 { return t.nodes[id].queue.Weight }

// Below returns the ancestors of a and b, themselves included, that are right
// under the lowest queue that holds both. For a == b both are a.
func (t *Tree) Below(a, b int) (int, int) {
	for t.nodes[a].parent != t.nodes[b].parent && a != b {
		if t.nodes[a].depth >= t.nodes[b].depth {
			a = t.nodes[a].parent
		} else {
			b = t.nodes[b].parent
		}
	}
	return a, b
}

// Settle works out what every queue owns, from what the hardware has and what
// each leaf runs or wants (by id; nil wants nothing). Parts by weight follow
// the demand, so it is called whenever demand or hardware changed. It says whether any
// queue owns something else than before.
func (t *Tree) Settle(hardware Resources, demand func(leaf int) Resources) (changed bool) {
	was := make([]Resources, len(t.nodes))
	for id := range t.nodes {
		was[id] = t.nodes[id].nominal
	}
	wants := make([]Resources, len(t.nodes))
	for id := len(t.nodes) - 1; id > Root; id-- {
		if len(t.nodes[id].children) == 0 {
			w := demand(id)
			for at := id; at != -1; at = t.nodes[at].parent {
				wants[at].Add(w)
			}
		}
	}
	t.nodes[Root].nominal = hardware.Clone()
	t.declare(Root)
	t.divide(Root, wants)
	for id := range t.nodes {
		t.settleLending(id)
		changed = changed || !was[id].Equal(t.nodes[id].nominal)
	}
	return changed
}

// declare sets the nominal of every queue that has one of its own, or whose
// children's add up to one.
func (t *Tree) declare(id int) {
	n := &t.nodes[id]
	for _, c := range n.children {
		t.declare(c)
	}
	if id == Root {
		return
	}
	n.nominal = Resources{}
	switch {
	case n.ghost:
	case n.queue.Nominal != nil:
		for i, v := range n.queue.Nominal {
			n.nominal.Set(i, v)
		}
	case n.declared:
		for _, c := range n.children {
			n.nominal.Add(t.nodes[c].nominal)
		}
	}
}

// divide gives the children of id that have no nominal their parts of what the
// others leave, and goes down the tree.
func (t *Tree) divide(id int, wants []Resources) {
	n := &t.nodes[id]
	rest := n.nominal.Clone()
	var heirs []int
	for _, c := range n.children {
		switch {
		case t.nodes[c].declared:
			rest.Sub(t.nodes[c].nominal)
		case !t.nodes[c].ghost:
			heirs = append(heirs, c)
		}
	}
	for i := range rest {
		if len(heirs) == 0 || rest[i] <= 0 || !t.Counts(i) {
			continue
		}
		parts := make([]Part, len(heirs))
		for k, c := range heirs {
			want := wants[c].At(i)
			if m := t.Max(c, i); m != Unbounded {
				want = min(want, m)
			}
			parts[k] = Part{Weight: t.nodes[c].queue.Weight, Want: want}
		}
		for k, v := range Divide(rest[i], parts) {
			t.nodes[heirs[k]].nominal.Set(i, v)
		}
	}
	for _, c := range n.children {
		t.divide(c, wants)
	}
}

// settleLending works out what queue id keeps to itself, and what its children
// lend one another: what they own and lend, and what none of them owns.
func (t *Tree) settleLending(id int) {
	n := &t.nodes[id]
	n.kept = Resources{}
	for i, lend := range n.queue.Lendable {
		n.kept.Set(i, max(0, n.nominal.At(i)-lend))
	}
	n.lent = n.nominal.Clone()
	for _, c := range n.children {
		for i, lend := range t.nodes[c].queue.Lendable {
			if keep := t.nodes[c].nominal.At(i) - lend; keep > 0 && i < len(n.lent) {
				n.lent[i] -= keep
			}
		}
	}
}

// String draws the tree, one queue a line, with what it owns by dimension.
func (t *Tree) String() string {
	var b strings.Builder
	var draw func(id, depth int)
	draw = func(id, depth int) {
		if id != Root {
			n := t.nodes[id]
			fmt.Fprintf(&b, "%s%s weight=%d nominal=%v", strings.Repeat("  ", depth-1), n.name, n.queue.Weight, n.nominal)
			if n.ghost {
				b.WriteString(" gone")
			}
			b.WriteByte('\n')
		}
		for _, c := range t.nodes[id].children {
			draw(c, depth+1)
		}
	}
	draw(Root, 0)
	return b.String()
}
