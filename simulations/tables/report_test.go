package tables

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/admission"
)

// Two jobs on a machine of 4: the second needs all of it and waits for the first.
const twoJobs = "; a comment\n1 0 -1 100 3 -1 -1 3 100 -1 1 7 -1 -1 1 -1 -1 -1\n2 10 -1 50 4 -1 -1 4 60 -1 1 8 -1 -1 1 -1 -1 -1\n3 20 -1 0 1 -1 -1 1 60 -1 1 8 -1 -1 1 -1 -1 -1\n"

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplayOfALog(t *testing.T) {
	rows, err := ReplayLog(file(t, "two.swf", twoJobs), 0, admission.DefaultConfig(), nil)
	want := []Row{{1, 7, 0, 0, 100, 3}, {2, 8, 10, 100, 150, 4}}
	if err != nil || !slices.Equal(rows, want) {
		t.Fatalf("got %v, %v, want %v", rows, err, want)
	}
	r := Sum("two", rows)
	if r.Wait != 45 || r.Longest != 90 || r.P99 != 90 || r.From != 0 || r.To != 150 || len(r.Users) != 2 || r.Users[0].User != 7 {
		t.Errorf("got %+v", r)
	}
	// 3 processors for 100 s and 4 for 50 s, and one job that waits for 90 s, of 150.
	if used, waiting := average(r.Used)*150, average(r.Waiting)*150; int(used+.5) != 500 || int(waiting+.5) != 90 {
		t.Errorf("%.1f processor seconds, %.1f s waited", used, waiting)
	}
	var text, page, table strings.Builder
	if err := WriteReports(&text, r, r); err != nil || strings.Count(text.String(), "45") < 2 {
		t.Errorf("%v\n%s", err, text.String())
	}
	if err := WritePage(&page, Sum("<b>", rows), r); err != nil || strings.Contains(page.String(), "<b>") || strings.Count(page.String(), "<polyline") != 6 || strings.Contains(page.String(), "http") {
		t.Errorf("%v\n%s", err, page.String())
	}
	if err := WriteRows(&table, rows); err != nil {
		t.Fatal(err)
	}
	back, err := ReadRows(file(t, "rows.csv", table.String()))
	if err != nil || !slices.Equal(back, rows) {
		t.Errorf("got %v, %v", back, err)
	}
}

func TestBadRowsSayWhere(t *testing.T) {
	head := strings.Join(rowColumns, ",") + "\n"
	for text, want := range map[string]string{
		"":                       "x.csv:1: no header",
		"a,b\n":                  "x.csv:1: the columns are a,b",
		head + "1,2,3,4,5,x\n":   "x.csv:2: processors: \"x\" is not a whole number",
		head + "1,2,3,1,5,1\n":   "x.csv:2: job 1 is submitted at 3, starts at 1",
		head + "1,2,3,4,5,1,6\n": "x.csv:2: ",
	} {
		_, err := ReadRows(file(t, "x.csv", text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := ReplayLog(file(t, "two.swf", twoJobs), 3, admission.DefaultConfig(), nil); err == nil || !strings.Contains(err.Error(), "asks for 4 processors, there are 3") {
		t.Errorf("%v", err)
	}
}
