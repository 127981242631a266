package pages

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"sluice.dev/sluice/admission/answer"
)

func (h *Handler) jobs(w *answer.World, r *http.Request) (*view, error) {
	q := r.URL.Query()
	list := w.Jobs()
	queues, states := map[string]bool{}, []string{}
	for _, j := range list {
		queues[j.Queue] = true
		if !slices.Contains(states, j.State) {
			states = append(states, j.State)
		}
	}
	list = slices.DeleteFunc(list, func(j answer.Job) bool {
		return q.Get("queue") != "" && j.Queue != q.Get("queue") || q.Get("state") != "" && j.State != q.Get("state")
	})
	t := jobTable(list, w.Now())
	t.ask(r)
	f := filterOf(r, "name, reason, node, user", "sort")
	f.Pick = []pick{
		{Name: "queue", Label: "queue", Value: q.Get("queue"), Options: sorted(queues), Any: "all"},
		{Name: "state", Label: "state", Value: q.Get("state"), Options: states, Any: "all"},
	}
	slices.Sort(states)
	return &view{Title: "Gangs", Section: "jobs", Table: t, Filter: f, Data: t}, nil
}

func sorted(set map[string]bool) []string {
	var out []string
	for k := range set {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func jobTable(list []answer.Job, now time.Time) *table {
	t := &table{ID: "jobs", Caption: "Gangs that have not finished", Empty: "There is no such gang.", Columns: []column{
		{Key: "name", Name: "Gang"},
		{Key: "queue", Name: "Queue", Class: "p2"},
		{Key: "pods", Name: "Pods", Number: true, Class: "p2"},
		{Key: "needs", Name: "Needs", Class: "p2"},
		{Key: "state", Name: "State"},
		{Key: "reason", Name: "Waits for"},
		{Key: "place", Name: "Place", Number: true, Class: "p3"},
		{Key: "eta", Name: "Room from", Class: "p3"},
		{Key: "age", Name: "Since", Number: true},
		{Key: "where", Name: "On", Class: "p3 last"},
	}}
	for _, j := range list {
		since := j.Queued
		if j.Started != nil {
			since = *j.Started
		}
		eta := ""
		if j.ETA != nil {
			eta = clock(*j.ETA, now)
		}
		t.Rows = append(t.Rows, row{Match: j.User + "\n" + j.Text, Cells: []cell{
			{Text: j.Name, Href: jobHref(j.Name)},
			{Text: j.Queue, Href: queueHref(j.Queue)},
			number(float64(j.Wanted), fmt.Sprintf("%d/%d", j.Running, j.Wanted)),
			{Text: j.Needs},
			{Text: j.State, Class: stateClass(j.State)},
			{Text: orDash(j.Reason), Class: "code", Title: j.Text},
			placeCell(j.Position),
			{Text: orDash(eta)},
			number(now.Sub(since).Seconds(), answer.Age(now.Sub(since))),
			{Text: orDash(j.Where)},
		}})
	}
	return t
}

func placeCell(at int) cell {
	if at == 0 {
		return cell{Text: "–", N: 1e9}
	}
	return number(float64(at), strconv.Itoa(at))
}

func stateClass(state string) string {
	switch state {
	case "Running":
		return "good"
	case "Stopping":
		return "bad"
	default:
		return ""
	}
}

// jobPage is one gang.
type jobPage struct {
	*answer.Why
	Class     string
	Lines     []checked
	Nodes     []nodeGroup
	Rest      int // nodes for further reasons
	ETA       string
	Assumes   string
	Waited    string
	Ranks     []answer.Rank
	Ahead     string
	Its       *fleetPage // its nodes, of a gang that has any
	MoreNodes int
}

// checked is one of the four lines.
type checked struct {
	Name string
	*answer.Line
}

// nodeGroup is a group of nodes as a line.
type nodeGroup struct {
	Nodes, All string
	Free, Fits string
	Why        string
}

// groupsShown bounds the groups of nodes that a page tells.
const groupsShown = 12

func (h *Handler) job(w *answer.World, r *http.Request) (*view, error) {
	key, err := w.Find("", r.URL.Query().Get("name"))
	if err != nil {
		return nil, err
	}
	why, err := w.Why(key)
	if err != nil {
		return nil, err
	}
	if _, rest, ok := cutCode(why.Reason); ok {
		why.Reason = rest
	}
	d := &jobPage{Why: why, Class: verdictClass(why.Verdict), Waited: answer.Age(time.Duration(why.WaitedMs) * time.Millisecond)}
	for _, x := range []checked{{"Quota", why.Quota}, {"Priority", why.Priority}, {"Capacity", why.Capacity}, {"Gates", why.Gates}} {
		if x.Line != nil {
			d.Lines = append(d.Lines, x)
		}
	}
	for i, g := range why.Nodes {
		if i >= groupsShown {
			d.Rest += len(g.Nodes)
			continue
		}
		d.Nodes = append(d.Nodes, nodeGroup{
			Nodes: some(g.Nodes), All: strconv.Itoa(len(g.Nodes)), Why: g.Why, Fits: plural(g.Fits, "pod", "pods"),
			Free: amounts(answer.Amounts{g.Resource: g.Free}),
		})
		if g.Free == 0 {
			d.Nodes[i].Free = "0"
		}
	}
	if e := why.ETA; e != nil {
		d.ETA, d.Assumes = expected(e, w.Now())
	}
	if why.Position > 0 {
		p, err := w.Priority(key)
		if err != nil {
			return nil, err
		}
		d.Ranks, d.Ahead = p.Ranks, p.Ahead
	}
	if err := d.draw(w); err != nil {
		return nil, err
	}
	return &view{Title: key, Section: "jobs", Data: d}, nil
}

// nodesOfGang bounds the nodes that the page of a gang draws.
const nodesOfGang = 16

// draw draws the nodes on which the gang has cards.
func (d *jobPage) draw(w *answer.World) error {
	if d.Where == "" {
		return nil
	}
	maps, err := w.Map()
	if err != nil {
		return err
	}
	maps = slices.DeleteFunc(maps, func(m answer.NodeMap) bool {
		return !slices.ContainsFunc(m.Owners, func(o answer.Owner) bool { return o.Job == d.Job })
	})
	if len(maps) == 0 {
		return nil
	}
	teams, err := teamsOf(w, maps)
	if err != nil {
		return err
	}
	states := map[string]answer.NodeState{}
	for _, n := range w.Nodes() {
		states[n.Name] = n
	}
	d.MoreNodes = max(0, len(maps)-nodesOfGang)
	maps = maps[:min(len(maps), nodesOfGang)]
	d.Its = &fleetPage{}
	d.Its.sum(maps, teams)
	for i := range maps {
		d.Its.Nodes = append(d.Its.Nodes, nodeRowOf(&maps[i], states[maps[i].Node], teams))
	}
	return nil
}

// expected is a start as a range, with what it assumes.
func expected(e *answer.ETA, now time.Time) (text, assumes string) {
	switch {
	case e.Unknown != "":
		return "unknown", e.Unknown
	case e.Late == nil:
		return "unknown", ""
	case e.Early != nil && e.Early.After(now) && e.Early.Before(*e.Late):
		return clock(*e.Early, now) + " – " + clock(*e.Late, now) + " UTC", e.Assumes
	default:
		return "by " + clock(*e.Late, now) + " UTC", e.Assumes
	}
}

func verdictClass(v answer.Verdict) string {
	switch v {
	case answer.Never, answer.Stopping:
		return "bad"
	case answer.NotNow, answer.Held:
		return "waits"
	case answer.Running, answer.Now:
		return "good"
	default:
		return "quiet"
	}
}
