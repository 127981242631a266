package journal

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	goldenFile = "testdata/format-1.db"
	goldenText = "testdata/format-1.json"
)

var rewrite = flag.Bool("rewrite", false, "write the expected results anew")

// A file that format 1 once wrote is read for ever. The file is never written
// anew: a change that cannot read it needs a new format and a way to convert.
func TestFormat1(t *testing.T) {
	if _, err := os.Stat(goldenFile); errors.Is(err, os.ErrNotExist) && *rewrite {
		writeGolden(t)
	}
	path := filepath.Join(t.TempDir(), "journal.db")
	if err := os.WriteFile(path, golden(t), 0o600); err != nil {
		t.Fatal(err)
	}
	j := mustOpen(t, path, DefaultLimits())
	if j.Notice() != "" {
		t.Fatal(j.Notice())
	}
	left, err := j.Replay()
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(map[string]any{"unsettled": left, "history": history(t, j, Filter{}, 0)}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(goldenText, append(got, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenText)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(want)) != string(got) {
		t.Errorf("read as\n%s\nwant\n%s", got, want)
	}
}

func writeGolden(t *testing.T) {
	if err := os.MkdirAll(filepath.Dir(goldenFile), 0o755); err != nil {
		t.Fatal(err)
	}
	j := mustOpen(t, goldenFile, DefaultLimits())
	for n := 1; n <= 3; n++ {
		mustAppend(t, j, decide(n))
	}
	mustSettle(t, j, 1)
	mustSettle(t, j, 3)
	mustClose(t, j)
}
