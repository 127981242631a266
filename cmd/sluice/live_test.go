package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/admission/answer"
	"sluice.dev/sluice/admission/api"
)

// onlyAlice knows one token, whose user sees all names, and one whose user sees none.
type onlyAlice struct{}

func (onlyAlice) Who(_ context.Context, token string) (api.User, error) {
	if token != "alices" && token != "guests" {
		return api.User{}, api.ErrUnknown
	}
	return api.User{Name: token}, nil
}

func (onlyAlice) MayList(_ context.Context, u api.User, _ string) (bool, error) {
	return u.Name == "alices", nil
}

// A kubeconfig is all that one needs: the API server's proxy leads to the controller,
// which learns who asks though the proxy takes the usual header off.
func TestLive(t *testing.T) {
	file := snapshotOf(t, "labels-lost", 20*time.Minute)
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := answer.Decode(f)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	im, err := s.Image()
	if err != nil {
		t.Fatal(err)
	}
	controller := api.New(api.Fixed{Image: im, At: s.Time}, onlyAlice{}, time.Now)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const proxy = "/api/v1/namespaces/sluice-system/services/https:sluice-api:8444/proxy"
		switch {
		case r.URL.Path == "/apis/kueue.x-k8s.io/v1beta2/namespaces/ml/localqueues/team-a":
			fmt.Fprint(w, `{"spec": {"clusterQueue": "team-b"}}`)
		case strings.HasPrefix(r.URL.Path, proxy):
			r.Header.Del("Authorization") // as the API server does
			http.StripPrefix(proxy, controller).ServeHTTP(w, r)
		default:
			http.Error(w, `{"message": "not here"}`, http.StatusNotFound)
		}
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {server: %q, insecure-skip-tls-verify: true}}]\nusers: [{name: x, user: {token: alices}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n", server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		out  string
		err  string
	}{
		{"why train-llm", exitOK, "NOT NOW  Capacity", ""},
		{"jobs -o name", exitOK, "job/eval-17", ""},
		{"jobs --token guests", exitOK, "a gang of team-a (", ""},
		{"why train-llm --token guests", exitFailed, "", "there is no job train-llm"},
		{"jobs --token mallorys", exitFailed, "", "does not know this token"},
		{"jobs --service https:sluice-system/nobody:1", exitFailed, "", "not here"},
		{"plan -f testdata/manifests/job.yaml", exitOK, "queue team-b", ""},
		{"plan -f testdata/manifests/job.yaml -n other", exitFailed, "", "look up LocalQueue other/team-a"},
	} {
		var out, errs bytes.Buffer
		code := executeAs("kubectl-sluice", append(strings.Fields(c.args), "--kubeconfig", kubeconfig), &out, &errs)
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.err) {
			t.Errorf("%s: exit code %d\n%s%s", c.args, code, out.String(), errs.String())
		}
		if c.args == "jobs --token guests" && strings.Contains(out.String(), "eval-17") {
			t.Errorf("a guest sees names:\n%s", out.String())
		}
	}
	plain := httptest.NewServer(api.New(api.Fixed{Image: im, At: s.Time}, api.Everybody{}, time.Now))
	defer plain.Close()
	var out, errs bytes.Buffer
	if code := executeAs("sluice", []string{"queues", "--api", plain.URL}, &out, &errs); code != exitOK || !strings.Contains(out.String(), "team-b") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
}

// What kubectl starts under a plugin's name speaks of itself as of kubectl; wrong
// questions and formats are errors, not answers.
func TestQuestionsAreChecked(t *testing.T) {
	file := snapshotOf(t, "held", 20*time.Minute)
	for _, c := range []struct {
		called, args string
		code         int
		says         string
	}{
		{"/usr/bin/kubectl-sluice", "why --help", exitOK, "kubectl sluice why JOB"},
		{"sluice", "why --help", exitOK, "sluice why JOB"},
		{"sluice", "jobs -o xml --from " + file, exitFailed, "-o is wide, json, yaml, name or csv"},
		{"sluice", "jobs --sort-by COLOUR --from " + file, exitFailed, "--sort-by is one of NAME"},
		{"sluice", "jobs -l a=b=c --from " + file, exitFailed, "-l a=b=c"},
		{"sluice", "jobs -n x -A --from " + file, exitFailed, "contradict"},
		{"sluice", "jobs -n x --from " + file, exitOK, "No resources found in x namespace."},
		{"sluice", "why mine -o yaml --from " + file, exitOK, "verdict: HELD"},
		{"sluice", "plan --from " + file, exitFailed, "which file?"},
		{"sluice", "plan -f testdata/answers/held --from " + file, exitFailed, "testdata/answers/held"},
		{"sluice", "what-if queue team-a --from " + file, exitFailed, "change what?"},
		{"sluice", "what-if queue team-a --max gold --from " + file, exitFailed, "--max is RESOURCE=QUANTITY"},
		{"sluice", "jobs --from /nonexistent", exitFailed, "no such file"},
		{"sluice", "why mine -w --from " + file, exitOK, "# 2030-01-01T00:20:00Z"},
		{"sluice", "__complete why --from " + file + " m", exitOK, "mine"},
		{"sluice", "__complete order --from " + file + " team", exitOK, "team-b"},
		{"sluice", "completion bash", exitOK, "__start_sluice"},
	} {
		var out bytes.Buffer
		if code := executeAs(c.called, strings.Fields(c.args), &out, &out); code != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s %s: exit code %d, want %d and %q\n%s", c.called, c.args, code, c.code, c.says, out.String())
		}
	}
}

// A snapshot is what it is taken of, and holds nothing that a manifest hides.
func TestSnapshotOfSnapshot(t *testing.T) {
	file := snapshotOf(t, "mig-layout", 20*time.Minute)
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := execute([]string{"snapshot", "--from", file}, &out, &errs); code != exitOK || out.String() != string(want) {
		t.Errorf("exit code %d, %d bytes became %d\n%s", code, len(want), out.Len(), errs.String())
	}
	if strings.Contains(out.String(), "PASSWORD") {
		t.Error("it holds an environment")
	}
}
