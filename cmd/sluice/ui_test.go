package main

import (
	"bytes"
	"fmt"
	"io"
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

// uiOf is the handler of `sluice ui` in front of an API server that leads to the
// pages of a story, with what reached that API server besides.
func uiOf(t *testing.T, l live) (h http.Handler, reached *[]string) {
	t.Helper()
	f, err := os.Open(snapshotOf(t, "labels-lost", 20*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := answer.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	im, err := s.Image()
	if err != nil {
		t.Fatal(err)
	}
	controller := api.New(api.Fixed{Image: im, At: s.Time}, onlyAlice{}, time.Now)
	reached = &[]string{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const proxy = "/api/v1/namespaces/sluice-system/services/https:sluice-api:8444/proxy"
		if strings.HasPrefix(r.URL.Path, proxy) {
			r.Header.Del("Authorization") // as the API server does
			http.StripPrefix(proxy, controller).ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		*reached = append(*reached, fmt.Sprintf("%s %s %s %s %q", r.Method, r.URL.Path, r.Header.Get("Authorization"), body, r.Header.Get("Cookie")))
		fmt.Fprint(w, `{"metadata": {"resourceVersion": "7"}}`)
	}))
	t.Cleanup(server.Close)
	l.kubeconfig = filepath.Join(t.TempDir(), "config")
	l.service = "https:sluice-system/sluice-api:8444"
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {server: %q, insecure-skip-tls-verify: true}}]\nusers: [{name: x, user: {token: alices}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n", server.URL)
	if err := os.WriteFile(l.kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	inner, err := uiHandler(t.Context(), "", &l)
	if err != nil {
		t.Fatal(err)
	}
	return behind("SECRET", inner), reached
}

func send(t *testing.T, h http.Handler, method, target, body string, change func(*http.Request)) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:8445"+target, strings.NewReader(body))
	r.RequestURI = ""
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// The kubeconfig's token goes to the controller too, and nobody else gets in: not
// without the secret, not by another name, not to another path of the API server.
func TestUILeadsToPages(t *testing.T) {
	h, reached := uiOf(t, live{})
	if code, body := send(t, h, "GET", "/SECRET/ui/job?name=train-llm", "", nil); code != http.StatusOK || !strings.Contains(body, "NOT NOW") {
		t.Errorf("alice: %d %s", code, body)
	}
	if code, body := send(t, h, "GET", "/SECRET/ui/what-if?queue=team-a&weight=3", "", nil); code != http.StatusOK || !strings.Contains(body, `id="apply"`) {
		t.Errorf("a change is not offered: %d %s", code, body)
	}
	guest, _ := uiOf(t, live{token: "guests"})
	if code, body := send(t, guest, "GET", "/SECRET/ui/jobs", "", nil); code != http.StatusOK || strings.Contains(body, "train-llm") || !strings.Contains(body, "a gang of team-a") {
		t.Errorf("a guest: %d %s", code, body)
	}
	stranger, _ := uiOf(t, live{token: "mallorys"})
	if code, body := send(t, stranger, "GET", "/SECRET/ui/jobs", "", nil); code != http.StatusUnauthorized || !strings.Contains(body, "does not know this token") {
		t.Errorf("a stranger: %d %s", code, body)
	}
	for _, c := range []struct{ method, target string }{
		{"GET", "/ui/"},
		{"GET", "/WRONG/ui/"},
		{"GET", "/SECRET"},
		{"POST", "/SECRET/ui/"},
		{"GET", "/SECRET/api/v1/secrets"},
		{"GET", "/SECRET/apis/kueue.x-k8s.io/v1beta2/workloads"},
		{"DELETE", "/SECRET/apis/kueue.x-k8s.io/v1beta2/clusterqueues/a"},
		{"PATCH", "/SECRET/apis/kueue.x-k8s.io/v1beta2/clusterqueues/a/status"},
		{"PATCH", "/SECRET/ui/../apis/x"},
		{"GET", "/SECRET/apis/kueue.x-k8s.io/v1beta2/clusterqueues/..%2f..%2f..%2f..%2fapi%2fv1%2fsecrets"},
	} {
		if code, body := send(t, h, c.method, c.target, "", nil); code != http.StatusNotFound {
			t.Errorf("%s %s: %d %s", c.method, c.target, code, body)
		}
	}
	if code, _ := send(t, h, "GET", "/SECRET/ui/", "", func(r *http.Request) { r.Host = "rebound.example:8445" }); code != http.StatusNotFound {
		t.Errorf("another name: %d", code)
	}
	if len(*reached) > 0 {
		t.Errorf("these reached the API server: %q", *reached)
	}
	const queue = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/team-a"
	if code, body := send(t, h, "PATCH", "/SECRET"+queue, `{"spec": {}}`, func(r *http.Request) { r.Header.Set("Cookie", "x=y"); r.Header.Set("Authorization", "Bearer other") }); code != http.StatusOK {
		t.Errorf("a change: %d %s", code, body)
	}
	if want := "PATCH " + queue + ` Bearer alices {"spec": {}} ""`; len(*reached) != 1 || (*reached)[0] != want {
		t.Errorf("reached %q, want %q", *reached, want)
	}
}

func TestUIOfFile(t *testing.T) {
	h, err := uiHandler(t.Context(), snapshotOf(t, "labels-lost", 20*time.Minute), &live{})
	if err != nil {
		t.Fatal(err)
	}
	if code, body := send(t, behind("S", h), "GET", "/S/ui/map", "", nil); code != http.StatusOK || !strings.Contains(body, "n7") {
		t.Errorf("%d %s", code, body)
	}
	for _, c := range []struct{ args, says string }{
		{"ui --listen 0.0.0.0:8445 --from x", "could be reached from elsewhere"},
		{"ui --listen nowhere --from x", "--listen"},
		{"ui --from /nonexistent", "no such file"},
		{"ui --kubeconfig /nonexistent", "which cluster?"},
	} {
		var out bytes.Buffer
		if code := execute(strings.Fields(c.args), &out, &out); code != exitFailed || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: exit code %d, want %q\n%s", c.args, code, c.says, out.String())
		}
	}
}
