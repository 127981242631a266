package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"sluice.dev/sluice/admission/answer"
	"sluice.dev/sluice/simulations"
)

// TestAnswers holds the output of the real commands, over snapshots that are taken
// in the middle of scenarios. -rewrite writes what they say now.
func TestAnswers(t *testing.T) {
	datadriven.Walk(t, "testdata/answers", func(t *testing.T, path string) {
		file := ""
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "story": // story NAME AT: what the commands below are asked of
				at, err := time.ParseDuration(d.CmdArgs[1].Key)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				file = snapshotOf(t, d.CmdArgs[0].Key, at)
				return ""
			case "sluice":
				var lines []string
				for line := range strings.Lines(d.Input) {
					args := strings.Fields(line)
					var out, err bytes.Buffer
					code := executeAs("sluice", append(args, "--from", file), &out, &err)
					lines = append(lines, out.String()+notes(err.String()))
					if code != exitOK {
						lines = append(lines, fmt.Sprintf("exit code %d\n", code))
					}
				}
				return strings.Join(lines, "")
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

// notes marks what went to stderr.
func notes(text string) string {
	out := ""
	for line := range strings.Lines(text) {
		out += "! " + line
	}
	return out
}

// snapshotOf writes the snapshot of a scenario of admission/answer at a time.
func snapshotOf(t *testing.T, name string, at time.Duration) string {
	t.Helper()
	s, err := simulations.Load("../../admission/answer/testdata/scenarios/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	state, now, err := simulations.StateAt(s, simulations.Options{}, at)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "snapshot.json")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := answer.Take(state, now).Encode(f); err != nil {
		t.Fatal(err)
	}
	return file
}
