package build

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestMeterTellsFetchedCompiledAndComplaints(t *testing.T) {
	begin := time.Now()
	m := &meter{what: "prog v1", main: "example.com/cmd/prog", started: begin}
	at := func(seconds int) string { return m.line(begin.Add(time.Duration(seconds) * time.Second)) }
	feed := func(text string) { _, _ = fmt.Fprint(m, text) }

	steps := []struct {
		feed string
		then func()
		want string
	}{
		{want: "prog v1: reading its imports, 0s"},
		{feed: "go: downloading example.com/a v1.0.0\ngo: downloading exam", want: "prog v1: 1 modules fetched, example.com/a v1.0.0, 1s"},
		{feed: "ple.com/b v2.0.0\n", want: "prog v1: 2 modules fetched, example.com/b v2.0.0, 2s"},
		{then: func() { m.setTotal(40) }, want: "prog v1: 40 packages, looking for those already compiled, 3s"},
		{feed: "errors\nexample.com/a\n", want: "prog v1: 2 of at most 40 packages compiled, example.com/a, 4s"},
		{feed: "# example.com/b\n../b.go:3:1: undefined: x\n", want: "prog v1: 2 of at most 40 packages compiled, example.com/a, 5s"},
		{feed: "example.com/cmd/prog\n", want: "prog v1: linking, 6s"},
	}
	for i, step := range steps {
		feed(step.feed)
		if step.then != nil {
			step.then()
		}
		if got := at(i); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
	if got, want := m.complaints(), "# example.com/b\n../b.go:3:1: undefined: x"; got != want {
		t.Errorf("complaints %q, want %q", got, want)
	}
	for i := range 3 * tailLines {
		feed(fmt.Sprintf("file.go:%d: wrong\n", i))
	}
	got := strings.Split(m.complaints(), "\n")
	if len(got) != tailLines || got[tailLines-1] != fmt.Sprintf("file.go:%d: wrong", 3*tailLines-1) {
		t.Errorf("%d lines, the last is %q", len(got), got[len(got)-1])
	}
}
