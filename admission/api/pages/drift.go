package pages

import (
	"net/http"

	"sluice.dev/sluice/admission/answer"
)

func (h *Handler) drift(w *answer.World, r *http.Request) (*view, error) {
	t := &table{ID: "drift", Caption: "Where a node's labels or claims and its cards do not agree", Empty: "Labels, claims and cards agree.", Columns: []column{
		{Key: "node", Name: "Node"}, {Key: "what", Name: "What"}, {Key: "says", Name: "Says"}, {Key: "is", Name: "Is"}, {Name: "Mends it", Class: "p2 last"},
	}}
	for _, d := range w.Drifts() {
		t.Rows = append(t.Rows, row{Cells: []cell{
			{Text: d.Node, Href: mapHref(d.Node)}, {Text: d.What, Class: "mono"}, {Text: orDash(d.Says), Class: "mono"}, {Text: d.Is, Class: "mono"}, {Text: orDash(d.Command), Class: "command"},
		}})
	}
	t.ask(r)
	return &view{Title: "Drift", Section: "drift", Table: t, Filter: filterOf(r, "node, label", "sort"), Data: t}, nil
}
