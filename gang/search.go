package gang

import (
	"slices"
)

// searchSteps bounds the search for unlike pods: so many choices of a count on a
// node. Within it the search is exact.
const searchSteps = 20000

// maxOrders bounds how many orders of pod sets are tried before the search.
const maxOrders = 24

// orders returns the given order first, then others, at most maxOrders.
func orders(order []int) [][]int {
	out := [][]int{order}
	var permute func(done, rest []int)
	permute = func(done, rest []int) {
		if len(out) >= maxOrders {
			return
		}
		if len(rest) == 0 {
			if !slices.Equal(done, order) {
				out = append(out, slices.Clone(done))
			}
			return
		}
		for i := range rest {
			permute(append(slices.Clone(done), rest[i]), slices.Delete(slices.Clone(rest), i, i+1))
		}
	}
	permute(nil, order)
	return out
}

// search places unlike pods by trying counts node by node: for each pod set in
// turn, how many go on each node. Nodes that look alike take counts in falling
// order only, since exchanging them changes nothing. It returns whether it found
// a plan and, if not, whether it ended at its bound.
func (a *attempt) search(nodes []*place) (plan Plan, found, cut bool) {
	for _, i := range a.order {
		if a.spec.PodSets[i].Level.Key != "" {
			return Plan{}, false, true // levels of pod sets are left to greedy
		}
	}
	s := &searcher{attempt: a, nodes: nodes, plan: Empty(a.spec), steps: searchSteps}
	mark := a.v.Mark()
	defer a.v.Undo(mark)
	ok := s.place(0, 0, a.sizes[a.order[0]], -1)
	if ok {
		a.uncount(s.plan)
	}
	return s.plan, ok, !ok && s.steps <= 0
}

type searcher struct {
	*attempt
	nodes []*place
	plan  Plan
	steps int
}

// place puts left more pods of the set at position k on nodes from index at on.
// before is the count given to the node before if that looked alike, or -1.
func (s *searcher) place(k, at, left, before int) bool {
	if left == 0 {
		if k+1 == len(s.order) {
			return s.rules == nil || s.rules.hold()
		}
		return s.place(k+1, 0, s.sizes[s.order[k+1]], -1)
	}
	if at == len(s.nodes) || s.steps <= 0 {
		return false
	}
	i, p := s.order[k], s.nodes[at]
	most := 0
	if s.pass[i].ok[p.id] {
		most = s.copies(p, i, left)
		if s.rules != nil { // whether spreads hold is known when all is placed
			most = s.rules.room(i, p, most, false)
		}
		if before >= 0 {
			most = min(most, before)
		}
	}
	// Whether the next node looks like this one is judged before anything is taken.
	alike := at+1 < len(s.nodes) && s.alike(p, s.nodes[at+1])
	for n := most; n >= 0; n-- {
		s.steps--
		if n > 0 {
			s.put(i, p, n)
			s.plan.Add(i, p.name, n)
		}
		limit := -1
		if alike {
			limit = n
		}
		if s.place(k, at+1, left-n, limit) {
			return true
		}
		if n > 0 {
			s.put(i, p, -n)
			s.plan.Add(i, p.name, -n)
		}
		if s.steps <= 0 {
			return false
		}
	}
	return false
}

// alike says whether two nodes can be exchanged without any pod set noticing.
func (s *searcher) alike(p, q *place) bool {
	for _, i := range s.order {
		if s.pass[i].ok[p.id] != s.pass[i].ok[q.id] {
			return false
		}
	}
	if s.rules != nil && !s.rules.alike(p, q) {
		return false
	}
	return p.free.Equal(q.free) && p.node.Cards.alike(q.node.Cards) && (p.cuts == nil || p.used.Equal(q.used))
}
