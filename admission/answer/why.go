package answer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// Verdict is how it stands with a gang, in one word or two.
type Verdict string

// The verdicts.
const (
	Never    Verdict = "NEVER"    // as it is written and as things are declared it cannot run
	NotNow   Verdict = "NOT NOW"  // it can, but not now
	Held     Verdict = "HELD"     // somebody holds it
	Now      Verdict = "NOW"      // it is admitted in the next moment
	Running  Verdict = "RUNNING"  // it has its places
	Stopping Verdict = "STOPPING" // it was taken back, its pods are being stopped
	Finished Verdict = "FINISHED"
)

// Why is how it stands with a gang, and why.
type Why struct {
	Job      string  `json:"job"` // namespace/name
	Queue    string  `json:"queue"`
	User     string  `json:"user,omitempty"`
	Needs    string  `json:"needs"`
	Total    string  `json:"total"` // of the resource that people name, by all pods
	Verdict  Verdict `json:"verdict"`
	Code     string  `json:"code,omitempty"` // of the closed list
	Reason   string  `json:"reason,omitempty"`
	WaitedMs int64   `json:"waitedMillis,omitempty"`
	Position int     `json:"position,omitempty"` // among those that wait in its queue; 0 is not among them
	Waiting  int     `json:"waiting,omitempty"`
	ETA      *ETA    `json:"eta,omitempty"`
	// These four are always told of a gang that waits, in this order.
	Quota    *Line `json:"quota,omitempty"`
	Priority *Line `json:"priority,omitempty"`
	Capacity *Line `json:"capacity,omitempty"`
	Gates    *Line `json:"gates,omitempty"`
	// Nodes are all nodes, by what each means for the gang: those that could take a pod
	// first, then those that could not, the most free first.
	Nodes []NodeGroup `json:"nodes,omitempty"`
	// Changes would each admit it now: each was tried so, on a copy.
	Changes []Change `json:"changes,omitempty"`
	Tried   int      `json:"changesTried,omitempty"`

	Where   string     `json:"where,omitempty"`
	Since   *time.Time `json:"since,omitempty"` // admitted
	EndsBy  *time.Time `json:"endsBy,omitempty"`
	Missing int        `json:"missing,omitempty"` // pods that it needs and that do not run
	For     string     `json:"for,omitempty"`     // the claim it stops for
}

// Line is one of the four.
type Line struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// NodeGroup is nodes that mean the same for a gang.
type NodeGroup struct {
	Nodes []string `json:"nodes"`
	Free  int64    `json:"free"` // of Resource, on all of them
	Fits  int      `json:"fits"` // pods
	// Why is what excludes them, or limits what fits; "" if nothing does.
	Why      string `json:"why,omitempty"`
	Resource string `json:"resource"`

	objection *gang.Objection
	outage    *gang.Outage
}

// Why answers for the workload called key.
func (w *World) Why(key string) (*Why, error) {
	m := w.known[key]
	if m == nil {
		return nil, NotFound{What: "job", Name: key}
	}
	x := m.Workload
	a := &Why{Job: key, Queue: x.Queue, User: x.User, Needs: w.needs(&x.Spec)}
	dim := w.mainDim(&x.Spec)
	a.Total = amount(w.s.Space.Name(dim), x.Spec.Request(x.Spec.Sizes()).At(dim))
	switch m.Phase {
	case admission.Admitted:
		w.whyRunning(a, m)
	case admission.Stopping:
		a.Verdict, a.Where, a.For = Stopping, w.where(m), w.stopsFor(key)
	case admission.Finished:
		a.Verdict = Finished
	case admission.Waiting:
		w.whyWaiting(a, m)
	}
	return a, nil
}

// mainDim is the dimension by which people measure the gang.
func (w *World) mainDim(s *gang.Spec) int {
	for i := range s.PodSets {
		if d := device(s.PodSets[i].Request); d != quota.CPU {
			return d
		}
	}
	return quota.CPU
}

// where is the nodes of a gang, as its pods are and its plan says.
func (w *World) where(m *admission.Remembered) string {
	var names []string
	if m.Admission != nil {
		names = m.Admission.Plan.Nodes()
	}
	for _, p := range m.Pods {
		if p.Node != "" && p.Phase == admission.PodPlaced {
			names = append(names, p.Node)
		}
	}
	return fold(w.ordered(names), 6)
}

// ordered is the names, each once, in the order of the inventory.
func (w *World) ordered(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	here := slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		_, known := w.rankOf[n]
		return !known
	})
	slices.SortFunc(here, func(a, b string) int { return w.rankOf[a] - w.rankOf[b] })
	return slices.Compact(here)
}

func (w *World) whyRunning(a *Why, m *admission.Remembered) {
	a.Verdict, a.Where, a.Since = Running, w.where(m), optional(m.Admission.At)
	if m.Workload.Limit > 0 {
		a.EndsBy = optional(m.Admission.At.Add(m.Workload.Limit))
	}
	for _, e := range w.d.Evict {
		if e.Key == m.Name {
			a.For = e.For
		}
	}
	live := 0
	for _, p := range m.Pods {
		if p.Node != "" && (p.Phase == admission.PodPlaced || p.Phase == admission.PodSucceeded) {
			live++
		}
	}
	a.Missing = max(0, gang.Total(m.Admission.Plan.Sizes())-live)
}

// stopsFor is the claim for which the gang stops, as far as the state knows.
func (w *World) stopsFor(key string) string {
	for _, n := range w.im.Nominees {
		if slices.Contains(n.Victims, key) {
			return n.Key
		}
	}
	return ""
}

func (w *World) whyWaiting(a *Why, m *admission.Remembered) {
	a.WaitedMs = max(0, w.now.Sub(m.Workload.Queued).Milliseconds())
	p := w.place[m.Name]
	a.Position, a.Waiting = p.at, p.of
	why, told := w.why[m.Name]
	a.Code, a.Reason = string(why.Code), w.text[m.Name]
	switch {
	case w.admits(&w.d, m.Name):
		a.Verdict, a.Reason = Now, "the controller admits it in the next moment"
	case why.Code == admission.NeverFits || why.Code == admission.Invalid:
		a.Verdict = Never
	case why.Code == admission.Held:
		a.Verdict = Held
	default:
		a.Verdict = NotNow
		if !told {
			a.Reason = "a write about it has not been answered yet"
		}
	}
	a.Quota, a.Priority, a.Gates = w.quotaLine(m, why), w.priorityLine(m, why), w.gatesLine(m, why)
	a.Capacity, a.Nodes = w.capacityLine(m, why)
	if a.Verdict != Now {
		a.Changes, a.Tried = w.changes(m, why, a.Nodes)
		a.ETA = w.eta(m, why)
	}
}

func (w *World) admits(d *admission.Decision, key string) bool {
	return slices.ContainsFunc(d.Admit, func(a admission.Admission) bool { return a.Key == key }) || slices.Contains(d.Finish, key)
}

// choices are the flavors of the workload's queue; one that is nil if there is none.
func (w *World) choices(x *queue.Workload) []*queue.Flavor {
	if q := w.queueOf(x.Queue); q != nil {
		return q.Choices()
	}
	return []*queue.Flavor{nil}
}

func (w *World) quotaLine(m *admission.Remembered, why admission.Reason) *Line {
	x := m.Workload
	tree, ledger := w.s.Ledger().Tree(), w.s.Ledger()
	leaf, ok := tree.ID(x.Queue)
	if !ok || tree.Ghost(leaf) {
		return &Line{Text: fmt.Sprintf("there is no usable queue %s", x.Queue)}
	}
	if why.Bound != nil { // of the queue, of its user, or of work that stays
		return &Line{Text: sentence(w.s.Text(admission.Reason{Code: admission.Quota, Bound: why.Bound}))}
	}
	var bad *Line
	for _, f := range w.choices(x) {
		charge := f.Charge(x.Least())
		lack, fits := ledger.Fits(leaf, charge)
		if !fits && lack.Borrow && w.s.Inventory().Total().At(lack.Resource) == 0 {
			return &Line{OK: true, Text: fmt.Sprintf("no node offers %s, so there is none to count yet", Short(w.s.Space.Name(lack.Resource)))}
		}
		if !fits {
			b := &admission.Bound{Queue: lack.Queue, Resource: w.s.Space.Name(lack.Resource), Borrow: lack.Borrow, Limit: lack.Bound, Used: lack.Used, Asked: lack.Asked}
			bad = &Line{Text: sentence(w.s.Text(admission.Reason{Code: admission.Quota, Bound: b}))}
			continue
		}
		dim := w.bounded(leaf, charge)
		own, used, asks := tree.Nominal(leaf).At(dim), ledger.Usage(leaf).At(dim), charge.At(dim)
		if !tree.Counts(dim) {
			return &Line{OK: true, Text: fmt.Sprintf("%s has no bound on %s", x.Queue, Short(w.s.Space.Name(dim)))}
		}
		name := w.s.Space.Name(dim)
		text := fmt.Sprintf("%s uses %s of its %s, asks %s", x.Queue, admission.Quantity(name, used), amount(name, own), admission.Quantity(name, asks))
		if !ledger.Owns(leaf, charge) {
			text += ", and may borrow the rest"
		}
		return &Line{OK: true, Text: text}
	}
	return bad
}

// bounded is the resource of the charge to speak of: the first device of which the queue
// owns so and so much.
func (w *World) bounded(leaf int, charge quota.Resources) int {
	tree := w.s.Ledger().Tree()
	for d := quota.Pods + 1; d < len(charge); d++ {
		if charge[d] > 0 && isDevice(w.s.Space.Name(d)) && tree.Counts(d) && tree.Nominal(leaf).At(d) < quota.MostOfOne {
			return d
		}
	}
	return device(charge)
}

// sentence is a reason without its code.
func sentence(text string) string {
	_, rest, _ := strings.Cut(text, ": ")
	return rest
}

func (w *World) priorityLine(m *admission.Remembered, why admission.Reason) *Line {
	switch why.Code {
	case admission.Behind:
		return &Line{Text: sentence(w.s.Text(admission.Reason{Code: why.Code, Names: why.Names, Until: why.Until}))}
	case admission.Preempting:
		return &Line{OK: true, Text: sentence(w.s.Text(admission.Reason{Code: why.Code, Names: why.Names}))}
	default: // nobody's turn is before it
	}
	p := w.place[m.Name]
	switch p.at {
	case 0:
		return &Line{OK: true, Text: "it is not in the order, see gates"}
	case 1:
		return &Line{OK: true, Text: "first in its queue, and nobody has room kept from it"}
	default:
		return &Line{OK: true, Text: fmt.Sprintf("%d of its queue are before it; none has room kept from it", p.at-1)}
	}
}

func (w *World) gatesLine(m *admission.Remembered, why admission.Reason) *Line {
	x := m.Workload
	switch q := w.queueOf(x.Queue); {
	case why.Code == admission.Held || why.Code == admission.Invalid || why.Code == admission.QueueClosed || why.Code == admission.QueueMissing || why.Code == admission.Backoff:
		return &Line{Text: sentence(w.s.Text(why))}
	case x.Held:
		return &Line{Text: "its owner holds it"}
	case x.Invalid != "":
		return &Line{Text: x.Invalid}
	case x.Gate != "":
		return &Line{Text: "waits for " + x.Gate}
	case q != nil && q.Closed:
		return &Line{Text: "queue " + x.Queue + " is closed"}
	default:
		return &Line{OK: true, Text: "none"}
	}
}

// capacityLine looks at the nodes as they are now, whoever is first.
func (w *World) capacityLine(m *admission.Remembered, why admission.Reason) (*Line, []NodeGroup) {
	x := m.Workload
	inv, sizes := w.s.Inventory(), x.LeastSizes()
	pods := gang.Total(sizes)
	var best *gang.Shortfall
	var at *gang.Spec
	for _, f := range w.choices(x) {
		spec := f.Spec(&x.Spec)
		_, short := gang.Place(inv, spec, sizes)
		if short == nil {
			at = spec
			best = nil
			break
		}
		if best == nil || found(short) > found(best) {
			best, at = short, spec
		}
	}
	if pods == 0 {
		return &Line{OK: true, Text: "it asks for no pods"}, nil
	}
	look := gang.Look(inv, at)
	name := w.s.Space.Name(look.Resource)
	free := amount(name, look.Free.At(look.Resource))
	groups := w.groups(inv, at, sizes, look)
	if best == nil {
		room := "room for its pod"
		if pods > 1 {
			room = fmt.Sprintf("room for all %d pods", pods)
		}
		return &Line{OK: true, Text: fmt.Sprintf("%s free on nodes open to it, %s", free, room)}, groups
	}
	text := fmt.Sprintf("%s free on nodes open to it, %s", free, placed(best, pods))
	if best.Level != "" {
		text += " within one " + best.Level
	}
	if c := standing(why.Code); c != "" {
		text += "; " + c
	}
	return &Line{Text: text}, groups
}

// standing is what a code says of the empty cluster, or "".
func standing(c admission.Code) string {
	switch c {
	case admission.NeverFits:
		return "not even the empty cluster holds it"
	case admission.Labels:
		return "of the empty cluster too few nodes pass its selectors"
	case admission.Layout:
		return "the empty cluster would hold it only with cards cut or shared otherwise"
	case admission.Hardware:
		return "with what is out of use even the empty cluster is too small"
	default:
		return ""
	}
}

func found(s *gang.Shortfall) int {
	n := 0
	for _, set := range s.Sets {
		n += set.Found
	}
	return n
}

func placed(s *gang.Shortfall, pods int) string {
	n := found(s)
	switch {
	case n >= pods:
		return "but only each pod set alone finds places, not all together"
	case pods == 1:
		return "but its pod cannot be placed"
	case n == 0:
		return fmt.Sprintf("but none of %d pods can be placed", pods)
	default:
		return fmt.Sprintf("but only %d of %d pods can be placed", n, pods)
	}
}

// fittingShown bounds for how many nodes alone it is worked out what fits.
const fittingShown = 64

// groups sorts all nodes by what each means for the gang.
func (w *World) groups(inv *gang.Inventory, spec *gang.Spec, sizes []int, look gang.Survey) []NodeGroup {
	excluded := map[string]bool{}
	for _, e := range look.Excluded {
		for _, n := range e.Nodes {
			excluded[n] = true
		}
	}
	name := w.s.Space.Name(look.Resource)
	var fitting []string
	for _, n := range inv.Names() {
		if inv.Node(n) != nil && !excluded[n] {
			fitting = append(fitting, n)
		}
	}
	var out []NodeGroup
	byFree := map[int64]int{} // how much is free ▶ group
	for i, n := range fitting {
		free := inv.Free(n).At(look.Resource)
		at, seen := byFree[free]
		if !seen {
			fits := 0
			if i < fittingShown {
				fits = w.fitsOn(inv, spec, sizes, n)
			}
			at = len(out)
			byFree[free] = at
			out = append(out, NodeGroup{Resource: name, Fits: fits})
		}
		out[at].Nodes = append(out[at].Nodes, n)
		out[at].Free += free
	}
	slices.SortStableFunc(out, func(a, b NodeGroup) int { return b.Fits - a.Fits })
	for _, e := range look.Excluded {
		g := NodeGroup{Nodes: e.Nodes, Free: e.Free, Resource: name, objection: e.Objection, outage: e.Outage, Why: w.excludes(&e, look, name)}
		if e.Outage != nil && !e.Outage.Closed && len(e.Nodes) > 0 {
			g.Fits = w.fitsOn(inv, spec, sizes, e.Nodes[0])
		}
		out = append(out, g)
	}
	return out
}

// fitsOn is how many pods of the gang find a place on the node alone.
func (w *World) fitsOn(inv *gang.Inventory, spec *gang.Spec, sizes []int, node string) int {
	c := *spec
	c.Level = gang.Level{}
	c.PodSets = slices.Clone(spec.PodSets)
	only := []gang.Requirement{{Key: gang.NameField, Op: gang.In, Values: []string{node}}}
	for i := range c.PodSets {
		c.PodSets[i].Level = gang.Level{}
		c.PodSets[i].Filter = c.PodSets[i].Filter.With(only, nil)
	}
	plan, short := gang.Place(inv, &c, sizes)
	if short == nil {
		return gang.Total(plan.Sizes())
	}
	return found(short)
}

// excludes is why the nodes could not take a pod, in words that name both sides.
func (w *World) excludes(e *gang.Exclusion, look gang.Survey, resource string) string {
	switch {
	case e.Objection != nil:
		return objection(e.Objection)
	case e.Outage != nil:
		if e.Outage.Detail != "" {
			return e.Outage.What + " (" + e.Outage.Detail + ")"
		}
		return e.Outage.What
	case e.Cards != "":
		return e.Cards
	case e.Most >= look.Pod:
		return "too little of something else for one pod"
	default:
		text := fmt.Sprintf("needs %s on one node", admission.Quantity(resource, look.Pod))
		if len(e.Nodes) > 1 && e.Most > 0 {
			text += fmt.Sprintf(", at most %s free on each", admission.Quantity(resource, e.Most))
		}
		return text
	}
}

// objection names the label and both values as they are.
func objection(o *gang.Objection) string {
	key, value, pair := strings.Cut(o.Wants, "=")
	switch {
	case o.Taint:
		return "taint " + o.Wants + ", which the job does not tolerate"
	case pair && !strings.HasSuffix(key, "!") && o.Has == "":
		return fmt.Sprintf("has no label %s, job wants %q", key, value)
	case pair && !strings.HasSuffix(key, "!"):
		return fmt.Sprintf("label %s is %q, job wants %q", key, o.Has, value)
	default:
		return o.String()
	}
}
