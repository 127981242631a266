package admission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// TestCycle runs the stories in testdata. Each command changes a small world or
// runs cycles in it; Check runs after every command.
//
//	nodes    NAME [count=N] [gpu=N] [cpu=N] [label=K=V].. [taint=K=V:E].. [cordoned] [lost]
//	queues   NAME [parent=Q] [weight=N] [nominal=R:N,..] [max=..] [lendable=..] [priority=N]
//	         [strict] [within=..] [reclaim=..] [sheltered] [closed] [turns] [usermax=..]
//	submit   NAME queue=Q [pods=N] [min=N] [gpu=N] [cpu=N] [priority=N] [limit=D] [pinned] [held] [user=U] [maxrun=D]
//	         [need=K=V] [level=K] [prefer=K]
//	         with further pod sets as lines "  + SET pods=N gpu=N .."
//	cycle    runs cycles until nothing acts; prints what they decided and who waits why
//	remember lets past use join the shares, with a half-life: remember 24h
//	policy   [shortest-first] [reservations=N] changes the policy
//	at       sets the clock: at 90s
//	stop     lets the pods of evicted gangs be gone: of all, or of those named
//	end      NAME.. finishes gangs
//	lose     NAME NODE fails the gang's pods there; their replacements are gated
//	foreign  NAME NODE [gpu=N] puts a pod that nobody manages on a node
//	crash    loses what the controller alone remembers
//	gone     node|queue|workload|pod NAME
//	show     draws queues and nodes
func TestCycle(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.Contains(path, "rapid") {
			t.Skip("what a property failed on, not a story")
		}
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out := w.run(t, d)
			for _, bad := range w.s.Check() {
				t.Errorf("%s: %s", d.Pos, bad)
			}
			if out == "" {
				out = "ok\n"
			}
			return out
		})
	})
}

type world struct {
	s       *State
	now     time.Time
	seq     int
	version uint64
	objects map[string]*WorkloadSeen
}

func newWorld() *world {
	return &world{s: NewState(DefaultConfig()), now: time.Unix(0, 0).UTC(), objects: map[string]*WorkloadSeen{}}
}

func (w *world) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "nodes":
		for _, l := range lines(d.Input) {
			w.node(t, l)
		}
	case "queues":
		for _, l := range lines(d.Input) {
			w.s.Apply(QueueSeen{w.queue(t, l)})
		}
		return strings.Join(w.s.Problems(), "\n")
	case "submit":
		w.submit(t, d.Input)
	case "remember":
		c := w.s.Config()
		c.HalfLife, _ = time.ParseDuration(d.CmdArgs[0].String())
		w.s.Apply(ConfigSeen{c})
	case "policy":
		w.policy(t, fields("- "+strings.Join(args(d), " ")))
	case "pass": // one cycle alone, with how many are told a reason
		d := Cycle(w.s, w.now)
		w.s.Apply(Assumed{d})
		w.carry(&d)
		return strings.Join(append(tell(&d), fmt.Sprintf("%d told\n", len(d.Verdicts))), "\n")
	case "cycle":
		return w.cycle(t)
	case "at":
		at, err := time.ParseDuration(d.CmdArgs[0].String())
		if err != nil {
			t.Fatal(err)
		}
		w.now = time.Unix(0, 0).UTC().Add(at)
	case "stop":
		w.stop(args(d))
	case "end":
		for _, a := range d.CmdArgs {
			w.end(a.String())
		}
	case "lose":
		w.lose(d.CmdArgs[0].String(), d.CmdArgs[1].String())
	case "foreign":
		l := fields(strings.Join(args(d)[2:], " "))
		w.s.Apply(PodSeen{Pod: Pod{UID: d.CmdArgs[0].String(), Key: d.CmdArgs[0].String(), Node: d.CmdArgs[1].String(), Phase: PodPlaced, Request: w.request(t, l)}})
	case "gone":
		switch name := d.CmdArgs[1].String(); d.CmdArgs[0].String() {
		case "pod":
			w.s.Apply(PodGone{name})
		case "node":
			w.s.Apply(NodeGone{name})
		case "queue":
			w.s.Apply(QueueGone{name})
		case "workload":
			w.s.Apply(WorkloadGone{name})
		}
	case "show":
		return w.show()
	case "crash":
		im := w.s.Image()
		im.Nominees = nil // all else is read from the cluster again
		w.s = NewStateOf(im)
	default:
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
	return ""
}

func (w *world) policy(t *testing.T, l line) {
	c := w.s.Config()
	for _, o := range l.opts {
		switch o[0] {
		case "shortest-first":
			c.ShortestFirst = true
		case "most":
			c.MostActs = int(number(t, o[1]))
		case "reservations":
			c.Reservations = int(number(t, o[1]))
		default:
			t.Fatalf("policy: unknown option %s", o[0])
		}
	}
	w.s.Apply(ConfigSeen{c})
}

func args(d *datadriven.TestData) []string {
	var out []string
	for _, a := range d.CmdArgs {
		out = append(out, a.String())
	}
	return out
}

// line is one line of input: its first word, and its options in order.
type line struct {
	name string
	opts [][2]string
}

func lines(input string) []line {
	var out []line
	for _, l := range strings.Split(input, "\n") {
		if strings.TrimSpace(l) != "" {
			out = append(out, fields(l))
		}
	}
	return out
}

func fields(l string) line {
	var out line
	for i, f := range strings.Fields(l) {
		if i == 0 && !strings.Contains(f, "=") {
			out.name = f
			continue
		}
		k, v, _ := strings.Cut(f, "=")
		out.opts = append(out.opts, [2]string{k, v})
	}
	return out
}

func number(t *testing.T, v string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		t.Fatalf("%q is not a number", v)
	}
	return n
}

// dimension maps the short names of the stories to resources.
func (w *world) dimension(name string) int {
	if name == "gpu" {
		name = "nvidia.com/gpu"
	}
	if flavor, ok := strings.CutSuffix(name, "/gpu"); ok && flavor != "nvidia.com" {
		name = flavor + ":nvidia.com/gpu"
	}
	return w.s.Space.Index(name)
}

func (w *world) amounts(t *testing.T, v string) map[int]int64 {
	out := map[int]int64{}
	for _, part := range strings.Split(v, ",") {
		if k, n, ok := strings.Cut(part, ":"); ok {
			amount := number(t, n)
			if k == "cpu" {
				amount *= 1000
			}
			out[w.dimension(k)] = amount
		}
	}
	return out
}

func (w *world) request(t *testing.T, l line) quota.Resources {
	r := quota.Resources{}
	r.Set(quota.Pods, 1)
	for _, o := range l.opts {
		switch o[0] {
		case "gpu":
			r.Set(w.dimension("gpu"), number(t, o[1]))
		case "cpu":
			r.Set(quota.CPU, 1000*number(t, o[1]))
		}
	}
	return r
}

func (w *world) node(t *testing.T, l line) {
	count := 1
	n := gang.Node{Labels: map[string]string{}, Offer: quota.Resources{1000 * 1000, 1 << 43, 1000}}
	for _, o := range l.opts {
		switch o[0] {
		case "count":
			count = int(number(t, o[1]))
		case "gpu":
			n.Offer.Set(w.dimension("gpu"), number(t, o[1]))
		case "cpu":
			n.Offer.Set(quota.CPU, 1000*number(t, o[1]))
		case "label":
			k, v, _ := strings.Cut(o[1], "=")
			n.Labels[k] = v
		case "taint":
			kv, e, _ := strings.Cut(o[1], ":")
			k, v, _ := strings.Cut(kv, "=")
			n.Taints = append(n.Taints, gang.Taint{Key: k, Value: v, Effect: gang.Effect(e)})
		case "cordoned":
			n.Outages = append(n.Outages, gang.Outage{What: "cordoned", Closed: true})
		case "lost":
			n.Outages = append(n.Outages, gang.Outage{What: gang.NotReady, Closed: true})
		default:
			t.Fatalf("node %s: unknown option %s", l.name, o[0])
		}
	}
	for i := range count {
		c := n
		c.Name = l.name
		if count > 1 {
			c.Name = fmt.Sprintf("%s-%d", l.name, i)
		}
		c.Labels = map[string]string{"host": c.Name}
		for k, v := range n.Labels {
			c.Labels[k] = v
		}
		w.s.Apply(NodeSeen{&c})
	}
}

func (w *world) queue(t *testing.T, l line) *queue.Queue {
	q := &queue.Queue{Quota: quota.Queue{Name: l.name, Weight: 1}, Within: queue.WithinLower, Reclaim: queue.ReclaimAny}
	for _, o := range l.opts {
		switch o[0] {
		case "parent":
			q.Quota.Parent = o[1]
		case "weight":
			q.Quota.Weight = number(t, o[1])
		case "nominal":
			q.Quota.Nominal = w.amounts(t, o[1])
		case "max":
			q.Quota.Max = w.amounts(t, o[1])
		case "lendable":
			q.Quota.Lendable = w.amounts(t, o[1])
		case "priority":
			q.Priority = number(t, o[1])
		case "strict":
			q.Strict = true
		case "within":
			q.Within = queue.Within(o[1])
		case "reclaim":
			q.Reclaim = queue.Reclaim(o[1])
		case "sheltered":
			q.Sheltered = true
		case "turns":
			q.Turns = true
		case "usermax":
			q.UserMax = w.amounts(t, o[1])
		case "closed":
			q.Closed = true
		case "flavors": // pools of nodes by their label kind; amounts name its cards FLAVOR/gpu
			gpu := w.dimension("gpu")
			for name := range strings.SplitSeq(o[1], ",") {
				q.Flavors = append(q.Flavors, queue.Flavor{
					Name: name, All: []gang.Requirement{{Key: "kind", Op: gang.In, Values: []string{name}}},
					Dims: map[int]int{gpu: w.dimension(name + "/gpu")},
				})
			}
		case "borrow-first":
			q.BorrowFirst = true
		case "preempt-first":
			q.PreemptFirst = true
		default:
			t.Fatalf("queue %s: unknown option %s", l.name, o[0])
		}
	}
	return q
}

func (w *world) submit(t *testing.T, input string) {
	var current *queue.Workload
	done := func() {
		if current != nil {
			w.seq++
			w.version++
			current.UID = fmt.Sprintf("%06d", w.seq)
			current.Queued = w.now
			e := &WorkloadSeen{Workload: current, Version: w.version}
			if old := w.objects[current.Key]; old != nil {
				current.UID, current.Queued = old.Workload.UID, old.Workload.Queued
				e.Admission = old.Admission
			}
			w.objects[current.Key] = e
			w.s.Apply(*e)
		}
	}
	for _, l := range lines(input) {
		if l.name == "+" {
			name := l.opts[0][0]
			l.opts = l.opts[1:]
			current.Spec.PodSets = append(current.Spec.PodSets, w.podSet(t, name, l))
			continue
		}
		done()
		current = &queue.Workload{Key: l.name}
		for _, o := range l.opts {
			switch o[0] {
			case "queue":
				current.Queue = o[1]
			case "priority":
				current.Priority = number(t, o[1])
			case "limit":
				current.Limit, _ = time.ParseDuration(o[1])
			case "user":
				current.User = o[1]
			case "maxrun":
				current.MaxRun, _ = time.ParseDuration(o[1])
			case "pinned":
				current.Pinned = true
			case "held":
				current.Held = true
			case "level":
				current.Spec.Level = gang.Level{Key: o[1], Required: true}
			case "prefer":
				current.Spec.Level = gang.Level{Key: o[1]}
			}
		}
		if slices.ContainsFunc(l.opts, func(o [2]string) bool { return o[0] == "pods" }) {
			current.Spec.PodSets = append(current.Spec.PodSets, w.podSet(t, "main", l))
		}
	}
	done()
}

func (w *world) podSet(t *testing.T, name string, l line) gang.PodSet {
	ps := gang.PodSet{Name: name, Request: w.request(t, l), Min: -1}
	for _, o := range l.opts {
		switch o[0] {
		case "pods":
			ps.Count = int(number(t, o[1]))
		case "min":
			ps.Min = int(number(t, o[1]))
		case "need":
			k, v, _ := strings.Cut(o[1], "=")
			ps.Filter.All = append(ps.Filter.All, gang.Requirement{Key: k, Op: gang.In, Values: []string{v}})
		case "tolerate":
			ps.Filter.Tolerations = append(ps.Filter.Tolerations, gang.Toleration{Key: o[1], Exists: true})
		}
	}
	if ps.Min < 0 {
		ps.Min = ps.Count
	}
	return ps
}

// cycle runs cycles until none acts any more and tells what they decided.
func (w *world) cycle(t *testing.T) string {
	var b strings.Builder
	var kept []string
	for range 20 {
		before := w.dump()
		d := Cycle(w.s, w.now)
		if after := w.dump(); before != after {
			t.Errorf("a cycle changed the state:\n%s\nbecame\n%s", before, after)
		}
		trial := Trial(w.s, w.now)
		if got, want := deeds(&trial), deeds(&d); got != want {
			t.Errorf("a trial decides\n%s\nthe cycle\n%s", got, want)
		}
		for _, line := range tell(&d) {
			b.WriteString(line + "\n")
		}
		kept = keeps(&d)
		w.s.Apply(Assumed{d})
		w.carry(&d)
		if !d.Acts() {
			break
		}
	}
	for _, line := range kept {
		b.WriteString(line + "\n")
	}
	for _, key := range sortedKeys(w.s.records) {
		r := w.s.records[key]
		if r.phase == Waiting && !r.deleted {
			fmt.Fprintf(&b, "hold  %s  %s\n", r.w.Key, r.told)
		}
	}
	return b.String()
}

// deeds are all of a decision but what it tells people and what it learned.
func deeds(d *Decision) string {
	return fmt.Sprintf("admit %v\nmove %v\nevict %v\nrelease %v\nfinish %v\nmarks %v\nnominees %v\nreserve %v, not %d\npast %v\n",
		d.Admit, d.Move, d.Evict, d.Release, d.Finish, d.Marks, d.Nominees, d.Reservations, d.Unreserved, d.Past)
}

func tell(d *Decision) []string {
	var out []string
	for _, e := range d.Evict {
		whom := ""
		if e.For != "" {
			whom = " for " + e.For
		}
		out = append(out, fmt.Sprintf("evict %s  %s%s", e.Key, e.Cause, whom))
	}
	for _, a := range d.Admit {
		out = append(out, fmt.Sprintf("admit %s  %s", a.Key, a.Plan))
	}
	for _, a := range d.Move {
		out = append(out, fmt.Sprintf("move  %s  %s", a.Key, a.Plan))
	}
	for _, k := range d.Finish {
		out = append(out, "done  "+k)
	}
	return out
}

// keeps tells the reservations of a cycle; they are drawn anew in each.
func keeps(d *Decision) []string {
	var out []string
	for _, r := range d.Reservations {
		at := "as nodes free up"
		if !r.Start.IsZero() {
			at = "at " + r.Start.Sub(time.Unix(0, 0)).String()
		}
		out = append(out, fmt.Sprintf("keep  %s  %s %s", r.Key, r.Plan, at))
	}
	return out
}

// carry plays the cluster: every write works, pods run as soon as they are released.
func (w *world) carry(d *Decision) {
	for _, a := range slices.Concat(d.Admit, d.Move) {
		a := a
		w.see(a.Key, func(e *WorkloadSeen) { e.Admission = &a })
		w.trim(a)
		w.makePods(a)
	}
	for _, key := range d.Finish {
		w.see(key, func(e *WorkloadSeen) { e.Finished = true })
	}
	for _, e := range d.Evict {
		w.see(e.Key, func(x *WorkloadSeen) {
			x.Admission, x.Workload.Held = nil, x.Workload.Held || e.Cause == Expired
			x.StopsFor = Claimant{e.For, e.ForUID}
		})
		for _, p := range w.podsOf(e.Key) {
			p.Stopping = true
			p.Version++
			w.s.Apply(PodSeen{Pod: p})
		}
	}
}

func (w *world) see(key string, change func(*WorkloadSeen)) {
	e := w.objects[key]
	w.version++
	e.Version = w.version
	c := *e.Workload
	e.Workload = &c
	change(e)
	w.s.Apply(*e)
}

// trim stops the pods of a gang that its plan has no place for any more.
func (w *world) trim(a Admission) {
	for _, set := range a.Plan.Sets {
		left := map[string]int{}
		for _, slot := range set.Slots {
			left[slot.Node] = slot.Count
		}
		for _, p := range w.podsOf(a.Key) {
			if p.Set != set.Name || p.Node == "" || p.Phase != PodPlaced || p.Stopping {
				continue
			}
			if left[p.Node]--; left[p.Node] < 0 {
				p.Stopping = true
				p.Version++
				w.s.Apply(PodSeen{Pod: p})
			}
		}
	}
}

// makePods lets the job controller keep as many pods as the plan has places.
func (w *world) makePods(a Admission) {
	for _, set := range a.Plan.Sets {
		want := 0
		for _, slot := range set.Slots {
			want += slot.Count
		}
		for _, p := range w.podsOf(a.Key) {
			if p.Set == set.Name && !p.Stopping && p.Phase != PodFailed {
				want--
			}
		}
		for range want {
			w.seq++
			w.s.Apply(PodSeen{Pod: Pod{UID: fmt.Sprintf("%s-%06d", a.Key, w.seq), Key: fmt.Sprintf("%s-%06d", a.Key, w.seq), Version: 1, Workload: a.Key, Set: set.Name}})
		}
	}
}

func (w *world) podsOf(key string) []Pod {
	var list []Pod
	for _, p := range w.s.pods {
		if p.Workload == key {
			list = append(list, p.Pod)
		}
	}
	slices.SortFunc(list, func(a, b Pod) int { return strings.Compare(a.UID, b.UID) })
	return list
}

func (w *world) stop(only []string) {
	for _, key := range sortedKeys(w.objects) {
		if len(only) > 0 && !slices.Contains(only, key) {
			continue
		}
		for _, p := range w.podsOf(key) {
			if p.Stopping {
				w.s.Apply(PodGone{p.UID})
			}
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (w *world) end(key string) {
	for _, p := range w.podsOf(key) {
		p.Phase = PodSucceeded
		p.Version++
		w.s.Apply(PodSeen{Pod: p})
	}
	w.see(key, func(e *WorkloadSeen) { e.Finished = true })
}

func (w *world) lose(key, node string) {
	for _, p := range w.podsOf(key) {
		if p.Node == node {
			p.Phase = PodFailed
			p.Version++
			w.s.Apply(PodSeen{Pod: p})
			w.seq++
			w.s.Apply(PodSeen{Pod: Pod{UID: fmt.Sprintf("%s-%06d", key, w.seq), Key: fmt.Sprintf("%s-%06d", key, w.seq), Version: 1, Workload: key, Set: p.Set}})
		}
	}
}

// show draws the queues with what they use and own, and the nodes.
func (w *world) show() string {
	var b strings.Builder
	gpu := w.dimension("gpu")
	var draw func(id, depth int)
	draw = func(id, depth int) {
		if id != quota.Root {
			fmt.Fprintf(&b, "%-12s", strings.Repeat("  ", depth-1)+w.s.tree.Name(id))
			for _, d := range []int{quota.CPU, gpu} {
				if w.s.tree.Counts(d) {
					fmt.Fprintf(&b, " %s %s/%s", w.s.Space.Name(d), Quantity(w.s.Space.Name(d), w.s.ledger.Usage(id).At(d)), Quantity(w.s.Space.Name(d), w.s.tree.Nominal(id).At(d)))
				}
			}
			b.WriteByte('\n')
		}
		for _, c := range w.s.tree.Children(id) {
			draw(c, depth+1)
		}
	}
	w.s.settle()
	draw(quota.Root, 0)
	b.WriteString(w.s.inv.Draw(w.s.Space, gpu))
	return b.String()
}

// dump writes down all that a cycle could have changed.
func (w *world) dump() string {
	return w.show() + fmt.Sprint(w.s.Check())
}
