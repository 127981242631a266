package pages

import (
	"net/http"
	"slices"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/admission/answer"
)

// overviewShown bounds the lists of the first page.
const overviewShown = 10

// overviewPage is the first page.
type overviewPage struct {
	Running, Waiting int
	Longest          string
	Nodes, Out       int
	Drift, Drifting  int // what differs, and on how many nodes
	Findings         int
	Devices          []deviceSum
	Queues           *table
	MoreQueues       int
	Counted          string // of queues
	Waits            *table
	MoreWaits        int
	Looks            []look
	MoreLooks        int
}

// deviceSum is what there is of one kind of device.
type deviceSum struct {
	Name              string
	Total, Used, Free string
	Bar               any
}

// look is something that somebody should look at.
type look struct {
	What, Text, Href string
	Bad              bool
}

func (h *Handler) overview(w *answer.World, _ *http.Request) (*view, error) {
	d := &overviewPage{}
	nodes, jobs := w.Nodes(), w.Jobs()
	d.devices(nodes)
	d.gangs(jobs, w)
	list, err := w.Queues("")
	if err != nil {
		return nil, err
	}
	d.Queues = h.queueTable(list)
	if len(list) > 0 {
		d.Counted = list[0].Resource
	}
	if n := len(d.Queues.Rows); n > overviewShown {
		d.MoreQueues = n - overviewShown
		d.Queues.Rows = d.Queues.Rows[:overviewShown]
	}
	d.Queues.Total = len(d.Queues.Rows)
	d.attention(w, nodes)
	return &view{Title: "Overview", Section: "overview", Data: d}, nil
}

func (d *overviewPage) devices(nodes []answer.NodeState) {
	total, used, free := answer.Amounts{}, answer.Amounts{}, answer.Amounts{}
	for _, n := range nodes {
		d.Nodes++
		if n.State != "ready" {
			d.Out++
		}
		if d.Drift += len(n.Drift); len(n.Drift) > 0 {
			d.Drifting++
		}
		for k, v := range n.Offer {
			total[k] += v
		}
		for k, v := range n.Used {
			used[k] += v
		}
		for k, v := range n.Free {
			free[k] += v
		}
	}
	for _, name := range resources(nodes) {
		if total[name] == 0 || (name == "cpu" && len(total) > 1) {
			continue
		}
		d.Devices = append(d.Devices, deviceSum{
			Name: answer.Short(name), Total: admission.Quantity(name, total[name]), Used: admission.Quantity(name, used[name]), Free: admission.Quantity(name, free[name]),
			Bar: part(used[name], total[name], admission.Quantity(name, used[name])+" of "+admission.Quantity(name, total[name])+" "+answer.Short(name)+" used"),
		})
	}
}

func (d *overviewPage) gangs(jobs []answer.Job, w *answer.World) {
	waits := slices.Clone(jobs)
	waits = slices.DeleteFunc(waits, func(j answer.Job) bool { return j.State != "Waiting" && j.State != "Held" })
	slices.SortFunc(waits, byWait)
	for _, j := range jobs {
		if j.State == "Running" || j.State == "Starting" {
			d.Running++
		}
	}
	d.Waiting = len(waits)
	if len(waits) > 0 {
		d.Longest = answer.Age(w.Now().Sub(waits[0].Queued))
	}
	if n := len(waits); n > overviewShown {
		d.MoreWaits = n - overviewShown
		waits = waits[:overviewShown]
	}
	t := &table{ID: "waits", Caption: "Gangs that have waited longest", Empty: "Nothing waits.", Columns: []column{
		{Name: "Gang"}, {Name: "Queue", Class: "p2"}, {Name: "Needs", Class: "p3"}, {Name: "Waits for"}, {Name: "Why", Class: "p2 text"}, {Name: "Waited", Number: true},
	}}
	for _, j := range waits {
		why := j.Text
		if _, rest, ok := cutCode(why); ok {
			why = rest
		}
		t.Rows = append(t.Rows, row{Cells: []cell{
			{Text: j.Name, Href: jobHref(j.Name)},
			{Text: j.Queue, Href: queueHref(j.Queue)},
			{Text: j.Needs},
			{Text: orDash(j.Reason), Class: "code"},
			{Text: why, Class: "clamp"},
			{Text: answer.Age(w.Now().Sub(j.Queued))},
		}})
	}
	t.Total = len(t.Rows)
	d.Waits = t
}

// attention lists what is wrong, the worst first.
func (d *overviewPage) attention(w *answer.World, nodes []answer.NodeState) {
	for _, b := range w.Check() {
		d.Looks = append(d.Looks, look{What: "does not add up", Text: b, Bad: true})
	}
	for _, f := range w.Lint() {
		d.Findings++
		d.Looks = append(d.Looks, look{What: f.Object, Text: f.Text, Bad: f.Level == "error"})
	}
	for _, n := range nodes {
		if n.State != "ready" {
			d.Looks = append(d.Looks, look{What: n.Name, Text: n.State, Href: mapHref(n.Name), Bad: n.State != "cordoned"})
		}
	}
	if d.Drift > 0 {
		d.Looks = append(d.Looks, look{What: plural(d.Drifting, "node", "nodes"), Text: "whose labels or claims differ from their cards", Href: "drift"})
	}
	slices.SortStableFunc(d.Looks, func(a, b look) int {
		switch {
		case a.Bad == b.Bad:
			return 0
		case a.Bad:
			return -1
		default:
			return 1
		}
	})
	if n := len(d.Looks); n > overviewShown {
		d.MoreLooks = n - overviewShown
		d.Looks = d.Looks[:overviewShown]
	}
}
