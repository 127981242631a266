package simulations

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/quota"
)

// audit asks, once everything due at an instant has settled, what no expectation
// has to ask for: that no gang is half there, that what was admitted now has room
// and quota by a count of the cluster's own, and that a controller that starts now
// would know the same as the one that runs.
func (r *run) audit() {
	c := r.cluster
	r.breaks(c.violations...)
	r.breaks(c.inVain()...)
	if r.watch != nil && !r.watch.empty() {
		clear(c.planned) // the controller could not know what there is
		return
	}
	if c.fault == nil && r.watch == nil {
		r.breaks(c.halves()...)
		r.breaks(c.idleFits()...)
	}
	r.breaks(c.overdrawn()...)
	if len(c.unanswered) == 0 && (r.terse == nil || r.terse.IntN(looks) == 0) {
		r.breaks(c.differences(r.loop.State())...)
	}
}

// looks is in how many rests of a long story a new controller is compared once.
const looks = 5

// halves are the gangs of which some pods run though its minimum never did.
func (c *Cluster) halves() []string {
	var bad []string
	for _, w := range c.gangs() {
		if w.admission == nil || w.finished || w.whole || w.IsRunning() && w.round == 1 {
			continue
		}
		if n := w.released(); n > 0 {
			bad = append(bad, fmt.Sprintf("gang %s is released in part: %d pods", w.key, n))
		}
	}
	return bad
}

// overdrawn is what has too little room or quota for the gangs that were admitted,
// or whose plan changed, since it was last asked.
func (c *Cluster) overdrawn() []string {
	if len(c.planned) == 0 {
		return nil
	}
	nodes, queues := c.claims()
	var bad []string
	for _, w := range c.gangs() {
		now := c.planned[w]
		if now == nil || w.admission == nil || w.finished {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(now.nodes)) {
			n := c.nodes[name]
			if n == nil {
				bad = append(bad, fmt.Sprintf("%s has places on node %s, which is not there", w.key, name))
				continue
			}
			for _, a := range n.offer() {
				// What it does not ask for may be short by another's fault.
				if v := nodes[name][a.Resource]; v > a.Value && w.asks(a.Resource, name) {
					bad = append(bad, fmt.Sprintf("node %s has %s, %s are promised since %s has places there", name, amountText(a), valueText(Amount{a.Resource, v}), w.key))
				}
			}
		}
		for q := c.queues[w.admission.Queue]; q != nil && now.grew; q = c.queues[q.Parent] {
			for _, a := range q.Max {
				if v := queues[q.Name][a.Resource]; v > a.Value && w.asks(a.Resource, "") {
					bad = append(bad, fmt.Sprintf("queue %s may have %s, it has %s since %s was admitted", q.Name, amountText(a), valueText(Amount{a.Resource, v}), w.key))
				}
			}
		}
	}
	clear(c.planned)
	return bad
}

// asks says whether a pod of the gang that has a place on the node takes some of
// the resource; of any pod if node is "".
func (w *workloadObject) asks(resource, node string) bool {
	return slices.ContainsFunc(w.PodSets, func(s PodSet) bool {
		v, _ := needs(s.Requests).Of(resource)
		return v > 0 && (w.places(s.Name)[node] > 0 || node == "" && w.planSize(s.Name) > 0)
	})
}

// claims adds up, by node and by queue, what plans promise and pods use: for
// each gang the larger of the two on each node, and pods of former admissions and of
// gangs that have ended, which stop still.
func (c *Cluster) claims() (nodes, queues map[string]map[string]int64) {
	nodes, queues = map[string]map[string]int64{}, map[string]map[string]int64{}
	add := func(to map[string]map[string]int64, key string, requests Amounts, n int64) {
		if to[key] == nil {
			to[key] = map[string]int64{}
		}
		for _, a := range needs(requests) {
			to[key][a.Resource] = quota.Sum(to[key][a.Resource], quota.Product(a.Value, n))
		}
	}
	charge := func(node string, w *workloadObject, s *PodSet, n int64) {
		add(nodes, node, s.Requests, n)
		for q := c.queues[w.Queue]; q != nil; q = c.queues[q.Parent] {
			add(queues, q.Name, s.Requests, n)
		}
	}
	for _, p := range c.pods {
		if p.live() && p.owner == nil {
			add(nodes, p.node, p.requests, 1)
		} else if p.live() && (!p.owner.current(p) || p.owner.finished) {
			charge(p.node, p.owner, p.owner.podSet(p.set), 1)
		}
	}
	for _, w := range c.workloads {
		if w.admission == nil || w.finished {
			continue
		}
		for i := range w.PodSets {
			s := &w.PodSets[i]
			promised, used := w.places(s.Name), map[string]int{}
			for _, p := range w.pods {
				switch {
				case p.set != s.Name || !w.current(p):
				case p.phase == podSucceeded:
					promised[p.node]--
				case p.live():
					used[p.node]++
				}
			}
			if w.planSize(s.Name) <= int(s.Pods) { // else its owner wants fewer by now
				for node, n := range promised {
					used[node] = max(used[node], n)
				}
			}
			for node, n := range used {
				charge(node, w, s, int64(max(n, 0)))
			}
		}
	}
	return nodes, queues
}

// differences is what a controller that starts now sees otherwise than s.
func (c *Cluster) differences(s *admission.State) []string {
	var bad []string
	f := c.fresh(c.aside)
	differ := func(what string, running, fresh any) {
		if a, b := fmt.Sprint(running), fmt.Sprint(fresh); a != b {
			bad = append(bad, fmt.Sprintf("%s: the controller has %s, a fresh one %s", what, a, b))
		}
	}
	for _, w := range c.gangs() {
		a, okA := s.View(w.key)
		b, okB := f.View(w.key)
		differ(w.key+" known", okA, okB)
		differ(w.key+" phase", a.Phase, b.Phase)
		differ(w.key+" plan", planOf(a.Admission), planOf(b.Admission))
		differ(w.key+" pods", a.Nodes, b.Nodes)
		differ(w.key+" charge", amountsText(s, a.Charge), amountsText(f, b.Charge))
	}
	for _, q := range slices.Sorted(maps.Keys(c.queues)) {
		differ("usage of "+q, amountsText(s, s.Usage(q)), amountsText(f, f.Usage(q)))
	}
	for _, n := range slices.Sorted(maps.Keys(c.nodes)) {
		differ("taken on "+n, amountsText(s, s.Inventory().Used(n)), amountsText(f, f.Inventory().Used(n)))
	}
	return bad
}

func planOf(a *admission.Admission) string {
	if a == nil {
		return "none"
	}
	return fmt.Sprintf("%v since %d", a.Plan, a.Stamp())
}

// amountsText is a vector by name: two states number their dimensions otherwise.
func amountsText(s *admission.State, r []int64) string {
	var parts []string
	for i, v := range r {
		if v != 0 {
			parts = append(parts, fmt.Sprintf("%s %d", s.Space.Name(i), v))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
