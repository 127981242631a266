package witness

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rule names what was broken.
type Rule string

// The rules, as the package says them.
const (
	Unschedulable Rule = "Unschedulable"
	Unadmitted    Rule = "Unadmitted"
	Unmanaged     Rule = "Unmanaged"
	Elsewhere     Rule = "Elsewhere"
	NodeOver      Rule = "NodeOver"
	QueueOver     Rule = "QueueOver"
	HalfReleased  Rule = "HalfReleased"
)

// Violation is one broken rule. The same rule about the same subject is told
// once.
type Violation struct {
	Rule     Rule
	Subject  string
	Revision uint64
	At       time.Time
	Text     string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s %s: %s (revision %d, %s)", v.Rule, v.Subject, v.Text, v.Revision, v.At.Format("15:04:05.000"))
}

// Terms bound what is judged.
type Terms struct {
	// HalfFor is how long a gang may have both released and gated pods.
	HalfFor time.Duration
	// Excused are times in which nobody could have released the rest.
	Excused []Interval
	// OutOfReach are namespaces that sluice leaves alone by design.
	OutOfReach []string
}

// Verdict is what the rules find in a log.
type Verdict struct {
	Violations []Violation
	// LongestHalf is the longest time that a gang was half released, whose it
	// was, and how much of it was excused.
	LongestHalf   time.Duration
	HalfOf        string
	ExcusedOfHalf time.Duration
	// Released counts pods that were seen to be released, Gangs the workloads
	// they belong to.
	Released, Gangs int
	// Records counts what was judged, Unjudged what fell into blind times.
	Records, Unjudged int
}

func (v Verdict) String() string {
	s := fmt.Sprintf("%d records, %d pods of %d gangs released, longest half release %v", v.Records, v.Released, v.Gangs, v.LongestHalf.Round(time.Millisecond))
	if v.ExcusedOfHalf > 0 {
		s += fmt.Sprintf(" (%v of it excused)", v.ExcusedOfHalf.Round(time.Millisecond))
	}
	if v.Unjudged > 0 {
		s += fmt.Sprintf(", %d records in blind times", v.Unjudged)
	}
	return s
}

// Judge applies the rules to a log.
func Judge(l *Log, t Terms) Verdict {
	j := &judge{terms: t, told: make(map[string]bool), half: make(map[client.ObjectKey]time.Time), gangs: make(map[client.ObjectKey]bool)}
	records, blind := l.ordered()
	j.terms.Excused = append(slices.Clone(t.Excused), blind[Pods]...)
	var unknown []Interval
	for _, intervals := range blind {
		unknown = append(unknown, intervals...)
	}
	w := newWorld()
	last := time.Time{}
	for _, r := range records {
		pods := w.apply(r)
		last = later(last, r.At)
		j.halves(w, r)
		if slices.ContainsFunc(unknown, func(i Interval) bool { return i.holds(r.At) }) {
			j.verdict.Unjudged++
			continue
		}
		j.verdict.Records++
		for _, p := range pods {
			j.pod(w, r, p)
		}
		if r.Kind == Pods {
			j.nodes(w, r)
			j.queues(w, r)
		}
	}
	for _, gang := range slices.SortedFunc(maps.Keys(j.half), byKey) {
		j.endHalf(gang, last, Record{At: last})
	}
	j.verdict.Gangs = len(j.gangs)
	return j.verdict
}

// Replay shows the world after each record, in the order of what happened.
func Replay(l *Log, each func(w *World, r Record)) {
	records, _ := l.ordered()
	w := newWorld()
	for _, r := range records {
		w.apply(r)
		each(w, r)
	}
}

func byKey(a, b client.ObjectKey) int { return cmp.Compare(a.String(), b.String()) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

type judge struct {
	terms   Terms
	verdict Verdict
	told    map[string]bool
	half    map[client.ObjectKey]time.Time // since when a gang is half released
	gangs   map[client.ObjectKey]bool
}

func (j *judge) tell(rule Rule, subject string, r Record, format string, args ...any) {
	key := string(rule) + " " + subject
	if j.told[key] {
		return
	}
	j.told[key] = true
	j.verdict.Violations = append(j.verdict.Violations, Violation{
		Rule: rule, Subject: subject, Revision: r.Revision, At: r.At, Text: fmt.Sprintf(format, args...),
	})
}

// pod judges one version of a pod.
func (j *judge) pod(w *World, r Record, p *Pod) {
	if slices.Contains(j.terms.OutOfReach, p.Namespace) {
		return
	}
	subject := keyOf(p) + " " + string(p.UID)
	born := p.Before == nil && p.InSight
	if born && !p.Gated && w.queued(p) {
		j.tell(Unmanaged, subject, r, "it was created without a gate")
	}
	if p.Workload.Name == "" {
		return
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			j.tell(Unschedulable, subject, r, "%s; planned on %q", c.Message, p.Node())
		}
	}
	if p.InSight && !p.Gated && p.Before != nil && p.Before.Gated {
		j.verdict.Released++
		j.gangs[p.Workload] = true
		if workload := w.Workloads[p.Workload]; !admitted(workload) {
			j.tell(Unadmitted, subject, r, "it was released while workload %s is not admitted", p.Workload)
		}
	}
	if bound := p.Spec.NodeName; bound != "" && (p.Before == nil || p.Before.Spec.NodeName == "") && p.Plan != nil {
		j.place(w, r, p, subject)
	}
}

// place judges where a pod was bound.
func (j *judge) place(w *World, r Record, p *Pod, subject string) {
	plan := planned(p.Plan, podSetOf(p))
	want, named := plan[p.Spec.NodeName]
	switch {
	case plan == nil:
		j.tell(Elsewhere, subject, r, "it runs on %s, and its admission names no nodes", p.Spec.NodeName)
	case !named:
		j.tell(Elsewhere, subject, r, "it runs on %s, its plan is %v", p.Spec.NodeName, plan)
	case w.sharers(p) > want:
		j.tell(Elsewhere, subject, r, "it is number %d on %s, its plan is %v", w.sharers(p), p.Spec.NodeName, plan)
	}
}

func (j *judge) nodes(w *World, r Record) {
	for name, sum := range w.onNodes() {
		node := w.Nodes[name]
		if node == nil {
			continue // it may have been removed under its pods
		}
		j.within(NodeOver, name, r, sum, node.Status.Allocatable)
	}
}

func (j *judge) queues(w *World, r Record) {
	for name, sum := range w.inQueues() {
		queue := w.Queues[name]
		if queue == nil {
			continue
		}
		limit := w.maximum(queue)
		covered := make(corev1.ResourceList)
		for resource := range limit {
			covered[resource] = sum[resource]
		}
		j.within(QueueOver, name, r, covered, limit)
	}
}

func (j *judge) within(rule Rule, name string, r Record, sum, limit corev1.ResourceList) {
	for _, resource := range slices.Sorted(maps.Keys(sum)) {
		used, most := sum[resource], limit[resource]
		if used.Cmp(most) > 0 {
			j.tell(rule, name+" "+string(resource), r, "%s of %s", used.String(), most.String())
		}
	}
}

// halves follows which gangs are half released.
func (j *judge) halves(w *World, r Record) {
	if r.Kind != Pods {
		return
	}
	counts := w.releases()
	for gang, c := range counts {
		if _, since := j.half[gang]; !since && c.half() {
			j.half[gang] = r.At
		}
	}
	for gang, since := range j.half {
		if !counts[gang].half() {
			j.endHalf(gang, later(since, r.At), r)
		}
	}
}

// endHalf ends a half release and judges how long it took.
func (j *judge) endHalf(gang client.ObjectKey, end time.Time, r Record) {
	since := j.half[gang]
	delete(j.half, gang)
	took, excused := end.Sub(since), overlap(Interval{since, end}, j.terms.Excused)
	if took > j.verdict.LongestHalf {
		j.verdict.LongestHalf, j.verdict.HalfOf, j.verdict.ExcusedOfHalf = took, gang.String(), excused
	}
	if took-excused > j.terms.HalfFor {
		j.tell(HalfReleased, gang.String(), r, "for %v, %v of it excused; the bound is %v", took, excused, j.terms.HalfFor)
	}
}

// overlap is how much of an interval others cover.
func overlap(i Interval, others []Interval) time.Duration {
	sorted := slices.SortedFunc(slices.Values(others), func(a, b Interval) int { return a.From.Compare(b.From) })
	var covered time.Duration
	at := i.From
	for _, o := range sorted {
		from, to := later(at, o.From), o.To
		if to.IsZero() || to.After(i.To) { // it still lasts, or lasts longer
			to = i.To
		}
		if to.After(from) {
			covered += to.Sub(from)
			at = to
		}
	}
	return covered
}
