package simulations

import (
	"fmt"
	"slices"
	"testing"
)

// TestUnsupported: a gate tells every use of what it closes, by line and by
// the name that the file has; a repetition tells it once.
func TestUnsupported(t *testing.T) {
	const file = `
nodes: [{name: h}]
queues:
- {name: A, strategy: StrictFIFO}
- {name: B, strategy: BestEffortFIFO}
events:
- at: 0s
  every: 1s
  times: 3
  submit:
  - {name: "J{i}", queue: A, pods: 1, sharing: any}
- at: 1s
  cordon: h
expect:
- {at: 1s, anyOf: [{pending: {J0: Layout}}, {drift: {h: []}}]}
`
	s, err := Parse("f.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	gated := []string{"event.cordon", "workload.sharing", "queue.strategy=StrictFIFO", "expect.drift", "reason.Layout", "event.mig"}
	want := []Use{{4, "strategy: StrictFIFO"}, {11, "sharing"}, {13, "cordon"}, {15, "Layout"}, {15, "drift"}}
	if got := UsesOf(s, gated...); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := UsesOf(s); len(got) != 0 {
		t.Errorf("nothing is gated, got %v", got)
	}
}

// TestNotYetIsGrammar: a gate that names no part of the grammar would never
// close.
func TestNotYetIsGrammar(t *testing.T) {
	known := map[string]bool{}
	for _, s := range grammar() {
		name := s.name
		if name == "verb" {
			name = "event"
		}
		for _, r := range s.rows {
			known[name+"."+r.key] = true
		}
	}
	for _, r := range reasons {
		known["reason."+string(r)] = true
	}
	for _, what := range notYet {
		key := what
		if i := slices.Index([]byte(what), '='); i >= 0 {
			key = what[:i]
		}
		if !known[key] {
			t.Errorf("notYet has %q, the grammar does not", what)
		}
	}
	if !known["event.mig"] || !known["workload.topology"] || !known["expect.drift"] {
		t.Error(fmt.Sprint("the forms that the documentation of notYet shows are not known: ", len(known)))
	}
}
