package answer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// Finding is something in the configuration that its owner should look at.
type Finding struct {
	Level  string `json:"level"` // error: something cannot work; warning: it surprises
	Object string `json:"object"`
	Text   string `json:"text"`
}

// Lint looks at queues, nodes and what waits for what cannot work as it is declared.
func (w *World) Lint() []Finding {
	l := &linter{w: w, out: []Finding{}}
	for _, p := range w.s.Problems() {
		l.add("error", "queues", "%s", p)
	}
	l.capacity()
	for _, q := range w.im.Queues {
		l.queue(q.Quota, len(q.Flavors) > 0)
		for i := range q.Flavors {
			f := gang.Filter{All: q.Flavors[i].All, Tolerations: q.Flavors[i].Tolerations}
			if len(f.All) > 0 && !l.matches(&f) {
				l.add("error", "queue "+q.Quota.Name, "flavor %s selects nodes by %s, and none has that", q.Flavors[i].Name, requirements(f.All))
			}
		}
		if q.Closed && len(w.s.Order(q.Quota.Name, w.now)) > 0 {
			l.add("warning", "queue "+q.Quota.Name, "it is closed, and %s in it", plural(len(w.s.Order(q.Quota.Name, w.now)), "job waits", "jobs wait"))
		}
	}
	l.selectors()
	slices.SortStableFunc(l.out, func(a, b Finding) int { return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Object, b.Object)) })
	return l.out
}

type linter struct {
	w   *World
	out []Finding
}

func (l *linter) add(level, object, format string, args ...any) {
	l.out = append(l.out, Finding{level, object, fmt.Sprintf(format, args...)})
}

func (l *linter) matches(f *gang.Filter) bool {
	return slices.ContainsFunc(l.w.im.Nodes, func(n *gang.Node) bool {
		_, ok := n.Passes(f)
		return ok
	})
}

func requirements(list []gang.Requirement) string {
	text := ""
	for i, r := range list {
		if i > 0 {
			text += ", "
		}
		text += r.String()
	}
	return text
}

// capacity compares what all queues own with what there is.
func (l *linter) capacity() {
	tree := l.w.s.Ledger().Tree()
	total := l.w.s.Inventory().Total()
	owned := quota.Resources{}
	for _, c := range tree.Children(quota.Root) {
		owned.Add(tree.Nominal(c))
	}
	for d, v := range owned {
		if have := total.At(d); v > have && have > 0 {
			name := l.w.s.Space.Name(d)
			l.add("warning", "cluster", "queues own %s together, the nodes offer %s", amount(name, v), admission.Quantity(name, have))
		}
	}
}

func (l *linter) queue(q quota.Queue, byFlavor bool) {
	object := "queue " + q.Name
	if q.Weight <= 0 {
		l.add("warning", object, "its weight is 0: it borrows only what nobody else wants")
	}
	space := l.w.s.Space
	for _, d := range slices.Sorted(maps.Keys(q.Max)) {
		if own, named := q.Nominal[d]; named && own > q.Max[d] {
			l.add("error", object, "it owns %s and may use at most %s", amount(space.Name(d), own), admission.Quantity(space.Name(d), q.Max[d]))
		}
	}
	for _, d := range slices.Sorted(maps.Keys(q.Lendable)) {
		if q.Lendable[d] > q.Nominal[d] && q.Nominal != nil {
			l.add("warning", object, "it lends up to %s and owns %s", amount(space.Name(d), q.Lendable[d]), admission.Quantity(space.Name(d), q.Nominal[d]))
		}
	}
	for _, d := range slices.Sorted(maps.Keys(q.Nominal)) {
		if !byFlavor && d > quota.Pods && q.Nominal[d] > 0 && l.w.s.Inventory().Total().At(d) == 0 {
			l.add("warning", object, "it owns %s, which no node offers", amount(space.Name(d), q.Nominal[d]))
		}
	}
}

// selectors finds jobs that wait for labels that no node has.
func (l *linter) selectors() {
	seen := map[string]bool{}
	for i := range l.w.im.Workloads {
		m := &l.w.im.Workloads[i]
		if m.Phase != admission.Waiting {
			continue
		}
		for _, ps := range m.Workload.Spec.PodSets {
			f := gang.Filter{All: ps.Filter.All, Any: ps.Filter.Any, Tolerations: []gang.Toleration{{Exists: true}}}
			text := fmt.Sprintf("its selector %s matches no node", requirements(ps.Filter.All))
			if (len(f.All) > 0 || f.Any != nil) && !l.matches(&f) && !seen[m.Name] {
				seen[m.Name] = true
				l.add("error", "job "+m.Name, "%s", text)
			}
		}
	}
}

// LintTable is Lint as a table.
func (w *World) LintTable() Table {
	list := w.Lint()
	t := Table{Kind: "finding", Items: list, Columns: columns("LEVEL", "OBJECT", "FINDING")}
	for _, f := range list {
		t.Rows = append(t.Rows, Row{Name: f.Object, Cells: []string{f.Level, f.Object, f.Text}})
	}
	return t
}
