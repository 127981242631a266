package demo

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// Where there is no terminal a line is written for each change, and none
// without one.
func TestScreenWritesChanges(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	row := Row{Gang: "ml/train", Wanted: 2, State: Submitted}
	s.show([]Row{row}, "note")
	s.show([]Row{row}, "note")
	row.State, row.Code, row.Text = Pending, "Quota", "asks 8"
	s.show([]Row{row}, "note")
	row.Text = "asks 9"
	s.show([]Row{row}, "note")
	row = Row{Gang: "ml/train", Wanted: 2, Pods: 2, State: Running, Nodes: []string{"gpu-0", "gpu-1"}}
	s.show([]Row{row}, "note")
	s.say("hello")
	got := regexp.MustCompile(`(?m)^ *[0-9.]+s  `).ReplaceAllString(out.String(), "")
	want := `ml/train  Submitted
ml/train  Submitted → Pending  Quota: asks 8
ml/train  Pending  Quota: asks 9
ml/train  Pending → Running  2/2 pods on gpu-{0,1}
hello
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// On a terminal the table is drawn in place, below what is said, and no line is
// wider than the terminal: a line that wraps could not be taken back.
func TestScreenDrawsInPlace(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	s.width = func() int { return 40 }
	rows := []Row{{Gang: "ml/train", Queue: "team-a", Wanted: 2, State: Pending, Code: "Quota", Text: strings.Repeat("long ", 20)}}
	s.show(rows, "1 Pending")
	if s.say("hello"); !strings.Contains(out.String(), "\x1b[3A\x1b[Jhello\n") {
		t.Errorf("the line was not put above the 3 lines of the table: %q", out.String())
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "ml/train") {
		t.Errorf("the table is not the last: %q", last)
	}
	for _, line := range lines {
		if plain := regexp.MustCompile("\x1b\\[[0-9]*[A-Z]").ReplaceAllString(line, ""); len([]rune(plain)) >= 40 {
			t.Errorf("too wide: %q", plain)
		}
	}
}

func TestTableKeepsColumnsBelowEachOther(t *testing.T) {
	lines := table([]Row{
		{Gang: "a/x", Queue: "q", Pods: 1, Wanted: 2, State: Admitted, Nodes: []string{"gpu-0"}},
		{Gang: "a/long-name", Queue: "queue", Wanted: 16, State: Pending, Code: "Quota", Text: "asks\n8 → none"},
	}, 0)
	want := []string{
		"GANG         QUEUE  PODS  STATE     NODES  REASON",
		"a/x          q      1/2   Admitted  gpu-0  -",
		"a/long-name  queue  0/16  Pending   -      Quota: asks 8 → none",
	}
	if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
