package admission

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
)

// Image is everything that a State was told and remembers, as plain values: enough
// for NewStateOf to make an equal one, for trials. It shares with the State only
// values that are never changed, so that it may go to another goroutine. What
// follows from it, such as charges, is worked out anew. What a State keeps only to
// save work is not in it.
type Image struct {
	Config    Config
	Resources []string     // the dimensions of all vectors in it, in order
	Nodes     []*gang.Node // as they were seen last
	Refusals  []Mark       // of nodes that refused pods; Until is zero on trial
	Queues    []*queue.Queue
	Workloads []Remembered
	Pods      []RememberedPod // of no workload that is known
	Nominees  []Nominee
	Past      *Past
	Gone      int // numbers the workloads that went while pods of theirs remained
}

// Remembered is one workload as it was seen last and what the controller knows of it
// beyond that.
type Remembered struct {
	Name      string // under which the state knows it: its key, unless it is gone
	Workload  *queue.Workload
	Version   uint64
	Phase     Phase
	Admission *Admission // while Admitted
	Done      map[string]int
	Pods      []RememberedPod
	// ChargedTo and Flavor say where its pods are counted; "" if nothing is yet.
	ChargedTo, Flavor string
	// Unanswered says that the answer to a write about it is not known; Before is what
	// it was before that write, should it be refused.
	Unanswered bool
	Before     *Before
	Gone       bool // the workload no longer exists, pods of it do
	StopsFor   Claimant

	Whole                  bool // all pods of its minimum were there once
	Broken, Leaving, Grown time.Time
	Refused                int // writes refused in a row
	Retry                  time.Time
	Retrying               bool // its admission was refused
	Over                   bool // taken back for good
	Reason                 Reason
	Told                   string
}

// Before is what a workload was before a write that has no answer yet.
type Before struct {
	Phase     Phase
	Admission *Admission
}

// RememberedPod is one pod and what is known of its release.
type RememberedPod struct {
	Pod
	Refused int
	Retry   time.Time
}

// Image returns all of s and leaves s as it was. It costs a few words for each
// node, workload and pod.
func (s *State) Image() Image {
	im := Image{Config: s.cfg, Nominees: slices.Clone(s.nominees), Gone: s.gone}
	for i := range s.Space.Len() {
		im.Resources = append(im.Resources, s.Space.Name(i))
	}
	for _, name := range s.inv.Names() {
		if f := s.refusals[name]; f != nil {
			im.Nodes = append(im.Nodes, f.node)
			im.Refusals = append(im.Refusals, Mark{Node: name, Refused: f.times, Until: f.until})
		} else if n := s.inv.Node(name); n != nil {
			im.Nodes = append(im.Nodes, n)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		im.Queues = append(im.Queues, s.queues[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.records)) {
		im.Workloads = append(im.Workloads, s.remembered(s.records[name]))
	}
	for _, p := range s.pods {
		if p.owner == nil {
			im.Pods = append(im.Pods, RememberedPod{p.Pod, p.refused, p.retry})
		}
	}
	slices.SortFunc(im.Pods, compareRemembered)
	if !s.past.at.IsZero() {
		im.Past = &Past{At: s.past.at, Used: map[string]map[string]int64{}}
		for name, r := range s.past.used {
			im.Past.Used[name] = map[string]int64{}
			for i, v := range r {
				if v > 0 {
					im.Past.Used[name][s.Space.Name(i)] = v
				}
			}
		}
	}
	return im
}

func compareRemembered(a, b RememberedPod) int { return cmp.Compare(a.UID, b.UID) }

func (s *State) remembered(r *record) Remembered {
	m := Remembered{
		Name: r.key, Workload: clone(r.w), Version: r.version, Phase: r.phase, Admission: r.admission, Done: r.done,
		Unanswered: !r.settled, Gone: r.deleted, StopsFor: r.stopsFor, Whole: r.whole, Broken: r.broken, Leaving: r.leaving, Grown: r.grown,
		Refused: r.refused, Retry: r.retry, Retrying: s.retrying[r.key] != nil, Over: r.over, Reason: r.reason, Told: r.told,
	}
	if len(r.held) > 0 {
		m.ChargedTo, m.Flavor = r.queue, flavorName(r.flavor)
	}
	if r.before != nil {
		m.Before = &Before{r.before.phase, r.before.admission}
	}
	for _, p := range r.pods {
		m.Pods = append(m.Pods, RememberedPod{p.Pod, p.refused, p.retry})
	}
	slices.SortFunc(m.Pods, compareRemembered)
	return m
}

// clone is the workload in values that a State may settle anew.
func clone(w *queue.Workload) *queue.Workload {
	c := *w
	c.Spec.PodSets = slices.Clone(w.Spec.PodSets)
	return &c
}

// NewStateOf returns a state that was told the same and decides the same. The image
// can be used again.
func NewStateOf(im Image) *State {
	s := NewState(im.Config)
	for _, name := range im.Resources {
		s.Space.Index(name)
	}
	for _, n := range im.Nodes {
		s.putNode(n)
	}
	for _, q := range im.Queues {
		s.queues[q.Quota.Name] = q
	}
	s.rebuild()
	for _, m := range im.Refusals {
		if n := s.inv.Node(m.Node); n != nil {
			s.refusals[m.Node] = &refusal{node: n, times: m.Refused, until: m.Until}
			s.putNode(n)
		}
	}
	s.gone = im.Gone
	for i := range im.Workloads {
		s.recall(&im.Workloads[i])
	}
	for _, p := range im.Pods {
		s.podSeen(p.Pod, true)
		s.pods[p.UID].refused, s.pods[p.UID].retry = p.Refused, p.Retry
	}
	s.nominees = slices.Clone(im.Nominees)
	if im.Past != nil {
		s.pastSeen(im.Past)
	}
	s.reshape()
	s.rebuild()
	return s
}

// recall makes the record of a workload and counts it.
func (s *State) recall(m *Remembered) {
	r := &record{
		key: m.Name, w: clone(m.Workload), version: m.Version, phase: m.Phase, settled: !m.Unanswered, done: m.Done, pods: map[string]*podRecord{},
		deleted: m.Gone, stopsFor: m.StopsFor, over: m.Over, whole: m.Whole, broken: m.Broken, leaving: m.Leaving, grown: m.Grown,
		refused: m.Refused, retry: m.Retry, reason: m.Reason, told: m.Told,
	}
	for i := range r.w.Spec.PodSets {
		r.w.Spec.PodSets[i].Request = r.w.Spec.PodSets[i].Request.Bounded()
	}
	r.w.Settle()
	if m.Before != nil {
		r.before = &reversal{m.Before.Phase, m.Before.Admission}
	}
	for _, p := range m.Pods {
		one := &podRecord{Pod: p.Pod, owner: r, refused: p.Refused, retry: p.Retry}
		one.Request = one.Request.Bounded()
		s.pods[p.UID], r.pods[p.UID] = one, one
	}
	s.records[r.key] = r
	switch {
	case m.Admission != nil:
		a := *m.Admission
		a.Plan = aligned(a.Plan, &r.w.Spec)
		r.admission = &a
		s.recount(r)
	case m.ChargedTo != "":
		// What it holds is counted where it was when it began to hold it.
		r.admission = &Admission{Queue: m.ChargedTo, Flavor: m.Flavor, Plan: gang.Empty(&r.w.Spec)}
		s.recount(r)
		r.admission = nil
	default:
		s.recount(r)
	}
	s.track(r)
	if !r.deleted { // another may have its key by now
		s.enlist(r)
	}
	if m.Retrying {
		s.retrying[r.key] = r
	}
}

// Order returns the keys of what waits in the queue and may be tried, in the order
// in which it would be tried at now.
func (s *State) Order(name string, now time.Time) []string {
	q := s.queues[name]
	if q == nil {
		q = &queue.Queue{}
	}
	p := newPass(s, now)
	defer p.close()
	leaf, _ := s.tree.ID(name)
	all := s.waiting.Order(name)
	slices.SortStableFunc(all, func(a, b *queue.Workload) int { return p.compare(q, leaf, a, b) })
	var keys []string
	for _, w := range all {
		if s.records[w.Key].phase == Waiting {
			keys = append(keys, w.Key)
		}
	}
	return keys
}
