package gang

import "slices"

// Grow adds pods to a plan that the inventory already has as taken, one after the
// other and pod set by pod set, up to full size, as long as allow says yes and a
// node can take one. It returns the larger plan; what it added is not taken.
func Grow(v *Inventory, spec *Spec, plan Plan, allow func(set int) bool) Plan {
	mark := v.Mark()
	defer v.Undo(mark)
	plan = plan.Clone()
	with := *spec
	with.Stays = plan.Clone()
	spec = &with
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
			a.put(i, p, 1)
			plan.Add(i, p.name, 1)
			sizes[i]++
			open[i] = sizes[i] < spec.PodSets[i].Count
		}
	}
	return plan
}

// next is the node on which one more pod of set i would go, or nil.
func (a *attempt) next(i int, nodes []*place) *place {
	if x := a.index(nodes); x != nil {
		return a.nextIndexed(x, i)
	}
	var best seat
	for at, p := range nodes {
		if !a.pass[i].ok[p.id] || a.holds(p, i, 1) == 0 {
			continue
		}
		s := a.seat(p, i, 1, at)
		s.score = a.score(i, p, true)
		if best.p == nil || compareSeats(s, best, a.spec.Roomy) < 0 {
			best = s
		}
	}
	return best.p
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
