package simulations

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"sluice.dev/sluice/admission"
)

// The job controllers: they make the pods that an admission names places for,
// make failed ones again, and stop those that are no longer wanted. What a job
// has to look at is marked dirty by whoever changes it.

// submit brings a gang, in place if it runs since before time 0.
func (c *Cluster) submit(w Workload) {
	c.submitted++
	o := &workloadObject{
		Workload: w, key: w.Name, uid: fmt.Sprintf("workload-%06d", c.submitted),
		queued: c.clock.Now(), hold: w.Hold,
	}
	c.workloads[o.key] = o
	delete(c.past.finished, o.key)
	if w.IsRunning() {
		c.inPlace(o)
	}
	c.workloadChanged(o)
}

// inPlace admits a gang before time 0 and puts its pods where they are.
func (c *Cluster) inPlace(w *workloadObject) {
	w.admission = &admission.Admission{Key: w.key, UID: w.uid, Queue: w.Queue, Plan: runningPlan(&w.Workload), At: epoch}
	c.past.admitted[w.key] = 0
	w.round++
	for i := range w.PodSets {
		s := &w.PodSets[i]
		for _, on := range s.Running {
			for range on.Pods {
				p := c.makePod(w, s)
				p.node, p.stamp, p.phase = on.Node, w.admission.Stamp(), podBound
				c.nodes[on.Node].run(p)
				c.podChanged(p)
			}
		}
	}
	c.started(w)
}

func (c *Cluster) makePod(w *workloadObject, s *PodSet) *podObject {
	c.created++
	p := &podObject{
		uid: fmt.Sprintf("pod-%08d", c.created), name: fmt.Sprintf("%s-%s-%d", w.key, s.Name, w.made),
		owner: w, set: s.Name, requests: s.Requests,
	}
	w.made++
	w.pods = append(w.pods, p)
	c.pods[p.uid] = p
	return p
}

// react lets every job look at what changed, until none has anything to do.
func (c *Cluster) react() {
	for len(c.dirty) > 0 {
		jobs := slices.Collect(maps.Keys(c.dirty))
		slices.SortFunc(jobs, func(a, b *workloadObject) int { return cmp.Compare(a.uid, b.uid) })
		clear(c.dirty)
		for _, w := range jobs {
			c.reconcile(w)
		}
	}
}

// reconcile brings the pods of one gang in line with what it is.
func (c *Cluster) reconcile(w *workloadObject) {
	switch {
	case w.finished:
	case w.admission == nil:
		c.clean(w)
		if w.stopping && !w.deleted && len(w.pods) == 0 {
			w.stopping = false
			c.workloadChanged(w)
		}
	default:
		for i := range w.PodSets {
			c.scale(w, &w.PodSets[i])
		}
		c.progress(w)
	}
}

// clean stops all pods of a gang that is not to have any.
func (c *Cluster) clean(w *workloadObject) {
	for _, p := range slices.Clone(w.pods) {
		if p.live() {
			c.stop(p)
		} else {
			c.remove(p)
		}
	}
}

// scale makes the pods of a set that are missing and stops those that are too
// many: first those where the plan has no place, then gated ones, then the last.
func (c *Cluster) scale(w *workloadObject, s *PodSet) {
	want, places := w.planned(s), w.places(s.Name)
	var running, gated []*podObject
	for _, p := range slices.Clone(w.pods) {
		switch {
		case p.set != s.Name:
		case p.phase == podSucceeded && w.current(p):
			want--
			places[p.node]--
		case p.phase == podGated:
			gated = append(gated, p)
		case !p.live() || p.stopping:
		case !w.current(p) || places[p.node] <= 0:
			c.stop(p)
		default:
			places[p.node]--
			running = append(running, p)
		}
	}
	for len(running)+len(gated) > max(want, 0) {
		if k := len(gated) - 1; k >= 0 {
			c.remove(gated[k])
			gated = gated[:k]
		} else {
			k = len(running) - 1
			c.stop(running[k])
			running = running[:k]
		}
	}
	for range want - len(running) - len(gated) {
		c.podChanged(c.makePod(w, s))
	}
}

// progress notes that a gang runs, and ends it when its time has come.
func (c *Cluster) progress(w *workloadObject) {
	planned, running, done := 0, 0, 0
	for i := range w.PodSets {
		r, d := w.have(w.PodSets[i].Name)
		planned, running, done = planned+w.planned(&w.PodSets[i]), running+r, done+d
	}
	w.whole = w.whole || running+done > 0 && w.hasMinimum()
	if planned == 0 || running+done < planned {
		return
	}
	switch {
	case running == 0 || w.overdue:
		c.trace.add("ends     %s", w.key)
		c.outside()
		c.finish(w)
	case !w.ran:
		c.started(w)
	}
}

// started begins the runtime of a gang.
func (c *Cluster) started(w *workloadObject) {
	w.ran = true
	if w.Runtime == nil {
		return
	}
	round := w.round
	c.clock.At(c.clock.Now()+*w.Runtime, func() {
		if w.round == round && w.admission != nil && !w.finished && c.workloads[w.key] == w {
			w.overdue = true
			c.dirty[w] = true
		}
	})
}

// finish ends a gang well, with all pods that it has.
func (c *Cluster) finish(w *workloadObject) {
	w.finished, w.stopping, w.reason, w.message = true, false, "", ""
	c.past.finished[w.key] = true
	for _, p := range slices.Clone(w.pods) {
		switch {
		case p.phase == podGated:
			c.remove(p)
		case p.live() && !p.stopping:
			c.end(p, podSucceeded)
		}
	}
	c.workloadChanged(w)
}

// deleteWorkload takes a gang away; its pods stop, and are charged until then.
func (c *Cluster) deleteWorkload(w *workloadObject) {
	delete(c.workloads, w.key)
	w.deleted = true
	c.changes = append(c.changes, change{workload: w.snapshot(), gone: true})
	w.clearAdmission()
	c.clean(w)
}

// podOn is the first pod of the gang that runs on the node, or nil.
func (w *workloadObject) podOn(node string) *podObject {
	for _, p := range w.pods {
		if p.live() && !p.stopping && p.node == node {
			return p
		}
	}
	return nil
}
