package gang

import (
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/quota"
)

// Inventory is what all nodes offer and what is taken of it.
type Inventory struct {
	nodes []*place // in the order of compareNames
	byID  map[string]*place
	// total is what all nodes offer together, in use or not.
	total quota.Resources
	undo  []taken
	trial int
	// passing remembers which nodes each filter passes; a changed node is judged
	// anew for every filter, everything else stays.
	passing map[string]*pass
	nextID  int
	made    []*place          // places that a trial made, to be dropped when it ends
	seats   []seat            // scratch of fill
	open    []*place          // the nodes that take new pods, in order; nil if not worked out
	index   *index            // nil if not worked out
	rows    []row             // scratch of the index
	kinds   map[string]uint32 // of nodes, by signature
	plain   bool              // no index: cards may be cut anew, so that nodes are alike for one look only

	preferred *preferred // see Prefer; nil for the order of Place
}

// place is one node with what is taken of it.
type place struct {
	id    int   // index into pass.ok, never used again after the place is dropped
	node  *Node // nil while pods are counted on a node that is not there (any more)
	name  string
	used  quota.Resources
	free  quota.Resources // Offer - used, never below 0
	rank  int             // position in the index, and there
	kind  uint32          // what it is beside what is free,
	known *Node           // as which node that was worked out, and
	class *class          // with whom it is grouped, nil if it takes no new pods
	stale bool            // what is free may have changed since

	version uint64 // counts how often what is free was worked out
	// cuts is set where the cards may be cut and shared anew, and remembers which
	// demands they could hold.
	cuts map[string]bool
}

type taken struct {
	p      *place
	amount quota.Resources
	sign   int
}

type pass struct {
	filter Filter
	ok     []bool // by place.id
	// What the index works out of it: who passes, by place.rank, and the others by why
	// they do not, unless these reasons are many.
	mask   mask
	barred []barred
	many   bool
}

// NewInventory returns an inventory without nodes.
func NewInventory() *Inventory {
	return &Inventory{byID: map[string]*place{}, passing: map[string]*pass{}, kinds: map[string]uint32{}}
}

// Put adds the node or replaces the one of that name; what is taken stays.
func (v *Inventory) Put(n *Node) {
	p := v.at(n.Name)
	if p.node != nil {
		v.total.Sub(p.node.Offer)
	}
	if p.node == nil || p.node.Open() != n.Open() {
		v.open = nil
	}
	p.node = n
	v.total.Add(n.Offer)
	p.settle()
	v.judge(p)
	v.replaced(p)
}

// Remove takes the node away. What is taken on it is still counted there, since
// its pods are charged until they are gone.
func (v *Inventory) Remove(name string) {
	p, ok := v.byID[name]
	if !ok || p.node == nil {
		return
	}
	v.total.Sub(p.node.Offer)
	p.node = nil
	v.open = nil
	p.settle()
	v.replaced(p)
	v.drop(p)
}

// at returns the place called name, made if it is new.
func (v *Inventory) at(name string) *place {
	p, ok := v.byID[name]
	if !ok {
		p = &place{id: v.nextID, name: name}
		v.nextID++
		if v.trial > 0 {
			v.made = append(v.made, p)
		}
		v.byID[name] = p
		i, _ := slices.BinarySearchFunc(v.nodes, name, func(p *place, name string) int { return compareNames(p.name, name) })
		v.nodes = slices.Insert(v.nodes, i, p)
		v.index = nil
	}
	return p
}

// drop forgets a place that has neither node nor pods.
func (v *Inventory) drop(p *place) {
	if p.node != nil || !p.used.IsZero() || v.trial > 0 {
		return
	}
	delete(v.byID, p.name)
	v.index = nil
	v.nodes = slices.DeleteFunc(v.nodes, func(q *place) bool { return q == p })
}

func (p *place) settle() {
	p.version++
	p.free = p.free[:0]
	if p.node == nil {
		return
	}
	p.free = append(p.free, p.node.Offer...)
	for i := range p.free {
		p.free[i] = max(0, p.free[i]-p.used.At(i))
	}
}

// Take counts r as taken on the node; Give counts it as free again.
func (v *Inventory) Take(node string, r quota.Resources) { v.move(v.at(node), r, 1) }

// Give is the reverse of Take. Giving more than was taken is a broken invariant.
func (v *Inventory) Give(node string, r quota.Resources) { v.move(v.at(node), r, -1) }

func (v *Inventory) move(p *place, r quota.Resources, sign int) {
	if v.trial > 0 {
		v.undo = append(v.undo, taken{p, r, sign})
	}
	if sign > 0 {
		p.used.Add(r)
	} else {
		p.used.Sub(r)
	}
	for i := range p.used {
		if p.used[i] < 0 {
			panic(fmt.Sprintf("gang: node %s gave back %d more of dimension %d than was taken", p.name, -p.used[i], i))
		}
	}
	p.settle()
	v.touched(p)
	if sign < 0 {
		v.drop(p)
	}
}

// TakePlan counts every pod of the plan as taken; GivePlan is its reverse.
func (v *Inventory) TakePlan(spec *Spec, plan Plan) { v.movePlan(spec, plan, 1) }

// GivePlan counts every pod of the plan as free again.
func (v *Inventory) GivePlan(spec *Spec, plan Plan) { v.movePlan(spec, plan, -1) }

func (v *Inventory) movePlan(spec *Spec, plan Plan, sign int) {
	for i, s := range plan.Sets {
		for _, slot := range s.Slots {
			v.move(v.at(slot.Node), spec.PodSets[i].Load().Times(slot.Count), sign)
		}
	}
}

// Mark opens a trial; Undo with the mark restores what was taken before.
func (v *Inventory) Mark() int {
	v.trial++
	return len(v.undo)
}

// Undo closes the trial that mark opened.
func (v *Inventory) Undo(mark int) {
	log := v.undo[mark:]
	depth := v.trial
	v.trial = 1 // keep places while they are restored
	for i := len(log) - 1; i >= 0; i-- {
		v.move(log[i].p, log[i].amount, -log[i].sign)
	}
	v.undo = v.undo[:mark]
	if v.trial = depth - 1; v.trial == 0 {
		for _, p := range v.made {
			v.drop(p)
		}
		v.made = v.made[:0]
	}
}

// Total is what all nodes offer together, in use or not. Not to be changed.
func (v *Inventory) Total() quota.Resources { return v.total }

// Node returns the node called name, or nil.
func (v *Inventory) Node(name string) *Node {
	if p, ok := v.byID[name]; ok {
		return p.node
	}
	return nil
}

// Free returns what is free on the node. Not to be changed.
func (v *Inventory) Free(name string) quota.Resources {
	if p, ok := v.byID[name]; ok {
		return p.free
	}
	return nil
}

// Used returns what is taken on the node. Not to be changed.
func (v *Inventory) Used(name string) quota.Resources {
	if p, ok := v.byID[name]; ok {
		return p.used
	}
	return nil
}

// Over says whether more is taken on the node than it offers, of what any node offers.
func (v *Inventory) Over(name string) bool {
	p := v.byID[name]
	if p == nil || p.node == nil {
		return false
	}
	for d, n := range p.used {
		if n > p.node.Offer.At(d) && v.total.At(d) > 0 {
			return true
		}
	}
	return false
}

// Names returns the names of all nodes, and of those that are gone but still
// have pods, in order.
func (v *Inventory) Names() []string {
	names := make([]string, len(v.nodes))
	for i, p := range v.nodes {
		names[i] = p.name
	}
	return names
}

// Len returns the number of nodes.
func (v *Inventory) Len() int { return len(v.nodes) }

// opened are the nodes that take new pods, in order. Not to be changed.
func (v *Inventory) opened() []*place {
	if v.open == nil {
		v.open = make([]*place, 0, len(v.nodes))
		for _, p := range v.nodes {
			if p.node != nil && p.node.Open() {
				v.open = append(v.open, p)
			}
		}
	}
	return v.open
}

// judge works out anew which filters pass p.
func (v *Inventory) judge(p *place) {
	for _, c := range v.passing {
		c.judge(p)
	}
}

func (c *pass) judge(p *place) {
	for len(c.ok) <= p.id {
		c.ok = append(c.ok, false)
	}
	_, c.ok[p.id] = p.node.Passes(&c.filter)
	if c.mask != nil {
		c.mask.set(p.rank, c.ok[p.id])
	}
	c.barred, c.many = nil, false
}

// maxFilters bounds the memory of judged filters.
const maxFilters = 4096

// passes returns the places whose labels and taints let pods with filter f in,
// by place.id.
func (v *Inventory) passes(f *Filter) *pass {
	k := f.key()
	c, ok := v.passing[k]
	if !ok {
		if len(v.passing) >= maxFilters {
			clear(v.passing)
		}
		c = &pass{filter: *f, ok: make([]bool, v.nextID)}
		for _, p := range v.nodes {
			if p.node != nil {
				c.judge(p)
			}
		}
		v.passing[k] = c
	}
	return c
}

// labelled returns the places whose labels are as asked, whatever their taints.
func (v *Inventory) labelled(terms []Requirement) *pass {
	return v.passes(&Filter{All: terms, Tolerations: []Toleration{{Exists: true}}})
}

// Relax says which excuses an empty cluster takes for granted.
type Relax struct {
	Labels   bool // labels, affinity and taints disregarded
	Hardware bool // everything lost, cordoned or not ready is back
	Layout   bool // cards may be cut and shared anew
}

// Vacant returns the inventory with no pod on it, relaxed as asked: what the gang
// could have if nobody else were there.
func (v *Inventory) Vacant(r Relax) *Inventory {
	out := NewInventory()
	cuts := map[string]bool{}
	for _, p := range v.nodes {
		if p.node == nil {
			continue
		}
		n := *p.node
		if r.Labels {
			n.Taints = nil
		}
		if r.Hardware {
			n.Offer, n.Outages = n.whole(), nil
			if n.Cards != nil {
				n.Cards = n.Cards.mended()
			}
		}
		q := &place{id: out.nextID, node: &n, name: n.Name}
		if r.Layout && n.Cards != nil {
			q.cuts, out.plain = cuts, true
			n.Offer = n.uncut()
		}
		out.nextID++
		out.nodes = append(out.nodes, q)
		out.byID[n.Name] = q
		out.total.Add(n.Offer)
		q.settle()
	}
	return out
}

// uncut is the offer with, of everything that cards offer, the most that they could
// be cut into. Not all of it can be had at once; see place.recut.
func (n *Node) uncut() quota.Resources {
	offer, best := n.Offer.Clone(), n.Cards.best()
	for dim := range n.Cards.governs {
		if v := best.At(dim); n.Cards.Governs(dim) && (v > 0 || offer.At(dim) > 0) {
			offer.Set(dim, v)
		}
	}
	return offer
}

// Recuttable says whether any node has cards that are known, so that cutting or
// sharing them otherwise might help.
func (v *Inventory) Recuttable() bool {
	return slices.ContainsFunc(v.nodes, func(p *place) bool {
		return p.node != nil && p.node.Cards != nil && len(p.node.Cards.Cards) > 0
	})
}

// Loosen returns the spec with labels and affinity disregarded.
func (s *Spec) Loosen() *Spec {
	c := *s
	c.PodSets = slices.Clone(s.PodSets)
	for i := range c.PodSets {
		c.PodSets[i].Filter = Filter{}
	}
	return &c
}

// Draw writes one line a node: what is taken of what it offers, for the dimensions
// it offers any of except pods.
func (v *Inventory) Draw(space *quota.Space, dims ...int) string {
	var b strings.Builder
	for _, p := range v.nodes {
		fmt.Fprintf(&b, "%-12s", p.name)
		for _, d := range dims {
			offer := int64(0)
			if p.node != nil {
				offer = p.node.Offer.At(d)
			}
			if offer > 0 || p.used.At(d) > 0 {
				fmt.Fprintf(&b, " %s %d/%d", space.Name(d), p.used.At(d), offer)
			}
		}
		if p.node == nil {
			b.WriteString(" gone")
		} else {
			for _, o := range p.node.Outages {
				b.WriteString(" " + o.What)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
