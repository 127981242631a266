package admission

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// State is everything a cycle decides on. Only Apply changes it. A State is used by
// one goroutine at a time.
type State struct {
	Space *quota.Space

	cfg       Config
	queues    map[string]*queue.Queue
	tree      *quota.Tree
	ledger    *quota.Ledger
	inv       *gang.Inventory
	records   map[string]*record
	waiting   *queue.Set
	pods      map[string]*podRecord
	nominees  []Nominee
	past      history
	gone      int // numbers the records of deleted workloads whose pods still exist
	problems  []string
	unrefresh bool      // queues changed since the tree was built
	running   []*record // those that are admitted or hold something, by key
	// retrying are those whose admission was refused and is tried again later.
	retrying map[string]*record
	idle     map[string]*record // those that wait and may not be tried, by key
	// changes counts what could help a waiting claim. A shape that failed is tried
	// again only when it moved on; see glance.
	changes uint64
	failed  map[string]glance // by shape
	kept    map[string]keep   // reservations of the last cycle, by workload
	// news are the shapes with members that have not been told why they wait.
	news map[string]bool
	// What the empty cluster says about shapes holds until nodes or queues change.
	empty  *empty
	static map[string]Reason
}

// glance is the last look at a shape that found neither room nor victims.
type glance struct {
	changes uint64 // State.changes then
	reason  Reason
	text    string // what its members were told
}

// Phase is where a workload is in its life.
type Phase int

// The phases of a workload; see the drawing in the package comment.
const (
	Waiting Phase = iota
	Admitted
	Stopping
	Finished
)

// record is one workload with all that is counted for it.
type record struct {
	key       string // under which the state knows it
	w         *queue.Workload
	phase     Phase
	version   uint64
	admission *Admission // while Admitted
	settled   bool       // the cluster is known to have phase and admission
	before    *reversal  // how to take back what was assumed last, if it is refused
	pods      map[string]*podRecord
	done      map[string]int // seen as given back, by pod set name

	// What is counted for it now: with which spec, in which queue and flavor.
	spec   *gang.Spec
	queue  string
	flavor *queue.Flavor
	held   map[slotKey]int
	rooms  []holding // held, as amounts on nodes, in a fixed order
	charge quota.Resources

	whole   bool      // all pods of its minimum were there once, under this admission
	broken  time.Time // since when it misses pods that it needs
	leaving time.Time // since when its pods are being stopped
	grown   time.Time // its last growth
	refused int       // writes refused in a row
	retry   time.Time // not tried before
	told    string    // the reason last told, as text
	reason  Reason
	deleted bool // the workload is gone, its pods are not
}

// reversal is what a record was before a write was assumed to be done.
type reversal struct {
	phase     Phase
	admission *Admission
}

// slotKey is a pod set on a node.
type slotKey struct {
	set  int
	node string
}

// podRecord is one pod with whom it is counted for.
type podRecord struct {
	Pod
	owner   *record   // nil for foreign pods and for those whose workload is not known yet
	refused int       // releases refused in a row
	retry   time.Time // not released before
}

// live says whether the pod takes room on its node.
func (p *podRecord) live() bool { return p.Node != "" && p.Phase == PodPlaced }

// NewState returns a state in which nothing exists.
func NewState(cfg Config) *State {
	s := &State{
		Space:    quota.NewSpace(),
		cfg:      cfg,
		queues:   map[string]*queue.Queue{},
		inv:      gang.NewInventory(),
		records:  map[string]*record{},
		waiting:  queue.NewSet(),
		pods:     map[string]*podRecord{},
		static:   map[string]Reason{},
		idle:     map[string]*record{},
		retrying: map[string]*record{},
		failed:   map[string]glance{},
		news:     map[string]bool{},
	}
	s.rebuild()
	return s
}

// rebuild makes tree and ledger anew from the queues and what is charged.
func (s *State) rebuild() {
	charges := map[string]quota.Resources{}
	for _, r := range s.records {
		if r.queue != "" && !r.charge.IsZero() {
			sum := charges[r.queue]
			sum.Add(r.charge)
			charges[r.queue] = sum
		}
	}
	for _, p := range s.pods {
		if name := p.orphanQueue(); name != "" {
			sum := charges[name]
			sum.Add(p.Request)
			charges[name] = sum
		}
	}
	var declared []quota.Queue
	for _, q := range s.queues {
		declared = append(declared, q.Quota)
	}
	var ghosts []string
	for name := range charges {
		ghosts = append(ghosts, name)
	}
	s.tree, s.problems = quota.Build(declared, ghosts)
	s.settle()
	s.ledger = quota.NewLedger(s.tree, charges)
	s.past.join(s.ledger)
	s.unrefresh = false
}

// settle works out what every queue owns now.
func (s *State) settle() {
	s.tree.Settle(s.inv.Total(), func(leaf int) quota.Resources {
		name := s.tree.Name(leaf)
		var sum quota.Resources
		if s.ledger != nil && s.ledger.Tree() == s.tree {
			sum.Add(s.ledger.Own(leaf))
		}
		for _, g := range s.waiting.Groups(name) {
			flavor := s.firstFlavor(name)
			spec := &g.Head().Spec
			sum.Add(flavor.Charge(spec.Request(spec.Sizes())).Times(len(g.Members)))
		}
		return sum
	})
}

func (s *State) firstFlavor(name string) *queue.Flavor {
	if q := s.queues[name]; q != nil && len(q.Flavors) > 0 {
		return &q.Flavors[0]
	}
	return nil
}

// orphanQueue is the queue charged for a pod whose workload is not known, or "".
func (p *podRecord) orphanQueue() string {
	if p.owner == nil && p.Workload != "" && p.live() {
		return p.Queue
	}
	return ""
}

// recount brings what is counted for r in line with its plan and its pods.
func (s *State) recount(r *record) {
	want := r.occupancy()
	if r.spec != nil && (!sameRequests(r.spec, &r.w.Spec) || r.moved()) {
		s.uncount(r)
	}
	if len(want) == 0 && len(r.held) == 0 {
		s.track(r)
		return
	}
	if r.spec == nil || len(r.held) == 0 {
		s.open(r)
	}
	spec := &r.w.Spec
	r.spec = spec
	freed := false
	for _, k := range changedSlots(r.held, want) {
		d := want[k] - r.held[k]
		amount := spec.PodSets[k.set].Request.Times(abs(d))
		charge := r.flavor.Charge(amount)
		if d > 0 {
			s.inv.Take(k.node, amount)
			s.charge(r.queue, charge)
			r.charge.Add(charge)
		} else {
			s.inv.Give(k.node, amount)
			s.release(r.queue, charge)
			r.charge.Sub(charge)
			freed = true
		}
	}
	r.held = want
	r.rooms = r.loadOf(want).rooms
	if freed {
		s.changes++
	}
	s.track(r)
}

// track keeps r among the running as long as it is admitted or holds something.
func (s *State) track(r *record) {
	runs := r.phase == Admitted || r.phase == Stopping || len(r.held) > 0
	i, listed := slices.BinarySearchFunc(s.running, r.key, func(x *record, key string) int { return strings.Compare(x.key, key) })
	switch {
	case runs && !listed:
		s.running = slices.Insert(s.running, i, r)
	case !runs && listed:
		s.running = slices.Delete(s.running, i, i+1)
	}
}

// open fixes for whom and at what rate r is counted, at its first charge.
func (s *State) open(r *record) {
	r.queue, r.flavor = r.w.Queue, nil
	if r.admission != nil {
		r.queue = r.admission.Queue
		if q := s.queues[r.queue]; q != nil {
			r.flavor = q.Flavor(r.admission.Flavor)
		}
	}
}

// moved says whether r was admitted to another queue or flavor than it is counted in.
func (r *record) moved() bool {
	if r.admission == nil {
		return false
	}
	flavor := ""
	if r.flavor != nil {
		flavor = r.flavor.Name
	}
	return r.queue != r.admission.Queue || flavor != r.admission.Flavor
}

// uncount takes back everything that is counted for r, at the rate it was counted.
func (s *State) uncount(r *record) {
	for k, n := range r.held {
		s.inv.Give(k.node, r.spec.PodSets[k.set].Request.Times(n))
	}
	if !r.charge.IsZero() {
		s.release(r.queue, r.charge)
	}
	r.held, r.rooms, r.charge, r.spec = nil, nil, nil, nil
	s.changes++
}

func (s *State) charge(name string, r quota.Resources) {
	id, ok := s.tree.ID(name)
	if !ok { // a queue that nobody declares: it stands in the tree for its charges only
		s.unrefresh = true
		return
	}
	s.ledger.Charge(id, r)
}

func (s *State) release(name string, r quota.Resources) {
	if id, ok := s.tree.ID(name); ok && !s.unrefresh {
		s.ledger.Release(id, r)
	} else {
		s.unrefresh = true
	}
}

// occupancy is how many pods of each set r takes up on each node: for the current
// admission the larger of what the plan still promises and what exists, and
// besides every pod of an earlier one.
func (r *record) occupancy() map[slotKey]int {
	occ := map[slotKey]int{}
	old := map[slotKey]int{}
	promised := r.promised()
	for _, p := range r.pods {
		if !p.live() {
			continue
		}
		k := slotKey{r.setIndex(p.Set), p.Node}
		if r.current(p) {
			occ[k]++
		} else {
			old[k]++
		}
	}
	for k, n := range promised {
		occ[k] = max(occ[k], n)
	}
	for k, n := range old {
		occ[k] += n
	}
	for k, n := range occ {
		if n == 0 {
			delete(occ, k)
		}
	}
	return occ
}

// promised is what the plan still keeps for pods that have not ended well and that
// the gang still asks for.
func (r *record) promised() map[slotKey]int {
	left := map[slotKey]int{}
	if r.admission == nil {
		return left
	}
	sizes := r.admission.Plan.Sizes()
	for i, set := range r.admission.Plan.Sets {
		for _, slot := range set.Slots {
			left[slotKey{i, slot.Node}] = slot.Count
		}
	}
	ended := make([]int, len(sizes))
	for _, p := range r.pods {
		if p.Phase == PodSucceeded && r.current(p) {
			k := slotKey{r.setIndex(p.Set), p.Node}
			ended[k.set]++
			if left[k] > 0 {
				left[k]--
			}
		}
	}
	for i, ps := range r.w.Spec.PodSets {
		// Pods that the cluster counts as done but that no longer exist, and places
		// beyond what the gang asks for since it was made smaller.
		over := max(0, r.done[ps.Name]-ended[i]) + max(0, sizes[i]-ps.Count)
		r.forgo(left, i, over)
	}
	return left
}

// forgo takes n places of set i out of left: first where no pod is or one is
// stopping, then any, last node first.
func (r *record) forgo(left map[slotKey]int, i, n int) {
	if n == 0 {
		return
	}
	here := map[string]int{}
	for _, p := range r.pods {
		if p.live() && !p.Stopping && r.current(p) && r.setIndex(p.Set) == i {
			here[p.Node]++
		}
	}
	slots := r.admission.Plan.Sets[i].Slots
	for _, spare := range []bool{true, false} {
		for j := len(slots) - 1; j >= 0 && n > 0; j-- {
			k := slotKey{i, slots[j].Node}
			can := left[k]
			if spare {
				can -= here[k.node]
			}
			if can = min(can, n); can > 0 {
				left[k] -= can
				n -= can
			}
		}
	}
}

// current says whether the pod belongs to the admission that r has now.
func (r *record) current(p *podRecord) bool {
	return r.phase == Admitted && r.admission != nil && p.Stamp == r.admission.Stamp()
}

func (r *record) setIndex(name string) int {
	for i, ps := range r.w.Spec.PodSets {
		if ps.Name == name {
			return i
		}
	}
	return 0
}

// doneOf is how many pods of set i have ended well.
func (r *record) doneOf(i int) int {
	n := 0
	for _, p := range r.pods {
		if p.Phase == PodSucceeded && r.current(p) && r.setIndex(p.Set) == i {
			n++
		}
	}
	return max(n, r.done[r.w.Spec.PodSets[i].Name])
}

// enlist puts r into the waiting set, or takes it out, as its fields say.
func (s *State) enlist(r *record) {
	delete(s.idle, r.key)
	if s.ready(r) {
		s.waiting.Put(r.w)
		s.news[r.w.Shape()] = true
		return
	}
	s.waiting.Remove(r.w.Key)
	if r.phase == Waiting && !r.deleted {
		s.idle[r.key] = r
	}
}

// ready says whether r waits and may be tried.
func (s *State) ready(r *record) bool {
	return r.phase == Waiting && !r.deleted && !r.w.Held && r.w.Invalid == "" && r.w.Gate == "" && !s.lingers(r)
}

// lingers says whether pods of r from before are still on nodes that are in order.
// On a lost node a pod may seem to exist for long; it stays charged, but does not
// keep its gang from running elsewhere.
func (s *State) lingers(r *record) bool {
	for _, p := range r.pods {
		if p.live() {
			if n := s.inv.Node(p.Node); n != nil && !n.Lost() {
				return true
			}
		}
	}
	return false
}

func sameRequests(a, b *gang.Spec) bool {
	if a == b {
		return true
	}
	if len(a.PodSets) != len(b.PodSets) {
		return false
	}
	for i := range a.PodSets {
		if a.PodSets[i].Name != b.PodSets[i].Name || !a.PodSets[i].Request.Equal(b.PodSets[i].Request) {
			return false
		}
	}
	return true
}

// changedSlots are the keys in which the two differ, in a fixed order.
func changedSlots(a, b map[slotKey]int) []slotKey {
	var keys []slotKey
	for k, n := range a {
		if b[k] != n {
			keys = append(keys, k)
		}
	}
	for k := range b {
		if _, both := a[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(x, y slotKey) int {
		if x.set != y.set {
			return x.set - y.set
		}
		if x.node < y.node {
			return -1
		}
		return 1
	})
	return keys
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// Config returns the policy in force.
func (s *State) Config() Config { return s.cfg }

func (s *State) mustRecord(key string) *record {
	r := s.records[key]
	if r == nil {
		panic(fmt.Sprintf("admission: decision about %s, which does not exist", key))
	}
	return r
}
