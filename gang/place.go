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
	if len(a.order) == 1 && spec.Level.Key == "" && spec.PodSets[a.order[0]].Level.Key == "" {
		return a.alone(a.all) == nil
	}
	_, short := Place(v, spec, sizes)
	return short == nil
}

// Grow adds pods to a plan that the inventory already has as taken, one after the
// other and pod set by pod set, up to full size, as long as allow says yes and a
// node can take one. It returns the larger plan; what it added is not taken.
func Grow(v *Inventory, spec *Spec, plan Plan, allow func(set int) bool) Plan {
	mark := v.Mark()
	defer v.Undo(mark)
	plan = plan.Clone()
	a := newAttempt(v, spec, spec.Sizes())
	nodes := a.all
	if spec.Level.Required {
		nodes = a.domainOf(spec.Level.Key, nodes, plan.Nodes())
	}
	sizes := plan.Sizes()
	open := make([]bool, len(sizes))
	for i := range open {
		open[i] = sizes[i] < spec.PodSets[i].Count
	}
	for slices.Contains(open, true) {
		for i := range sizes {
			if !open[i] {
				continue
			}
			p := a.next(i, a.reach(i, nodes, plan))
			if p == nil || !allow(i) {
				open[i] = false
				continue
			}
			v.move(p, spec.PodSets[i].Request, 1)
			plan.Add(i, p.name, 1)
			sizes[i]++
			open[i] = sizes[i] < spec.PodSets[i].Count
		}
	}
	return plan
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
	if len(nodes) == 0 || len(nodes) != len(a.all) || nodes[0] != a.all[0] {
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
		if plan, ok := a.greedy(nodes, a.order, false); ok {
			return plan, nil
		}
		short := a.count(nodes)
		for _, i := range a.order { // its own level holds no domain large enough
			short.Level = a.spec.PodSets[i].Level.Key
		}
		return Plan{}, short
	}
	for _, order := range orders(a.order) {
		for _, emptiest := range []bool{false, true} {
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

// seat is a node with room for n pods of the pod set at hand.
type seat struct {
	p     *place
	n     int
	at    int  // its position among the nodes
	waste bool // rather to be left alone: see wastes
	free  int64
}

// fill puts all pods of set i on the nodes and takes the room, or changes nothing.
func (a *attempt) fill(nodes []*place, i int, emptiest bool, plan *Plan) bool {
	if x := a.index(nodes); x != nil {
		return a.fillIndexed(x, i, emptiest, plan)
	}
	req, want := a.spec.PodSets[i].Request, a.sizes[i]
	seats := a.v.seats[:0]
	room := 0
	for at, p := range nodes {
		if !a.pass[i].ok[p.id] {
			continue
		}
		if n := a.copies(p, i, want); n > 0 {
			seats = append(seats, seat{p, n, at, a.wastes(p, i), p.free.At(a.key[i])})
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
		a.v.move(s.p, req.Times(n), 1)
		plan.Add(i, s.p.name, n)
		if want -= n; want == 0 {
			return true
		}
	}
}

// seatHeap gives seats in the order of compareSeats.
type seatHeap struct {
	seats    []seat
	emptiest bool
}

func (h *seatHeap) Len() int           { return len(h.seats) }
func (h *seatHeap) Less(i, j int) bool { return compareSeats(h.seats[i], h.seats[j], h.emptiest) < 0 }
func (h *seatHeap) Swap(i, j int)      { h.seats[i], h.seats[j] = h.seats[j], h.seats[i] }

// Push is needed by heap.Interface; seats are only ever taken off.
func (h *seatHeap) Push(any) { panic("gang: a seat was added while a pod set is placed") }

// Pop is needed by heap.Interface; pop is the typed one.
func (h *seatHeap) Pop() any {
	s := h.seats[len(h.seats)-1]
	h.seats = h.seats[:len(h.seats)-1]
	return s
}

func (h *seatHeap) pop() seat { return heap.Pop(h).(seat) }

// compareSeats orders nodes for pods of one set: those without idle devices first,
// then the fullest (or emptiest), then by the order of the inventory.
func compareSeats(x, y seat, emptiest bool) int {
	if x.waste != y.waste {
		if x.waste {
			return 1
		}
		return -1
	}
	free := cmp.Compare(x.free, y.free)
	if emptiest {
		free = -free
	}
	return cmp.Or(free, cmp.Compare(x.at, y.at))
}

// copies is for how many of n pods of set i there is room on the node now.
func (a *attempt) copies(p *place, i, n int) int {
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

// wastes says whether pods of set i should rather go elsewhere: the node offers
// devices that they leave idle, or whole cards where a shared one would do, or it is
// not sure to take them.
func (a *attempt) wastes(p *place, i int) bool {
	ps := &a.spec.PodSets[i]
	if p.node.Doubtful {
		return true
	}
	if d := p.node.Cards; d != nil && ps.Sharing == AnyCards && d.shared == 0 && ps.Request.At(d.Whole) > 0 {
		return true
	}
	req := ps.Request
	for d := quota.Pods + 1; d < len(p.node.Offer); d++ {
		if p.node.Offer[d] > 0 && req.At(d) == 0 {
			return true
		}
	}
	return false
}

// next is the node on which one more pod of set i would go, or nil.
func (a *attempt) next(i int, nodes []*place) *place {
	if x := a.index(nodes); x != nil {
		return a.nextIndexed(x, i)
	}
	var best seat
	for at, p := range nodes {
		if !a.pass[i].ok[p.id] || a.copies(p, i, 1) == 0 {
			continue
		}
		s := seat{p, 1, at, a.wastes(p, i), p.free.At(a.key[i])}
		if best.p == nil || compareSeats(s, best, false) < 0 {
			best = s
		}
	}
	return best.p
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

// reach is where pods of set i may still go when it must share a domain with those
// that it has.
func (a *attempt) reach(i int, nodes []*place, plan Plan) []*place {
	level := a.spec.PodSets[i].Level
	if !level.Required {
		return nodes
	}
	one := Plan{Sets: plan.Sets[i : i+1]}
	return a.domainOf(level.Key, nodes, one.Nodes())
}

// domainOf returns those of nodes that are in one domain with the nodes called
// names. With no names yet, every node that is in a domain will do.
func (a *attempt) domainOf(key string, nodes []*place, names []string) []*place {
	in := func(p *place) bool { _, ok := p.node.Labels[key]; return ok }
	for _, name := range names {
		if n := a.v.Node(name); n != nil {
			value, labelled := n.Labels[key]
			in = func(p *place) bool { v, ok := p.node.Labels[key]; return ok && labelled && v == value }
			break
		}
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(p *place) bool { return !in(p) })
}
