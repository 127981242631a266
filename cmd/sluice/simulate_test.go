package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/simulations"
)

const holds = `name: one gang
nodes: [{name: h, gpus: 2}]
queues: [{name: A}]
events:
- {at: 0s, submit: [{name: J, queue: A, pods: 2, requests: {nvidia.com/gpu: 1}, runtime: 10s}]}
expect:
- {at: 5s, admitted: [J]}
- {at: 10s, finished: [J]}
`

const fails = `name: one gang that cannot run
nodes: [{name: h, gpus: 2}]
queues: [{name: A, max: {nvidia.com/gpu: 2}}]
events:
- {at: 0s, submit: [{name: J1, queue: A, pods: 2, requests: {nvidia.com/gpu: 1}}]}
- {at: 0s, submit: [{name: J2, queue: A, pods: 2, requests: {nvidia.com/gpu: 1}}]}
expect:
- {at: 10s, pending: {J2: Capacity}, usage: {A: {nvidia.com/gpu: 3}}}
`

const invalid = `name: a mistake
nodes: [{name: h, gpu: 2}]
`

// gate lets the command take gpuLost for something that is not built yet.
func gate(t *testing.T) {
	notBuiltIn = func(s *simulations.Scenario) []simulations.Use { return simulations.UsesOf(s, "event.gpuLost") }
	t.Cleanup(func() { notBuiltIn = simulations.Unsupported })
}

const notBuilt = `name: not yet
nodes:
- {name: h, gpus: 1}
queues: [{name: A}]
events:
- {at: 0s, gpuLost: {node: h}}
`

// files writes scenarios into a folder and returns their paths.
func files(t *testing.T, texts ...string) []string {
	t.Helper()
	dir := t.TempDir()
	var out []string
	for i, text := range texts {
		path := filepath.Join(dir, string(rune('a'+i))+".yaml")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out = append(out, path)
	}
	return out
}

func sluice(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = execute(append([]string{"simulate"}, args...), &out, &err)
	return code, out.String(), err.String()
}

func TestExitCodes(t *testing.T) {
	gate(t)
	for name, c := range map[string]struct {
		texts          []string
		code           int
		stdout, stderr string // with DIR for the folder
	}{
		"holds": {[]string{holds}, 0, "", "all holds: 1 files, 2 expectations\n"},
		"fails": {
			[]string{fails},
			1,
			"DIR/a.yaml: at 10s: pending[J2]: want Capacity, got Quota\n" +
				"DIR/a.yaml: at 10s: usage[A]: want nvidia.com/gpu 3, got nvidia.com/gpu 2\n", "",
		},
		"invalid": {
			[]string{invalid},
			2, "",
			"DIR/a.yaml:2: unknown key \"gpu\" of a node, did you mean \"gpus\"?\n",
		},
		"unsupported":                     {[]string{notBuilt}, 3, "", "DIR/a.yaml:6: not supported yet: gpuLost\n"},
		"nothing runs if one is invalid":  {[]string{fails, invalid, notBuilt}, 2, "", "DIR/b.yaml:2: unknown key \"gpu\" of a node, did you mean \"gpus\"?\n"},
		"all invalid files are told":      {[]string{invalid, invalid}, 2, "", "DIR/a.yaml:2: unknown key \"gpu\" of a node, did you mean \"gpus\"?\nDIR/b.yaml:2: unknown key \"gpu\" of a node, did you mean \"gpus\"?\n"},
		"others run beside unsupported":   {[]string{notBuilt, holds}, 3, "", "DIR/a.yaml:6: not supported yet: gpuLost\n"},
		"a failure outweighs unsupported": {[]string{notBuilt, fails, holds}, 1, "DIR/b.yaml: at 10s: pending[J2]: want Capacity, got Quota\nDIR/b.yaml: at 10s: usage[A]: want nvidia.com/gpu 3, got nvidia.com/gpu 2\n", "DIR/a.yaml:6: not supported yet: gpuLost\n"},
	} {
		t.Run(name, func(t *testing.T) {
			paths := files(t, c.texts...)
			code, stdout, stderr := sluice(paths...)
			dir := filepath.Dir(paths[0])
			if want := strings.ReplaceAll(c.stdout, "DIR", dir); code != c.code || stdout != want {
				t.Errorf("exit code %d, want %d; stdout:\n%swant:\n%s", code, c.code, stdout, want)
			}
			if want := strings.ReplaceAll(c.stderr, "DIR", dir); stderr != want {
				t.Errorf("stderr:\n%swant:\n%s", stderr, want)
			}
		})
	}
}

// TestCommandLine: what is wrong with the question is exit code 2, and said.
func TestCommandLine(t *testing.T) {
	file := files(t, holds)[0]
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "which file?"},
		{[]string{"--random", file}, "it takes no files"},
		{[]string{"--random", "--trace"}, "--random goes with"},
		{[]string{"--random", "--seeds", "0"}, "at least 1"},
		{[]string{"--random", "--events", "-3"}, "at least 1"},
		{[]string{"-o", "yaml", file}, "--output is text or json, not \"yaml\""},
		{[]string{"--seed", "-1", file}, "seed"},
		{[]string{"--bogus", file}, "unknown flag: --bogus"},
		{[]string{file + ".missing"}, file + ".missing: cannot read the file: no such file or directory"},
	} {
		code, stdout, stderr := sluice(c.args...)
		if code != exitInvalid || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q, want %q there", c.args, code, stdout, stderr, c.want)
		}
	}
	if code := execute([]string{"simulat"}, &bytes.Buffer{}, &bytes.Buffer{}); code != exitInvalid {
		t.Errorf("an unknown command: exit code %d", code)
	}
	var out bytes.Buffer
	if code := execute([]string{"simulate", "--help"}, &out, &out); code != exitOK || !strings.Contains(out.String(), "Exit codes:") {
		t.Errorf("help: exit code %d, %s", code, out.String())
	}
}

func TestJSON(t *testing.T) {
	gate(t)
	paths := files(t, holds, fails, notBuilt)
	code, stdout, _ := sluice(append(paths, "-o", "json", "--seed", "3")...)
	var got []result
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	if code != exitFailed || len(got) != 3 {
		t.Fatalf("exit code %d, %d results", code, len(got))
	}
	if g := got[0]; g.File != paths[0] || g.Name != "one gang" || g.Result != "ok" || g.Seed != 3 || g.Checks != 2 || len(g.Failed) != 0 {
		t.Errorf("holds: %+v", g)
	}
	want := failed{At: "10s", AtSeconds: 10, Expectation: "pending[J2]", Want: "Capacity", Got: "Quota"}
	if g := got[1]; g.Result != "failed" || len(g.Failed) != 2 || g.Failed[0] != want {
		t.Errorf("fails: %+v", g)
	}
	if g := got[2]; g.Result != "unsupported" || len(g.Unsupported) != 1 || g.Unsupported[0] != (use{6, "gpuLost"}) {
		t.Errorf("unsupported: %+v", g)
	}
}

// TestRandom: stories are drawn, progress is told apart from the outcome, and
// the same seeds give the same outcome.
func TestRandom(t *testing.T) {
	args := []string{"--random", "--seeds", "3", "--events", "30", "--seed", "11"}
	code, stdout, stderr := sluice(args...)
	if code != exitOK || !strings.HasPrefix(stdout, "3 stories from seed 11, ") || !strings.HasSuffix(stdout, "every promise held\n") {
		t.Errorf("exit code %d, stdout %q", code, stdout)
	}
	if n := strings.Count(stderr, "\n"); n != 3 || !strings.Contains(stderr, "3 of 3 stories: ") {
		t.Errorf("progress: %q", stderr)
	}
	if _, again, _ := sluice(args...); again != stdout {
		t.Errorf("again: %q, was %q", again, stdout)
	}
}

// TestFaults: a file can be run with writes that fail, as a shortened story may
// need.
func TestFaults(t *testing.T) {
	file := files(t, holds)[0]
	_, calm, _ := sluice("--trace", "--seed", "2", file)
	for seed := range 40 {
		code, stdout, _ := sluice("--trace", "--faults", "--seed", fmt.Sprint(seed), file)
		if strings.Contains(stdout, "refused ") || strings.Contains(stdout, "lost ") {
			if strings.Contains(calm, "refused ") || strings.Contains(calm, "lost ") {
				t.Error("writes fail without --faults")
			}
			return
		}
		if code == exitInvalid {
			t.Fatal(stdout)
		}
	}
	t.Error("no write fails with any of 40 seeds")
}

func TestTrace(t *testing.T) {
	code, stdout, _ := sluice("--trace", files(t, holds)[0])
	for _, want := range []string{
		": one gang\n", "at 0s\n", "  submit   J to A: 2 × nvidia.com/gpu 1\n", "  admit    J to A: h×2\n", "  release  J: h×2\n",
		"      queue A: nvidia.com/gpu 2\n", "      node h: nvidia.com/gpu 2 of 2\n", "at 10s\n  ends     J\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in the trace", want)
		}
	}
	if code != exitOK || t.Failed() {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
}

// TestCases asks the command about every handed case: it holds, or the command
// answers 3 because the table of what is not built yet names something in it.
func TestCases(t *testing.T) {
	paths, err := filepath.Glob("../../../shared/cases/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Skip("no ../shared/cases beside the repository")
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s, err := simulations.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			want, says := exitOK, ""
			if uses := simulations.Unsupported(s); len(uses) > 0 {
				want, says = exitUnsupported, "not supported yet: "+uses[0].What
			}
			code, stdout, stderr := sluice(path)
			if code != want || !strings.Contains(stderr, says) {
				t.Errorf("exit code %d, want %d\n%s%s", code, want, stdout, stderr)
			}
		})
	}
}
