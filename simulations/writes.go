package simulations

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"sluice.dev/sluice/admission"
)

// Write is one write of the controller to the API, as a Fault sees it.
type Write struct {
	N   int // from 1, over the whole run
	At  time.Duration
	Act string // admit, move, evict, release, finish or tell
	Key string // of the workload, or the name of the pod
}

// Fate is what becomes of a write.
type Fate int

// The fates of a write.
const (
	Done       Fate = iota // applied and answered
	Refused                // not applied, and answered so
	Lost                   // not applied, and nobody answers
	Unanswered             // applied, but nobody answers
	Fatal                  // applied, and the controller dies before it hears so
)

// Fault decides the fate of each write; nil lets all of them succeed.
type Fault func(Write) Fate

// write is a Write with how to do it. It returns the object's new version.
type write struct {
	act   string
	kind  admission.Act
	key   string // of the outcome
	name  string // for people and faults
	quiet bool   // nobody waits for an outcome
	do    func() (uint64, error)
}

// rereadAfter is how long after a write without an answer the object is read.
const rereadAfter = time.Second

var errConflict = errors.New("the object has changed")

// Carry writes what the decision says, as admission.Cluster asks.
func (c *Cluster) Carry(_ context.Context, d *admission.Decision) []admission.Outcome {
	list := c.acts(d)
	if c.order != nil {
		c.order.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	var out []admission.Outcome
	for _, w := range append(list, c.tells(d)...) {
		if c.dead {
			break
		}
		if o := c.perform(w); !w.quiet {
			out = append(out, o)
		}
	}
	c.react()
	return out
}

// acts are the writes that change something for a gang.
func (c *Cluster) acts(d *admission.Decision) []write {
	var list []write
	for i := range d.Evict {
		e := &d.Evict[i]
		list = append(list, write{act: "evict", kind: admission.ActEvict, key: e.Key, do: func() (uint64, error) { return c.evict(e) }})
	}
	for i := range d.Admit {
		a := &d.Admit[i]
		list = append(list, write{act: "admit", kind: admission.ActAdmit, key: a.Key, do: func() (uint64, error) { return c.admit(a) }})
	}
	for i := range d.Move {
		a := &d.Move[i]
		list = append(list, write{act: "move", kind: admission.ActMove, key: a.Key, do: func() (uint64, error) { return c.move(a) }})
	}
	for _, key := range d.Finish {
		list = append(list, write{act: "finish", kind: admission.ActFinish, key: key, do: func() (uint64, error) { return c.finishEmpty(key) }})
	}
	for i := range d.Release {
		r := &d.Release[i]
		list = append(list, write{act: "release", kind: admission.ActRelease, key: r.UID, name: r.Key, do: func() (uint64, error) { return c.release(r) }})
	}
	return list
}

// tells are the writes that only say why a workload waits. What the API says
// already is not written again.
func (c *Cluster) tells(d *admission.Decision) []write {
	var list []write
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if w := c.workloads[v.Key]; w == nil || w.reason == Reason(v.Reason.Code) && w.message == v.Text {
			continue
		}
		list = append(list, write{act: "tell", key: v.Key, quiet: true, do: func() (uint64, error) { return c.tell(v) }})
	}
	return list
}

// perform does one write, as fate has it.
func (c *Cluster) perform(w write) admission.Outcome {
	c.writes++
	w.name = cmp.Or(w.name, w.key)
	out := admission.Outcome{Act: w.kind, Key: w.key, At: c.clock.Time().Add(c.skewed())}
	fate := Done
	if c.fault != nil {
		fate = c.fault(Write{N: c.writes, At: c.clock.Now(), Act: w.act, Key: w.name})
	}
	switch fate {
	case Done, Unanswered, Fatal:
	case Refused:
		c.trace.add("refused  %s %s", w.act, w.name)
		out.Result = admission.Refused
		return out
	case Lost:
		c.trace.add("lost     %s %s", w.act, w.name)
		c.reread(w)
		out.Result = admission.Unknown
		return out
	}
	version, err := w.do()
	if err != nil {
		c.trace.add("refused  %s %s: %v", w.act, w.name, err)
		out.Result = admission.Refused
		return out
	}
	out.Result, out.Version = admission.Committed, version
	if fate == Unanswered {
		c.trace.add("unanswered %s %s", w.act, w.name)
		c.reread(w)
		out.Result, out.Version = admission.Unknown, 0
	}
	c.countDown(fate == Fatal)
	return out
}

// countDown lets the controller die if this was the write to die after.
func (c *Cluster) countDown(fatal bool) {
	left := c.deaths[:0]
	for _, n := range c.deaths {
		if n--; n > 0 {
			left = append(left, n)
		} else {
			fatal = true
		}
	}
	c.deaths = left
	c.dead = c.dead || fatal
}

// reread lets the controller read an object again after a write without an
// answer, when that has ended for sure.
func (c *Cluster) reread(w write) {
	if w.quiet {
		return
	}
	c.outside()
	c.unanswered[w.key] = true
	c.clock.At(c.clock.Now()+rereadAfter, func() {
		delete(c.unanswered, w.key)
		if p := c.pods[w.key]; w.kind == admission.ActRelease {
			if p != nil {
				c.changes = append(c.changes, change{pod: p.snapshot(), fresh: true})
			}
		} else if gang := c.workloads[w.key]; gang != nil {
			c.changes = append(c.changes, change{workload: gang.snapshot(), fresh: true})
		}
	})
}

// gang is the workload that a write was decided for, if it is still as it was.
func (c *Cluster) gang(key, uid string, based uint64) (*workloadObject, error) {
	w := c.workloads[key]
	if w == nil || w.uid != uid || w.version != based || w.finished {
		return nil, errConflict
	}
	return w, nil
}

func (c *Cluster) admit(a *admission.Admission) (uint64, error) {
	w, err := c.gang(a.Key, a.UID, a.Based)
	if err != nil {
		return 0, err
	}
	if w.admission != nil {
		c.violate("%s is admitted to %v while it is admitted to %v", w.key, a.Plan, w.admission.Plan)
	}
	if _, seen := c.past.admitted[w.key]; !seen {
		c.past.admitted[w.key] = c.clock.Now()
	}
	c.past.moves = append(c.past.moves, c.clock.Now())
	w.round++
	c.entered(w)
	c.setAdmission(w, a)
	w.stopping, w.reason, w.message = false, "", ""
	w.stopsFor = admission.Claimant{}
	c.workloadChanged(w)
	c.trace.add("admit    %s to %s: %v", w.key, a.Queue, a.Plan)
	return w.version, nil
}

func (c *Cluster) move(a *admission.Admission) (uint64, error) {
	w, err := c.gang(a.Key, a.UID, a.Based)
	if err != nil {
		return 0, err
	}
	if w.admission == nil {
		return 0, errConflict
	}
	verb, before, after := "move", total(w.admission.Plan.Sizes()), total(a.Plan.Sizes())
	if before != after {
		c.past.moves = append(c.past.moves, c.clock.Now())
		verb = "grow"
		if after < before {
			verb = "shrink"
		}
	}
	c.setAdmission(w, a)
	c.workloadChanged(w)
	c.trace.add("%-8s %s: %v", verb, w.key, a.Plan)
	return w.version, nil
}

func total(sizes []int) int {
	n := 0
	for _, k := range sizes {
		n += k
	}
	return n
}

func (c *Cluster) evict(e *admission.Eviction) (uint64, error) {
	w, err := c.gang(e.Key, e.UID, e.Based)
	if err != nil {
		return 0, err
	}
	if w.admission == nil {
		return 0, errConflict
	}
	c.past.moves = append(c.past.moves, c.clock.Now())
	c.left(w, e)
	if e.Cause != admission.TurnedAway || w.letIn() {
		c.past.evicted[w.key]++
	} // else a start that came to nothing, of which no pod was ever let in
	w.clearAdmission()
	w.stopping, w.stopsFor = true, admission.Claimant{Key: e.For, UID: e.ForUID}
	c.workloadChanged(w)
	why := []string{string(e.Cause)}
	if e.For != "" {
		why = append(why, "for "+e.For)
	}
	if e.Detail != "" {
		why = append(why, "("+e.Detail+")")
	}
	c.trace.add("evict    %s: %s", w.key, strings.Join(why, " "))
	return w.version, nil
}

// finishEmpty ends a gang of no pods.
func (c *Cluster) finishEmpty(key string) (uint64, error) {
	w := c.workloads[key]
	if w == nil || w.finished {
		return 0, errConflict
	}
	for _, s := range w.PodSets {
		if s.Pods > 0 {
			c.violate("%s is finished without having run, though it has pods", key)
		}
	}
	if _, seen := c.past.admitted[key]; !seen {
		c.past.admitted[key] = c.clock.Now()
	}
	c.trace.add("finish   %s: it has no pods", key)
	c.finish(w)
	return w.version, nil
}

func (c *Cluster) tell(v *admission.Verdict) (uint64, error) {
	w := c.workloads[v.Key]
	if w == nil {
		return 0, errConflict
	}
	w.reason, w.message = Reason(v.Reason.Code), v.Text
	c.workloadChanged(w)
	c.trace.add("tell     %s: %s", w.key, v.Text)
	return w.version, nil
}

// release takes the gate off a pod. The scheduler binds it at once, or cannot.
func (c *Cluster) release(r *admission.Release) (uint64, error) {
	p := c.pods[r.UID]
	if p == nil || p.phase != podGated {
		return 0, errConflict
	}
	w := p.owner
	switch {
	case w.admission == nil || w.admission.Stamp() != r.Stamp:
		c.violate("pod %s is released for an admission that is no more", p.name)
	case w.Gate != "":
		c.violate("pod %s is released though %s", p.name, w.Gate)
	}
	why := c.cannotRun(p, r.Node)
	switch {
	case why == "":
	case c.behind != nil && c.behind():
		// The scheduler does not bind it; its job gives it up and makes another.
		c.trace.add("pod %s is not bound to %s: %s", p.name, r.Node, why)
		p.node, p.stamp = r.Node, r.Stamp
		c.outside()
		c.end(p, podFailed)
		return p.version, nil
	default:
		c.violate("pod %s was released to node %s and cannot run there: %s", p.name, r.Node, why)
	}
	p.node, p.stamp, p.phase = r.Node, r.Stamp, podBound
	if n := c.nodes[r.Node]; n != nil {
		c.bind(n, p)
	}
	c.podChanged(p)
	c.trace.released(w.key, r.Node)
	return p.version, nil
}

// setAdmission writes a copy, since the decision stays its owner's, and notes
// the nodes on which the gang has more places than before.
func (c *Cluster) setAdmission(w *workloadObject, a *admission.Admission) {
	had, before := 0, map[string]map[string]int{}
	for _, s := range w.PodSets {
		before[s.Name] = w.places(s.Name)
		had += w.planSize(s.Name)
	}
	b := *a
	b.Plan = a.Plan.Clone()
	w.admission = &b
	now := c.planned[w]
	if now == nil {
		now = &planned{nodes: map[string]bool{}}
		c.planned[w] = now
	}
	now.grew = now.grew || total(b.Plan.Sizes()) > had
	for _, s := range w.PodSets {
		for node, n := range w.places(s.Name) {
			if n > before[s.Name][node] {
				now.nodes[node] = true
			}
		}
	}
}

func (w *workloadObject) clearAdmission() {
	w.admission, w.ran, w.whole, w.overdue = nil, false, false, false
}
