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
	groups := map[any]*Exclusion{} // by objection, outage, or "full"
	var list []*Exclusion
	join := func(key any, p *place, free int64, e Exclusion) {
		g := groups[key]
		if g == nil {
			g = &e
			groups[key] = g
			list = append(list, g)
		}
		g.Nodes = append(g.Nodes, p.name)
		g.Free = quota.Sum(g.Free, free)
		g.Most = max(g.Most, free)
	}
	for _, p := range v.nodes {
		if p.node == nil {
			continue
		}
		switch {
		case !a.pass[hard][p.id]:
			objection, _ := p.node.Passes(&ps.Filter)
			join(objection, p, p.free.At(dim), Exclusion{Objection: &objection})
		case !p.node.Open():
			o := p.node.closed()
			join(o, p, p.free.At(dim), Exclusion{Outage: &o})
		case a.copies(p, hard, 1) == 0:
			if why := p.misfit(ps); why != "" {
				join(why, p, p.free.At(dim), Exclusion{Cards: why})
				continue
			}
			s.Free.Add(p.free)
			// A node that is short only because part of it is lost says so.
			if o, lost := p.loses(ps, 1); lost {
				join(o, p, p.free.At(dim), Exclusion{Outage: &o})
			} else {
				join("full", p, p.free.At(dim), Exclusion{Full: true})
			}
		default:
			s.Free.Add(p.free)
			s.Fitting++
			// What is out of use beside is told as well: it might hold another pod.
			if o, lost := p.loses(ps, a.copies(p, hard, a.sizes[hard])+1); lost && p.cuts == nil {
				join(o, p, p.free.At(dim), Exclusion{Outage: &o})
			}
		}
	}
	slices.SortStableFunc(list, func(x, y *Exclusion) int { return cmp.Compare(y.Free, x.Free) })
	for _, g := range list {
		s.Excluded = append(s.Excluded, *g)
	}
	return s
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
