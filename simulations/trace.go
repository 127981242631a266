package simulations

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// trace is what happened in a run, as text. Two runs of one scenario with one
// seed have the same.
type trace struct {
	clock *Clock
	b     strings.Builder
	at    time.Duration // of the last line
	any   bool

	// Pods of a gang are released one by one, and told together.
	gang  string
	nodes []string
	count map[string]int
}

func newTrace(c *Clock) *trace { return &trace{clock: c} }

// add writes a line, under the time if that is new.
func (t *trace) add(format string, args ...any) {
	t.flush()
	t.line(fmt.Sprintf(format, args...))
}

func (t *trace) line(text string) {
	if now := t.clock.Now(); !t.any || now != t.at {
		fmt.Fprintf(&t.b, "at %s\n", Spoken(now))
		t.at, t.any = now, true
	}
	for l := range strings.Lines(text) {
		t.b.WriteString("  " + strings.TrimRight(l, " \n") + "\n")
	}
}

// released notes that a pod of the gang went to the node.
func (t *trace) released(gang, node string) {
	if t.gang != gang {
		t.flush()
		t.gang, t.count = gang, map[string]int{}
	}
	if t.count[node] == 0 {
		t.nodes = append(t.nodes, node)
	}
	t.count[node]++
}

func (t *trace) flush() {
	if t.gang == "" {
		return
	}
	text := "release  " + t.gang + ":"
	for _, n := range t.nodes {
		text += fmt.Sprintf(" %s×%d", n, t.count[n])
	}
	t.gang, t.nodes, t.count = "", nil, nil
	t.line(text)
}

// event tells an event of the scenario.
func (t *trace) event(a Action) {
	if s, ok := a.(Submit); ok {
		for _, w := range s.Workloads {
			t.add("submit   %s", gangText(&w))
		}
		return
	}
	t.add("event    %s", actionText(a))
}

// actionText is an event as a line: its verb and what it says.
func actionText(a Action) string {
	parts := []string{a.Verb()}
	v := reflect.ValueOf(a)
	for i := range v.NumField() {
		parts = append(parts, fieldText(v.Field(i).Interface()))
	}
	return strings.Join(parts, " ")
}

func fieldText(v any) string {
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer {
		if p.IsNil() {
			return "null"
		}
		return fieldText(p.Elem().Interface())
	}
	switch v := v.(type) {
	case Amounts:
		var parts []string
		for _, a := range v {
			parts = append(parts, amountText(a))
		}
		return strings.Join(parts, ", ")
	case Taint:
		return taintText(v)
	case Queue:
		return v.Name
	case []string:
		return strings.Join(v, ", ")
	case []Node:
		var names []string
		for _, n := range v {
			names = append(names, n.Name)
		}
		return strings.Join(names, ", ")
	default:
		return fmt.Sprint(v)
	}
}

func taintText(t Taint) string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// gangText is a workload as a line.
func gangText(w *Workload) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s to %s:", w.Name, w.Queue)
	for _, s := range w.PodSets {
		name := ""
		if len(w.PodSets) > 1 {
			name = s.Name + " "
		}
		size := fmt.Sprint(s.Pods)
		if s.Elastic() {
			size = fmt.Sprintf("%d-%d", s.Min, s.Pods)
		}
		fmt.Fprintf(&b, " %s%s ×", name, size)
		for _, a := range s.Requests {
			b.WriteString(" " + amountText(a))
		}
	}
	if w.Priority != 0 {
		fmt.Fprintf(&b, ", priority %d", w.Priority)
	}
	return b.String()
}

// String is the whole trace.
func (t *trace) String() string {
	t.flush()
	return t.b.String()
}
