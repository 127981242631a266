package gang

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"sluice.dev/sluice/quota"
)

// An index groups the nodes that take new pods into classes: nodes of one class have
// the same amounts free and the same cards, so that one look answers for all of
// them. What sets them apart still, labels and taints, is a mask for each filter.
//
// It follows the inventory lazily. A node of which something is taken or given is
// stale until the next question, when it is put where it belongs; a trial that was
// undone in between has changed nothing. Where so many nodes are stale, or there are
// so many classes, that a walk over the nodes is cheaper, the question is answered by
// that walk: both give the same answer, and a property test holds them to it.
type index struct {
	ranked  []*place // Inventory.nodes when it was built; place.rank is the position
	classes map[string]*class
	list    []*class // those of classes, in no order that matters
	kinds   map[string]uint32
	stale   []*place
	outages mask    // nodes of which something is out of use, by rank
	called  []named // the last lists of names that were made
	walks   int     // questions in a row that were answered by walking
	buf     []byte
}

// walksMost is after how many walks the index is brought up to date at any cost.
const walksMost = 3

// named is a list of names and of which nodes.
type named struct {
	nodes mask
	names []string
}

// barred is the nodes that a filter keeps out for one reason.
type barred struct {
	why   Objection
	nodes mask // by rank
}

// class is the nodes that are alike beside their labels and taints.
type class struct {
	key     string
	free    quota.Resources
	members mask // by rank
	n       int
	at      int // position in index.list
}

// mask is a set of ranks.
type mask []uint64

func (m mask) has(i int) bool { return i>>6 < len(m) && m[i>>6]>>(i&63)&1 != 0 }

func (m *mask) set(i int, on bool) {
	for len(*m) <= i>>6 {
		*m = append(*m, 0)
	}
	if on {
		(*m)[i>>6] |= 1 << (i & 63)
	} else {
		(*m)[i>>6] &^= 1 << (i & 63)
	}
}

// common is how many are in both.
func (m mask) common(o mask) int {
	n := 0
	for i := range min(len(m), len(o)) {
		n += bits.OnesCount64(m[i] & o[i])
	}
	return n
}

// next is the first rank from i on that is in both, or -1.
func (m mask) next(o mask, i int) int {
	for w := i >> 6; w < min(len(m), len(o)); w++ {
		x := m[w] & o[w]
		if w == i>>6 {
			x &= ^uint64(0) << (i & 63)
		}
		if x != 0 {
			return w<<6 + bits.TrailingZeros64(x)
		}
	}
	return -1
}

// addCommon puts into m what is in both.
func (m *mask) addCommon(a, b mask) {
	for len(*m) < min(len(a), len(b)) {
		*m = append(*m, 0)
	}
	for i := range min(len(a), len(b)) {
		(*m)[i] |= a[i] & b[i]
	}
}

// add puts all of o into m.
func (m *mask) add(o mask) {
	for len(*m) < len(o) {
		*m = append(*m, 0)
	}
	for i, x := range o {
		(*m)[i] |= x
	}
}

// indexed is the index, up to date, or nil where walking over the nodes is better.
func (v *Inventory) indexed() *index {
	if v.plain {
		return nil
	}
	if v.index == nil {
		v.index = v.buildIndex()
	}
	x := v.index
	if len(x.stale) > 64+len(x.ranked)/8 && x.walks < walksMost {
		x.walks++ // it may be a trial that is undone before the next question
		return nil
	}
	x.walks = 0
	x.refresh()
	if len(x.list) > 64+len(x.ranked)/4 {
		return nil
	}
	return x
}

func (v *Inventory) buildIndex() *index {
	x := &index{ranked: slices.Clone(v.nodes), classes: map[string]*class{}, kinds: v.kinds}
	for i, p := range x.ranked {
		p.rank, p.class, p.stale = i, nil, false
		x.place(p)
	}
	for _, c := range v.passing {
		c.forget()
	}
	return x
}

// place puts p, which is in no class, where it belongs. Its kind is worked out anew.
func (x *index) place(p *place) {
	x.outages.set(p.rank, p.node != nil && len(p.node.Outages) > 0)
	if p.node == nil || !p.node.Open() {
		return
	}
	if p.known != p.node {
		sig := p.node.signature()
		kind, ok := x.kinds[sig]
		if !ok {
			kind = uint32(len(x.kinds))
			x.kinds[sig] = kind
		}
		p.kind, p.known = kind, p.node
	}
	x.join(p)
}

// join puts p of a known kind into its class.
func (x *index) join(p *place) {
	x.buf = binary.LittleEndian.AppendUint32(x.buf[:0], p.kind)
	for _, v := range p.free {
		x.buf = binary.LittleEndian.AppendUint64(x.buf, uint64(v))
	}
	c := x.classes[string(x.buf)]
	if c == nil {
		c = &class{key: string(x.buf), free: p.free.Clone(), at: len(x.list)}
		x.classes[c.key] = c
		x.list = append(x.list, c)
	}
	c.members.set(p.rank, true)
	c.n++
	p.class = c
}

func (x *index) leave(p *place) {
	c := p.class
	if c == nil {
		return
	}
	p.class = nil
	c.members.set(p.rank, false)
	if c.n--; c.n > 0 {
		return
	}
	delete(x.classes, c.key)
	last := x.list[len(x.list)-1]
	x.list[c.at], last.at = last, c.at
	x.list = x.list[:len(x.list)-1]
}

// touched says that what is free on p may have changed.
func (v *Inventory) touched(p *place) {
	if v.index != nil && p.class != nil && !p.stale {
		p.stale = true
		v.index.stale = append(v.index.stale, p)
	}
}

// replaced says that p has another node now, or none.
func (v *Inventory) replaced(p *place) {
	if v.index != nil {
		v.index.leave(p)
		v.index.place(p)
	}
}

func (x *index) refresh() {
	for _, p := range x.stale {
		p.stale = false
		if p.class != nil && !p.class.free.Equal(p.free) {
			x.leave(p)
			x.join(p)
		}
	}
	x.stale = x.stale[:0]
}

// signature is equal for nodes that pods cannot tell apart by anything but what is
// free there, their labels and their taints.
func (n *Node) signature() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%t %t", n.Doubtful, len(n.Outages) > 0)
	for d := quota.Pods + 1; d < len(n.Offer); d++ {
		if n.Offer[d] > 0 {
			fmt.Fprintf(&b, " %d", d)
		}
	}
	if d := n.Cards; d != nil {
		fmt.Fprintf(&b, " %d %t %v", d.Whole, d.Silent, d.governs)
		for i := range d.Cards {
			c := &d.Cards[i]
			fmt.Fprintf(&b, " %q %v %t %d %q %q", c.Kind.name(), c.Offer, c.Cut, c.Replicas, c.Layout, c.Out)
		}
	}
	return b.String()
}

// maskOf is which of the ranked nodes the filter passes.
func (x *index) maskOf(c *pass) mask {
	if c.mask == nil {
		c.mask = make(mask, (len(x.ranked)+63)/64)
		for i, p := range x.ranked {
			if p.node != nil && c.ok[p.id] {
				c.mask.set(i, true)
			}
		}
	}
	return c.mask
}

// forget drops what was worked out by rank.
func (c *pass) forget() { c.mask, c.barred, c.many = nil, nil, false }

// objectionsMost bounds how many reasons to keep nodes out are kept for a filter.
const objectionsMost = 64

// objectionsTo are the nodes that the filter keeps out, by the reason; false if
// these are too many to tell them apart by classes.
func (x *index) objectionsTo(c *pass) ([]barred, bool) {
	if c.barred != nil || c.many {
		return c.barred, !c.many
	}
	at := map[Objection]int{}
	list := []barred{}
	for i, p := range x.ranked {
		if p.node == nil || c.ok[p.id] {
			continue
		}
		why, _ := p.node.Passes(&c.filter)
		k, known := at[why]
		if !known {
			if k = len(list); k == objectionsMost {
				c.many = true
				return nil, false
			}
			at[why] = k
			list = append(list, barred{why: why})
		}
		list[k].nodes.set(i, true)
	}
	c.barred = list
	return list, true
}

// names are the names of the nodes in m, in order. They are shared: not to be changed.
func (x *index) names(m mask) []string {
	for _, n := range x.called {
		if slices.Equal(n.nodes, m) {
			return n.names
		}
	}
	var names []string
	for i := m.next(m, 0); i >= 0; i = m.next(m, i+1) {
		names = append(names, x.ranked[i].name)
	}
	if len(x.called) == 16 {
		x.called = slices.Delete(x.called, 0, 1)
	}
	x.called = append(x.called, named{m, names})
	return names
}

// row is the nodes of a class on which pods of the set at hand may go.
type row struct {
	c     *class
	n     int // pods for which one of them has room
	waste int
	free  int64
	at    int // the first rank that was not used yet
}

// rows are the classes with room for pods of set i, and for how many of want they
// have room together.
func (a *attempt) rows(x *index, i, want int) (list []row, room int) {
	m := x.maskOf(a.pass[i])
	list = a.v.rows[:0]
	for _, c := range x.list {
		at := c.members.next(m, 0)
		if at < 0 {
			continue
		}
		p := x.ranked[at]
		if n := a.copies(p, i, want); n > 0 {
			list = append(list, row{c, n, a.wastes(p, i), c.free.At(a.key[i]), at})
			if room < want {
				room = int(quota.Sum(int64(room), quota.Product(int64(n), int64(c.members.common(m)))))
			}
		}
	}
	a.v.rows = list
	return list, min(room, want)
}

// fillIndexed is fill over all nodes by their classes.
func (a *attempt) fillIndexed(x *index, i int, emptiest bool, plan *Plan) bool {
	want := a.sizes[i]
	list, room := a.rows(x, i, want)
	if room < want {
		return false
	}
	m := x.maskOf(a.pass[i])
	for {
		k := -1
		for j := range list {
			if list[j].at >= 0 && (k < 0 || compareSeats(list[j].seat(), list[k].seat(), emptiest) < 0) {
				k = j
			}
		}
		b := &list[k]
		rival := slices.ContainsFunc(list, func(o row) bool {
			return o.at >= 0 && o.c != b.c && o.waste == b.waste && o.free == b.free
		})
		for more := true; more; more = b.at >= 0 && !rival {
			p, n := x.ranked[b.at], min(b.n, want)
			b.at = b.c.members.next(m, b.at+1)
			a.put(i, p, n)
			plan.Add(i, p.name, n)
			if want -= n; want == 0 {
				return true
			}
		}
	}
}

func (b *row) seat() seat { return seat{n: b.n, at: b.at, waste: b.waste, free: b.free} }

// nextIndexed is next over all nodes by their classes.
func (a *attempt) nextIndexed(x *index, i int) *place {
	list, _ := a.rows(x, i, 1)
	best := -1
	for j := range list {
		if best < 0 || compareSeats(list[j].seat(), list[best].seat(), a.spec.Roomy) < 0 {
			best = j
		}
	}
	if best < 0 {
		return nil
	}
	return x.ranked[list[best].at]
}

// freeIndexed is what is free together on nodes open to some pod set.
func (a *attempt) freeIndexed(x *index) quota.Resources {
	var open mask
	for _, i := range a.order {
		open.add(x.maskOf(a.pass[i]))
	}
	var free quota.Resources
	for _, c := range x.list {
		free.Add(c.free.Times(c.members.common(open)))
	}
	return free
}
