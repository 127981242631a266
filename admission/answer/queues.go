package answer

import (
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/quota"
)

// QueueState is one queue in the tree.
type QueueState struct {
	Name     string  `json:"name"`
	Depth    int     `json:"depth"`
	Parent   string  `json:"parent,omitempty"`
	Weight   float64 `json:"weight"`
	Resource string  `json:"resource"` // of the numbers below
	Nominal  int64   `json:"nominal"`
	Used     int64   `json:"used"`
	Borrowed int64   `json:"borrowed"`
	Lent     int64   `json:"lent"` // of what it owns, used by others
	Max      *int64  `json:"max,omitempty"`
	// Share is what it uses and Fair what its weight gives it of what its siblings
	// and it want, both as parts of the whole cluster, in percent.
	Share   float64 `json:"sharePercent"`
	Fair    float64 `json:"fairPercent"`
	Pending int     `json:"pending"`
	Running int     `json:"running"`
	Oldest  string  `json:"oldest,omitempty"` // how long the first of its jobs has waited
	Closed  bool    `json:"closed,omitempty"`
	Problem string  `json:"problem,omitempty"`
}

// scarce is the resource by which queues are compared: the device of which the
// largest part is used, be it counted as nodes offer it or by a queue's flavor, or cpu.
func (w *World) scarce() int {
	used := w.s.Ledger().Usage(quota.Root)
	best, most, of := quota.CPU, int64(-1), int64(1)
	for d := quota.Pods + 1; d < w.s.Space.Len(); d++ {
		if !isDevice(w.s.Space.Name(d)) {
			continue
		}
		whole := w.whole(d)
		if whole <= 0 || whole >= quota.MostOfOne {
			continue
		}
		if at := used.At(d); float64(at)*float64(of) > float64(most)*float64(whole) {
			best, most, of = d, at, whole
		}
	}
	return best
}

// Queues lists the tree, parents before children, by name. With an empty resource
// it counts the one that matters most.
func (w *World) Queues(resource string) ([]QueueState, error) {
	dim := w.scarce()
	if resource != "" {
		d, ok := w.s.Space.Lookup(resource)
		if !ok {
			return nil, NotFound{What: "resource", Name: resource}
		}
		dim = d
	}
	ledger := w.s.Ledger()
	tree := ledger.Tree()
	total := w.whole(dim)
	fair := w.fair(dim, total)
	var out []QueueState
	var walk func(id, depth int)
	walk = func(id, depth int) {
		if id != quota.Root {
			out = append(out, w.queueState(id, depth, dim, total, fair[id]))
		}
		for _, c := range tree.Children(id) {
			walk(c, depth+1)
		}
	}
	walk(quota.Root, -1)
	return out, nil
}

// whole is all there is of the dimension: hardware, or what is owned where it is not
// one of hardware.
func (w *World) whole(dim int) int64 {
	if v := w.s.Inventory().Total().At(dim); v > 0 {
		return v
	}
	sum := int64(0)
	tree := w.s.Ledger().Tree()
	for _, c := range tree.Children(quota.Root) {
		sum = quota.Sum(sum, tree.Nominal(c).At(dim))
	}
	return sum
}

// fair gives each queue what it wants of what it owns, and divides the rest of its
// level by weight among those that want more, as quota divides what nobody owns.
func (w *World) fair(dim int, total int64) []int64 {
	ledger := w.s.Ledger()
	tree := ledger.Tree()
	wants := make([]int64, tree.Len())
	for id := 1; id < tree.Len(); id++ {
		want := ledger.Own(id).At(dim)
		for _, key := range w.s.Order(tree.Name(id), w.now) {
			x := w.known[key].Workload
			want = quota.Sum(want, w.choices(x)[0].Charge(x.Least()).At(dim))
		}
		for at := id; at != -1; at = tree.Parent(at) {
			wants[at] = quota.Sum(wants[at], want)
		}
	}
	out := make([]int64, tree.Len())
	out[quota.Root] = total
	var walk func(id int)
	walk = func(id int) {
		children := tree.Children(id)
		parts := make([]quota.Part, len(children))
		rest := out[id]
		for i, c := range children {
			out[c] = min(tree.Nominal(c).At(dim), wants[c])
			rest -= out[c]
			parts[i] = quota.Part{Weight: tree.Weight(c), Want: wants[c] - out[c]}
		}
		for i, v := range quota.Divide(max(0, rest), parts) {
			out[children[i]] += v
			walk(children[i])
		}
	}
	walk(quota.Root)
	return out
}

func (w *World) queueState(id, depth, dim int, total, fair int64) QueueState {
	ledger := w.s.Ledger()
	tree := ledger.Tree()
	q := QueueState{
		Name: tree.Name(id), Depth: depth, Parent: tree.Name(tree.Parent(id)), Weight: float64(tree.Weight(id)) / 1000,
		Resource: w.s.Space.Name(dim), Nominal: tree.Nominal(id).At(dim), Used: ledger.Usage(id).At(dim),
		Share: percent(ledger.Usage(id).At(dim), total), Fair: percent(fair, total),
	}
	q.Borrowed = max(0, q.Used-q.Nominal)
	if m := tree.Max(id, dim); m != quota.Unbounded {
		q.Max = &m
	}
	oldest := time.Time{}
	for i := range w.im.Workloads {
		m := &w.im.Workloads[i]
		at, ok := tree.ID(m.Workload.Queue)
		for ; ok && at != -1 && at != id; at = tree.Parent(at) {
		}
		if !ok || at != id {
			continue
		}
		switch m.Phase {
		case admission.Waiting:
			q.Pending++
			if oldest.IsZero() || m.Workload.Queued.Before(oldest) {
				oldest = m.Workload.Queued
			}
		case admission.Admitted:
			q.Running++
		case admission.Stopping, admission.Finished:
		}
	}
	if !oldest.IsZero() {
		q.Oldest = Age(w.now.Sub(oldest))
	}
	if c := w.queueOf(q.Name); c != nil {
		q.Closed = c.Closed
	}
	if tree.Ghost(id) {
		q.Problem = "gone, or its parents are"
	}
	return q
}

func percent(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// QueuesTable is Queues as a table.
func (w *World) QueuesTable(resource string) (Table, error) {
	list, err := w.Queues(resource)
	if err != nil {
		return Table{}, err
	}
	t := Table{Kind: "queue", Items: list, Columns: columns("NAME", ">WEIGHT", ">NOMINAL", ">USED", ">BORROWED", ">SHARE", ">FAIR", ">PENDING", ">OLDEST", "+>RUNNING", "+>CEILING", "+STATE")}
	for _, q := range list {
		ceiling, state := "-", "open"
		if q.Max != nil {
			ceiling = admission.Quantity(q.Resource, *q.Max)
		}
		if q.Closed {
			state = "closed"
		}
		if q.Problem != "" {
			state = q.Problem
		}
		number := func(v int64) string { return admission.Quantity(q.Resource, v) }
		t.Rows = append(t.Rows, Row{Name: q.Name, Labels: map[string]string{"queue": q.Name, "parent": q.Parent}, Cells: []string{
			strings.Repeat("  ", q.Depth) + q.Name, fmt.Sprint(q.Weight), number(q.Nominal), number(q.Used), number(q.Borrowed),
			fmt.Sprintf("%.0f%%", q.Share), fmt.Sprintf("%.0f%%", q.Fair), fmt.Sprint(q.Pending), dash(q.Oldest), fmt.Sprint(q.Running), ceiling, state,
		}})
	}
	if len(list) > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("of %s; SHARE and FAIR are parts of all there are", list[0].Resource))
	}
	t.Notes = append(t.Notes, w.s.Problems()...)
	return t, nil
}
