package admission

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// Check recounts everything from plans and pods and returns what does not hold of
// the state's invariants, in words. It is the definition of correct for tests, the
// simulator and the running controller alike.
func (s *State) Check() []string {
	bad := slices.Concat(s.ledger.Check(), s.waiting.Check())
	charges := map[string]quota.Resources{}
	used := map[string]quota.Resources{}
	for _, r := range s.records {
		bad = append(bad, s.checkRecord(r)...)
		sum := charges[r.queue]
		sum.Add(r.charge)
		charges[r.queue] = sum
		for _, h := range r.rooms {
			add(used, h.node, h.amount)
		}
	}
	for _, p := range s.pods {
		if p.owner == nil && p.live() {
			add(used, p.Node, p.Request)
			add(charges, p.orphanQueue(), p.Request)
		}
	}
	for id := 1; id < s.tree.Len(); id++ {
		if name := s.tree.Name(id); !s.ledger.Own(id).Equal(charges[name]) {
			bad = append(bad, fmt.Sprintf("queue %s counts %v, plans and pods add up to %v", name, s.ledger.Own(id), charges[name]))
		}
	}
	for _, name := range s.inv.Names() {
		if !s.inv.Used(name).Equal(used[name]) {
			bad = append(bad, fmt.Sprintf("node %s counts %v as taken, plans and pods add up to %v", name, s.inv.Used(name), used[name]))
		}
	}
	slices.Sort(bad)
	return bad
}

func add(m map[string]quota.Resources, key string, r quota.Resources) {
	sum := m[key]
	sum.Add(r)
	m[key] = sum
}

func (s *State) checkRecord(r *record) []string {
	var bad []string
	want := r.occupancy()
	if len(changedSlots(r.held, want)) > 0 {
		bad = append(bad, fmt.Sprintf("%s is counted with %v, its plan and pods are %v", r.w.Key, r.held, want))
	}
	if listed := !r.deleted && s.waiting.Has(r.w.Key); s.ready(r) != listed {
		bad = append(bad, fmt.Sprintf("%s is in phase %d, may be tried: %t, is in the waiting set: %t", r.w.Key, r.phase, s.ready(r), listed))
	}
	if (r.phase == Admitted) != (r.admission != nil) {
		bad = append(bad, fmt.Sprintf("%s is in phase %d, has an admission: %t", r.w.Key, r.phase, r.admission != nil))
	}
	if r.phase == Admitted && !r.deleted {
		sizes := r.admission.Plan.Sizes()
		if len(sizes) != len(r.w.Spec.PodSets) {
			bad = append(bad, fmt.Sprintf("%s has a plan for %d pod sets of %d", r.w.Key, len(sizes), len(r.w.Spec.PodSets)))
		}
	}
	return bad
}

// View is what is known of one workload, for tests and for people.
type View struct {
	Phase     Phase
	Reason    Reason
	Text      string
	Admission *Admission
	Nodes     map[string]int // pods on each node that exist and have not ended
	Sets      []int          // the same by pod set
	Charge    quota.Resources
}

// View returns what is known of the workload called key.
func (s *State) View(key string) (View, bool) {
	r := s.records[key]
	if r == nil {
		return View{}, false
	}
	v := View{Phase: r.phase, Reason: r.reason, Text: r.told, Admission: r.admission, Charge: r.charge, Nodes: map[string]int{}, Sets: make([]int, len(r.w.Spec.PodSets))}
	for _, p := range r.pods {
		if p.live() {
			v.Nodes[p.Node]++
			v.Sets[r.setIndex(p.Set)]++
		}
	}
	return v, true
}

// Usage returns what the queue and everything below it is charged.
func (s *State) Usage(queue string) quota.Resources {
	if id, ok := s.tree.ID(queue); ok {
		return s.ledger.Usage(id)
	}
	return nil
}

// Inventory returns what nodes offer and what is taken of it. Not to be changed.
func (s *State) Inventory() *gang.Inventory { return s.inv }

// Ledger returns what queues are charged. Not to be changed.
func (s *State) Ledger() *quota.Ledger { return s.ledger }

// Problems returns what is wrong with the queues as they are declared.
func (s *State) Problems() []string { return s.problems }
