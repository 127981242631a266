package gang

import "sluice.dev/sluice/quota"

// A Preference orders the nodes that have room for a pod otherwise than Place does by
// itself, and may find less room on a node than what is counted free there: where
// pods share cards, it matters on which.
//
// It is a function of its arguments and of what its owner counts for the node beside
// the inventory, which changes only when something is taken or given there. Rules of
// pods about each other come before it; growing an elastic gang does not ask it.
type Preference interface {
	// Kind numbers the pods: those of one kind are rated alike on every node.
	Kind(ps *PodSet) int
	// Rate is for how many pods the node has room, at most n, for which there is room
	// by what is free, and how much such a pod would rather be there.
	Rate(ps *PodSet, node *Node, free quota.Resources, n int) (room int, score int64)
	// Choose is the index of the node for the next pod. There are at least two. -1
	// takes the highest score and, of these, whom Place would take.
	Choose(rated []Rated) int
}

// Rated is a node that has room, in the order of the inventory.
type Rated struct {
	Node  *Node
	Score int64
}

// preferred is a Preference with what it said of nodes that are as they were.
type preferred struct {
	Preference
	kinds  []ratings // by kind
	rated  []Rated   // scratch, and
	places []*place  // of which places
}

// ratings are those of a kind of pods, by place.id.
type ratings []rating

type rating struct {
	version uint64 // of the place, 0: not rated
	asked   int    // for so many
	room    int
	score   int64
}

// Prefer lets p order nodes from now on; nil is the order of Place. Nothing that is
// worked out on other inventories, like that of Vacant, asks it.
func (v *Inventory) Prefer(p Preference) {
	v.preferred = nil
	if p != nil {
		v.preferred = &preferred{Preference: p}
	}
}

// rate asks the preference about n pods of set i on the node, or remembers.
func (a *attempt) rate(p *place, i, n int) rating {
	f, ps := a.v.preferred, &a.spec.PodSets[i]
	kind := f.Kind(ps)
	for len(f.kinds) <= kind {
		f.kinds = append(f.kinds, nil)
	}
	if len(f.kinds[kind]) <= p.id {
		f.kinds[kind] = append(f.kinds[kind], make(ratings, a.v.nextID-len(f.kinds[kind]))...)
	}
	r := &f.kinds[kind][p.id]
	if r.version != p.version || r.asked < n {
		*r = rating{version: p.version, asked: n}
		if room := a.byCount(p, i, n); room > 0 {
			r.room, r.score = f.Rate(ps, p.node, p.free, room)
		}
	}
	out := *r
	out.room = min(out.room, n)
	return out
}

// fillPreferred is fill by the order of the preference.
func (a *attempt) fillPreferred(nodes []*place, i int, emptiest bool, plan *Plan) bool {
	placed := make([]*place, 0, a.sizes[i])
	for range a.sizes[i] {
		p := a.prefer(nodes, i, emptiest)
		if p == nil {
			for _, p := range placed {
				a.put(i, p, -1)
				plan.Add(i, p.name, -1)
			}
			return false
		}
		a.put(i, p, 1)
		plan.Add(i, p.name, 1)
		placed = append(placed, p)
	}
	return true
}

// prefer is the node for the next pod of set i, or nil.
func (a *attempt) prefer(nodes []*place, i int, emptiest bool) *place {
	f, ok := a.v.preferred, a.pass[i].ok
	f.rated, f.places = f.rated[:0], f.places[:0]
	for _, p := range nodes {
		if !ok[p.id] {
			continue
		}
		if r := a.rate(p, i, 1); r.room > 0 {
			f.rated, f.places = append(f.rated, Rated{p.node, r.score}), append(f.places, p)
		}
	}
	switch len(f.places) {
	case 0:
		return nil
	case 1:
		return f.places[0]
	}
	if k := f.Choose(f.rated); k >= 0 {
		return f.places[k]
	}
	best := -1
	var first seat
	for k, p := range f.places {
		if best >= 0 && f.rated[k].Score < f.rated[best].Score {
			continue
		}
		s := a.seat(p, i, 1, k)
		if best < 0 || f.rated[k].Score > f.rated[best].Score || compareSeats(s, first, emptiest) < 0 {
			best, first = k, s
		}
	}
	return f.places[best]
}
