package admission

import (
	"slices"
	"time"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
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
	over    bool      // it was taken back for good
	// stopsFor is the claim that it was taken back for.
	stopsFor Claimant
	grown    time.Time // its last growth
	refused  int       // writes refused in a row
	retry    time.Time // not tried before
	told     string    // the reason last told, as text
	reason   Reason
	deleted  bool // the workload is gone, its pods are not

	// What a pass found of it, until it is counted anew: see State.recount.
	calm   bool   // there was nothing to mend, while State.terrain was
	calmAt uint64 // this
	still  bool   // none of its pods waits for its release
	sated  bool   // its plan has all the places that it asks for
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

// orphanQueue is the queue charged for a pod whose workload is not known, or "".
func (p *podRecord) orphanQueue() string {
	if p.owner == nil && p.Workload != "" && p.live() {
		return p.Queue
	}
	return ""
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

// occupancy is how many pods of each set r takes up on each node: for the current
// admission the larger of what the plan still promises and what exists, and
// besides every pod of an earlier one. What a plan promised before a write that has
// no answer yet is kept as well.
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
	if r.before != nil && r.before.admission != nil {
		// Whether the write that gave places up took effect is not known yet.
		for i, set := range r.before.admission.Plan.Sets {
			for _, slot := range set.Slots {
				k := slotKey{i, slot.Node}
				occ[k] = max(occ[k], slot.Count)
			}
		}
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

// has says whether r has a pod set of that name.
func (r *record) has(set string) bool {
	return slices.ContainsFunc(r.w.Spec.PodSets, func(ps gang.PodSet) bool { return ps.Name == set })
}

// sameSets says whether both have pod sets of the same names in the same order.
func sameSets(a, b *gang.Spec) bool {
	return slices.EqualFunc(a.PodSets, b.PodSets, func(x, y gang.PodSet) bool { return x.Name == y.Name })
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

func sameRequests(a, b *gang.Spec) bool {
	if a == b {
		return true
	}
	if len(a.PodSets) != len(b.PodSets) {
		return false
	}
	for i := range a.PodSets {
		if a.PodSets[i].Name != b.PodSets[i].Name || !a.PodSets[i].Load().Equal(b.PodSets[i].Load()) {
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
