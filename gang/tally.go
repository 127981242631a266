package gang

// tally counts the pods of a group by domain while a gang is placed.
type tally struct {
	key   string
	group Group
	n     map[string]int // pods by domain; absent is none
	evens []*even        // who has to know when a count changes
}

// even is the domains that a Spread compares, as its pod set sees them.
type even struct {
	t       *tally
	in      map[string]bool
	few     int         // with fewer domains than that, the fewest is none
	domains map[int]int // how many domains have so many pods
	least   int
}

// near is a Near of one pod set: the domains where others are, as they are before
// anything is placed.
type near struct {
	set int
	*Near
	in map[string]int
}

// rule is an Apart or a Spread of one pod set, with what it counts.
type rule struct {
	set   int
	apart *Apart
	even  *even // if it is a Spread,
	skew  int   // with this
	must  bool
	of    *tally // the group
	mine  *tally // pods of the set itself, who are why it is minded
}

// rules are what pod sets of one gang mind, and the counts, which put keeps up.
type rules struct {
	list    []rule
	tallies []*tally
	nears   []near
	wishes  [][]wished // by pod set
	steady  []bool     // by pod set: what a node may still take changes with pods there alone
	exact   []bool     // by pod set: filling it alone finds room for as many as there is for
}

type wished struct {
	ok     *pass
	weight int
}

// ruling works out the rules of the gang, or nil if it has none.
func (a *attempt) ruling() *rules {
	if !a.spec.ruled() {
		return nil
	}
	r := &rules{wishes: make([][]wished, len(a.spec.PodSets))}
	for i := range a.spec.PodSets {
		ps := &a.spec.PodSets[i]
		for k := range ps.Apart {
			x := &ps.Apart[k]
			r.list = append(r.list, rule{set: i, apart: x, must: x.Weight == 0, of: a.tally(r, x.Key, x.Group), mine: a.tally(r, x.Key, a.only(i))})
		}
		for k := range ps.Spread {
			x := &ps.Spread[k]
			of := a.tally(r, x.Key, x.Group)
			r.list = append(r.list, rule{set: i, even: a.even(of, i, x), skew: x.Skew, must: x.Must, of: of, mine: a.tally(r, x.Key, a.only(i))})
		}
		for k := range ps.Near {
			x := &ps.Near[k]
			r.nears = append(r.nears, near{i, x, a.counted(x.Key, x.Dim)})
		}
		for _, w := range ps.Wishes {
			ok := a.v.labelled(w.Terms)
			r.wishes[i] = append(r.wishes[i], wished{ok, w.Weight})
		}
	}
	r.judge(len(a.spec.PodSets))
	return r
}

// judge finds out of which pod sets filling is simple, and of which it is exact: where
// domains of one kind alone bound what they hold, beside single nodes.
func (r *rules) judge(sets int) {
	r.steady, r.exact = make([]bool, sets), make([]bool, sets)
	for i := range sets {
		key, keys, steady := "", 0, true
		for _, x := range r.list {
			if x.set != i && !x.of.group.has(i) {
				continue
			}
			steady = steady && x.onNode() && x.must
			if x.must && !x.onNode() && (key != x.of.key || x.even != nil && keys > 0) {
				key = x.of.key
				keys++
			}
		}
		r.steady[i], r.exact[i] = steady, keys <= 1
	}
}

// only is the group of the pods of one pod set.
func (a *attempt) only(i int) Group {
	g := Group{Sets: make([]bool, len(a.spec.PodSets))}
	g.Sets[i] = true
	return g
}

// tally is the one of that group and key, made and counted if it is new.
func (a *attempt) tally(r *rules, key string, g Group) *tally {
	for _, t := range r.tallies {
		if t.key == key && t.group.Dim == g.Dim && sameSets(t.group.Sets, g.Sets) {
			return t
		}
	}
	t := &tally{key: key, group: g}
	r.tallies = append(r.tallies, t)
	if g.Dim != 0 {
		t.n = a.counted(key, g.Dim)
		return t
	}
	t.n = map[string]int{}
	for i, set := range a.spec.Stays.Sets {
		for _, slot := range set.Slots {
			if p := a.v.byID[slot.Node]; p != nil && g.has(i) {
				if d, ok := p.domain(key); ok {
					t.n[d] += slot.Count
				}
			}
		}
	}
	return t
}

// counted are the pods of the group of that dimension by domain, as things are.
func (a *attempt) counted(key string, dim int) map[string]int {
	by := map[string]int{}
	for _, p := range a.v.nodes {
		if n := p.used.At(dim); n > 0 {
			if d, ok := p.domain(key); ok {
				by[d] += int(n)
			}
		}
	}
	return by
}

func sameSets(a, b []bool) bool {
	for i := range max(len(a), len(b)) {
		if (i < len(a) && a[i]) != (i < len(b) && b[i]) {
			return false
		}
	}
	return true
}

// domain is the domain of the label that the node is in.
func (p *place) domain(key string) (string, bool) {
	if key == NameField {
		return p.name, true
	}
	if p.node == nil {
		return "", false
	}
	v, ok := p.node.Labels[key]
	return v, ok
}

// even finds the domains that the spread compares: those of nodes that have the labels
// of all spreads that the set must keep, and that its pods might be on.
func (a *attempt) even(t *tally, set int, x *Spread) *even {
	e := &even{t: t, in: map[string]bool{}, few: x.Domains, domains: map[int]int{}}
	ps := &a.spec.PodSets[set]
	labels := a.pass[set]
	if !x.Open {
		f := ps.Filter
		f.Tolerations = []Toleration{{Exists: true}}
		labels = a.v.passes(&f)
	}
	for _, p := range a.v.nodes {
		if p.node == nil || x.Open && !p.node.Open() || !x.All && !labels.ok[p.id] || !ps.labelled(p.node, x.Must) {
			continue
		}
		if x.All && x.Open && p.node.untolerated(&ps.Filter) != nil {
			continue
		}
		if d, ok := p.domain(x.Key); ok && !e.in[d] {
			e.in[d] = true
			e.domains[t.n[d]]++
		}
	}
	e.settle()
	t.evens = append(t.evens, e)
	return e
}

// labelled says whether the node is in a domain of every spread that must be kept.
func (ps *PodSet) labelled(n *Node, must bool) bool {
	for _, x := range ps.Spread {
		if _, ok := n.value(x.Key); x.Must && must && !ok {
			return false
		}
	}
	return true
}

// settle finds the fewest pods that a domain has.
func (e *even) settle() {
	first := true
	for n, domains := range e.domains {
		if domains > 0 && (first || n < e.least) {
			e.least, first = n, false
		}
	}
}

// floor is the number to which the domains are compared.
func (e *even) floor() int {
	if len(e.in) < e.few || len(e.in) == 0 {
		return 0
	}
	return e.least
}

// add counts n pods more in the domain.
func (t *tally) add(domain string, n int) {
	was := t.n[domain]
	t.n[domain] = was + n
	for _, e := range t.evens {
		if !e.in[domain] {
			continue
		}
		e.domains[was]--
		e.domains[was+n]++
		if was+n < e.least {
			e.least = was + n
		} else if e.domains[e.least] == 0 {
			for e.domains[e.least] == 0 {
				e.least++
			}
		}
	}
}

// put counts n pods of the set on the node as placed, or, if negative, takes them away.
func (a *attempt) put(i int, p *place, n int) {
	req := a.spec.PodSets[i].Request
	if n >= 0 {
		a.v.move(p, req.Times(n), 1)
	} else {
		a.v.move(p, req.Times(-n), -1)
	}
	if a.rules != nil {
		a.rules.count(i, p, n)
	}
}

func (r *rules) count(i int, p *place, n int) {
	for _, t := range r.tallies {
		if t.group.has(i) {
			if d, ok := p.domain(t.key); ok {
				t.add(d, n)
			}
		}
	}
}

// uncount forgets all that the plan has placed, whose room is given back elsewhere.
func (a *attempt) uncount(plan Plan) {
	if a.rules == nil {
		return
	}
	for i, set := range plan.Sets {
		for _, slot := range set.Slots {
			a.rules.count(i, a.v.byID[slot.Node], -slot.Count)
		}
	}
}
