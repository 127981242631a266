package gang

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/quota"
)

// Survey sorts all nodes by what each means for a gang that found no place: the
// numbers behind a pending reason.
type Survey struct {
	Pod      int64           // how much of it a pod of the set that is hardest to place asks
	Resource int             // of which a pod takes the largest part
	Free     quota.Resources // free on nodes open to some pod set
	Fitting  int             // nodes that could take a pod now
	Excluded []Exclusion     // most free of the scarce resource first
}

// Exclusion is a group of nodes that could not take a pod, or not as many as they
// would with all hardware in order, for one reason.
type Exclusion struct {
	Nodes []string
	// One of these says why.
	Objection *Objection // labels, affinity or taints
	Outage    *Outage    // hardware out of use
	Cards     string     // how its cards are cut or shared otherwise than the pod wants
	Full      bool       // too little is free
	Free      int64      // free there of Survey.Resource
	Most      int64      // free of it on one of these nodes at most
}

// Look surveys the inventory for the pod set of the gang that is hardest to place.
func Look(v *Inventory, spec *Spec) Survey {
	a := newAttempt(v, spec, spec.Least())
	if len(a.order) == 0 {
		return Survey{}
	}
	hard := a.hardest()
	ps := &spec.PodSets[hard]
	dim := a.key[hard]
	s := Survey{Resource: dim, Pod: ps.Request.At(dim)}
	g := &groups{byKey: map[any]*group{}}
	if a.rules == nil {
		g.index = v.indexed()
	}
	if g.index != nil && a.surveyClasses(g, hard, &s) {
		s.Excluded = g.exclusions()
		return s
	}
	g = &groups{byKey: map[any]*group{}}
	for _, p := range v.nodes {
		a.surveyNode(g, p, hard, &s)
	}
	s.Excluded = g.exclusions()
	return s
}

// group is an Exclusion in the making.
type group struct {
	Exclusion
	in mask // the ranks of its nodes, if they are counted by the index
}

// groups sort nodes by why they could not take a pod.
type groups struct {
	index *index
	byKey map[any]*group // by objection, outage, misfit, or "full"
	list  []*group
}

func (g *groups) at(key any, e Exclusion) *group {
	x := g.byKey[key]
	if x == nil {
		x = &group{Exclusion: e}
		g.byKey[key] = x
		g.list = append(g.list, x)
	}
	return x
}

// join counts a node that has free of the scarce resource.
func (g *groups) join(key any, p *place, free int64, e Exclusion) {
	x := g.at(key, e)
	if g.index != nil {
		x.in.set(p.rank, true)
	} else {
		x.Nodes = append(x.Nodes, p.name)
	}
	x.Free = quota.Sum(x.Free, free)
	x.Most = max(x.Most, free)
}

// joinAll counts those of a class that are in m.
func (g *groups) joinAll(key any, c *class, m mask, dim int, e Exclusion) {
	n := c.members.common(m)
	if n == 0 {
		return
	}
	x, free := g.at(key, e), c.free.At(dim)
	x.in.addCommon(c.members, m)
	x.Free = quota.Sum(x.Free, quota.Product(free, int64(n)))
	x.Most = max(x.Most, free)
}

// exclusions are the groups, that with most free of the scarce resource first, then
// that with the first node.
func (g *groups) exclusions() []Exclusion {
	if g.index != nil {
		slices.SortFunc(g.list, func(x, y *group) int { return cmp.Compare(x.in.next(x.in, 0), y.in.next(y.in, 0)) })
		for _, x := range g.list {
			x.Nodes = g.index.names(x.in)
		}
	}
	slices.SortStableFunc(g.list, func(x, y *group) int { return cmp.Compare(y.Free, x.Free) })
	var list []Exclusion
	for _, x := range g.list {
		list = append(list, x.Exclusion)
	}
	return list
}

// surveyNode sorts one node.
func (a *attempt) surveyNode(g *groups, p *place, hard int, s *Survey) {
	if p.node == nil {
		return
	}
	ps, dim := &a.spec.PodSets[hard], a.key[hard]
	switch {
	case !a.pass[hard].ok[p.id]:
		objection, _ := p.node.Passes(&ps.Filter)
		g.join(objection, p, p.free.At(dim), Exclusion{Objection: &objection})
	case !p.node.Open():
		o := p.node.closed()
		g.join(o, p, p.free.At(dim), Exclusion{Outage: &o})
	case a.copies(p, hard, 1) > 0 && a.clash(hard, p) != "":
		o := Objection{Wants: a.clash(hard, p), Pods: true}
		g.join(o, p, p.free.At(dim), Exclusion{Objection: &o})
	case a.copies(p, hard, 1) == 0:
		if why := p.misfit(ps); why != "" {
			g.join(why, p, p.free.At(dim), Exclusion{Cards: why})
			return
		}
		s.Free.Add(p.free)
		// A node that is short only because part of it is lost says so.
		if o, lost := p.loses(ps, 1); lost {
			g.join(o, p, p.free.At(dim), Exclusion{Outage: &o})
		} else {
			g.join(full, p, p.free.At(dim), Exclusion{Full: true})
		}
	default:
		s.Free.Add(p.free)
		s.Fitting++
		// What is out of use beside is told as well: it might hold another pod.
		if o, lost := p.loses(ps, a.copies(p, hard, a.sizes[hard])+1); lost && p.cuts == nil {
			g.join(o, p, p.free.At(dim), Exclusion{Outage: &o})
		}
	}
}

const full = "full"

// surveyClasses sorts all nodes by their classes, but for those with an outage,
// which it sorts one by one. It says no where labels set too many nodes apart.
func (a *attempt) surveyClasses(g *groups, hard int, s *Survey) bool {
	x, ps, dim := g.index, &a.spec.PodSets[hard], a.key[hard]
	pass := x.maskOf(a.pass[hard])
	barred, few := x.objectionsTo(a.pass[hard])
	if !few {
		return false
	}
	for _, c := range x.list {
		first := c.members.next(c.members, 0)
		if x.outages.has(first) {
			continue
		}
		n := c.members.common(pass)
		if n < c.n {
			for i := range barred {
				b := &barred[i]
				g.joinAll(b.why, c, b.nodes, dim, Exclusion{Objection: &b.why})
			}
		}
		if n == 0 {
			continue
		}
		p, why := x.ranked[first], ""
		fits := a.copies(p, hard, 1) > 0
		if !fits {
			why = p.misfit(ps)
		}
		if why != "" {
			g.joinAll(why, c, pass, dim, Exclusion{Cards: why})
			continue
		}
		s.Free.Add(c.free.Times(n))
		if fits {
			s.Fitting += n
		} else {
			g.joinAll(full, c, pass, dim, Exclusion{Full: true})
		}
	}
	for i := x.outages.next(x.outages, 0); i >= 0; i = x.outages.next(x.outages, i+1) {
		a.surveyNode(g, x.ranked[i], hard, s)
	}
	return true
}

// hardest is the pod set that falls short by most, else the one with the largest pods.
func (a *attempt) hardest() int {
	short := a.count(a.all)
	best, miss := a.order[0], 0
	for _, i := range a.order {
		if m := short.Sets[i].Want - short.Sets[i].Found; m > miss {
			best, miss = i, m
		}
	}
	return best
}

func (n *Node) closed() Outage {
	for _, o := range n.Outages {
		if o.Closed {
			return o
		}
	}
	return Outage{}
}

// loses says whether so many pods would have found room here with all hardware in order.
func (p *place) loses(ps *PodSet, want int) (Outage, bool) {
	if len(p.node.Outages) == 0 {
		return Outage{}, false
	}
	free := p.node.whole().Clone()
	for i := range free {
		free[i] = max(0, free[i]-p.used.At(i))
	}
	n := free.Copies(ps.Request, want)
	if d := p.node.Cards; d != nil {
		n = d.mended().deal(ps, n)
	}
	return p.node.Outages[0], n >= want
}

// misfit is how the node's cards are cut or shared otherwise than the pod wants, or "".
func (p *place) misfit(ps *PodSet) string {
	if p.node.Cards == nil || p.cuts != nil {
		return ""
	}
	return p.node.Cards.misfit(ps)
}
