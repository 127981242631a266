package answer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// NodeState is one node in a list.
type NodeState struct {
	Name    string            `json:"name"`
	State   string            `json:"state"` // ready, or what is out of use
	Model   string            `json:"model,omitempty"`
	Cards   int               `json:"cards"`
	Mode    string            `json:"mode,omitempty"` // whole, mig, shared or mixed
	Offer   Amounts           `json:"offer"`
	Used    Amounts           `json:"used"`
	Free    Amounts           `json:"free"`
	Largest string            `json:"largest,omitempty"` // slice or number of cards that one pod could have now
	Drift   []Drift           `json:"drift,omitempty"`
	Outages []Outage          `json:"outages,omitempty"`
	Taints  []string          `json:"taints,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Jobs    []string          `json:"jobs,omitempty"`
}

// devices is the part of r that people look at on nodes: all but cpu, memory and
// the count of pods; these if there is nothing else.
func (w *World) devices(r quota.Resources) Amounts {
	a := Amounts{}
	for d := quota.Pods + 1; d < len(r); d++ {
		if r[d] != 0 {
			a[w.s.Space.Name(d)] = r[d]
		}
	}
	if len(a) == 0 && r.At(quota.CPU) > 0 {
		a["cpu"] = r.At(quota.CPU)
	}
	return a
}

func (a Amounts) text() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(a)) {
		parts = append(parts, amount(name, a[name]))
	}
	return dash(strings.Join(parts, " "))
}

// Nodes lists the nodes in their order.
func (w *World) Nodes() []NodeState {
	jobs := map[string][]string{}
	for i := range w.im.Workloads {
		m := &w.im.Workloads[i]
		for _, n := range w.holdings(m) {
			jobs[n] = append(jobs[n], m.Name)
		}
	}
	inv := w.s.Inventory()
	var out []NodeState
	for _, name := range inv.Names() {
		n := inv.Node(name)
		if n == nil {
			out = append(out, NodeState{Name: name, State: "gone", Offer: Amounts{}, Used: w.devices(inv.Used(name)), Free: Amounts{}, Jobs: jobs[name]})
			continue
		}
		s := NodeState{
			Name: name, State: "ready", Offer: w.devices(n.Offer), Used: w.devices(inv.Used(name)), Free: w.devices(inv.Free(name)),
			Labels: n.Labels, Jobs: jobs[name], Drift: w.driftOf(n),
		}
		var whats []string
		for _, o := range n.Outages {
			s.Outages = append(s.Outages, Outage(o))
			whats = append(whats, o.What)
		}
		if len(whats) > 0 {
			s.State = strings.Join(slices.Compact(whats), ",")
		}
		for _, t := range n.Taints {
			s.Taints = append(s.Taints, t.String())
		}
		s.Model, s.Cards, s.Mode = w.hardware(n)
		s.Largest = w.largest(n)
		out = append(out, s)
	}
	return out
}

// holdings are the nodes on which a gang has places or pods, each once.
func (w *World) holdings(m *admission.Remembered) []string {
	has := map[string]bool{}
	if m.Admission != nil {
		for _, n := range m.Admission.Plan.Nodes() {
			has[n] = true
		}
	}
	for _, p := range m.Pods {
		if p.Node != "" && p.Phase == admission.PodPlaced {
			has[p.Node] = true
		}
	}
	return slices.Sorted(maps.Keys(has))
}

func (w *World) hardware(n *gang.Node) (model string, cards int, mode string) {
	if n.Cards == nil {
		model = n.Labels["nvidia.com/gpu.product"]
		for name, v := range w.devices(n.Offer) {
			if name != "cpu" {
				cards += int(v)
			}
		}
		return model, cards, ""
	}
	modes := map[string]bool{}
	for _, c := range n.Cards.Cards {
		if c.Kind != nil {
			model = c.Kind.Name
		}
		switch {
		case c.Cut:
			modes["mig"] = true
		case c.Replicas > 1:
			modes["shared"] = true
		default:
			modes["whole"] = true
		}
	}
	all := slices.Sorted(maps.Keys(modes))
	mode = strings.Join(all, "+")
	return model, len(n.Cards.Cards), mode
}

// largest is the largest slice that is free, or how many whole cards.
func (w *World) largest(n *gang.Node) string {
	free := w.s.Inventory().Free(n.Name)
	if n.Cards == nil {
		return ""
	}
	if v := free.At(n.Cards.Whole); v > 0 {
		return amount(w.s.Space.Name(n.Cards.Whole), v)
	}
	best, size := "", 0
	for _, c := range n.Cards.Cards {
		if c.Kind == nil {
			continue
		}
		_, profiles := gridParts(c.Kind.Grid)
		for i, d := range c.Kind.Slices {
			if free.At(d) > 0 && profiles[i].Size > size {
				best, size = Short(w.s.Space.Name(d)), profiles[i].Size
			}
		}
	}
	return best
}

// NodesTable is Nodes as a table.
func (w *World) NodesTable() Table {
	list := w.Nodes()
	t := Table{Kind: "node", Items: list, Columns: columns("NODE", "STATE", "MODEL", ">GPU", "MODE", "USED", "FREE", "LARGEST", "LABELS", "+JOBS", "+TAINTS", "+OFFER")}
	for _, n := range list {
		labels := "ok"
		if len(n.Drift) > 0 {
			labels = fmt.Sprintf("drift(%d)", len(n.Drift))
		}
		t.Rows = append(t.Rows, Row{Name: n.Name, Labels: n.Labels, Cells: []string{
			n.Name, n.State, dash(strings.TrimPrefix(n.Model, "NVIDIA-")), fmt.Sprint(n.Cards), dash(n.Mode), n.Used.text(), n.Free.text(), dash(n.Largest), labels,
			dash(strings.Join(n.Jobs, ",")), dash(strings.Join(n.Taints, ",")), n.Offer.text(),
		}})
	}
	return t
}

// Drift is one way in which what is said of a node and what it is differ.
type Drift struct {
	Node    string `json:"node"`
	What    string `json:"what"` // a label's key, or a word for hardware
	Says    string `json:"says,omitempty"`
	Is      string `json:"is"`
	Command string `json:"command,omitempty"` // mends it
}

// hardwareDrift are the outages that say that claims and cards differ.
var hardwareDrift = []string{gang.LostCard, gang.Recutting, gang.BrokenCut, gang.Misreported, gang.Silent, gang.Refusing}

// driftOf is what is known to differ. Where nobody has compared the node, its labels
// are compared with its cards here.
func (w *World) driftOf(n *gang.Node) []Drift {
	var out []Drift
	for _, d := range n.Drift {
		one := Drift{Node: n.Name, What: d.What, Says: d.Claimed, Is: d.Found}
		if d.About == gang.DriftLabels || d.About == gang.DriftReplicas || d.About == gang.DriftLayout && strings.Contains(d.What, "/") {
			one.Command = labelCommand(n.Name, d.What, d.Found)
		}
		out = append(out, one)
	}
	if len(out) > 0 {
		return out
	}
	for _, o := range n.Outages {
		if slices.Contains(hardwareDrift, o.What) {
			out = append(out, Drift{Node: n.Name, What: o.What, Is: cmp.Or(o.Detail, o.What)})
		}
	}
	if n.Cards == nil || n.Cards.Silent || len(n.Cards.Cards) == 0 {
		return out
	}
	want := w.expected(n.Cards)
	for _, key := range slices.Sorted(maps.Keys(want)) {
		has, ok := n.Labels[key]
		if has == want[key] {
			continue
		}
		if !ok {
			has = "no such label"
		}
		out = append(out, Drift{Node: n.Name, What: key, Says: has, Is: want[key], Command: labelCommand(n.Name, key, want[key])})
	}
	return out
}

func labelCommand(node, key, value string) string {
	if value == "" {
		return fmt.Sprintf("kubectl label node %s %s-", node, key)
	}
	return fmt.Sprintf("kubectl label node %s %s=%s --overwrite", node, key, value)
}

// expected are labels that the cards make true.
func (w *World) expected(d *gang.Deck) map[string]string {
	want := map[string]string{"nvidia.com/gpu.count": fmt.Sprint(len(d.Cards))}
	first := d.Cards[0]
	if first.Kind != nil && first.Kind.Name != "" {
		want["nvidia.com/gpu.product"] = first.Kind.Name
		if !first.Cut && first.Replicas > 1 {
			want["nvidia.com/gpu.product"] += "-SHARED"
		}
	}
	offers := quota.Resources{}
	for _, c := range d.Cards {
		offers.Add(c.Offer)
	}
	for dim, v := range offers {
		if name := w.s.Space.Name(dim); v > 0 && strings.HasPrefix(name, "nvidia.com/mig-") {
			want[name+".count"] = fmt.Sprint(v)
		}
	}
	return want
}

// Drifts are those of all nodes.
func (w *World) Drifts() []Drift {
	out := []Drift{}
	for _, n := range w.im.Nodes {
		out = append(out, w.driftOf(n)...)
	}
	return out
}

// DriftTable is Drifts as a table.
func (w *World) DriftTable() Table {
	list := w.Drifts()
	t := Table{Kind: "node", Items: list, Columns: columns("NODE", "WHAT", "SAYS", "IS", "COMMAND")}
	for _, d := range list {
		t.Rows = append(t.Rows, Row{Name: d.Node, Cells: []string{d.Node, d.What, dash(d.Says), d.Is, dash(d.Command)}})
	}
	return t
}

// CardMap is one card as its units.
type CardMap struct {
	Card     int    `json:"card"`
	Model    string `json:"model,omitempty"`
	Units    int    `json:"units,omitempty"`
	Spans    []Span `json:"spans,omitempty"`
	Holes    int    `json:"holes,omitempty"` // units that no slice covers
	Whole    bool   `json:"whole,omitempty"`
	Replicas int    `json:"replicas,omitempty"`
	Out      string `json:"out,omitempty"`
}

// Span is one slice of a card. Start is where it could lie: slices of one size may
// have changed places.
type Span struct {
	Profile string `json:"profile"`
	Start   int    `json:"start"`
	Size    int    `json:"size"`
}

// NodeMap is the cards of a node, and who has what of them. Which pod has which of
// several like slices is up to the device plugin.
type NodeMap struct {
	Node    string    `json:"node"`
	Cards   []CardMap `json:"cards"`
	Owners  []Owner   `json:"owners,omitempty"`
	Free    Amounts   `json:"free"`
	Largest string    `json:"largest,omitempty"`
	// Recut is the largest slice that an idle card could be cut into.
	Recut string `json:"recut,omitempty"`
}

// Owner has something of a node's cards.
type Owner struct {
	Job    string  `json:"job"`
	Queue  string  `json:"queue"`
	Amount Amounts `json:"amount"`
}

// Map draws the cards of these nodes, or of all that have any.
func (w *World) Map(nodes ...string) ([]NodeMap, error) {
	for _, n := range nodes {
		if w.node(n) == nil {
			return nil, NotFound{What: "node", Name: n}
		}
	}
	owners := w.owners()
	out := []NodeMap{}
	for _, name := range w.s.Inventory().Names() {
		n := w.s.Inventory().Node(name)
		if n == nil || n.Cards == nil || len(n.Cards.Cards) == 0 || len(nodes) > 0 && !slices.Contains(nodes, name) {
			continue
		}
		m := NodeMap{Node: name, Owners: owners[name], Free: w.devices(n.Devices(w.s.Inventory().Free(name))), Largest: w.largest(n)}
		for i := range n.Cards.Cards {
			m.Cards = append(m.Cards, cardMap(i, &n.Cards.Cards[i]))
		}
		m.Recut = w.recuttable(n)
		out = append(out, m)
	}
	return out, nil
}

func (w *World) owners() map[string][]Owner {
	out := map[string][]Owner{}
	for i := range w.im.Workloads {
		m := &w.im.Workloads[i]
		sum := map[string]quota.Resources{}
		counted := map[string]int{}
		add := func(node string, set, n int) {
			amount := sum[node]
			amount.Add(m.Workload.Spec.PodSets[set].Request.Times(n))
			sum[node] = amount
		}
		for _, p := range m.Pods {
			set := slices.IndexFunc(m.Workload.Spec.PodSets, func(ps gang.PodSet) bool { return ps.Name == p.Set })
			if p.Node != "" && p.Phase == admission.PodPlaced && set >= 0 {
				add(p.Node, set, 1)
				counted[fmt.Sprint(set, p.Node)]++
			}
		}
		if m.Admission != nil {
			for set, s := range m.Admission.Plan.Sets {
				for _, slot := range s.Slots {
					if n := slot.Count - counted[fmt.Sprint(set, slot.Node)]; n > 0 && m.Phase == admission.Admitted {
						add(slot.Node, set, n)
					}
				}
			}
		}
		for node, r := range sum {
			out[node] = append(out[node], Owner{Job: m.Name, Queue: m.Workload.Queue, Amount: w.devices(r)})
		}
	}
	return out
}

func cardMap(i int, c *gang.Card) CardMap {
	m := CardMap{Card: i, Out: c.Out, Whole: !c.Cut}
	if c.Replicas > 1 && !c.Cut {
		m.Replicas = c.Replicas
	}
	if c.Kind == nil {
		return m
	}
	m.Model = c.Kind.Name
	units, profiles := gridParts(c.Kind.Grid)
	m.Units = units
	if !c.Cut {
		return m
	}
	var list []int
	for k, d := range c.Kind.Slices {
		for range c.Offer.At(d) {
			list = append(list, k)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return profiles[b].Size - profiles[a].Size })
	m.Spans = spans(profiles, list, 0)
	m.Holes = units
	for _, s := range m.Spans {
		m.Holes -= s.Size
	}
	slices.SortFunc(m.Spans, func(a, b Span) int { return a.Start - b.Start })
	return m
}

// spans finds a start for each of the profiles, beside what is taken.
func spans(profiles []gang.Profile, list []int, taken uint64) []Span {
	if len(list) == 0 {
		return []Span{}
	}
	p := &profiles[list[0]]
	for _, at := range p.Starts {
		cover := (uint64(1)<<p.Size - 1) << at
		if taken&cover != 0 {
			continue
		}
		if rest := spans(profiles, list[1:], taken|cover); rest != nil {
			return append(rest, Span{p.Name, at, p.Size})
		}
	}
	return nil
}

// recuttable is the largest slice that some idle card of the node could be cut into.
func (w *World) recuttable(n *gang.Node) string {
	inv := w.s.Inventory()
	best, size := "", 0
	for i := range n.Cards.Cards {
		c := &n.Cards.Cards[i]
		if c.Kind == nil || c.Kind.Grid == nil || c.Out != "" {
			continue
		}
		idle := true
		for d, v := range c.Offer {
			idle = idle && (v == 0 || inv.Used(n.Name).At(d) == 0)
		}
		if !idle {
			continue
		}
		_, profiles := gridParts(c.Kind.Grid)
		for _, p := range profiles {
			if p.Size > size {
				best, size = p.Name, p.Size
			}
		}
	}
	return best
}

// unitWidth is how many columns a unit of a card is wide in a drawing.
const unitWidth = 5

// MapTable draws the map.
func (w *World) MapTable(nodes ...string) (Table, error) {
	list, err := w.Map(nodes...)
	if err != nil {
		return Table{}, err
	}
	t := Table{Kind: "node", Items: list, Columns: columns("CARD", "UNITS", "HOLES", "FREE", "LARGEST", "RECUT", "OWNERS")}
	for _, n := range list {
		var owners []string
		for _, o := range n.Owners {
			owners = append(owners, o.Job+" "+o.Amount.text())
		}
		for i, c := range n.Cards {
			holes := "-"
			if len(c.Spans) > 0 || c.Units > 0 && !c.Whole {
				holes = fmt.Sprint(c.Holes)
			}
			cells := []string{fmt.Sprintf("%s/%d", n.Node, c.Card), c.draw(), holes, "", "", "", ""}
			if i == 0 {
				cells[3], cells[4], cells[5], cells[6] = n.Free.text(), dash(n.Largest), dash(n.Recut), dash(strings.Join(owners, ", "))
			}
			t.Rows = append(t.Rows, Row{Name: n.Node, Cells: cells})
		}
	}
	t.Notes = []string{"FREE, LARGEST, RECUT and OWNERS are of the node: the device plugin deals like slices as it likes"}
	return t, nil
}

// draw is the card's units, slice by slice; holes are dots.
func (c *CardMap) draw() string {
	switch {
	case c.Out != "":
		return "[" + c.Out + "]"
	case c.Whole && c.Replicas > 1:
		return fmt.Sprintf("[whole, shared by %d]", c.Replicas)
	case c.Whole:
		return "[whole]"
	}
	var b strings.Builder
	at := 0
	hole := func(n int) {
		for range n {
			b.WriteString("[...]")
		}
	}
	for _, s := range c.Spans {
		hole(s.Start - at)
		width := s.Size*unitWidth - 2
		name := s.Profile
		if len(name) > width {
			name = strings.SplitN(name, ".", 2)[0]
		}
		b.WriteString("[" + name + strings.Repeat(" ", max(0, width-len(name))) + "]")
		at = s.Start + s.Size
	}
	hole(c.Units - at)
	return b.String()
}
