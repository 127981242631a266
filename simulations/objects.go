package simulations

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
)

// What the virtual API server holds. Every object has the version of its last
// change; versions grow over all objects, as those of a real API server do.

// nodeObject is a machine that is there.
type nodeObject struct {
	Node
	version  uint64
	labels   map[string]string
	taints   []Taint
	cordoned bool
	notReady bool
	refuses  bool             // its kubelet lets no pod with cards in
	silent   bool             // its agent reports nothing
	state    []cardState      // of its cards, by number
	claims   map[string]int64 // what the device plugin claims whatever the hardware is

	pods map[string]*podObject // those that take room here, by uid
}

// workloadObject is a gang with the job behind it.
type workloadObject struct {
	Workload
	key     string // its name
	uid     string // sorts by order of submission
	version uint64
	queued  time.Duration
	hold    bool

	admission *admission.Admission // nil: none
	stopping  bool                 // it was evicted, and pods of it still stop
	stopsFor  admission.Claimant   // for whom, since its last eviction
	finished  bool
	deleted   bool   // from the API, though pods of it may still stop
	reason    Reason // why it waits, as the controller last wrote it
	message   string

	pods    []*podObject // all that exist, in order of creation
	made    int          // numbers its pods
	round   int          // numbers its admissions
	ran     bool         // all its pods ran at once, under this admission
	whole   bool         // its minimum was there at once, under this admission
	overdue bool         // its runtime is over; it ends as soon as all its pods run
}

// podPhase is how far a pod has come.
type podPhase int

const (
	podGated podPhase = iota
	podBound
	podSucceeded
	podFailed
)

// podObject is a pod of a gang, or one that no queue manages.
type podObject struct {
	uid, name string
	version   uint64
	owner     *workloadObject // nil: foreign
	set       string          // of the owner
	node      string          // "" before it is released
	stamp     int64           // of the admission under which it was released
	phase     podPhase
	stopping  bool
	refused   bool // its kubelet did not let it in
	requests  Amounts
	cards     []dealt // what it was given
}

// live says that the pod takes room on its node.
func (p *podObject) live() bool { return p.phase == podBound }

// podSet is the pod set of that name.
func (w *workloadObject) podSet(name string) *PodSet {
	for i := range w.PodSets {
		if w.PodSets[i].Name == name {
			return &w.PodSets[i]
		}
	}
	return nil
}

// current says that the pod was made for the admission that the gang has now.
func (w *workloadObject) current(p *podObject) bool {
	if w.admission == nil {
		return false
	}
	return p.phase == podGated || p.stamp == w.admission.Stamp()
}

// planned is how many pods of the set the admission names places for, as far
// as the owner still wants them.
func (w *workloadObject) planned(set *PodSet) int {
	return int(min(int64(w.planSize(set.Name)), set.Pods))
}

// planSize is how many places the admission names for the set.
func (w *workloadObject) planSize(set string) int {
	n := 0
	for _, k := range w.places(set) {
		n += k
	}
	return n
}

// places is where the admission puts pods of the set.
func (w *workloadObject) places(set string) map[string]int {
	on := map[string]int{}
	if w.admission == nil {
		return on
	}
	for _, s := range w.admission.Plan.Sets {
		if s.Name == set {
			for _, slot := range s.Slots {
				on[slot.Node] += slot.Count
			}
		}
	}
	return on
}

// have counts the pods of a set that count for the gang now: those that run or
// have ended well.
func (w *workloadObject) have(set string) (running, done int) {
	for _, p := range w.pods {
		if p.set != set || !w.current(p) {
			continue
		}
		switch {
		case p.phase == podSucceeded:
			done++
		case p.live() && !p.stopping:
			running++
		}
	}
	return running, done
}

// hasMinimum says that every pod set has its minimum, done pods included.
func (w *workloadObject) hasMinimum() bool {
	total := int64(0)
	for _, s := range w.PodSets {
		running, done := w.have(s.Name)
		n := int64(running + done)
		if n < min(s.Min, s.Pods) {
			return false
		}
		total += n
	}
	return w.MinTotal == nil || total >= *w.MinTotal
}

// released counts the pods that are released and have not ended.
func (w *workloadObject) released() int {
	n := 0
	for _, p := range w.pods {
		if p.live() {
			n++
		}
	}
	return n
}

// snapshot is the object as a watch event carries it.
func (w *workloadObject) snapshot() *workloadObject {
	c := *w
	c.PodSets = slices.Clone(w.PodSets)
	if w.admission != nil {
		a := *w.admission
		a.Plan = a.Plan.Clone()
		// A timestamp of the API has whole seconds.
		a.At = a.At.Truncate(time.Second)
		c.admission = &a
	}
	c.pods = nil
	return &c
}

func (n *nodeObject) snapshot() *nodeObject {
	c := *n
	c.labels, c.taints, c.pods = maps.Clone(n.labels), slices.Clone(n.taints), nil
	c.Layouts, c.state, c.claims = slices.Clone(n.Layouts), slices.Clone(n.state), maps.Clone(n.claims)
	return &c
}

func (p *podObject) snapshot() *podObject {
	c := *p
	return &c
}

// runningPlan exactly the places where pods run already.
func runningPlan(w *Workload) gang.Plan {
	var plan gang.Plan
	for _, s := range w.PodSets {
		plan.Sets = append(plan.Sets, gang.SetPlan{Name: s.Name})
	}
	for i, s := range w.PodSets {
		for _, on := range s.Running {
			plan.Add(i, on.Node, int(on.Pods))
		}
	}
	return plan
}

func byUID(a, b *podObject) int { return cmp.Compare(a.uid, b.uid) }
