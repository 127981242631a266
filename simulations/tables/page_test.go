package tables

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPageKeepsWhatIsAround(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("# above\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "second"} {
		if err := Insert(page, text); err != nil {
			t.Fatal(err)
		}
		if text == "first" {
			f, err := os.OpenFile(page, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.WriteString("below\n")
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := os.ReadFile(page)
	if want := "# above\n\n" + markBegin + "\n\nsecond\n\n" + markEnd + "\nbelow\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestCellsTellTheDifference(t *testing.T) {
	table := Table{Title: "T", Cells: []Cell{
		{What: "equal", Expected: 1.5, Got: 1.5, Digits: 2},
		{What: "off", Expected: 1.5, Got: 1.25, Digits: 2},
		{What: "near", Expected: 1, Got: 1.25, Tolerance: .5, Digits: 2},
		Ours("alone", 7, 0),
	}}
	want := "2 of 3 published values are met.\n\n| what | expected | got | difference | equal |\n|---|---:|---:|---:|---|\n" +
		"| equal | 1.50 | 1.50 | 0 | yes |\n| off | 1.50 | 1.25 | -0.25 | **no** |\n| near | 1.00 | 1.25 | +0.25 | yes |\n| alone | | 7 | | |\n"
	if got := table.Markdown(); !strings.Contains(got, want) || len(table.Misses()) != 1 {
		t.Errorf("got %s", got)
	}
}

func TestKeptResultsAreNotWorkedOutAgain(t *testing.T) {
	s, runs := &Store{Dir: t.TempDir(), Revision: "a"}, 0
	run := func() (int, error) { runs++; return 7, nil }
	for range 2 {
		if got, err := Keep(s, "x/y z", run); got != 7 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
	}
	if runs != 1 || len(s.Revisions()) != 1 {
		t.Errorf("%d runs, %v", runs, s.Revisions())
	}
	if _, err := Keep(&Store{Dir: s.Dir, Ready: true}, "other", run); !errors.Is(err, ErrNotRun) || runs != 1 {
		t.Errorf("%v, %d runs", err, runs)
	}
	fail := errors.New("no")
	if _, err := Keep(s, "bad", func() (int, error) { return 0, fail }); !errors.Is(err, fail) {
		t.Errorf("%v", err)
	}
	if got, err := Keep(s, "bad", run); got != 7 || err != nil {
		t.Errorf("what failed is run again: %d, %v", got, err)
	}
}
