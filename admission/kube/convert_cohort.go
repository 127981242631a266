package kube

import (
	"maps"
	"slices"

	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// cohortQueues are the inner queues that the given queues hang under: cohorts by
// name, and the parents that Cohort objects give them. What a Cohort has of its own
// comes on top of what its members own.
func (c *catalog) cohortQueues(space *quota.Space, members []*queue.Queue) []*queue.Queue {
	made := map[string]*queue.Queue{}
	own := map[string]limits{}
	children := map[string][]*quota.Queue{}
	for _, m := range members {
		if m.Quota.Parent == "" {
			continue
		}
		children[m.Quota.Parent] = append(children[m.Quota.Parent], &m.Quota)
		for name := m.Quota.Parent; name != "" && made[name] == nil; {
			q, l := c.cohort(space, name)
			made[name], own[name] = q, l
			if q.Quota.Parent != "" {
				children[q.Quota.Parent] = append(children[q.Quota.Parent], &q.Quota)
			}
			name = q.Quota.Parent
		}
	}
	var list []*queue.Queue
	for _, name := range slices.Sorted(maps.Keys(made)) {
		q := made[name]
		l := own[name]
		if len(l.nominal) > 0 {
			q.Quota.Nominal = subtree(name, own, children, map[string]bool{})
		}
		if q.Quota.Parent != "" {
			sum := subtree(name, own, children, map[string]bool{})
			for d, b := range l.borrow {
				q.Quota.Max[d] = quota.Sum(sum[d], b)
			}
		}
		list = append(list, q)
	}
	return list
}

// cohort is the inner queue of that name without its nominal. A Cohort that is
// wrong counts as one that exists by name only; its fault says why.
func (c *catalog) cohort(space *quota.Space, name string) (*queue.Queue, limits) {
	q := &queue.Queue{Quota: quota.Queue{Name: name, Weight: 1000, Max: map[int]int64{}}}
	co := c.cohorts[name[len(cohortMark):]]
	if co == nil {
		return q, limits{}
	}
	weight, err := thousandth(weightOf(co.Spec.FairSharing))
	if err != nil {
		c.faults[object{cohortKind, "", co.Name}] = faultf(reasonInvalid, "spec.fairSharing: %v", err)
		return q, limits{}
	}
	l, err := groupLimits(space, co.Spec.ResourceGroups)
	if err != nil {
		c.faults[object{cohortKind, "", co.Name}] = faultf(reasonInvalid, "spec.resourceGroups: %v", err)
		return q, limits{}
	}
	q.Quota.Weight, q.Quota.Lendable = weight, l.lend
	if co.Spec.ParentName != "" {
		q.Quota.Parent = cohortMark + string(co.Spec.ParentName)
	}
	return q, l
}

// subtree is what a cohort and everything under it owns. A circle of parents is
// counted once; the core refuses it and says so.
func subtree(name string, own map[string]limits, children map[string][]*quota.Queue, seen map[string]bool) map[int]int64 {
	sum := map[int]int64{}
	if seen[name] {
		return sum
	}
	seen[name] = true
	add := func(more map[int]int64) {
		for d, v := range more {
			sum[d] = quota.Sum(sum[d], v)
		}
	}
	add(own[name].nominal)
	for _, child := range children[name] {
		if _, inner := own[child.Name]; inner {
			add(subtree(child.Name, own, children, seen))
		} else {
			add(child.Nominal)
		}
	}
	return sum
}
