package answer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
)

// Job is one gang in a list.
type Job struct {
	Name      string     `json:"name"` // namespace/name
	Queue     string     `json:"queue"`
	Running   int        `json:"running"` // pods
	Wanted    int        `json:"wanted"`
	Needs     string     `json:"needs"`
	State     string     `json:"state"`
	Reason    string     `json:"reason,omitempty"` // code
	Text      string     `json:"text,omitempty"`
	Position  int        `json:"position,omitempty"`
	ETA       *time.Time `json:"eta,omitempty"` // room is kept from then
	Queued    time.Time  `json:"queued"`
	Started   *time.Time `json:"started,omitempty"`
	Priority  int64      `json:"priority"`
	User      string     `json:"user,omitempty"`
	Where     string     `json:"where,omitempty"`
	ChargedTo string     `json:"chargedTo,omitempty"`
}

// Jobs lists gangs that have not finished, in the order of their queues and, within
// one, of the claim.
func (w *World) Jobs() []Job {
	var out []Job
	for i := range w.im.Workloads {
		m := &w.im.Workloads[i]
		if m.Phase == admission.Finished && len(m.Pods) == 0 {
			continue
		}
		out = append(out, w.job(m))
	}
	slices.SortFunc(out, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(order(a), order(b)), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// order puts what runs before what waits, and that by its position.
func order(j Job) int {
	switch {
	case j.State != "Waiting" && j.State != "Held":
		return -1
	case j.Position == 0:
		return 1 << 30
	default:
		return j.Position
	}
}

func (w *World) job(m *admission.Remembered) Job {
	x := m.Workload
	j := Job{
		Name: m.Name, Queue: x.Queue, Wanted: gang.Total(x.Spec.Sizes()), Needs: w.needs(&x.Spec), State: phases[m.Phase],
		Queued: x.Queued, Priority: x.Priority, User: x.User, Where: w.where(m), ChargedTo: m.ChargedTo,
	}
	for _, p := range m.Pods {
		if p.Node != "" && p.Phase == admission.PodPlaced {
			j.Running++
		}
	}
	switch m.Phase {
	case admission.Waiting:
		why := w.why[m.Name]
		j.Reason, j.Text, j.Position = string(why.Code), w.text[m.Name], w.place[m.Name].at
		if why.Code == admission.Held {
			j.State = "Held"
		}
		if at, ok := w.reserved(m.Name); ok && !at.IsZero() {
			j.ETA = &at
		}
	case admission.Admitted:
		j.State, j.Started = "Running", optional(m.Admission.At)
		if j.Running == 0 {
			j.State = "Starting"
		}
	case admission.Stopping:
		j.Reason = prefixed("for ", w.stopsFor(m.Name))
	case admission.Finished:
	}
	return j
}

// JobsTable is Jobs as a table.
func (w *World) JobsTable() Table {
	list := w.Jobs()
	t := Table{Kind: "job", Items: list, Columns: columns("NAME", "QUEUE", "PODS", "NEEDS", "STATE", "REASON", ">POS", "ETA", ">AGE", "+>PRIO", "+OWNER", "+WHERE", "+CHARGED")}
	for _, j := range list {
		eta := "-"
		if j.ETA != nil {
			eta = clock(*j.ETA, w.now)
		}
		pos := "-"
		if j.Position > 0 {
			pos = fmt.Sprint(j.Position)
		}
		since := j.Queued
		if j.Started != nil {
			since = *j.Started
		}
		t.Rows = append(t.Rows, Row{
			Name:   j.Name,
			Cells:  []string{j.Name, j.Queue, fmt.Sprintf("%d/%d", j.Running, j.Wanted), j.Needs, j.State, dash(j.Reason), pos, eta, Age(w.now.Sub(since)), fmt.Sprint(j.Priority), dash(j.User), dash(j.Where), dash(j.ChargedTo)},
			Labels: map[string]string{"queue": j.Queue, "state": j.State, "reason": j.Reason, "namespace": Namespace(j.Name), "user": j.User},
		})
	}
	return t
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Turn is one place in the order of a queue.
type Turn struct {
	Position  int        `json:"position"`
	Job       string     `json:"job"`
	Priority  int64      `json:"priority"`
	Needs     string     `json:"needs"`
	Waited    string     `json:"waited"`
	Reason    string     `json:"reason"`
	BlockedBy []string   `json:"blockedBy,omitempty"`
	Reserved  string     `json:"reserved,omitempty"` // nodes kept for it
	From      *time.Time `json:"from,omitempty"`     // when all of that is free
}

// Order is what waits in the queue, in the order in which it is tried.
func (w *World) Order(queue string) ([]Turn, error) {
	if w.queueOf(queue) == nil {
		return nil, NotFound{What: "queue", Name: queue}
	}
	var out []Turn
	for i, key := range w.s.Order(queue, w.now) {
		m := w.known[key]
		why := w.why[key]
		t := Turn{Position: i + 1, Job: key, Priority: m.Workload.Priority, Needs: w.needs(&m.Workload.Spec), Waited: Age(w.now.Sub(m.Workload.Queued)), Reason: string(why.Code), BlockedBy: why.Names}
		if b := why.Bound; b != nil {
			t.BlockedBy = []string{"quota of " + cmp.Or(b.Queue, "the cluster")}
		}
		for _, r := range w.d.Reservations {
			if r.Key == key {
				t.Reserved, t.From = fold(r.Plan.Nodes(), 4), optional(r.Start)
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// OrderTable is Order as a table.
func (w *World) OrderTable(queue string) (Table, error) {
	list, err := w.Order(queue)
	if err != nil {
		return Table{}, err
	}
	t := Table{Kind: "job", Items: list, Columns: columns(">POS", "NAME", ">PRIO", "NEEDS", ">WAITED", "REASON", "BLOCKED-BY", "RESERVED", "FROM")}
	for _, x := range list {
		from := "-"
		switch {
		case x.From != nil:
			from = clock(*x.From, w.now)
		case x.Reserved != "":
			from = "as freed"
		}
		t.Rows = append(t.Rows, Row{Name: x.Job, Cells: []string{
			fmt.Sprint(x.Position), x.Job, fmt.Sprint(x.Priority), x.Needs, x.Waited, dash(x.Reason), dash(strings.Join(x.BlockedBy, ",")), dash(x.Reserved), from,
		}})
	}
	q := w.queueOf(queue)
	if q.Strict {
		t.Notes = append(t.Notes, "strict: the first that cannot go stops those behind it")
	}
	if q.Turns {
		t.Notes = append(t.Notes, "users take turns: of one priority, who has less of the hardware goes first")
	}
	return t, nil
}

// Rank is one rule by which claims are compared. Rules are asked in turn; the first
// that differs decides, so there is nothing to weigh.
type Rank struct {
	// Among says between whom: the jobs of a queue, or the first jobs of all queues.
	Among string `json:"among"`
	Rule  string `json:"rule"`
	Value string `json:"value"`
	Ahead string `json:"ahead,omitempty"` // that of the next before it in its queue
	// Decides says that this is the first in which the two differ.
	Decides bool `json:"decides,omitempty"`
}

// Between whom a rule decides.
const (
	amongJobs   = "jobs of a queue"
	amongQueues = "queues"
)

// Priority is where a gang stands and by which rules.
type Priority struct {
	Job      string `json:"job"`
	Queue    string `json:"queue"`
	Position int    `json:"position"`
	Waiting  int    `json:"waiting"`
	Ahead    string `json:"ahead,omitempty"`
	Ranks    []Rank `json:"ranks"`
}

// Priority answers for a gang that waits.
func (w *World) Priority(key string) (*Priority, error) {
	m := w.known[key]
	if m == nil {
		return nil, NotFound{What: "job", Name: key}
	}
	p := w.place[key]
	out := &Priority{Job: key, Queue: m.Workload.Queue, Position: p.at, Waiting: p.of}
	mine := w.ranks(m)
	if p.at > 1 {
		out.Ahead = w.s.Order(m.Workload.Queue, w.now)[p.at-2]
		theirs := w.ranks(w.known[out.Ahead])
		decided := false
		for i := range mine {
			if mine[i].Among != amongJobs {
				continue
			}
			mine[i].Ahead = theirs[i].Value
			if !decided && mine[i].Value != mine[i].Ahead {
				mine[i].Decides, decided = true, true
			}
		}
	}
	out.Ranks = mine
	return out, nil
}

func (w *World) ranks(m *admission.Remembered) []Rank {
	x := m.Workload
	ledger := w.s.Ledger()
	tree := ledger.Tree()
	owned, prio, share := "no queue", int64(0), "-"
	if leaf, ok := tree.ID(x.Queue); ok {
		owned = "would borrow"
		if ledger.Owns(leaf, w.choices(x)[0].Charge(x.Least())) {
			owned = "within what the queue owns"
		}
		s := ledger.Standing(leaf)
		share = permille(s.Above, max(s.Lent, 1)*max(s.Weight, 1)/1000)
	}
	if q := w.queueOf(x.Queue); q != nil {
		prio = q.Priority
	}
	return []Rank{
		{Among: amongJobs, Rule: "priority of the job", Value: fmt.Sprint(x.Priority)},
		{Among: amongJobs, Rule: "waits since", Value: x.Queued.UTC().Format(time.RFC3339)},
		{Among: amongJobs, Rule: "uid", Value: x.UID},
		{Among: amongQueues, Rule: "owned before borrowed", Value: owned},
		{Among: amongQueues, Rule: "priority of the queue", Value: fmt.Sprint(prio)},
		{Among: amongQueues, Rule: "smaller share above what it owns", Value: share},
	}
}

// PriorityTable is Priority as a table.
func (w *World) PriorityTable(key string) (Table, error) {
	p, err := w.Priority(key)
	if err != nil {
		return Table{}, err
	}
	t := Table{Kind: "rule", Items: p, Columns: columns("AMONG", "RULE", "VALUE", "NEXT-AHEAD", "DECIDES")}
	for _, r := range p.Ranks {
		decides := ""
		if r.Decides {
			decides = "<- this"
		}
		t.Rows = append(t.Rows, Row{Name: r.Rule, Cells: []string{r.Among, r.Rule, r.Value, dash(r.Ahead), decides}})
	}
	note := fmt.Sprintf("%s is number %d of %d in queue %s", key, p.Position, p.Waiting, p.Queue)
	if p.Position == 0 {
		note = key + " is not in the order of its queue now"
	}
	if p.Ahead != "" {
		note += "; the next ahead is " + p.Ahead
	}
	t.Notes = []string{note, "rules of one kind are asked from the top; the first that differs decides"}
	return t, nil
}

// permille writes a part of a whole in percent, without a rounding that hides it.
func permille(part, whole int64) string {
	if whole <= 0 {
		return "0%"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}
