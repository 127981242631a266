package admission

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
)

// Mark is a time that a cycle wants remembered about a workload, or about a node.
type Mark struct {
	Key     string
	Broken  time.Time // since when it misses pods that it needs
	Whole   bool      // all pods of its minimum were there once
	Leaving time.Time // since when its pods are being stopped

	Node    string    // if it is about a node that refused a pod
	Refused int       // times in a row
	Until   time.Time // closed until then
}

// mark is what is remembered of r, to be changed and told.
func (r *record) mark() Mark {
	return Mark{Key: r.key, Broken: r.broken, Whole: r.whole, Leaving: r.leaving}
}

// mend looks after admitted gangs: places that can no longer be used are moved to
// other nodes, and gangs that stay incomplete too long, or that their owner holds,
// are taken back whole. What stopped for others is kept for these: nobody moves there.
func (p *pass) mend() {
	defer p.keepDied()()
	for _, r := range p.s.running {
		if r.phase != Admitted && r.leaving.IsZero() {
			m := r.mark()
			m.Leaving = p.now
			p.d.Marks = append(p.d.Marks, m)
		}
		if r.phase != Admitted || r.deleted || p.waits(r) {
			continue
		}
		if r.w.Held {
			p.takeBack(r, Stopped, "")
			continue
		}
		if r.w.MaxRun > 0 && !p.now.Before(r.admission.At.Add(r.w.MaxRun)) {
			p.takeBack(r, Expired, "")
			continue
		}
		if r.calm && r.calmAt == p.s.terrain && !p.s.plain {
			continue
		}
		if pod := p.turnedAway(r); pod != nil {
			p.shut(pod.Node)
			p.takeBack(r, TurnedAway, pod.Node)
			continue
		}
		if p.trim(r) {
			continue
		}
		stranded := p.stranded(r)
		if len(stranded) > 0 && p.move(r, stranded) {
			stranded = nil
		}
		if len(stranded) > 0 && p.makeRoom(r, stranded) {
			continue // nobody stops in vain: it is not given up meanwhile
		}
		marks, evicted := len(p.d.Marks), len(p.d.Evict)
		p.judge(r, stranded)
		sound := len(p.d.Marks) == marks && len(p.d.Evict) == evicted && r.broken.IsZero() && !p.moved[r]
		r.calm, r.calmAt = sound && len(stranded) == 0, p.s.terrain
	}
}

func (p *pass) takeBack(r *record, c Cause, detail string) {
	p.evicted[r] = true
	p.d.Evict = append(p.d.Evict, Eviction{Key: r.w.Key, UID: r.w.UID, Cause: c, Detail: detail, Based: r.version})
}

// judge decides whether a gang that misses pods is taken back.
func (p *pass) judge(r *record, stranded []slotKey) {
	missing := r.missing()
	m := r.mark()
	m.Whole = r.whole || missing == 0
	lost := r.whole && missing > 0 // it was complete and is not any more
	switch {
	case len(stranded) > 0 && r.livePods() == 0 && !r.whole:
		p.takeBack(r, Misplaced, stranded[0].node)
		return
	case lost || len(stranded) > 0:
		if m.Broken.IsZero() {
			m.Broken = p.now
		}
		if !p.now.Before(m.Broken.Add(p.s.cfg.RecoveryWindow)) {
			node := ""
			if len(stranded) > 0 {
				node = stranded[0].node
			}
			p.takeBack(r, Broken, node)
			return
		}
	default:
		m.Broken = time.Time{}
	}
	if m.Broken != r.broken || m.Whole != r.whole {
		p.d.Marks = append(p.d.Marks, m)
	}
}

// livePods counts the pods that r has on nodes now.
func (r *record) livePods() int {
	n := 0
	for _, p := range r.pods {
		if p.live() && r.current(p) {
			n++
		}
	}
	return n
}

// trim takes places out of the plan that the gang, made smaller, no longer asks for,
// so that they are asked for again should it grow.
func (p *pass) trim(r *record) bool {
	sizes, over := r.admission.Plan.Sizes(), false
	for i, ps := range r.w.Spec.PodSets {
		over = over || sizes[i] > ps.Count
	}
	if !over {
		return false
	}
	left := map[slotKey]int{}
	a := *r.admission
	a.Plan, a.Based = a.Plan.Clone(), r.version
	for i, set := range r.admission.Plan.Sets {
		for _, slot := range set.Slots {
			left[slotKey{i, slot.Node}] = slot.Count
		}
		r.forgo(left, i, max(0, sizes[i]-r.w.Spec.PodSets[i].Count))
		for _, slot := range set.Slots {
			a.Plan.Add(i, slot.Node, left[slotKey{i, slot.Node}]-slot.Count)
		}
	}
	p.d.Move = append(p.d.Move, a)
	p.moved[r] = true
	return true
}

// missing is how many pods r lacks of its minimum, as far as it was admitted: pods
// that it asks for since then are a claim, not a loss. Pods that ended well count.
func (r *record) missing() int {
	have := make([]int, len(r.w.Spec.PodSets))
	for _, p := range r.pods {
		if p.live() && r.current(p) && !p.Stopping {
			have[r.setIndex(p.Set)]++
		}
	}
	n, total := 0, 0
	planned := r.admission.Plan.Sizes()
	for i, ps := range r.w.Spec.PodSets {
		have[i] += r.doneOf(i)
		n += max(0, min(ps.Min, planned[i])-have[i])
		total += have[i]
	}
	return max(n, min(r.w.Spec.MinTotal, gang.Total(planned))-total)
}

// open are the places of the plan that no pod has taken yet.
func (r *record) openSlots() map[slotKey]int {
	left := r.promised()
	for _, p := range r.pods {
		if p.live() && r.current(p) {
			left[slotKey{r.setIndex(p.Set), p.Node}]--
		}
	}
	for k, n := range left {
		if n <= 0 {
			delete(left, k)
		}
	}
	return left
}

// stranded are the open places on nodes that cannot be used any more: gone, closed,
// not matching, or holding more than they offer.
func (p *pass) stranded(r *record) []slotKey {
	var list []slotKey
	spec := r.flavor.Spec(&r.w.Spec)
	for k := range r.openSlots() {
		if !p.usable(k.node, &spec.PodSets[k.set]) {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, compareSlots)
	return list
}

func compareSlots(a, b slotKey) int {
	return cmp.Or(cmp.Compare(a.set, b.set), cmp.Compare(a.node, b.node))
}

// usable says whether a place that is counted on the node can still be taken there.
func (p *pass) usable(node string, ps *gang.PodSet) bool {
	n := p.inv.Node(node)
	if n == nil || !n.Open() {
		return false
	}
	if _, ok := n.Passes(&ps.Filter); !ok || !n.Suits(ps) {
		return false
	}
	for i, v := range ps.Request {
		if v > 0 && p.inv.Used(node).At(i) > n.Offer.At(i) {
			return false
		}
	}
	return true
}

// lost is what a gang needs anew for its stranded places.
type lost struct {
	spec  gang.Spec
	sizes []int
	stays gang.Plan // the plan without them
}

// give takes the stranded places off the books and says what is needed instead.
func (p *pass) give(r *record, stranded []slotKey) lost {
	l := lost{spec: *r.flavor.Spec(&r.w.Spec), stays: r.admission.Plan.Clone()}
	l.spec.PodSets = slices.Clone(l.spec.PodSets)
	l.sizes = make([]int, len(l.spec.PodSets))
	open := r.openSlots()
	for _, k := range stranded {
		l.sizes[k.set] += open[k]
		l.stays.Add(k.set, k.node, -open[k])
		p.inv.Give(k.node, l.spec.PodSets[k.set].Load().Times(open[k]))
	}
	p.hold(&l.spec, l.stays)
	return l
}

// move finds other nodes for the stranded places, all of them, and moves the plan.
func (p *pass) move(r *record, stranded []slotKey) bool {
	mark := p.inv.Mark()
	l := p.give(r, stranded)
	found, short := gang.Place(p.inv, &l.spec, l.sizes)
	p.inv.Undo(mark)
	if short != nil {
		return false
	}
	p.give(r, stranded)
	p.inv.TakePlan(&l.spec, found)
	a := *r.admission
	a.Plan, a.Based = l.stays, r.version
	for i, set := range found.Sets {
		for _, slot := range set.Slots {
			a.Plan.Add(i, slot.Node, slot.Count)
		}
	}
	p.d.Move = append(p.d.Move, a)
	p.moved[r] = true
	return true
}

// makeRoom takes others back for the stranded places of r, which are the first claim of
// its queue, and keeps what stops anyway for them: first lower work of its own queue,
// for which quota is not asked, since r is charged for its places already; then, by
// the rules of reclaim, that of other queues.
func (p *pass) makeRoom(r *record, stranded []slotKey) bool {
	leaf, known := p.s.tree.ID(r.queue)
	q := p.s.queues[r.queue]
	if !known || q == nil {
		return false
	}
	mark := p.inv.Mark()
	l := p.give(r, stranded)
	o := offer{flavor: r.flavor, spec: &l.spec, sizes: l.sizes}
	going := slices.DeleteFunc(p.going(r, r.charge), func(v victim) bool { return p.dies(v.r.key) })
	victims := p.enough(r, leaf, o, going)
	if len(victims) == 0 {
		candidates := p.candidates(r, leaf, q, o)
		slices.SortFunc(candidates, compareVictims)
		victims = p.enough(r, leaf, o, slices.Concat(going, candidates))
	}
	if len(victims) == 0 && r.queue == r.w.Queue {
		victims = p.reclaimFor(r, leaf, q, o, going)
	}
	p.inv.Undo(mark)
	if len(victims) == 0 {
		return false
	}
	p.takeAll(r, victims)
	p.keepRoom(r, o, loadsOf(victims))
	return true
}

// reclaimFor finds whom to take back in any queue for the missing pods of r. They are
// asked about as a claim: for the time of the look what they are charged is off the
// books, else it would count twice against the queue and its share.
func (p *pass) reclaimFor(r *record, leaf int, q *queue.Queue, o offer, going []victim) []victim {
	o.charge = r.flavor.Charge(o.spec.Request(o.sizes))
	defer p.open(p.later)()
	p.liftCharge(load{r: r, charge: o.charge}, p.later, -1)
	candidates := p.candidates(r, leaf, q, o)
	if !p.viable(leaf, o.charge, going, candidates) {
		return nil
	}
	candidates = slices.DeleteFunc(candidates, func(v victim) bool { return !v.viable })
	slices.SortFunc(candidates, compareVictims)
	return p.enough(r, leaf, o, slices.Concat(going, candidates))
}

// dies says whether the gang stops for a nominee, who has what it frees.
func (p *pass) dies(key string) bool {
	return slices.ContainsFunc(p.nominees(), func(n Nominee) bool { return slices.Contains(n.Victims, key) })
}

// hold keeps what is moved in the domain of what stays, if the gang must share one, and
// has it mind what stays.
func (p *pass) hold(spec *gang.Spec, stays gang.Plan) {
	spec.Stays = stays
	if !spec.Level.Required {
		return
	}
	for _, name := range stays.Nodes() {
		if n := p.inv.Node(name); n != nil {
			same := gang.Requirement{Key: spec.Level.Key, Op: gang.In, Values: []string{n.Labels[spec.Level.Key]}}
			for i := range spec.PodSets {
				spec.PodSets[i].Filter = spec.PodSets[i].Filter.With([]gang.Requirement{same}, nil)
			}
			return
		}
	}
}

// release lets gated pods of admitted gangs go to the places of their plan.
func (p *pass) release() {
	for _, r := range p.s.running {
		if r.phase != Admitted || !r.settled || r.deleted || r.still && !p.s.plain || p.evicted[r] || p.moved[r] {
			continue
		}
		if r.still = !r.holdsBack(); r.still {
			continue
		}
		gated := p.gated(r)
		if len(gated) == 0 {
			continue
		}
		open := r.openSlots()
		var slots []slotKey
		spec := r.flavor.Spec(&r.w.Spec)
		for k := range open {
			if p.usable(k.node, &spec.PodSets[k.set]) {
				slots = append(slots, k)
			}
		}
		slices.SortFunc(slots, compareSlots)
		slots = p.trials(r, spec, slots, gated, open)
		for _, pod := range gated {
			set := r.setIndex(pod.Set)
			i := slices.IndexFunc(slots, func(k slotKey) bool { return k.set == set && open[k] > 0 })
			if i < 0 {
				continue
			}
			open[slots[i]]--
			p.d.Release = append(p.d.Release, Release{UID: pod.UID, Key: pod.Key, Workload: r.w.Key, Node: slots[i].node, Stamp: r.admission.Stamp()})
		}
	}
}

// holdsBack says whether any pod of r waits for its release.
func (r *record) holdsBack() bool {
	for _, pod := range r.pods {
		if pod.Phase == PodGated && pod.Node == "" {
			return true
		}
	}
	return false
}

// gated are the pods of r that wait for their release, by name.
func (p *pass) gated(r *record) []*podRecord {
	var list []*podRecord
	for _, pod := range r.pods {
		if pod.Phase == PodGated && pod.Node == "" && !pod.Stopping && !pod.retry.After(p.now) {
			list = append(list, pod)
		}
	}
	slices.SortFunc(list, func(a, b *podRecord) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.UID, b.UID)) })
	return list
}
