package answer

import (
	"fmt"
	"io"
	"slices"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/quota"
)

// Plan is what would become of a gang if it were submitted now.
type Plan struct {
	Job   string `json:"job"`
	Queue string `json:"queue"`
	Needs string `json:"needs"`
	// Admitted says that it would start, at once or, if somebody stops for it, as soon
	// as these have stopped.
	Admitted bool      `json:"admitted"`
	Places   []SetPlan `json:"places,omitempty"`
	Where    string    `json:"where,omitempty"`
	Stops    []string  `json:"stops,omitempty"`
	Why      *Why      `json:"why,omitempty"` // why not
}

// Plan tries the submission of a gang on a copy. Of the workload its key, queue,
// priority, pod sets and limits count; what a controller remembers is left out.
func (w *World) Plan(x Workload) (*Plan, error) {
	x.Phase, x.Admission, x.Pods, x.Before = "Waiting", nil, nil, nil
	x.Name, x.UID, x.Version = x.Key, "~"+x.Key, 1
	if x.Queued.IsZero() {
		x.Queued = w.now
	}
	if w.known[x.Key] != nil {
		return nil, fmt.Errorf("there is a job %s already", x.Key)
	}
	names := slices.Clone(w.im.Resources)
	for _, ps := range x.PodSets { // what nobody spoke of yet
		for name := range ps.Request {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	r := newReader(names, nil)
	m := r.workload(&x)
	if len(r.errs) > 0 {
		return nil, r.errs[0]
	}
	for i := range m.Workload.Spec.PodSets {
		ps := &m.Workload.Spec.PodSets[i]
		if ps.Request.At(quota.Pods) == 0 {
			ps.Request.Set(quota.Pods, 1)
		}
	}
	im := w.im
	im.Resources = names
	im.Workloads = append(slices.Clone(im.Workloads), m)
	next := New(im, w.now)
	out := &Plan{Job: x.Key, Queue: x.Queue, Needs: next.needs(&m.Workload.Spec)}
	if stops, ok := outcome(&next.d, x.Key); ok {
		out.Admitted, out.Stops = true, stops
		out.fill(next, x.Key)
		return out, nil
	}
	why, err := next.Why(x.Key)
	if err != nil {
		return nil, err
	}
	out.Why = why
	return out, nil
}

// fill says where it goes: as it is admitted, or as room is kept for it.
func (p *Plan) fill(w *World, key string) {
	for _, a := range w.d.Admit {
		if a.Key == key {
			p.Places, p.Where = writePlan(a.Plan), fold(w.ordered(a.Plan.Nodes()), 8)
		}
	}
	for _, n := range w.d.Nominees {
		if n.Key == key {
			p.Places, p.Where = writePlan(n.Plan), fold(w.ordered(n.Plan.Nodes()), 8)
		}
	}
}

// Write writes the answer for people.
func (p *Plan) Write(out io.Writer, now time.Time, width int) {
	pg := page{out: out, width: width}
	if !p.Admitted {
		pg.line("", "It would not be admitted now.")
		p.Why.Write(out, now, width)
		return
	}
	if len(p.Stops) == 0 {
		pg.line("", "It would be admitted at once.")
	} else {
		pg.line("", "It would be admitted as soon as others have stopped for it.")
	}
	pg.items([]string{p.Job, "queue " + p.Queue, p.Needs})
	for _, s := range p.Places {
		for _, slot := range s.Slots {
			pg.line("  ", fmt.Sprintf("%s  %s of %s", slot.Node, plural(slot.Count, "pod", "pods"), s.Name))
		}
	}
	for _, s := range p.Stops {
		pg.line("  stops  ", s)
	}
}

// Edit changes one queue; what is nil stays.
type Edit struct {
	Queue   string   `json:"queue"`
	Weight  *float64 `json:"weight,omitempty"`
	Nominal Amounts  `json:"nominal,omitempty"`
	Max     Amounts  `json:"max,omitempty"`
}

// WhatIf is what a change of a queue would do.
type WhatIf struct {
	Edit   Edit         `json:"edit"`
	Before []QueueState `json:"before"` // as queues stand when all has settled
	After  []QueueState `json:"after"`
	// Of the gangs that wait or run now, within Hours: who starts that otherwise would
	// not, who no longer starts, and who is taken back that otherwise would not be.
	Hours   float64  `json:"hours"`
	Starts  []string `json:"starts"`
	Waits   []string `json:"waits"`
	Stops   []string `json:"stops"`
	Sooner  []Shift  `json:"sooner"`
	Later   []Shift  `json:"later"`
	Token   string   `json:"token"` // of the state that this was worked out on
	Partial bool     `json:"partial,omitempty"`
}

// Shift is a start that moves.
type Shift struct {
	Job  string    `json:"job"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// whatIfHours is how far a what-if looks ahead.
const whatIfHours = 4 * time.Hour

// edited is the image with the queue changed.
func (w *World) edited(e Edit) (admission.Image, error) {
	im := w.im
	q := w.queueOf(e.Queue)
	if q == nil {
		return im, NotFound{What: "queue", Name: e.Queue}
	}
	r := newReader(w.im.Resources, nil)
	now := *q
	if e.Weight != nil {
		if *e.Weight < 0 {
			return im, fmt.Errorf("a weight of %g is below 0", *e.Weight)
		}
		now.Quota.Weight = int64(*e.Weight * 1000)
	}
	set := func(m map[int]int64, a Amounts) map[int]int64 {
		out := map[int]int64{}
		for d, v := range m {
			out[d] = v
		}
		for d, v := range r.bounds("queue "+e.Queue, a) {
			out[d] = v
		}
		return out
	}
	if e.Nominal != nil {
		now.Quota.Nominal = set(q.Quota.Nominal, e.Nominal)
	}
	if e.Max != nil {
		now.Quota.Max = set(q.Quota.Max, e.Max)
	}
	if len(r.errs) > 0 {
		return im, r.errs[0]
	}
	im.Queues = slices.Clone(im.Queues)
	for i := range im.Queues {
		if im.Queues[i] == q {
			im.Queues[i] = &now
		}
	}
	return im, nil
}

// WhatIf lets time pass twice, with the queue as it is and as it would be.
func (w *World) WhatIf(e Edit) (*WhatIf, error) {
	im, err := w.edited(e)
	if err != nil {
		return nil, err
	}
	out := &WhatIf{Edit: e, Hours: whatIfHours.Hours(), Token: w.Token(), Starts: []string{}, Waits: []string{}, Stops: []string{}, Sooner: []Shift{}, Later: []Shift{}}
	most := playInstants
	if len(w.im.Nodes) > playNodes {
		most, out.Partial = 2, true
	}
	never := func() bool { return false }
	was, is := newPlay(w.im, w.now, 1), newPlay(im, w.now, 1)
	was.settle()
	is.settle()
	if out.Before, err = New(was.s.Image(), w.now).Queues(""); err != nil {
		return nil, err
	}
	if out.After, err = New(is.s.Image(), w.now).Queues(""); err != nil {
		return nil, err
	}
	was.run(w.now.Add(whatIfHours), most, never)
	is.run(w.now.Add(whatIfHours), most, never)
	for _, m := range w.im.Workloads {
		a, before := was.admitted[m.Name]
		b, after := is.admitted[m.Name]
		switch {
		case !before && after && m.Phase == admission.Waiting:
			out.Starts = append(out.Starts, m.Name)
		case before && !after && m.Phase == admission.Waiting:
			out.Waits = append(out.Waits, m.Name)
		case before && after && b.At.Before(a.At):
			out.Sooner = append(out.Sooner, Shift{m.Name, a.At, b.At})
		case before && after && b.At.After(a.At):
			out.Later = append(out.Later, Shift{m.Name, a.At, b.At})
		}
		if stopped(is, m.Name) && !stopped(was, m.Name) {
			out.Stops = append(out.Stops, m.Name)
		}
	}
	return out, nil
}

func stopped(p *play, key string) bool {
	return slices.ContainsFunc(p.evicted, func(e admission.Eviction) bool { return e.Key == key && e.Cause != admission.Expired })
}

// Changes says whether the edit would start, delay or stop anybody.
func (x *WhatIf) Changes() bool {
	return len(x.Starts)+len(x.Waits)+len(x.Stops)+len(x.Sooner)+len(x.Later) > 0
}

// Write writes the answer for people.
func (x *WhatIf) Write(out io.Writer, now time.Time, width int) {
	p := page{out: out, width: width}
	p.line("", fmt.Sprintf("%-24s %7s %9s %9s   %s", "QUEUE", "WEIGHT", "USED", "SHARE", "FAIR"))
	after := map[string]QueueState{}
	for _, q := range x.After {
		after[q.Name] = q
	}
	for _, q := range x.Before {
		n := after[q.Name]
		p.line("", fmt.Sprintf("%-24s %7s %9s %9s   %s", fmt.Sprintf("%*s%s", 2*q.Depth, "", q.Name), arrow("%g", q.Weight, n.Weight), arrow("%g", float64(q.Used), float64(n.Used)),
			arrow("%.0f%%", q.Share, n.Share), arrow("%.0f%%", q.Fair, n.Fair)))
	}
	list := func(head string, names []string) {
		for _, n := range names {
			p.line(head, n)
		}
	}
	list("  starts   ", x.Starts)
	list("  waits    ", x.Waits)
	list("  stops    ", x.Stops)
	for _, s := range x.Sooner {
		p.line("  sooner   ", fmt.Sprintf("%s  %s instead of %s", s.Job, clock(s.To, now), clock(s.From, now)))
	}
	for _, s := range x.Later {
		p.line("  later    ", fmt.Sprintf("%s  %s instead of %s", s.Job, clock(s.To, now), clock(s.From, now)))
	}
	if !x.Changes() {
		p.line("  ", fmt.Sprintf("nobody starts, waits or stops for it within %g hours", x.Hours))
	}
	p.line("  token    ", x.Token)
}

func arrow(format string, a, b float64) string {
	x, y := fmt.Sprintf(format, a), fmt.Sprintf(format, b)
	if x == y {
		return x
	}
	return x + ">" + y
}
