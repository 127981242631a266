package gang

import (
	"container/heap"
	"fmt"
	"strings"
)

// room is for how many of n pods of set i the rules leave room on the node: those of
// the set, and those of other sets of the gang that have pods where it would count.
// Spreads are asked only for evens: before all is placed nobody knows which is fewest.
func (r *rules) room(i int, p *place, n int, evens bool) int {
	for k := range r.nears {
		if x := &r.nears[k]; x.set == i && !x.allows(p) {
			return 0
		}
	}
	for k := range r.list {
		x := &r.list[k]
		if !x.must {
			continue
		}
		if x.even != nil && !evens {
			if _, ok := p.domain(x.of.key); !ok && x.set == i {
				return 0
			}
			continue
		}
		if n = min(n, x.room(i, p, n)); n <= 0 {
			return 0
		}
	}
	return n
}

// allows says whether others are in the node's domain, or nobody is anywhere yet.
func (x *near) allows(p *place) bool {
	d, ok := p.domain(x.Key)
	return ok && (x.in[d] > 0 || x.Self && len(x.in) == 0)
}

func (x *rule) room(i int, p *place, n int) int {
	joins := x.of.group.has(i)
	if x.set != i && !joins {
		return n
	}
	d, ok := p.domain(x.of.key)
	if !ok {
		if x.set == i && x.even != nil {
			return 0
		}
		return n
	}
	if x.set != i && x.mine.n[d] == 0 {
		return n
	}
	left := x.bound() - x.of.n[d]
	switch {
	case joins:
		return max(0, min(n, left))
	case left < 0:
		return 0
	default:
		return n
	}
}

// bound is the most pods of the group that a domain with pods of the set may have.
func (x *rule) bound() int {
	switch {
	case x.even != nil:
		return x.skew + x.even.floor()
	case x.of.group.has(x.set):
		return x.apart.Most
	default:
		return x.apart.Most - 1
	}
}

// hold says whether what is placed keeps every spread.
func (r *rules) hold() bool {
	for k := range r.list {
		x := &r.list[k]
		if !x.must || x.even == nil {
			continue
		}
		for d, n := range x.mine.n {
			if n > 0 && x.of.n[d] > x.bound() {
				return false
			}
		}
	}
	return true
}

// missed is the weight of a wish for one pod above an even spread.
const missed = 100

// score is how much pods of set i would rather be on this node than on another. Of
// what domains other than the node make of it, only if wide.
func (a *attempt) score(i int, p *place, wide bool) int {
	r := a.rules
	if r == nil {
		return 0
	}
	sum := 0
	for _, w := range r.wishes[i] {
		if w.ok.ok[p.id] {
			sum += w.weight
		}
	}
	for k := range r.list {
		if x := &r.list[k]; !x.must && x.set == i && (wide || x.onNode()) {
			sum -= x.miss(p)
		}
	}
	return sum
}

// onNode says whether the rule is about what is on the node alone.
func (x *rule) onNode() bool { return x.even == nil && x.of.key == NameField }

// miss is how much one more pod on the node misses the wish.
func (x *rule) miss(p *place) int {
	d, ok := p.domain(x.of.key)
	switch {
	case x.even == nil && ok:
		return x.apart.Weight * x.of.n[d]
	case x.even == nil:
		return 0
	case ok:
		return missed * max(0, x.of.n[d]+1-x.bound())
	default:
		return missed // it counts in no domain
	}
}

// ward is the nodes that the rules of a pod set cannot tell apart but by what is on
// them, the best first.
type ward struct {
	seats seatHeap
}

// wards sorts the nodes with room for pods of set i.
func (a *attempt) wards(nodes []*place, i int, emptiest bool) []*ward {
	at := map[string]*ward{}
	var list []*ward
	var key strings.Builder
	for k, p := range nodes {
		if !a.pass[i].ok[p.id] || a.rules.room(i, p, 1, false) == 0 {
			continue
		}
		n := a.onNode(p, i, a.sizes[i])
		if n == 0 {
			continue
		}
		key.Reset()
		for k := range a.rules.list {
			if x := &a.rules.list[k]; !x.onNode() && (x.set == i || x.of.group.has(i)) {
				d, ok := p.domain(x.of.key)
				fmt.Fprintf(&key, "%q %t ", d, ok)
			}
		}
		w := at[key.String()]
		if w == nil {
			w = &ward{seatHeap{emptiest: emptiest}}
			at[key.String()] = w
			list = append(list, w)
		}
		w.seats.seats = append(w.seats.seats, a.seat(p, i, n, k))
	}
	for _, w := range list {
		heap.Init(&w.seats)
	}
	return list
}

// onNode is for how many of n pods of set i the node has room, and what is on it
// leaves them.
func (a *attempt) onNode(p *place, i, n int) int {
	for k := range a.rules.list {
		if x := &a.rules.list[k]; x.must && x.onNode() {
			n = x.room(i, p, n)
		}
	}
	return a.copies(p, i, n)
}

// fillRuled puts pods of set i on the nodes one by one, where they would rather be
// first, and returns how many found a place. What it placed is in the plan.
func (a *attempt) fillRuled(nodes []*place, i int, emptiest bool, plan *Plan) int {
	wards := a.wards(nodes, i, emptiest)
	for done := range a.sizes[i] {
		var best *ward
		var top seat
		for _, w := range wards {
			if w.seats.Len() == 0 || a.rules.room(i, w.seats.seats[0].p, 1, true) == 0 {
				continue
			}
			s := w.seats.seats[0]
			s.score = a.score(i, s.p, true)
			if best == nil || compareSeats(s, top, emptiest) < 0 {
				best, top = w, s
			}
		}
		if best == nil {
			return done
		}
		a.put(i, top.p, 1)
		plan.Add(i, top.p.name, 1)
		if n := a.onNode(top.p, i, a.sizes[i]); n > 0 {
			best.seats.seats[0] = a.seat(top.p, i, n, top.at)
			heap.Fix(&best.seats, 0)
		} else {
			best.seats.pop()
		}
	}
	return a.sizes[i]
}

// countRuled is for how many pods of set i the nodes have room, had it them to itself.
func (a *attempt) countRuled(nodes []*place, i int) int {
	mark := a.v.Mark()
	defer a.v.Undo(mark)
	plan := Empty(a.spec)
	n := a.fillRuled(nodes, i, false, &plan)
	a.uncount(plan)
	return n
}

// clash is the first rule that keeps pods of set i off the node now, or "".
func (a *attempt) clash(i int, p *place) string {
	if a.rules == nil {
		return ""
	}
	for k := range a.rules.nears {
		if x := &a.rules.nears[k]; x.set == i && !x.allows(p) {
			return fmt.Sprintf("wants %s in the same %s, none there", x.Text, keyText(x.Key))
		}
	}
	for k := range a.rules.list {
		x := &a.rules.list[k]
		if !x.must || x.room(i, p, 1) > 0 {
			continue
		}
		d, ok := p.domain(x.of.key)
		key := keyText(x.of.key)
		switch {
		case !ok:
			return fmt.Sprintf("spreads over %s, has no such label", key)
		case x.even != nil:
			return fmt.Sprintf("spreads over %s with a skew of %d, %s has %d and another %d", key, x.skew, d, x.of.n[d], x.even.floor())
		default:
			return fmt.Sprintf("is kept apart from %s in one %s, %d there", x.apart.Text, key, x.of.n[d])
		}
	}
	return ""
}

func keyText(key string) string {
	if key == NameField {
		return "node"
	}
	return key
}

// alike says whether pods that mind others can tell the two nodes apart.
func (r *rules) alike(p, q *place) bool {
	for _, t := range r.tallies {
		d, ok := p.domain(t.key)
		e, also := q.domain(t.key)
		if ok != also || t.n[d] != t.n[e] || t.key != NameField && d != e {
			return false
		}
		for _, v := range t.evens {
			if v.in[d] != v.in[e] {
				return false
			}
		}
	}
	for k := range r.nears {
		if r.nears[k].allows(p) != r.nears[k].allows(q) {
			return false
		}
	}
	return true
}
