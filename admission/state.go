package admission

import (
	"fmt"
	"slices"
	"strings"

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
	unrefresh bool                // queues changed since the tree was built
	running   []*record           // those that are admitted or hold something, by key
	refusals  map[string]*refusal // by node; see refuse.go
	// retrying are those whose admission was refused and is tried again later.
	retrying map[string]*record
	idle     map[string]*record // those that wait and may not be tried, by key
	// changes counts what could help a waiting claim. A shape that failed is tried
	// again only when it moved on; see glance.
	changes uint64
	rises   uint64 // counts queues that came to borrow more; see wake.go
	rose    []rise // the last of them
	// terrain counts what may make places of plans unusable: nodes as they are shown
	// to plans, and more on one than it offers.
	terrain    uint64
	settled    *quota.Tree       // the tree as it was settled last,
	settledFor quota.Resources   // for this hardware
	failed     map[string]glance // by shape
	kept       map[string]keep   // reservations of the last cycle, by workload
	beside     []kept            // what it kept for nominees
	// plain has passes take no short cut, for tests: what a short cut decides has to be
	// what is decided without it.
	plain bool
	// news are the shapes with members that have not been told why they wait.
	news map[string]bool
	// What the empty cluster says about shapes holds until nodes or queues change.
	empty  *empty
	static map[string]Reason
}

// glance is the last look at a shape that found neither room nor victims.
type glance struct {
	tried   bool   // else it was only told who is first
	barren  bool   // and nobody could be taken back for it
	changes uint64 // State.changes then,
	rises   uint64 // and State.rises
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
		refusals: map[string]*refusal{},
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

// settle works out what every queue owns now, and says whether that had to be done:
// where no queue lives off its weight only the hardware matters.
func (s *State) settle() bool {
	if s.settled == s.tree && !s.tree.Heirs() && s.settledFor.Equal(s.inv.Total()) {
		return false
	}
	s.settled, s.settledFor = s.tree, s.inv.Total().Clone()
	changed := s.tree.Settle(s.inv.Total(), func(leaf int) quota.Resources {
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
	if changed {
		s.changes++ // who failed before may own what it asks for now
	}
	return true
}

func (s *State) firstFlavor(name string) *queue.Flavor {
	if q := s.queues[name]; q != nil && len(q.Flavors) > 0 {
		return &q.Flavors[0]
	}
	return nil
}

// recount brings what is counted for r in line with its plan and its pods.
func (s *State) recount(r *record) {
	r.calm, r.still, r.sated = false, false, false
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
		ps := &spec.PodSets[k.set]
		amount, charge := ps.Load().Times(abs(d)), r.flavor.Charge(ps.Request.Times(abs(d)))
		if d > 0 {
			s.takeRoom(k.node, amount)
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

// takeRoom counts the amount on the node, and notes if that is more than it offers.
func (s *State) takeRoom(node string, amount quota.Resources) {
	s.inv.Take(node, amount)
	if s.inv.Over(node) {
		s.terrain++
	}
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

// noQueue is charged for what names no queue.
const noQueue = "(none)"

// open fixes for whom and at what rate r is counted, at its first charge.
func (s *State) open(r *record) {
	r.queue, r.flavor = r.w.Queue, nil
	if r.admission != nil {
		r.queue = r.admission.Queue
		if q := s.queues[r.queue]; q != nil {
			r.flavor = q.Flavor(r.admission.Flavor)
		}
	}
	if r.queue == "" {
		r.queue = noQueue
	}
}

// uncount takes back everything that is counted for r, at the rate it was counted.
func (s *State) uncount(r *record) {
	for k, n := range r.held {
		s.inv.Give(k.node, r.spec.PodSets[k.set].Load().Times(n))
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

// ready says whether r waits and may be tried, or stops and will wait again.
func (s *State) ready(r *record) bool {
	return (r.phase == Waiting || r.phase == Stopping && !r.over) && !r.deleted && !r.w.Held && r.w.Invalid == "" && r.w.Gate == ""
}

// returns says whether r is on its way back into its queue: it was taken back, and its
// pods are not all gone or it was not seen to wait again yet. It has its turn like any
// claim, but can only be promised what it would get.
func (s *State) returns(r *record) bool { return r.phase == Stopping || s.lingers(r) }

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
