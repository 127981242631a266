package simulations

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// casesDir holds the cases that are handed to the project; a checkout may lack
// it.
const casesDir = "../../shared/cases"

// cases are the handed scenario files.
func cases(t testing.TB) []string {
	files, err := filepath.Glob(filepath.Join(casesDir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skipf("no scenario files in %s: this checkout stands alone", casesDir)
	}
	return files
}

// TestCasesAreValid reads every handed case.
func TestCasesAreValid(t *testing.T) {
	for _, file := range cases(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s, err := Load(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Nodes) == 0 || len(s.Queues) == 0 || len(s.Events) == 0 || len(s.Expect) == 0 {
				t.Errorf("%d nodes, %d queues, %d events, %d expectations: a case has some of each",
					len(s.Nodes), len(s.Queues), len(s.Events), len(s.Expect))
			}
		})
	}
}

// TestParse runs testdata/parse: a file is shown as what is wrong with it, or
// as what it became. `errors` shows only the former, and wants some.
func TestParse(t *testing.T) {
	datadriven.Walk(t, "testdata/parse", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s, err := Parse("f.yaml", []byte(d.Input))
			if err != nil {
				var single *Error
				if !errors.As(err, &single) {
					t.Errorf("%T holds no *Error", err)
				}
				return err.Error() + "\n"
			}
			switch d.Cmd {
			case "errors":
				d.Fatalf(t, "no error")
			case "nodes":
				return drawNodes(s)
			case "dump":
				return draw(s)
			}
			return "ok\n"
		})
	})
}

// draw shows a scenario, one thing a line.
func draw(s *Scenario) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("name %s", s.Name)
	b.WriteString(drawNodes(s))
	line("levels %s", strings.Join(s.Levels, " > "))
	for _, q := range s.Queues {
		line("queue %s", shownAs(q))
	}
	line("policy %s", shownAs(s.Policy))
	for _, e := range s.Events {
		line("event %d at %v #%d %s %s", e.Line, e.At, e.Repeat, e.Action.Verb(), shownAs(e.Action))
	}
	for _, e := range s.Expect {
		line("expect %d at %v", e.Line, e.At)
		for _, c := range e.Checks {
			line("  %s %s %s", c.Subject(), reflect.TypeOf(c).Name(), shownAs(c))
		}
	}
	return b.String()
}

func drawNodes(s *Scenario) string {
	var b strings.Builder
	for _, n := range s.Nodes {
		fmt.Fprintf(&b, "node %d %s cpu=%d memory=%d pods=%d gpus=%d timeSlices=%d taints=%v\n",
			n.Line, n.Name, n.CPU, n.Memory, n.Pods, n.GPUs(), n.TimeSlices, n.Taints)
		for i, l := range n.Layouts {
			if l.MIG {
				fmt.Fprintf(&b, "  card %d %v\n", i, l.Slices)
			}
		}
		for _, l := range n.Labels() {
			fmt.Fprintf(&b, "  label %s=%s\n", l.Key, l.Value)
		}
	}
	return b.String()
}

func shownAs(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

// rewriting says that the run is to renew what it would compare with.
func rewriting() bool {
	f := flag.Lookup("rewrite")
	return f != nil && f.Value.String() == "true"
}

// TestLoadMissing names the file that is not there.
func TestLoadMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.yaml")
	_, err := Load(path)
	if err == nil || !strings.HasPrefix(err.Error(), path+": cannot read the file") {
		t.Errorf("got %v", err)
	}
}

// TestQueueWith changes each key of a queue and expects all of it to arrive:
// a key that With forgets is a change that never happens.
func TestQueueWith(t *testing.T) {
	const file = `
queues:
- {name: P}
- {name: A}
events:
- {at: 0s, queue: {name: A, parent: P, weight: 2, nominal: {cpu: 1}, max: {cpu: 2}, lendable: {cpu: 3}, priority: 4,
    strategy: StrictFIFO, withinQueue: Never, reclaim: Never, reclaimable: false, closed: true}}
`
	s, err := Parse("f.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	change := s.Events[0].Action.(ChangeQueue)
	if got, want := len(change.Keys), len(queueKeys.fields)-1; got != want {
		t.Fatalf("the file changes %d keys, a queue has %d beside its name", got, want)
	}
	got := s.Queues[1].With(change)
	want := change.Queue
	want.Line = got.Line
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestBounds checks bounds that would make golden files long.
func TestBounds(t *testing.T) {
	many := "nodes: [{name: m}]\nevents:\n- {at: 0s, every: 1s, times: 1000001, cordon: m}\n"
	if _, err := Parse("f.yaml", []byte(many)); err == nil || err.Error() != "f.yaml:3: more than 1000000 events" {
		t.Errorf("too many events: got %v", err)
	}
	wrong := "events:\n- {at: 0s, every: 1s, times: 1000000, cordon: m}\n"
	var several Errors
	if _, err := Parse("f.yaml", []byte(wrong)); !errors.As(err, &several) || len(several) != 1 {
		t.Errorf("a mistake that repeats: got %v", err)
	}
	var bomb strings.Builder
	bomb.WriteString("x0: &x0 [a, b, c, d, e, f, g, h]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&bomb, "x%d: &x%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*x%d, ", i-1), 8), ", "))
	}
	if _, err := Parse("f.yaml", []byte(bomb.String())); err == nil || err.Error() != "f.yaml:1: more than 5000000 values" {
		t.Errorf("anchors that multiply: got %v", err)
	}
}

// FuzzParse feeds anything: an answer comes, errors stand on lines of the
// file, and what is valid keeps its promises and reads the same twice.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(casesDir, "*.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	datadrivenInputs(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("f.yaml", data)
		if err != nil {
			lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + 1
			var all Errors
			if !errors.As(err, &all) {
				t.Fatalf("an error of another type: %v", err)
			}
			for _, e := range all {
				if e.Line < 0 || e.Line > lines || e.Msg == "" {
					t.Fatalf("%d lines, error %+v", lines, e)
				}
			}
			return
		}
		for i, e := range s.Events {
			if e.At < 0 || i > 0 && e.At < s.Events[i-1].At {
				t.Fatalf("event %d at %v", i, e.At)
			}
		}
		again, err := Parse("f.yaml", data)
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Fatalf("read twice, got two answers: %v", err)
		}
	})
}

// datadrivenInputs seeds the fuzzer with the inputs of TestParse.
func datadrivenInputs(f *testing.F) {
	files, err := filepath.Glob("testdata/parse/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for part := range strings.SplitSeq(string(data), "----\n") {
			if _, input, ok := strings.Cut(part, "\nerrors\n"); ok {
				f.Add([]byte(input))
			} else if _, input, ok := strings.Cut(part, "\ndump\n"); ok {
				f.Add([]byte(input))
			}
		}
	}
}
