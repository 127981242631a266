package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReplayAndCompare(t *testing.T) {
	folder := t.TempDir()
	log := filepath.Join(folder, "two.swf")
	text := "1 0 -1 100 3 -1 -1 3 100 -1 1 7 -1 -1 1 -1 -1 -1\n2 10 -1 50 4 -1 -1 4 60 -1 1 8 -1 -1 1 -1 -1 -1\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		cmd := newSimulate()
		var out strings.Builder
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(args)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		err := cmd.Execute()
		return out.String(), err
	}
	table, err := run("replay", "-o", "csv", log)
	if want := "job,user,submit,start,end,processors\n1,7,0,0,100,3\n2,8,10,100,150,4\n"; err != nil || table != want {
		t.Fatalf("got %q, %v", table, err)
	}
	path := filepath.Join(folder, "a.csv")
	if err := os.WriteFile(path, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := run("compare", path, path); err != nil || strings.Count(got, "a.csv") != 2 {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := run("replay", "-o", "html", "--policy", "easy", log); err != nil || !strings.HasPrefix(got, "<!doctype html>") {
		t.Errorf("%s, %v", got, err)
	}
	for _, bad := range [][]string{{"replay"}, {"replay", "--policy", "x", log}, {"replay", "-o", "json", log}, {"replay", filepath.Join(folder, "none.swf")}, {"compare", path}, {"compare", log, path}} {
		if _, err := run(bad...); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}
