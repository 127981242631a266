package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sandboxIn runs a command line as a person would who has nothing yet.
func sandboxIn(t *testing.T, home string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv("SLUICE_CACHE", filepath.Join(home, "cache"))
	t.Setenv("SLUICE_SANDBOX_DIR", "")
	t.Setenv("KUBEBUILDER_ASSETS", "")
	var out, complaints bytes.Buffer
	code = run(t.Context(), args, &out, &complaints)
	return code, out.String(), complaints.String()
}

func TestMisuseIsExplainedAndTouchesNothing(t *testing.T) {
	nodesFile := filepath.Join(t.TempDir(), "nodes.yaml")
	if err := os.WriteFile(nodesFile, []byte("- name: gpu\n  gpuz: 8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, exitUsage, "which command?"},
		{[]string{"frob"}, exitUsage, `unknown command "frob"`},
		{[]string{"up", "--frob"}, exitUsage, "-frob"},
		{[]string{"up", "extra"}, exitUsage, `unexpected argument "extra"`},
		{[]string{"up", "--name", "../etc"}, exitUsage, `--name "../etc"`},
		{[]string{"up", "--nodes", nodesFile}, exitFailure, nodesFile + `:2: unknown key "gpuz"`},
		{[]string{"up", "--nodes", "/no/such/file"}, exitFailure, "/no/such/file"},
		{[]string{"up", "--kcm-qps", "many"}, exitUsage, "kcm-qps"},
		{[]string{"up", "--kcm-qps", "0"}, exitUsage, "must be positive"},
		{[]string{"up", "--only", "half"}, exitUsage, `mode "half"`},
		{[]string{"run"}, exitUsage, "sandbox run -- CMD"},
		{[]string{"stop"}, exitUsage, "which component?"},
		{[]string{"stop", "etcd", "kwok"}, exitUsage, "which component?"},
		{[]string{"stop", "kubelet"}, exitFailure, `unknown component "kubelet"`},
		{[]string{"start", "etcd"}, exitFailure, "is not a sandbox"},
		{[]string{"build", "--only", "half"}, exitUsage, `mode "half"`},
		{[]string{"down", "--kill"}, exitUsage, "-kill"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			home := t.TempDir()
			code, stdout, stderr := sandboxIn(t, home, c.args...)
			if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
				t.Errorf("exit %d, want %d; said %q, want %q in it; stdout %q", code, c.code, stderr, c.want, stdout)
			}
			if left, _ := filepath.Glob(home + "/cache/*"); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestHelpNamesEveryCommandAndComponent(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"--help"}, {"up", "-h"}} {
		code, stdout, _ := sandboxIn(t, t.TempDir(), args...)
		for _, want := range []string{"up", "down", "status", "reset", "run", "build", "kube-apiserver", "kwok", "--nodes"} {
			if !strings.Contains(stdout, want) {
				t.Errorf("%v: no %q in the help", args, want)
			}
		}
		if code != 0 {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}

func TestStatusOfNothingIsUnhealthy(t *testing.T) {
	home := t.TempDir()
	code, stdout, _ := sandboxIn(t, home, "status")
	if code != exitFailure || strings.Count(stdout, "not running") != 5 {
		t.Errorf("exit %d:\n%s", code, stdout)
	}
	code, stdout, _ = sandboxIn(t, home, "status", "--json", "--name", "other")
	var got struct {
		Dir        string
		Healthy    bool
		Components []struct{ Name, Health, Log string }
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	if code != exitFailure || got.Healthy || len(got.Components) != 5 || got.Components[0].Health != "not running" {
		t.Errorf("exit %d: %+v", code, got)
	}
	if want := filepath.Join(home, "cache", "sandbox", "other"); got.Dir != want {
		t.Errorf("folder %s, want %s", got.Dir, want)
	}
}

func TestFlagsMayComeAnywhereUpToTwoDashes(t *testing.T) {
	var c *call
	parse := func(args ...string) error {
		c = newCall("run", nil, nil)
		c.placeFlags()
		c.upFlags()
		return c.parse(args)
	}
	if err := parse("--name", "a", "--", "kubectl", "get", "--name", "x"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.args, " "); got != "kubectl get --name x" || c.name != "a" {
		t.Errorf("args %q, name %q", got, c.name)
	}
	if err := parse("first", "--name", "b", "second"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.args, " "); got != "first second" || c.name != "b" {
		t.Errorf("args %q, name %q", got, c.name)
	}
	o, err := c.options()
	if err != nil || o.Nodes != nil {
		t.Errorf("without --nodes the nodes are %v (%v), want them left as they are", o.Nodes, err)
	}
}
