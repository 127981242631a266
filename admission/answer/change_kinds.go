package answer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

func (b *bench) resume(admission.Reason, []NodeGroup) *Change {
	if !b.m.Workload.Held {
		return nil
	}
	c := &Change{Kind: Resume, Text: "resume it", events: []admission.Event{b.seen(func(x *queue.Workload) { x.Held = false })}}
	return b.kept(c)
}

func (b *bench) kept(c *Change) *Change {
	if c != nil && b.holds(c) {
		return c
	}
	return nil
}

func (b *bench) openQueue(why admission.Reason, _ []NodeGroup) *Change {
	if why.Code != admission.QueueClosed {
		return nil
	}
	q := *b.w.queueOf(b.m.Workload.Queue)
	q.Closed = false
	return b.kept(&Change{Kind: OpenQueue, Queue: q.Quota.Name, Text: "open queue " + q.Quota.Name, events: []admission.Event{admission.QueueSeen{Queue: &q}}})
}

// nodesChanged bounds on how many nodes a change may be proposed.
const nodesChanged = 32

// byFree is the nodes of a group, the most free of its resource first.
func (b *bench) byFree(g *NodeGroup) []*gang.Node {
	dim, _ := b.w.s.Space.Lookup(g.Resource)
	inv := b.w.s.Inventory()
	names := slices.Clone(g.Nodes)
	slices.SortStableFunc(names, func(x, y string) int { return cmp.Compare(inv.Free(y).At(dim), inv.Free(x).At(dim)) })
	var nodes []*gang.Node
	for _, name := range names {
		if n := b.w.node(name); n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// node is the node as it was seen last, or nil.
func (w *World) node(name string) *gang.Node {
	for _, n := range w.im.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

func names(nodes []*gang.Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Name)
	}
	return out
}

// relabel gives nodes the label that the gang wants, on as few as will do.
func (b *bench) relabel(_ admission.Reason, groups []NodeGroup) *Change {
	for i := range groups {
		o := groups[i].objection
		if o == nil || o.Taint {
			continue
		}
		key, value, pair := strings.Cut(o.Wants, "=")
		if !pair || strings.HasSuffix(key, "!") || key == gang.NameField {
			continue
		}
		value, _, _ = strings.Cut(value, "|")
		nodes := b.byFree(&groups[i])
		c := b.fewest(len(nodes), nodesChanged, func(k int) *Change {
			list := names(nodes[:k])
			c := &Change{
				Kind: Relabel, Nodes: list, Label: key, Value: value, Text: fmt.Sprintf("set the label on %s", fold(list, 4)),
				Command: fmt.Sprintf("kubectl label node %s %s=%s --overwrite", strings.Join(list, " "), key, value),
			}
			for _, n := range nodes[:k] {
				was := *n
				was.Labels = maps.Clone(n.Labels)
				if was.Labels == nil {
					was.Labels = map[string]string{}
				}
				was.Labels[key] = value
				c.events = append(c.events, admission.NodeSeen{Node: &was})
			}
			return c
		})
		if c != nil {
			return c
		}
	}
	return nil
}

func (b *bench) uncordon(_ admission.Reason, groups []NodeGroup) *Change {
	for i := range groups {
		if o := groups[i].outage; o == nil || o.What != "cordoned" {
			continue
		}
		nodes := b.byFree(&groups[i])
		c := b.fewest(len(nodes), nodesChanged, func(k int) *Change {
			list := names(nodes[:k])
			c := &Change{Kind: Uncordon, Nodes: list, Text: "open " + fold(list, 4), Command: "kubectl uncordon " + strings.Join(list, " ")}
			for _, n := range nodes[:k] {
				open := *n
				open.Outages = slices.DeleteFunc(slices.Clone(n.Outages), func(o gang.Outage) bool { return o.What == "cordoned" })
				c.events = append(c.events, admission.NodeSeen{Node: &open})
			}
			return c
		})
		if c != nil {
			return c
		}
	}
	return nil
}

// tolerate lets the gang onto nodes whose taint keeps it out.
func (b *bench) tolerate(_ admission.Reason, groups []NodeGroup) *Change {
	for i := range groups {
		o := groups[i].objection
		if o == nil || !o.Taint {
			continue
		}
		left, effect, _ := cutLast(o.Wants, ":")
		key, value, _ := strings.Cut(left, "=")
		t := []gang.Toleration{{Key: key, Value: value, Effect: gang.Effect(effect)}}
		c := b.kept(&Change{Kind: Tolerate, Label: key, Value: value, Text: "submit with a toleration for " + o.Wants, events: []admission.Event{b.seen(func(x *queue.Workload) {
			x.Queued = b.w.now
			for i := range x.Spec.PodSets {
				x.Spec.PodSets[i].Filter = x.Spec.PodSets[i].Filter.With(nil, t)
			}
		})}})
		if c != nil {
			return c
		}
	}
	return nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// unselect drops the requirement that excludes the most that is free.
func (b *bench) unselect(_ admission.Reason, groups []NodeGroup) *Change {
	for i := range groups {
		o := groups[i].objection
		if o == nil || o.Taint {
			continue
		}
		asked := func(r gang.Requirement) bool { return r.String() == o.Wants }
		if !slices.ContainsFunc(b.m.Workload.Spec.PodSets, func(ps gang.PodSet) bool { return slices.ContainsFunc(ps.Filter.All, asked) }) {
			continue // its queue asks for it, or one of several terms
		}
		c := b.kept(&Change{Kind: Unselect, Label: o.Wants, Text: "submit without the selector " + o.Wants, events: []admission.Event{b.seen(func(x *queue.Workload) {
			x.Queued = b.w.now
			for i := range x.Spec.PodSets {
				f := &x.Spec.PodSets[i].Filter
				f.All = slices.DeleteFunc(slices.Clone(f.All), asked)
			}
		})}})
		if c != nil {
			return c
		}
	}
	return nil
}

// fewer makes the pod set with most pods as large as fits.
func (b *bench) fewer(admission.Reason, []NodeGroup) *Change {
	sets := b.m.Workload.Spec.PodSets
	least := b.m.Workload.LeastSizes()
	at := 0
	for i := range sets {
		if least[i] > least[at] {
			at = i
		}
	}
	if len(sets) == 0 || least[at] < 2 {
		return nil
	}
	with := func(n int) *Change {
		c := &Change{Kind: FewerPods, PodSet: sets[at].Name, Amount: int64(n)}
		of := ""
		if len(sets) > 1 {
			of = " of " + sets[at].Name
		}
		if elastic := sets[at].Min < sets[at].Count; elastic {
			c.Text = fmt.Sprintf("let it start with %s%s", plural(n, "pod", "pods"), of)
		} else {
			c.Text = fmt.Sprintf("submit with %s%s", plural(n, "pod", "pods"), of)
		}
		c.events = []admission.Event{b.seen(func(x *queue.Workload) {
			x.Queued = b.w.now
			ps := &x.Spec.PodSets[at]
			if ps.Min == ps.Count {
				ps.Count = n
			}
			ps.Min = n
			x.Spec.MinTotal = max(0, x.Spec.MinTotal-(least[at]-n))
		})}
		return c
	}
	if !b.passes(with(1).events) {
		return nil
	}
	lo, hi := 1, least[at]-1
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if b.passes(with(mid).events) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return b.kept(with(lo))
}

// shorter gives the gang a time limit with which it ends before the room it would
// take is needed for the one before it.
func (b *bench) shorter(why admission.Reason, _ []NodeGroup) *Change {
	limit := (why.Until.Sub(b.w.now) - time.Minute).Truncate(time.Minute) // it has that long to submit
	if why.Code != admission.Behind || why.Until.IsZero() || limit <= 0 {
		return nil
	}
	return b.kept(&Change{
		Kind: Shorter, Seconds: int64(limit.Seconds()), Text: "submit with a time limit of " + Age(limit),
		events: []admission.Event{b.seen(func(x *queue.Workload) {
			x.Queued = b.w.now
			x.Limit = limit
		})},
	})
}

// smaller asks for the next smaller slice of the same model.
func (b *bench) smaller(admission.Reason, []NodeGroup) *Change {
	sets := b.m.Workload.Spec.PodSets
	for _, k := range b.w.kinds() {
		_, profiles := gridParts(k.Grid)
		order := make([]int, 0, len(profiles))
		for i := range profiles {
			order = append(order, i)
		}
		slices.SortStableFunc(order, func(i, j int) int { return profiles[j].Size - profiles[i].Size })
		for i, dim := range k.Slices {
			if !slices.ContainsFunc(sets, func(ps gang.PodSet) bool { return ps.Request.At(dim) > 0 }) {
				continue
			}
			for _, j := range order {
				to := k.Slices[j]
				if profiles[j].Size >= profiles[i].Size || profiles[j].Sole != "" {
					continue
				}
				name := b.w.s.Space.Name(to)
				c := b.kept(&Change{
					Kind: Smaller, Resource: name, Text: fmt.Sprintf("submit with %s instead of %s", Short(name), Short(b.w.s.Space.Name(dim))),
					events: []admission.Event{b.seen(func(x *queue.Workload) {
						x.Queued = b.w.now
						for i := range x.Spec.PodSets {
							ps := &x.Spec.PodSets[i]
							if n := ps.Request.At(dim); n > 0 {
								ps.Request = ps.Request.Clone()
								ps.Request.Set(dim, 0)
								ps.Request.Set(to, n)
							}
						}
					})},
				})
				if c != nil {
					return c
				}
			}
		}
	}
	return nil
}

// smallerPods asks for as much of the device in each pod as fits.
func (b *bench) smallerPods(admission.Reason, []NodeGroup) *Change {
	dim := b.w.mainDim(&b.m.Workload.Spec)
	largest := int64(0)
	for _, ps := range b.m.Workload.Spec.PodSets {
		largest = max(largest, ps.Request.At(dim))
	}
	name := b.w.s.Space.Name(dim)
	with := func(n int64) *Change {
		return &Change{
			Kind: SmallerPods, Resource: name, Amount: n, Text: fmt.Sprintf("submit with at most %s a pod", amount(name, n)),
			events: []admission.Event{b.seen(func(x *queue.Workload) {
				x.Queued = b.w.now
				for i := range x.Spec.PodSets {
					ps := &x.Spec.PodSets[i]
					if ps.Request.At(dim) > n {
						ps.Request = ps.Request.Clone()
						ps.Request.Set(dim, n)
					}
				}
			})},
		}
	}
	unit := int64(1)
	if dim == quota.CPU {
		unit = 1000
	}
	if largest < 2*unit || largest >= quota.MostOfOne || !b.passes(with(unit).events) {
		return nil
	}
	lo, hi := int64(1), (largest-1)/unit
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if b.passes(with(mid * unit).events) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return b.kept(with(lo * unit))
}

// kinds are the kinds of cards that nodes have and that can be cut, by name.
func (w *World) kinds() []*gang.Kind {
	by := map[string]*gang.Kind{}
	for _, n := range w.im.Nodes {
		if n.Cards == nil {
			continue
		}
		for i := range n.Cards.Cards {
			if k := n.Cards.Cards[i].Kind; k != nil && k.Grid != nil {
				by[k.Name] = k
			}
		}
	}
	var out []*gang.Kind
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[name])
	}
	return out
}

// singlesTried bounds how many gangs are tried as the one to wait for.
const singlesTried = 8

// wait looks for the one gang whose end admits it, or else the first so many of
// those that end by their own limit.
func (b *bench) wait(admission.Reason, []NodeGroup) *Change {
	running := b.holders()
	tried := 0
	for _, m := range running {
		if tried == singlesTried || b.left == 0 {
			break
		}
		if b.roomAfter(m) {
			tried++
			if c := b.kept(b.after([]*admission.Remembered{m})); c != nil {
				return c
			}
		}
	}
	limited := slices.DeleteFunc(running, func(m *admission.Remembered) bool { return b.w.ends(m).IsZero() })
	k := sort.Search(len(limited), func(k int) bool { return b.roomAfter(limited[:k+1]...) })
	if k == len(limited) || k == 0 || k > manyEnd {
		return nil
	}
	return b.kept(b.after(limited[:k+1]))
}

// manyEnd bounds how many gangs one is told to wait for.
const manyEnd = 200

// roomAfter says whether the gang would have quota and places if these were gone.
// It is a first look, to save trials; it asks the same books as a cycle does.
func (b *bench) roomAfter(gone ...*admission.Remembered) bool {
	inv, ledger := b.alone.Inventory(), b.alone.Ledger()
	places, charges := inv.Mark(), ledger.Mark()
	defer func() {
		inv.Undo(places)
		ledger.Undo(charges)
	}()
	for _, m := range gone {
		v, ok := b.alone.View(m.Name)
		if !ok {
			return false
		}
		for i, set := range m.Admission.Plan.Sets {
			for _, slot := range set.Slots {
				amount := m.Workload.Spec.PodSets[i].Load().Times(slot.Count)
				if amount.Within(inv.Used(slot.Node)) {
					inv.Give(slot.Node, amount)
				}
			}
		}
		if id, known := ledger.Tree().ID(m.ChargedTo); known && v.Charge.Within(ledger.Own(id)) {
			ledger.Release(id, v.Charge)
		}
	}
	x := b.m.Workload
	leaf, known := ledger.Tree().ID(x.Queue)
	if !known {
		return false
	}
	for _, f := range b.w.choices(x) {
		if _, fits := ledger.Fits(leaf, f.Charge(x.Least())); fits && gang.Fits(inv, f.Spec(&x.Spec), x.LeastSizes()) {
			return true
		}
	}
	return false
}

// holders are the running gangs that hold something of what is asked, the soonest
// end first, those without a limit last and smallest first.
func (b *bench) holders() []*admission.Remembered {
	asks := b.m.Workload.Least()
	var list []*admission.Remembered
	for i := range b.w.im.Workloads {
		m := &b.w.im.Workloads[i]
		if m.Phase != admission.Admitted || m.Gone {
			continue
		}
		for d, v := range m.Workload.Least() {
			if v > 0 && asks.At(d) > 0 && (d > quota.Pods || device(asks) == quota.CPU) {
				list = append(list, m)
				break
			}
		}
	}
	size := func(m *admission.Remembered) int64 { return m.Workload.Least().At(b.w.mainDim(&b.m.Workload.Spec)) }
	slices.SortStableFunc(list, func(x, y *admission.Remembered) int {
		ex, ey := b.w.ends(x), b.w.ends(y)
		switch {
		case ex.IsZero() != ey.IsZero():
			if ex.IsZero() {
				return 1
			}
			return -1
		case !ex.Equal(ey):
			return ex.Compare(ey)
		default:
			return cmp.Compare(size(x), size(y))
		}
	})
	return list
}

// ends is when the gang ends by its own limit, or zero.
func (w *World) ends(m *admission.Remembered) (at time.Time) {
	if m.Workload.Limit == 0 || m.Admission == nil {
		return at
	}
	return m.Admission.At.Add(m.Workload.Limit)
}

func (b *bench) after(list []*admission.Remembered) *Change {
	c := &Change{Kind: Wait}
	var last time.Time
	for _, m := range list {
		c.Jobs = append(c.Jobs, m.Name)
		b.version++
		x := *m.Workload
		x.Spec.PodSets = slices.Clone(x.Spec.PodSets)
		c.events = append(c.events, admission.WorkloadSeen{Workload: &x, Version: b.version, Fresh: true, Finished: true})
		for _, p := range m.Pods {
			c.events = append(c.events, admission.PodGone{UID: p.UID})
		}
		if at := b.w.ends(m); at.After(last) {
			last = at
		}
	}
	c.At = optional(last)
	when := "it has no time limit"
	if !last.IsZero() {
		when = "ends by " + clock(last, b.w.now)
	}
	if len(list) == 1 {
		c.Text = fmt.Sprintf("wait for %s on %s (%s)", list[0].Name, b.w.where(list[0]), when)
	} else {
		c.Text = fmt.Sprintf("wait for %d jobs that end by %s, the last is %s", len(list), clock(last, b.w.now), list[len(list)-1].Name)
	}
	return c
}

// raise gives the queue the bound or the nominal that is missing.
func (b *bench) raise(why admission.Reason, _ []NodeGroup) *Change {
	bound := why.Bound
	if bound == nil || bound.User != "" || bound.Pinned || bound.Asked >= quota.MostOfOne {
		return nil
	}
	dim, known := b.w.s.Space.Lookup(bound.Resource)
	if !known {
		return nil
	}
	missing := quota.Sum(bound.Used, bound.Asked) - bound.Limit
	if why.Code == admission.NeverFits {
		missing = bound.Asked - bound.Limit
	}
	if !bound.Borrow {
		q := b.w.queueOf(bound.Queue)
		if q == nil {
			return nil
		}
		return b.kept(b.raised(q, RaiseLimit, dim, bound.Limit+missing, missing))
	}
	q := b.w.queueOf(b.m.Workload.Queue)
	if q == nil || q.Quota.Nominal == nil {
		return nil
	}
	own := q.Quota.Nominal[dim]
	leaf, _ := b.w.s.Ledger().Tree().ID(q.Quota.Name)
	lacks := quota.Sum(b.w.s.Ledger().Usage(leaf).At(dim), bound.Asked) - own
	return b.kept(b.raised(q, RaiseOwn, dim, own+lacks, lacks))
}

func (b *bench) raised(was *queue.Queue, kind ChangeKind, dim int, to, more int64) *Change {
	q := *was
	name := b.w.s.Space.Name(dim)
	c := &Change{Kind: kind, Queue: q.Quota.Name, Resource: name, Amount: to}
	switch kind {
	case RaiseLimit:
		q.Quota.Max = maps.Clone(q.Quota.Max)
		q.Quota.Max[dim] = to
		c.Text = fmt.Sprintf("raise the limit of queue %s by %s to %s", q.Quota.Name, admission.Quantity(name, more), amount(name, to))
	default:
		q.Quota.Nominal = maps.Clone(q.Quota.Nominal)
		q.Quota.Nominal[dim] = to
		c.Text = fmt.Sprintf("let queue %s own %s more, %s", q.Quota.Name, admission.Quantity(name, more), amount(name, to))
	}
	c.events = []admission.Event{admission.QueueSeen{Queue: &q}}
	return c
}
