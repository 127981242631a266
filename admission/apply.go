package admission

import (
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
)

// Apply changes the state by one event. It is the only way to change a State.
// Events may be repeated; an observation older than one already applied is ignored.
func (s *State) Apply(e Event) {
	switch e := e.(type) {
	case NodeSeen:
		s.putNode(e.Node)
	case NodeGone:
		delete(s.refusals, e.Name)
		s.inv.Remove(e.Name)
		s.reshape()
	case QueueSeen:
		s.queues[e.Queue.Quota.Name] = e.Queue
		s.unrefresh = true
	case QueueGone:
		delete(s.queues, e.Name)
		s.unrefresh = true
	case ConfigSeen:
		s.cfg = e.Config
		s.changes++
	case PastSeen:
		s.pastSeen(&e.Past)
	case WorkloadSeen:
		s.workloadSeen(e)
	case WorkloadGone:
		s.workloadGone(e.Key)
	case PodSeen:
		s.podSeen(e.Pod, e.Fresh)
	case PodGone:
		s.podGone(e.UID)
	case Assumed:
		s.assumed(&e.Decision)
	case Outcome:
		s.outcome(e)
	default:
		panic(fmt.Sprintf("admission: unknown event %T", e))
	}
	if s.unrefresh {
		s.reshape()
		s.rebuild()
	}
}

// reshape forgets what was worked out from nodes and queues as they were.
func (s *State) reshape() {
	s.changes++
	s.terrain++
	s.empty = nil
	clear(s.static)
}

func (s *State) workloadSeen(e WorkloadSeen) {
	r := s.records[e.Workload.Key]
	if r != nil && r.w.UID != e.Workload.UID {
		s.workloadGone(e.Workload.Key)
		r = nil
	}
	if r != nil && (e.Version < r.version || !r.settled && !e.Fresh && e.Version == r.version) {
		return
	}
	waited := s.waiting.Has(e.Workload.Key)
	if r == nil {
		r = &record{key: e.Workload.Key, settled: true, pods: map[string]*podRecord{}}
		s.records[e.Workload.Key] = r
	} else {
		s.waiting.Remove(r.w.Key)
	}
	r.version, r.settled, r.before, r.done, r.stopsFor = e.Version, true, nil, e.Done, e.StopsFor
	s.respec(r, e.Workload)
	switch {
	case e.Finished:
		s.enter(r, Finished, nil)
	case e.Stopping:
		s.enter(r, Stopping, nil)
	case e.Admission != nil:
		a := *e.Admission
		a.Plan = aligned(a.Plan, &r.w.Spec)
		s.enter(r, Admitted, &a)
	case r.phase == Admitted:
		s.enter(r, Stopping, nil)
	case r.phase == Finished:
		s.enter(r, Waiting, nil)
	}
	if r.phase == Stopping && !e.Stopping && e.Admission == nil {
		s.enter(r, Waiting, nil)
	}
	s.recount(r)
	s.enlist(r)
	if waited && r.phase == Waiting && !s.waiting.Has(r.w.Key) {
		s.changes++ // others may have been behind it, or had room kept from them for it
	}
}

// aligned is the plan with its pod sets in the order of spec. What spec does not
// know is dropped: such pods are counted where they run until they are gone.
func aligned(plan gang.Plan, spec *gang.Spec) gang.Plan {
	out := gang.Empty(spec)
	for i, ps := range spec.PodSets {
		for _, set := range plan.Sets {
			if set.Name == ps.Name {
				out.Sets[i].Slots = slices.Clone(set.Slots)
			}
		}
	}
	return out
}

// respec gives r a new version of its workload. A pod set that vanished while pods
// of it are counted cannot be told from a mistake, so counting starts anew.
func (s *State) respec(r *record, w *queue.Workload) {
	was := r.w
	defer s.rematch(r, was)
	for i := range w.Spec.PodSets {
		w.Spec.PodSets[i].Request = w.Spec.PodSets[i].Request.Bounded()
	}
	w.Settle()
	if r.w != nil && r.spec != nil && !sameRequests(r.spec, &w.Spec) {
		s.uncount(r)
	}
	r.w = w
	if was != nil && r.phase != Waiting && (was.Shape() != w.Shape() || was.MinRuntime != w.MinRuntime) {
		s.changes++ // it may be taken back now for claims for which it could not before
	}
}

// enter moves r to a phase, with the admission it has there.
func (s *State) enter(r *record, p Phase, a *Admission) {
	if p == Admitted && r.phase == Admitted && r.admission != nil && r.admission.Stamp() == a.Stamp() {
		a.At = r.admission.At // the cluster keeps whole seconds
	} else if p == Admitted {
		r.broken, r.grown, r.whole = time.Time{}, a.At, false
	}
	if p != r.phase {
		if p != Admitted {
			s.changes++
		}
		r.reason, r.told = Reason{}, ""
	}
	if p == Admitted {
		r.leaving = time.Time{}
	}
	if p != Waiting {
		delete(s.retrying, r.key)
	}
	r.phase, r.admission = p, a
}

func (s *State) workloadGone(key string) {
	r := s.records[key]
	if r == nil {
		return
	}
	s.waiting.Remove(key)
	delete(s.idle, key)
	delete(s.retrying, key)
	delete(s.records, key)
	s.nominees = slices.DeleteFunc(slices.Clone(s.nominees), func(n Nominee) bool { return n.Key == key })
	s.enter(r, Finished, nil)
	r.deleted, r.before = true, nil
	s.recount(r)
	if len(r.held) > 0 {
		s.gone++
		s.rename(key, fmt.Sprintf("%s (deleted %d)", key, s.gone), r)
	}
	for uid, p := range r.pods {
		switch {
		case p.Phase == PodGated: // perhaps one of the next workload of this name
			p.owner = nil
			delete(r.pods, uid)
		case !p.live():
			delete(s.pods, uid)
		}
	}
	s.changes++
}

// rename keeps the record of a deleted workload, whose pods still exist, under a
// name that nobody else can have, also for those who wait for these pods to go.
func (s *State) rename(from, to string, r *record) {
	s.running = slices.DeleteFunc(s.running, func(x *record) bool { return x == r })
	r.key = to
	s.records[to] = r
	s.track(r)
	for i, n := range s.nominees {
		if slices.Contains(n.Victims, from) {
			victims := slices.Clone(n.Victims)
			victims[slices.Index(victims, from)] = to
			s.nominees[i].Victims = victims
		}
	}
}

// rematch counts pods for r again after its pod sets changed: those of a pod set that
// is no more count by themselves, and those that were seen before it count for it.
func (s *State) rematch(r *record, was *queue.Workload) {
	if was != nil && sameSets(&was.Spec, &r.w.Spec) {
		return
	}
	for uid, p := range r.pods {
		if !r.has(p.Set) {
			delete(r.pods, uid)
			p.owner = nil
			s.hold(p)
		}
	}
	for _, uid := range s.orphansOf(r.w.Key) {
		if p := s.pods[uid]; r.has(p.Set) {
			s.drop(p)
			p.owner = r
			r.pods[uid] = p
		}
	}
}

func (s *State) orphansOf(key string) []string {
	var uids []string
	for uid, p := range s.pods {
		if p.owner == nil && p.Workload == key {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return uids
}

func (s *State) podSeen(p Pod, fresh bool) {
	p.Request = p.Request.Bounded()
	old := s.pods[p.UID]
	if old != nil && p.Version < old.Version {
		return
	}
	if old == nil {
		old = &podRecord{}
		s.pods[p.UID] = old
	} else if old.owner == nil {
		s.drop(old)
	} else if !fresh && old.Node != "" && p.Node == "" && p.Phase == PodGated && p.Version == old.Version {
		return // the release was sent; this is what the pod was before
	}
	let := p.Accepted && !old.Accepted
	old.Pod = p
	if let {
		s.letIn(&p)
	}
	if r := s.records[p.Workload]; old.owner == nil && r != nil && r.has(p.Set) {
		old.owner = r
		r.pods[p.UID] = old
	}
	if old.owner == nil {
		s.hold(old)
		return
	}
	s.podChanged(old.owner)
}

func (s *State) podGone(uid string) {
	p := s.pods[uid]
	if p == nil {
		return
	}
	delete(s.pods, uid)
	if p.owner == nil {
		s.drop(p)
		return
	}
	if p.Phase == PodSucceeded && p.owner.current(p) {
		// It ended well and was cleaned up: its place stays given back.
		p.owner.markDone(p.Set)
	}
	delete(p.owner.pods, uid)
	s.podChanged(p.owner)
}

// markDone remembers that a pod of the set ended well though it no longer exists.
func (r *record) markDone(set string) {
	n := r.doneOf(r.setIndex(set))
	if r.done[set] < n {
		done := map[string]int{set: n}
		for k, v := range r.done {
			if k != set {
				done[k] = v
			}
		}
		r.done = done
	}
}

func (s *State) podChanged(r *record) {
	s.recount(r)
	switch {
	case r.deleted && len(r.held) == 0:
		delete(s.records, r.key)
		for _, p := range r.pods { // what may still become of them counts by itself
			p.owner = nil
		}
	case r.phase == Waiting:
		s.news[r.w.Shape()] = true // it may be told something else than others now
	}
}

// hold counts a pod without a workload: its room, and its queue if it names one.
func (s *State) hold(p *podRecord) {
	if !p.live() {
		return
	}
	s.takeRoom(p.Node, p.Request)
	if name := p.orphanQueue(); name != "" {
		s.charge(name, p.Request)
	}
}

// drop is the reverse of hold.
func (s *State) drop(p *podRecord) {
	if !p.live() {
		return
	}
	s.inv.Give(p.Node, p.Request)
	if name := p.orphanQueue(); name != "" {
		s.release(name, p.Request)
	}
	s.changes++
}

func (s *State) assumed(d *Decision) {
	for i := range d.Admit {
		a := d.Admit[i]
		r := s.mustRecord(a.Key)
		r.assume()
		s.enter(r, Admitted, &a)
		s.recount(r)
		s.enlist(r)
		if id, ok := s.tree.ID(r.queue); ok && s.ledger.Above(id, r.charge) {
			s.rise(r.queue) // with its larger share, others may have more of it back
		}
	}
	for _, key := range d.Finish {
		r := s.mustRecord(key)
		r.assume()
		s.enter(r, Finished, nil)
		s.recount(r)
		s.enlist(r)
	}
	for i := range d.Move {
		a := d.Move[i]
		r := s.mustRecord(a.Key)
		if gang.Total(a.Plan.Sizes()) > gang.Total(r.admission.Plan.Sizes()) {
			r.grown = d.At
		}
		r.assume()
		r.admission = &a
		s.recount(r)
	}
	for _, e := range d.Evict {
		r := s.mustRecord(e.Key)
		r.assume()
		s.enter(r, Stopping, nil)
		r.over, r.stopsFor = e.Cause == Expired, Claimant{e.For, e.ForUID}
		s.recount(r)
		s.enlist(r)
	}
	for _, rel := range d.Release {
		if p := s.pods[rel.UID]; p != nil && p.owner != nil {
			p.Node, p.Phase, p.Stamp = rel.Node, PodPlaced, rel.Stamp
			s.recount(p.owner)
		}
	}
	for _, m := range d.Marks {
		if m.Node != "" {
			s.close(m)
		}
		if r := s.records[m.Key]; r != nil {
			r.broken, r.whole, r.leaving, r.calm = m.Broken, m.Whole, m.Leaving, false
		}
	}
	for _, v := range d.Verdicts {
		if r := s.records[v.Key]; r != nil {
			r.reason, r.told = v.Reason, v.Text
		}
	}
	s.nominees = d.Nominees
	if d.Past != nil {
		s.pastSeen(d.Past)
	}
	s.remember(d)
}

// remember keeps what the cycle learned about shapes, so that the next one need not
// look at them again.
func (s *State) remember(d *Decision) {
	if d.looked == nil { // read back from the journal, or a trial's
		s.kept = nil
		return
	}
	clear(s.news)
	for shape := range d.untold {
		s.news[shape] = true
	}
	// What was learned holds for the state as it was before this decision's effects;
	// whatever could have helped since then has moved changes on.
	s.failed, s.kept, s.beside = d.looked, d.kept, d.beside
	if d.Acts() {
		s.kept = nil
	}
}

// assume remembers what r is now, in case the write that follows is refused.
func (r *record) assume() {
	r.before, r.settled = &reversal{r.phase, r.admission}, false
}

func (s *State) outcome(o Outcome) {
	if o.Act == ActRelease {
		s.released(o)
		return
	}
	r := s.records[o.Key]
	if r == nil {
		return
	}
	switch o.Result {
	case Committed:
		r.refused, r.before = 0, nil
		r.version = max(r.version, o.Version)
		r.settled = o.Version > 0
		s.recount(r)
	case Refused:
		r.refused++
		s.refused(r, o)
	case Unknown:
		// Counted as done until the workload is seen again.
	}
}

// refused takes back what was assumed and lets the workload wait before its next try.
func (s *State) refused(r *record, o Outcome) {
	r.settled = true
	r.retry = o.At.Add(s.backoff(r.refused))
	if r.before != nil {
		was := r.before
		r.before = nil
		s.enter(r, was.phase, was.admission)
	}
	if o.Act == ActAdmit && r.phase == Waiting {
		s.retrying[r.key] = r
	}
	s.recount(r)
	s.enlist(r)
	s.changes++
}

func (s *State) backoff(n int) time.Duration {
	d := s.cfg.RetryBase
	for range n - 1 {
		if d *= 2; d >= s.cfg.RetryMost {
			return s.cfg.RetryMost
		}
	}
	return d
}

func (s *State) released(o Outcome) {
	p := s.pods[o.Key]
	if p == nil || p.owner == nil {
		return
	}
	switch o.Result {
	case Committed:
		p.Version = max(p.Version, o.Version)
		p.refused = 0
	case Refused:
		p.Node, p.Phase, p.Stamp = "", PodGated, 0
		p.refused++
		p.retry = o.At.Add(s.backoff(p.refused))
		s.recount(p.owner)
	case Unknown:
	}
}
