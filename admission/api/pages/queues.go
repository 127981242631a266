package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/admission/answer"
)

// queueList is the page of all queues.
type queueList struct {
	Resource  string
	Resources []string
	Table     *table
	Since     bool // shares over time are known
}

func (h *Handler) queues(w *answer.World, r *http.Request) (*view, error) {
	asked := r.URL.Query().Get("resource")
	list, err := w.Queues(asked)
	if err != nil {
		return nil, err
	}
	d := &queueList{Table: h.queueTable(list), Resources: resources(w.Nodes())}
	if len(list) > 0 {
		d.Resource = list[0].Resource
	}
	for _, q := range list {
		d.Since = d.Since || len(h.shares.of(q.Name, q.Resource)) > 1
	}
	d.Table.ask(r)
	f := filterOf(r, "queue", "sort")
	f.Pick = []pick{{Name: "resource", Label: "counted in", Value: asked, Options: d.Resources, Any: "what is scarce"}}
	return &view{Title: "Queues", Section: "queues", Table: d.Table, Filter: f, Data: d}, nil
}

// filterOf is what the form shows of the query; what it does not show it keeps.
func filterOf(r *http.Request, hint string, keep ...string) *filter {
	q := r.URL.Query()
	f := &filter{Words: q.Get("q"), Hint: hint, Keep: map[string]string{}}
	for _, k := range keep {
		if v := q.Get(k); v != "" {
			f.Keep[k] = v
		}
	}
	return f
}

// resources are the devices that nodes offer, the largest slices first.
func resources(nodes []answer.NodeState) []string {
	seen := map[string]bool{}
	var out []string
	for _, n := range nodes {
		for name := range n.Offer {
			if !seen[name] && name != cards {
				seen[name] = true
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out
}

func number(v float64, text string) cell { return cell{Text: text, N: v} }

func count(n int) cell {
	if n == 0 {
		return cell{Text: "–"}
	}
	return cell{Text: strconv.Itoa(n), N: float64(n)}
}

func (h *Handler) queueTable(list []answer.QueueState) *table {
	t := &table{ID: "queues", Caption: "Queues, parents before children", Empty: "There is no such queue.", Columns: []column{
		{Key: "name", Name: "Queue"},
		{Key: "weight", Name: "Weight", Number: true, Class: "p2"},
		{Key: "nominal", Name: "Owns", Number: true, Class: "p2"},
		{Key: "used", Name: "Uses", Number: true},
		{Key: "borrowed", Name: "Borrows", Number: true, Class: "p3"},
		{Key: "share", Name: "Share", Number: true, Left: true},
		{Key: "fair", Name: "Fair", Number: true},
		{Name: "Over time", Class: "p2"},
		{Key: "running", Name: "Running", Number: true, Class: "p3"},
		{Key: "pending", Name: "Waiting", Number: true},
		{Key: "oldest", Name: "Longest wait", Class: "p2 last"},
	}}
	for _, q := range list {
		name := cell{Text: q.Name, Href: queueHref(q.Name)}
		if q.Closed {
			name.Title = "closed"
		}
		if q.Problem != "" {
			name.Title = q.Problem
		}
		quantity := func(v int64) cell {
			if v == 0 {
				return cell{Text: "–"}
			}
			return number(float64(v), admission.Quantity(q.Resource, v))
		}
		t.Rows = append(t.Rows, row{Depth: q.Depth, Cells: []cell{
			name, number(q.Weight, fmt.Sprint(q.Weight)), quantity(q.Nominal), quantity(q.Used), quantity(q.Borrowed),
			{Text: percent(q.Share), N: q.Share, Art: bar(q.Share, q.Fair)},
			number(q.Fair, percent(q.Fair)),
			{Art: spark(h.shares.of(q.Name, q.Resource))},
			count(q.Running), count(q.Pending),
			{Text: orDash(q.Oldest)},
		}})
	}
	return t
}

// queuePage is one queue.
type queuePage struct {
	Queue    answer.QueueState
	Children []answer.QueueState
	Chart    *chart
	Order    *table
	Quantity map[string]string
	Weight   string
}

func (h *Handler) queue(w *answer.World, r *http.Request) (*view, error) {
	name := r.URL.Query().Get("name")
	list, err := w.Queues(r.URL.Query().Get("resource"))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(q answer.QueueState) bool { return q.Name == name })
	if i < 0 {
		return nil, answer.NotFound{What: "queue", Name: name}
	}
	d := &queuePage{Queue: list[i], Chart: chartOf(h.shares.of(name, list[i].Resource)), Weight: fmt.Sprint(list[i].Weight)}
	for _, q := range list {
		if q.Parent == name {
			d.Children = append(d.Children, q)
		}
	}
	q := d.Queue
	d.Quantity = map[string]string{"owns": admission.Quantity(q.Resource, q.Nominal), "uses": admission.Quantity(q.Resource, q.Used), "borrows": admission.Quantity(q.Resource, q.Borrowed)}
	if q.Max != nil {
		d.Quantity["most"] = admission.Quantity(q.Resource, *q.Max)
	}
	turns, err := w.Order(name)
	if err != nil {
		return nil, err
	}
	d.Order = orderTable(w, turns)
	d.Order.ask(r)
	return &view{Title: "Queue " + name, Section: "queues", Table: d.Order, Filter: filterOf(r, "gang, reason", "name", "sort", "resource"), Data: d}, nil
}

// orderTable is what waits, in the order in which it is tried.
func orderTable(w *answer.World, turns []answer.Turn) *table {
	t := &table{ID: "order", Caption: "What waits, in the order in which it is tried", Empty: "Nothing waits here.", Columns: []column{
		{Key: "position", Name: "Place", Number: true},
		{Key: "job", Name: "Gang"},
		{Key: "priority", Name: "Priority", Number: true, Class: "p2"},
		{Key: "needs", Name: "Needs", Class: "p2"},
		{Key: "waited", Name: "Waited", Class: "p2"},
		{Key: "reason", Name: "Waits for"},
		{Name: "Blocked by", Class: "p3"},
		{Name: "Room kept on", Class: "p3 last"},
	}}
	for _, x := range turns {
		kept := x.Reserved
		switch {
		case kept == "":
			kept = "–"
		case x.From != nil:
			kept += " from " + clock(*x.From, w.Now())
		default:
			kept += " as it is freed"
		}
		t.Rows = append(t.Rows, row{Cells: []cell{
			number(float64(x.Position), strconv.Itoa(x.Position)),
			{Text: x.Job, Href: jobHref(x.Job)},
			number(float64(x.Priority), strconv.FormatInt(x.Priority, 10)),
			{Text: x.Needs},
			{Text: x.Waited},
			{Text: orDash(x.Reason), Class: "code"},
			{Text: orDash(some(x.BlockedBy))},
			{Text: kept},
		}})
	}
	return t
}

// whatIfPage is what another weight would do.
type whatIfPage struct {
	Queue, Weight string
	Was           float64
	*answer.WhatIf
	Rows  []beforeAfter
	Kind  string // of the object that holds the weight
	Name  string // of that object
	Patch string
}

// beforeAfter is a queue before and after.
type beforeAfter struct {
	answer.QueueState
	After     answer.QueueState
	BarBefore any
	BarAfter  any
	Uses      [2]string
	Edited    bool
}

func (h *Handler) whatIf(w *answer.World, r *http.Request) (*view, error) {
	q := r.URL.Query()
	d := &whatIfPage{Queue: q.Get("queue"), Weight: q.Get("weight")}
	weight, err := strconv.ParseFloat(strings.TrimSpace(d.Weight), 64)
	if err != nil || weight < 0 || weight > 1e6 {
		return nil, answer.NotFound{What: "weight between 0 and 1000000 called", Name: strconv.Quote(d.Weight)}
	}
	x, err := w.WhatIf(answer.Edit{Queue: d.Queue, Weight: &weight})
	if err != nil {
		return nil, err
	}
	d.WhatIf, d.Weight = x, fmt.Sprint(weight)
	d.Kind, d.Name = "clusterqueue", d.Queue
	if cohort, ok := strings.CutPrefix(d.Queue, "cohort/"); ok {
		d.Kind, d.Name = "cohort", cohort
	}
	d.Patch = fmt.Sprintf(`kubectl patch %s %s --type merge -p '{"spec":{"fairSharing":{"weight":"%s"}}}'`, d.Kind, d.Name, d.Weight)
	after := map[string]answer.QueueState{}
	for _, a := range x.After {
		after[a.Name] = a
	}
	now, err := w.Queues("")
	if err != nil {
		return nil, err
	}
	for _, s := range now {
		if s.Name == d.Queue {
			d.Was = s.Weight
		}
	}
	for _, b := range x.Before {
		a := after[b.Name]
		d.Rows = append(d.Rows, beforeAfter{
			QueueState: b, After: a, BarBefore: bar(b.Share, b.Fair), BarAfter: bar(a.Share, a.Fair), Edited: b.Name == d.Queue,
			Uses: [2]string{admission.Quantity(b.Resource, b.Used), admission.Quantity(a.Resource, a.Used)},
		})
	}
	return &view{Title: "What if " + d.Queue + " weighed " + d.Weight, Section: "queues", Still: true, Data: d}, nil
}

// byWait orders gangs by how long they have waited, the longest first.
func byWait(a, b answer.Job) int {
	return cmp.Or(a.Queued.Compare(b.Queued), cmp.Compare(a.Name, b.Name))
}
