package simulations

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// openCheck is a check with what was found when it was due. What it asks of the
// time after that is looked up at the end of the run.
type openCheck struct {
	at      time.Duration
	subject string
	found   finding
}

// finding is how a check came out. It holds if miss is nil and all of quiet do.
type finding struct {
	miss  *gap
	quiet []time.Duration // for so long nothing may move
	// any is set for a choice: one of these has to hold.
	any []finding
}

// gap is what was wanted and what there is instead.
type gap struct{ want, got string }

func miss(want, got any) finding { return finding{miss: &gap{fmt.Sprint(want), fmt.Sprint(got)}} }

// expect makes the findings of an expectation that is due.
func (r *run) expect(e *Expectation) {
	for _, c := range e.Checks {
		r.checks = append(r.checks, &openCheck{at: e.At, subject: c.Subject(), found: r.find(c)})
	}
}

// miss is why the check does not hold, or nil.
func (o *openCheck) miss(moves []time.Duration) *Miss {
	g := o.found.gap(o.at, moves)
	if g == nil {
		return nil
	}
	return &Miss{At: o.at, Subject: o.subject, Want: g.want, Got: g.got}
}

func (f *finding) gap(at time.Duration, moves []time.Duration) *gap {
	if f.miss != nil {
		return f.miss
	}
	for _, d := range f.quiet {
		for _, m := range moves {
			if m > at && m < at+d {
				return &gap{Spoken(d) + " without change", "a change at " + Spoken(m)}
			}
		}
	}
	if len(f.any) == 0 {
		return nil
	}
	var got []string
	for i := range f.any {
		g := f.any[i].gap(at, moves)
		if g == nil {
			return nil
		}
		got = append(got, g.want+" is "+g.got)
	}
	return &gap{"one of them", strings.Join(got, "; ")}
}

// lastOf is the last instant that a check looks at.
func lastOf(at time.Duration, checks []Check) time.Duration {
	end := at
	for _, c := range checks {
		switch c := c.(type) {
		case Quiet:
			end = max(end, at+c.For)
		case AnyOf:
			for _, alt := range c.Alternatives {
				end = max(end, lastOf(at, alt))
			}
		}
	}
	return end
}

// find looks at the world as it is now.
func (r *run) find(c Check) finding {
	switch c := c.(type) {
	case Quiet:
		return finding{quiet: []time.Duration{c.For}}
	case AnyOf:
		return r.findAny(c)
	case Usage:
		return r.usage(c)
	}
	if want, got := r.cluster.look(c); want != got {
		return miss(want, got)
	}
	return finding{}
}

// findAny holds if all checks of one alternative do.
func (r *run) findAny(c AnyOf) finding {
	var f finding
	for _, alt := range c.Alternatives {
		var all finding
		for _, x := range alt {
			one := r.find(x)
			if one.miss != nil && all.miss == nil {
				all.miss = &gap{x.Subject() + " " + one.miss.want, one.miss.got}
			}
			all.quiet = append(all.quiet, one.quiet...)
		}
		f.any = append(f.any, all)
	}
	return f
}

// usage is the only check that asks the controller: what it charges is its own.
func (r *run) usage(c Usage) finding {
	s := r.loop.State()
	used := s.Usage(c.Queue)
	for _, a := range c.Want {
		got := int64(0)
		if d, ok := s.Space.Lookup(a.Resource); ok {
			got = used.At(d)
		}
		if got != a.Value {
			return miss(amountText(a), amountText(Amount{a.Resource, got}))
		}
	}
	return finding{}
}

// look answers a check with what it wants and what there is; it holds if they
// are the same.
func (c *Cluster) look(k Check) (want, got string) {
	switch k := k.(type) {
	case Admitted:
		return "admitted", c.standing(k.Workload)
	case NotAdmitted:
		return unless(c.standing(k.Workload) == "admitted", "not admitted", "admitted")
	case Pending:
		return c.pending(k)
	case Finished:
		return "finished", c.standing(k.Workload)
	case Whole:
		return c.wholeness(k.Workload)
	case Evicted:
		return number(k.Times), number(c.past.evicted[k.Workload])
	case Evictions:
		n := int64(0)
		for _, v := range c.past.evicted {
			n += v
		}
		return number(k.N), number(n)
	case Never:
		at, ever := c.past.admitted[k.Workload]
		return unless(ever, "never admitted", "admitted at "+Spoken(at))
	case AdmittedBy:
		at, ever := c.past.admitted[k.Workload]
		return unless(!ever || at > k.By, Spoken(k.By), admittedAt(at, ever))
	case Says:
		text := c.message(k.Workload)
		return unless(!strings.Contains(text, k.Text), fmt.Sprintf("%q", k.Text), fmt.Sprintf("%q", text))
	case CountAdmitted:
		n := int64(0)
		for _, w := range k.Among {
			if c.standing(w) == "admitted" {
				n++
			}
		}
		return number(k.N), number(n)
	default:
		return c.lookAtPods(k)
	}
}

// unless is a want that is missed if bad.
func unless(bad bool, want, got string) (string, string) {
	if bad {
		return want, got
	}
	return want, want
}

func number(n int64) string { return fmt.Sprint(n) }

func admittedAt(at time.Duration, ever bool) string {
	if !ever {
		return "not admitted so far"
	}
	return Spoken(at)
}

// standing is what a workload is: admitted, finished, a reason to wait, ...
func (c *Cluster) standing(name string) string {
	w := c.workloads[name]
	switch {
	case c.past.finished[name]:
		return "finished"
	case w == nil:
		return "deleted"
	case w.admission != nil:
		return "admitted"
	case w.stopping:
		return "stopping"
	case w.reason != "":
		return string(w.reason)
	default:
		return "waiting without a reason"
	}
}

// pending says whether a workload waits, for the right reason if one is asked.
func (c *Cluster) pending(k Pending) (want, got string) {
	got = c.standing(k.Workload)
	if k.Reason != "" {
		return string(k.Reason), got
	}
	return unless(slices.Contains([]string{"finished", "deleted", "admitted"}, got), "pending", got)
}

// waiting is who has neither ended nor runs, and why.
func (c *Cluster) waiting() map[string]string {
	out := map[string]string{}
	for _, w := range c.gangs() {
		if w.admission == nil && !w.finished {
			out[w.key] = w.message
		}
	}
	return out
}

// message is what a workload that waits is told, "" if it does not wait.
func (c *Cluster) message(name string) string {
	if w := c.workloads[name]; w != nil {
		return w.message
	}
	return ""
}

// lookAtPods answers the checks about pods and nodes.
func (c *Cluster) lookAtPods(k Check) (want, got string) {
	switch k := k.(type) {
	case Pods:
		return number(k.N), number(int64(len(c.running(k.Workload, ""))))
	case PodSetPods:
		return number(k.N), number(int64(len(c.running(k.Workload, k.PodSet))))
	case OnNodes:
		for _, n := range k.Nodes {
			if have := c.onNode(k.Workload, n.Node); have != n.Pods {
				return fmt.Sprintf("%d on %s", n.Pods, n.Node), fmt.Sprintf("%d, %s", have, c.whereText(k.Workload))
			}
		}
	case NotOnNodes:
		for _, n := range k.Nodes {
			if have := c.onNode(k.Workload, n); have > 0 {
				return "none on " + n, number(have)
			}
		}
	case SameLevel:
		return c.sameLevel(k)
	case Drifts:
		return c.drifts(k)
	case Free:
		for _, a := range k.Want {
			free := int64(0)
			if n := c.nodes[k.Node]; n != nil {
				free = n.room(a.Resource)
			}
			if free != a.Value {
				return amountText(a), amountText(Amount{a.Resource, free})
			}
		}
	default:
		panic(fmt.Sprintf("simulations: expectation %s is not executed and not listed as unsupported", k.Subject()))
	}
	return "", ""
}

// running is the pods of a gang, or of one pod set, that are released and have
// not ended.
func (c *Cluster) running(name, set string) []*podObject {
	w := c.workloads[name]
	if w == nil {
		return nil
	}
	var list []*podObject
	for _, p := range w.pods {
		if p.live() && (set == "" || p.set == set) {
			list = append(list, p)
		}
	}
	return list
}

func (c *Cluster) onNode(name, node string) int64 {
	n := int64(0)
	for _, p := range c.running(name, "") {
		if p.node == node {
			n++
		}
	}
	return n
}

// whereText is where the pods of a gang are, for messages.
func (c *Cluster) whereText(name string) string {
	count := map[string]int{}
	for _, p := range c.running(name, "") {
		count[p.node]++
	}
	if len(count) == 0 {
		return "it has no pods"
	}
	return "all are " + strings.TrimPrefix(fmt.Sprint(count), "map")
}

// wholeness says whether a gang has no pods or at least its minimum. Pods that
// ended well count.
func (c *Cluster) wholeness(name string) (want, got string) {
	const whole = "0 pods or the minimum"
	w := c.workloads[name]
	if w == nil {
		return whole, whole
	}
	n := w.released()
	return unless(n > 0 && !w.hasMinimum(), whole, fmt.Sprintf("%d pods", n))
}

// sameLevel says whether all pods of a gang share one value of a node label.
func (c *Cluster) sameLevel(k SameLevel) (want, got string) {
	want = "one " + k.Level
	var values []string
	for _, p := range c.running(k.Workload, "") {
		v, ok := "", false
		if n := c.nodes[p.node]; n != nil {
			v, ok = n.labels[k.Level]
		}
		if !ok {
			return want, "none on " + p.node
		}
		if !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return unless(len(values) > 1, want, strings.Join(values, ", "))
}
