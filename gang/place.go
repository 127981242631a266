package gang

import (
	"cmp"
	"container/heap"
	"math/bits"
	"slices"

	"sluice.dev/sluice/quota"
)

// Shortfall is how near a gang came that found no place.
type Shortfall struct {
	Sets []SetShort
	// Level is the required level that no domain could hold alone, or "".
	Level string
	// Cut says that the search for unlike pods ended at its bound: there may be a
	// place that it did not find.
	Cut bool
}

// SetShort is how many pods of one pod set would find a place if it had the nodes
// to itself.
type SetShort struct {
	Name        string
	Want, Found int
}

// Place finds room for sizes[i] pods of every pod set i: for all of them, or it
// returns a Shortfall. It takes nothing; see Inventory.TakePlan.
//
// Alike pods fill the fullest node that can take one, so that large holes stay
// whole; nodes that offer devices nobody asked for come last. Unlike pods are
// tried largest first, then in other orders, then by a bounded search.
func Place(v *Inventory, spec *Spec, sizes []int) (Plan, *Shortfall) {
	a := newAttempt(v, spec, sizes)
	if len(a.order) == 0 {
		return Empty(spec), nil
	}
	if spec.Level.Key == "" {
		return a.within(a.all)
	}
	best, cut := (*Shortfall)(nil), false
	for _, d := range a.domains(spec.Level.Key, a.all) {
		plan, short := a.within(d)
		if short == nil {
			return plan, nil
		}
		cut = cut || short.Cut
		if best == nil || short.found() > best.found() {
			best = short
		}
	}
	if !spec.Level.Required {
		return a.within(a.all)
	}
	if best == nil {
		best = a.none()
	}
	best.Level, best.Cut = spec.Level.Key, cut
	return Plan{}, best
}

// Fits says whether Place would find a plan. For alike pods without a level that is
// known as soon as enough room is counted.
func Fits(v *Inventory, spec *Spec, sizes []int) bool {
	a := newAttempt(v, spec, sizes)
	if a.rules == nil && len(a.order) == 1 && spec.Level.Key == "" && spec.PodSets[a.order[0]].Level.Key == "" {
		return a.alone(a.all) == nil
	}
	_, short := Place(v, spec, sizes)
	return short == nil
}

func (s *Shortfall) found() int {
	n := 0
	for _, x := range s.Sets {
		n += min(x.Found, x.Want)
	}
	return n
}

// attempt is one call of Place: the gang's needs laid out against the inventory.
type attempt struct {
	v     *Inventory
	spec  *Spec
	sizes []int
	all   []*place // nodes that take new pods, in order
	pass  []*pass  // by pod set
	key   []int    // by pod set: the dimension of which a pod takes the largest part
	order []int    // pod sets, largest pods first
	rules *rules   // what pods mind of each other, nil for nothing
}

func newAttempt(v *Inventory, spec *Spec, sizes []int) *attempt {
	a := &attempt{v: v, spec: spec, sizes: sizes, all: v.opened()}
	for i := range spec.PodSets {
		ps := &spec.PodSets[i]
		a.pass = append(a.pass, v.passes(&ps.Filter))
		a.key = append(a.key, keyDimension(ps.Request, v.total))
		if sizes[i] > 0 {
			a.order = append(a.order, i)
		}
	}
	a.rules = a.ruling()
	slices.SortStableFunc(a.order, func(i, k int) int {
		return compareParts(spec.PodSets[k].Request.At(a.key[k]), v.total.At(a.key[k]), spec.PodSets[i].Request.At(a.key[i]), v.total.At(a.key[i]))
	})
	return a
}

// keyDimension is the dimension of which req takes the largest part of total.
func keyDimension(req, total quota.Resources) int {
	best := quota.Pods
	for d := range req {
		if d != best && compareParts(req.At(d), total.At(d), req.At(best), total.At(best)) > 0 {
			best = d
		}
	}
	return best
}

// compareParts compares a/b with c/d exactly, for amounts that are not negative.
// A part of nothing is larger than any other, unless it is 0.
func compareParts(a, b, c, d int64) int {
	h1, l1 := bits.Mul64(uint64(a), uint64(max(d, 0)))
	h2, l2 := bits.Mul64(uint64(c), uint64(max(b, 0)))
	return cmp.Or(cmp.Compare(h1, h2), cmp.Compare(l1, l2))
}

// index is the index if nodes are all nodes and it serves now, else nil.
func (a *attempt) index(nodes []*place) *index {
	if a.rules != nil || a.v.preferred != nil || len(nodes) == 0 || len(nodes) != len(a.all) || nodes[0] != a.all[0] {
		return nil
	}
	return a.v.indexed()
}

// within tries to place the gang on the given nodes alone.
func (a *attempt) within(nodes []*place) (Plan, *Shortfall) {
	if short := a.alone(nodes); short != nil {
		return Plan{}, short
	}
	if len(a.order) <= 1 {
		if plan, ok := a.greedy(nodes, a.order, a.spec.Roomy); ok {
			return plan, nil
		}
		short := a.count(nodes)
		short.Cut = a.rules != nil && !a.rules.exact[a.order[0]]
		for _, i := range a.order { // its own level holds no domain large enough
			short.Level = a.spec.PodSets[i].Level.Key
		}
		return Plan{}, short
	}
	for _, order := range orders(a.order) {
		for _, emptiest := range []bool{a.spec.Roomy, !a.spec.Roomy} {
			if plan, ok := a.greedy(nodes, order, emptiest); ok {
				return plan, nil
			}
		}
	}
	plan, ok, cut := a.search(nodes)
	if ok {
		return plan, nil
	}
	short := a.count(nodes)
	short.Cut = cut
	return Plan{}, short
}

// alone asks, cheaply, whether each pod set would fit if it had the nodes to
// itself, and whether all of them together ask for more than is free.
func (a *attempt) alone(nodes []*place) *Shortfall {
	if a.rules != nil {
		return nil // placing it tells
	}
	short := a.count(nodes)
	for _, s := range short.Sets {
		if s.Found < s.Want {
			return short
		}
	}
	if len(a.order) <= 1 {
		return nil
	}
	if x := a.index(nodes); x != nil {
		if !a.spec.Request(a.sizes).Within(a.freeIndexed(x)) {
			return short
		}
		return nil
	}
	var free quota.Resources
	for _, p := range nodes {
		if p.cuts != nil {
			return nil // what it offers depends on what is asked
		}
		for _, i := range a.order {
			if a.pass[i].ok[p.id] {
				free.Add(p.free)
				break
			}
		}
	}
	if !a.spec.Request(a.sizes).Within(free) {
		return short
	}
	return nil
}

// count fills a Shortfall: how many pods of each set would find a place.
func (a *attempt) count(nodes []*place) *Shortfall {
	short := a.none()
	if x := a.index(nodes); x != nil {
		for _, i := range a.order {
			_, short.Sets[i].Found = a.rows(x, i, a.sizes[i])
		}
		return short
	}
	for _, i := range a.order {
		if a.rules != nil {
			short.Sets[i].Found = a.countRuled(nodes, i)
			continue
		}
		found := 0
		for _, p := range nodes {
			if a.pass[i].ok[p.id] {
				found += a.copies(p, i, a.sizes[i]-found)
				if found >= a.sizes[i] {
					break
				}
			}
		}
		short.Sets[i].Found = found
	}
	return short
}

func (a *attempt) none() *Shortfall {
	short := &Shortfall{Sets: make([]SetShort, len(a.sizes))}
	for i, n := range a.sizes {
		short.Sets[i] = SetShort{Name: a.spec.PodSets[i].Name, Want: n}
	}
	return short
}

// greedy places the pod sets one after the other and undoes it all before it
// returns.
func (a *attempt) greedy(nodes []*place, order []int, emptiest bool) (Plan, bool) {
	mark := a.v.Mark()
	defer a.v.Undo(mark)
	plan := Empty(a.spec)
	defer func() { a.uncount(plan) }()
	for _, i := range order {
		if !a.set(nodes, i, emptiest, &plan) {
			return Plan{}, false
		}
	}
	return plan, true
}

// set places pod set i, within its own level if it has one.
func (a *attempt) set(nodes []*place, i int, emptiest bool, plan *Plan) bool {
	level := a.spec.PodSets[i].Level
	if level.Key == "" {
		return a.fill(nodes, i, emptiest, plan)
	}
	for _, d := range a.domains(level.Key, nodes) {
		if a.fill(d, i, emptiest, plan) {
			return true
		}
	}
	return !level.Required && a.fill(nodes, i, emptiest, plan)
}

// fill puts all pods of set i on the nodes and takes the room, or changes nothing.
func (a *attempt) fill(nodes []*place, i int, emptiest bool, plan *Plan) bool {
	if a.v.preferred != nil && a.rules == nil {
		return a.fillPreferred(nodes, i, emptiest, plan)
	}
	if x := a.index(nodes); x != nil && !a.spec.Roomy {
		return a.fillIndexed(x, i, emptiest, plan)
	}
	if a.rules != nil && !a.rules.steady[i] {
		return a.fillWhole(nodes, i, emptiest, plan)
	}
	want := a.sizes[i]
	seats := a.v.seats[:0]
	room := 0
	for at, p := range nodes {
		if !a.pass[i].ok[p.id] {
			continue
		}
		if n := a.holds(p, i, want); n > 0 {
			seats = append(seats, a.seat(p, i, n, at))
			room = min(room+n, want)
		}
	}
	a.v.seats = seats // the room of the slice is used again
	if room < want {
		return false
	}
	// Few seats are needed of many, so they are taken off a heap one by one.
	h := &seatHeap{seats, emptiest}
	heap.Init(h)
	for {
		s := h.pop()
		n := min(s.n, want)
		if emptiest && a.spec.Roomy { // the next may be emptier after one
			n = 1
		}
		a.put(i, s.p, n)
		plan.Add(i, s.p.name, n)
		if want -= n; want == 0 {
			return true
		}
		if n < s.n {
			s.n, s.free = s.n-n, s.p.free.At(a.key[i])
			heap.Push(h, s)
		}
	}
}

// fillWhole is fill for pods that mind each other beyond single nodes.
func (a *attempt) fillWhole(nodes []*place, i int, emptiest bool, plan *Plan) bool {
	part := Empty(a.spec)
	if a.fillRuled(nodes, i, emptiest, &part) == a.sizes[i] {
		for _, slot := range part.Sets[i].Slots {
			plan.Add(i, slot.Node, slot.Count)
		}
		return true
	}
	for _, slot := range part.Sets[i].Slots {
		a.put(i, a.v.byID[slot.Node], -slot.Count)
	}
	return false
}

// holds is for how many of n pods of set i the node has room, and rules leave it.
func (a *attempt) holds(p *place, i, n int) int {
	if a.rules != nil {
		n = a.rules.room(i, p, n, true)
	}
	return a.copies(p, i, n)
}

// copies is for how many of n pods of set i there is room on the node now.
func (a *attempt) copies(p *place, i, n int) int {
	if a.v.preferred != nil {
		return a.rate(p, i, n).room
	}
	return a.byCount(p, i, n)
}

// byCount is copies by what is counted free alone, whatever a Preference says.
func (a *attempt) byCount(p *place, i, n int) int {
	ps := &a.spec.PodSets[i]
	switch d := p.node.Cards; {
	case d == nil:
		return p.free.Copies(ps.Request, n)
	case p.cuts != nil:
		return p.recut(a.spec, i, n)
	default:
		return d.deal(ps, p.free.Copies(ps.Request, n))
	}
}

// domains groups nodes by the value of label key, fullest domain first: that with
// the least free of what the largest pods want. Nodes without the label are in none.
func (a *attempt) domains(key string, nodes []*place) [][]*place {
	type domain struct {
		value string
		nodes []*place
		free  int64
	}
	dim := quota.Pods
	if len(a.order) > 0 {
		dim = a.key[a.order[0]]
	}
	byValue := map[string]*domain{}
	var list []*domain
	for _, p := range nodes {
		v, ok := p.node.Labels[key]
		if !ok {
			continue
		}
		d := byValue[v]
		if d == nil {
			d = &domain{value: v}
			byValue[v] = d
			list = append(list, d)
		}
		d.nodes = append(d.nodes, p)
		d.free = quota.Sum(d.free, p.free.At(dim))
	}
	slices.SortFunc(list, func(x, y *domain) int {
		return cmp.Or(cmp.Compare(x.free, y.free), compareNames(x.value, y.value))
	})
	out := make([][]*place, len(list))
	for i, d := range list {
		out[i] = d.nodes
	}
	return out
}
