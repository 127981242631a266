package pages

import (
	"cmp"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/admission/answer"
)

// nodesShown bounds the nodes of a page of the map.
const nodesShown = 100

// fleetPage is the cards of the fleet.
type fleetPage struct {
	Paints     template.HTML
	Teams      []*team
	Nodes      []nodeRow
	Total      int
	From, To   int
	Prev, Next string
	Cards      int
	Holes      int // units
	Out        int // cards
	Unseen     int // nodes with devices of which no agent tells
}

// nodeRow is one node of the map.
type nodeRow struct {
	Name    string
	State   string
	Bad     bool
	Mode    string
	Cards   []cardArt
	Free    string
	Largest string
	Recut   string
	Owners  []ownerLine
	Drift   int
	Seen    bool // its cards are known, not only how many devices it offers
}

// ownerLine is who has what of the node.
type ownerLine struct {
	Team   *team
	Job    string
	Amount string
	Left   string // what no card of the node has
}

// cardArt is one card.
type cardArt struct {
	Index int
	Art   template.HTML
}

func (h *Handler) fleet(w *answer.World, r *http.Request) (*view, error) {
	q := r.URL.Query()
	maps, err := w.Map()
	if err != nil {
		return nil, err
	}
	states := map[string]answer.NodeState{}
	d := &fleetPage{}
	nodes := w.Nodes()
	for _, n := range nodes {
		states[n.Name] = n
	}
	maps = withUnseen(maps, nodes, &d.Unseen)
	teams, err := teamsOf(w, maps)
	if err != nil {
		return nil, err
	}
	words := strings.Fields(strings.ToLower(q.Get("q")))
	maps = slices.DeleteFunc(maps, func(m answer.NodeMap) bool { return !shows(&m, states[m.Node], words, q.Get("team"), q.Get("only")) })
	d.Total = len(maps)
	if q.Get("format") == "csv" {
		return &view{Title: "Map", Table: fleetTable(maps)}, nil
	}
	d.sum(maps, teams)
	page, _ := strconv.Atoi(q.Get("page")) // what is no number is the first
	page = max(0, min(page, (d.Total-1)/nodesShown))
	d.From, d.To = page*nodesShown, min(d.Total, (page+1)*nodesShown)
	if page > 0 {
		d.Prev = with(q, "page", strconv.Itoa(page-1))
	}
	if d.To < d.Total {
		d.Next = with(q, "page", strconv.Itoa(page+1))
	}
	for i := range maps[d.From:d.To] {
		d.Nodes = append(d.Nodes, nodeRowOf(&maps[d.From+i], states[maps[d.From+i].Node], teams))
	}
	d.From++
	f := filterOf(r, "node, gang, model, profile")
	var names []string
	for _, t := range d.Teams {
		names = append(names, t.Queue)
	}
	if v := q.Get("team"); v != "" && !slices.Contains(names, v) {
		names = append(names, v)
	}
	f.Pick = []pick{
		{Name: "team", Label: "used by", Value: q.Get("team"), Options: names, Any: "anybody"},
		{Name: "only", Label: "with", Value: q.Get("only"), Options: []string{"free", "holes", "out", "drift"}, Any: "anything"},
	}
	csv := &table{ID: "map", CSV: with(q, "format", "csv")}
	return &view{Title: "Map", Section: "map", Table: csv, Filter: f, Data: d}, nil
}

// withUnseen adds the nodes that offer devices of which no agent tells.
func withUnseen(maps []answer.NodeMap, nodes []answer.NodeState, unseen *int) []answer.NodeMap {
	has := map[string]bool{}
	for i := range maps {
		has[maps[i].Node] = true
	}
	for _, n := range nodes {
		if has[n.Name] {
			continue
		}
		m := answer.NodeMap{Node: n.Name, Free: n.Free, Cards: []answer.CardMap{}}
		for _, name := range resources([]answer.NodeState{n}) {
			for range min(n.Offer[name], cardsMost) {
				if name != "cpu" {
					m.Cards = append(m.Cards, answer.CardMap{Card: len(m.Cards), Whole: true, Model: answer.Short(name)})
				}
			}
			if used := n.Used[name]; used > 0 && name != "cpu" {
				m.Owners = append(m.Owners, answer.Owner{Job: strings.Join(n.Jobs, ", "), Amount: answer.Amounts{name: used}})
			}
		}
		if len(m.Cards) > 0 {
			*unseen++
			maps = append(maps, m)
		}
	}
	slices.SortStableFunc(maps, func(a, b answer.NodeMap) int { return natural(a.Node, b.Node) })
	return maps
}

// cardsMost bounds the devices that are drawn of a node of which only their number is
// known.
const cardsMost = 64

// natural compares names with their last number as one.
func natural(a, b string) int {
	split := func(s string) (string, int) {
		at := len(s)
		for at > 0 && len(s)-at < 9 && s[at-1] >= '0' && s[at-1] <= '9' {
			at--
		}
		n, _ := strconv.Atoi(s[at:]) // no digits are 0
		return s[:at], n
	}
	x, i := split(a)
	y, k := split(b)
	return cmp.Or(cmp.Compare(x, y), cmp.Compare(i, k), cmp.Compare(a, b))
}

// teamsOf gives each queue that a gang can be in its look: those of the tree in its
// order, so that they keep it while gangs come and go.
func teamsOf(w *answer.World, maps []answer.NodeMap) (map[string]*team, error) {
	list, err := w.Queues("")
	if err != nil {
		return nil, err
	}
	parents := map[string]bool{}
	for _, q := range list {
		parents[q.Parent] = true
	}
	teams := map[string]*team{}
	add := func(name string) {
		if name != "" && teams[name] == nil {
			teams[name] = newTeam(len(teams), name)
		}
	}
	for _, q := range list {
		if !parents[q.Name] {
			add(q.Name)
		}
	}
	for i := range maps {
		for _, o := range maps[i].Owners {
			add(o.Queue)
		}
	}
	return teams, nil
}

// shows says whether the node passes the filter.
func shows(m *answer.NodeMap, n answer.NodeState, words []string, team, only string) bool {
	if team != "" && !slices.ContainsFunc(m.Owners, func(o answer.Owner) bool { return o.Queue == team }) {
		return false
	}
	switch only {
	case "free":
		if amounts(m.Free) == "" {
			return false
		}
	case "holes":
		if !slices.ContainsFunc(m.Cards, func(c answer.CardMap) bool { return c.Holes > 0 }) {
			return false
		}
	case "out":
		if n.State == "ready" && !slices.ContainsFunc(m.Cards, func(c answer.CardMap) bool { return c.Out != "" }) {
			return false
		}
	case "drift":
		if len(n.Drift) == 0 {
			return false
		}
	}
	if len(words) == 0 {
		return true
	}
	var b strings.Builder
	b.WriteString(m.Node + "\n" + n.State + "\n" + n.Mode)
	for _, o := range m.Owners {
		b.WriteString("\n" + o.Job + "\n" + o.Queue)
	}
	for _, c := range m.Cards {
		b.WriteString("\n" + c.Model + "\n" + c.Out)
		for _, s := range c.Spans {
			b.WriteString("\n" + s.Profile)
		}
	}
	text := strings.ToLower(b.String())
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// sum counts what the filter left, and who uses it.
func (d *fleetPage) sum(maps []answer.NodeMap, teams map[string]*team) {
	holds := map[string]answer.Amounts{}
	for i := range maps {
		for _, c := range maps[i].Cards {
			d.Cards++
			d.Holes += c.Holes
			if c.Out != "" {
				d.Out++
			}
		}
		for _, o := range maps[i].Owners {
			if holds[o.Queue] == nil {
				holds[o.Queue] = answer.Amounts{}
			}
			for k, v := range o.Amount {
				holds[o.Queue][k] += v
			}
		}
	}
	most := 0
	for name, t := range teams {
		if a := holds[name]; a != nil {
			t.Holds = amounts(a)
			d.Teams = append(d.Teams, t)
			most = max(most, t.Index+1)
		}
	}
	slices.SortFunc(d.Teams, func(a, b *team) int { return a.Index - b.Index })
	d.Paints = paints(most)
}

func nodeRowOf(m *answer.NodeMap, n answer.NodeState, teams map[string]*team) nodeRow {
	r := nodeRow{Name: m.Node, State: n.State, Bad: n.State != "ready", Mode: n.Mode, Free: orDash(amounts(m.Free)), Largest: orDash(m.Largest), Drift: len(n.Drift), Seen: n.Mode != ""}
	if m.Recut != m.Largest {
		r.Recut = m.Recut
	}
	p := deal(m, teams)
	for i := range m.Cards {
		r.Cards = append(r.Cards, cardArt{m.Cards[i].Card, drawCard(&m.Cards[i], p.cards[i], r.Seen)})
	}
	for i, o := range m.Owners {
		r.Owners = append(r.Owners, ownerLine{Team: teams[o.Queue], Job: o.Job, Amount: amounts(o.Amount), Left: amounts(p.left[i])})
	}
	return r
}

// fleetTable is the map as rows: one a slice, or a card.
func fleetTable(maps []answer.NodeMap) *table {
	t := &table{Columns: []column{{Name: "node"}, {Name: "card"}, {Name: "model"}, {Name: "profile"}, {Name: "start"}, {Name: "units"}, {Name: "state"}, {Name: "owners of the node"}}}
	for i := range maps {
		m := &maps[i]
		var owners []string
		for _, o := range m.Owners {
			owners = append(owners, o.Job+" "+amounts(o.Amount))
		}
		add := func(c *answer.CardMap, profile, start string, units int, state string) {
			var line row
			for _, s := range []string{m.Node, strconv.Itoa(c.Card), c.Model, profile, start, strconv.Itoa(units), cmp.Or(c.Out, state), strings.Join(owners, "; ")} {
				line.Cells = append(line.Cells, cell{Text: s})
			}
			t.Rows = append(t.Rows, line)
		}
		for k := range m.Cards {
			c := &m.Cards[k]
			switch {
			case c.Replicas > 1:
				add(c, "", "", c.Units, "shared by "+strconv.Itoa(c.Replicas))
			case c.Whole:
				add(c, "", "", c.Units, "whole")
			}
			for _, s := range c.Spans {
				add(c, s.Profile, strconv.Itoa(s.Start), s.Size, "slice")
			}
			if c.Holes > 0 {
				add(c, "", "", c.Holes, "hole")
			}
		}
	}
	return t
}
