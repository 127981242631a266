package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/admission/answer"
	"sluice.dev/sluice/simulations"
)

const twoTeams = `
name: two teams, each with its namespace
nodes:
- {name: h, count: 2, gpus: 8, product: NVIDIA-H100-80GB-HBM3}
queues:
- {name: team-a}
- {name: team-b}
events:
- at: 0s
  submit:
  - {name: ns-a/open, queue: team-a, pods: 1, requests: {nvidia.com/gpu: 8}}
  - {name: ns-b/secret, queue: team-b, pods: 1, requests: {nvidia.com/gpu: 8}}
  - {name: ns-a/more, queue: team-a, pods: 1, requests: {nvidia.com/gpu: 4}}
  - {name: ns-b/hidden, queue: team-b, pods: 2, requests: {nvidia.com/gpu: 8}, priority: 5}
expect: [{at: 1s, admitted: [ns-a/open]}]
`

func scenario(t *testing.T) Copy {
	t.Helper()
	s, err := simulations.Parse("two-teams.yaml", []byte(twoTeams))
	if err != nil {
		t.Fatal(err)
	}
	state, now, err := simulations.StateAt(s, simulations.Options{}, 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return Copy{Image: state.Image(), At: now}
}

// rights is an Access by table: token ▶ namespaces, "" being all of them.
type rights map[string][]string

func (r rights) Who(_ context.Context, token string) (User, error) {
	if _, ok := r[token]; !ok {
		return User{}, ErrUnknown
	}
	return User{Name: token}, nil
}

func (r rights) MayList(_ context.Context, u User, namespace string) (bool, error) {
	if u.Name == "broken" {
		return true, errors.New("the API server is away")
	}
	for _, ns := range r[u.Name] {
		if ns == namespace || ns == "" {
			return true, nil
		}
	}
	return false, nil
}

func ask(t *testing.T, h http.Handler, method, path, token, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if token != "" {
		r.Header.Set(TokenHeader, "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// questions are all that may be asked, with the kind of the answer.
var questions = []struct{ method, path, body, kind string }{
	{"GET", "/v1/snapshot", "", "Snapshot"},
	{"GET", "/v1/jobs", "", "JobList"},
	{"GET", "/v1/queues", "", "QueueList"},
	{"GET", "/v1/nodes", "", "NodeList"},
	{"GET", "/v1/map?node=h-0", "", "MapList"},
	{"GET", "/v1/drift", "", "DriftList"},
	{"GET", "/v1/lint", "", "FindingList"},
	{"GET", "/v1/check", "", "ViolationList"},
	{"GET", "/v1/order/team-b", "", "TurnList"},
	{"GET", "/v1/why/ns-a/more", "", "Why"},
	{"GET", "/v1/priority/ns-a/more", "", "Priority"},
	{"POST", "/v1/plan", `{"key": "ns-a/new", "queue": "team-a", "podSets": [{"name": "main", "count": 1, "min": 1, "request": {"nvidia.com/gpu": 2}}]}`, "Plan"},
	{"POST", "/v1/what-if", `{"queue": "team-b", "weight": 4}`, "WhatIf"},
}

func TestQuestions(t *testing.T) {
	c := scenario(t)
	h := New(Fixed(c), Everybody{}, func() time.Time { return c.At.Add(300 * time.Millisecond) })
	for _, q := range questions {
		code, body := ask(t, h, q.method, q.path, "", q.body)
		var e answer.Envelope
		if err := json.Unmarshal([]byte(body), &e); err != nil || code != http.StatusOK {
			t.Errorf("%s %s: %d %s: %v", q.method, q.path, code, body, err)
			continue
		}
		if e.Kind != q.kind || e.APIVersion != answer.Version || !e.Time.Equal(c.At) {
			t.Errorf("%s %s is %s %s of %s", q.method, q.path, e.APIVersion, e.Kind, e.Time)
		}
		if q.kind != "Snapshot" && (e.AgeMillis == nil || *e.AgeMillis != 300) {
			t.Errorf("%s %s does not say that it is 300 ms old: %s", q.method, q.path, body)
		}
	}
	for _, c := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"GET", "/v1/why/ns-a/nobody", "", http.StatusNotFound, "there is no job ns-a/nobody"},
		{"GET", "/v1/order/nobody", "", http.StatusNotFound, "there is no queue nobody"},
		{"GET", "/v1/map?node=nobody", "", http.StatusNotFound, "there is no node nobody"},
		{"POST", "/v1/plan", `{"colour": 1}`, http.StatusBadRequest, "unknown field"},
		{"POST", "/v1/plan", `{"key": "ns-a/more", "queue": "team-a", "podSets": []}`, http.StatusBadRequest, "there is a job ns-a/more already"},
		{"POST", "/v1/what-if", `{"queue": "team-b", "weight": -1}`, http.StatusBadRequest, "below 0"},
		{"POST", "/v1/what-if", `{"queue": "team-b", "nominal": {"gold": 1}}`, http.StatusBadRequest, "gold"},
		{"POST", "/v1/jobs", "", http.StatusMethodNotAllowed, ""},
	} {
		if code, body := ask(t, h, c.method, c.path, "", c.body); code != c.code || !strings.Contains(body, c.says) {
			t.Errorf("%s %s: %d %s, want %d %q", c.method, c.path, code, body, c.code, c.says)
		}
	}
}

// Whoever may not list the Workloads of a namespace finds none of its names in any
// answer; who may finds them.
func TestNamesAreSeenByRight(t *testing.T) {
	c := scenario(t)
	h := New(Fixed(c), rights{"alice": {"ns-a"}, "bob": {"ns-b"}, "root": {""}, "broken": {""}, "guest": nil}, func() time.Time { return c.At })
	hidden := func(token string, names ...string) {
		for _, q := range questions {
			_, body := ask(t, h, q.method, q.path, token, q.body)
			for _, n := range names {
				if strings.Contains(body, n) {
					t.Errorf("%s sees %s in %s %s: %s", token, n, q.method, q.path, body)
				}
			}
		}
	}
	hidden("alice", "secret", "hidden", "ns-b")
	hidden("bob", "ns-a/open")
	hidden("guest", "ns-a/open", "secret", "hidden", "ns-b")
	for token, names := range map[string][]string{"alice": {"ns-a/open", "a gang of team-b ("}, "bob": {"ns-b/secret", "a gang of team-a ("}, "root": {"ns-a/open", "ns-b/secret"}} {
		_, body := ask(t, h, "GET", "/v1/jobs", token, "")
		for _, n := range names {
			if !strings.Contains(body, n) {
				t.Errorf("%s does not see %q: %s", token, n, body)
			}
		}
	}
	if code, _ := ask(t, h, "GET", "/v1/why/ns-b/hidden", "alice", ""); code != http.StatusNotFound {
		t.Errorf("alice may ask why of a job that she may not see: %d", code)
	}
	for token, want := range map[string]int{"": http.StatusUnauthorized, "mallory": http.StatusUnauthorized, "broken": http.StatusInternalServerError} {
		if code, body := ask(t, h, "GET", "/v1/jobs", token, ""); code != want || strings.Contains(body, "ns-") {
			t.Errorf("%q gets %d %s, want %d", token, code, body, want)
		}
	}
	// What is concealed decides the same.
	seen, unseen := answer.New(c.Image, c.At), answer.New(answer.Conceal(c.Image, func(string) bool { return false }), c.At)
	a, b := seen.Jobs(), unseen.Jobs()
	for i := range a {
		if len(a) != len(b) || a[i].Reason != b[i].Reason || a[i].Position != b[i].Position || a[i].Queue != b[i].Queue {
			t.Fatalf("with names %+v, without %+v", a, b)
		}
	}
	if bad := unseen.Check(); len(bad) > 0 {
		t.Error(bad)
	}
}

// The owner of the state is asked only when somebody asks, answers are shared, and
// nobody waits for ever.
func TestDesk(t *testing.T) {
	c := scenario(t)
	var mu sync.Mutex
	now := c.At
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	d := NewDesk(clock)
	state := admission.NewStateOf(c.Image)
	ctx, stop := context.WithCancel(t.Context())
	puts := 0
	var owner sync.WaitGroup
	owner.Go(func() { // it goes on deciding while others read what it gave them
		for {
			select {
			case <-ctx.Done():
				return
			case <-d.Asked():
				puts++
				d.Put(state.Image(), clock())
			default:
				state.Apply(admission.Assumed{Decision: admission.Cycle(state, clock())})
			}
		}
	})
	h := New(d, Everybody{}, clock)
	var askers sync.WaitGroup
	for range 4 {
		askers.Go(func() {
			for range 5 {
				if code, body := ask(t, h, "GET", "/v1/why/ns-a/more", "", ""); code != http.StatusOK {
					t.Errorf("%d %s", code, body)
				}
			}
		})
	}
	askers.Wait()
	mu.Lock()
	now = now.Add(2 * MaxAge)
	mu.Unlock()
	ask(t, h, "GET", "/v1/jobs", "", "")
	stop()
	owner.Wait()
	if puts < 2 || puts > 6 {
		t.Errorf("21 questions in two instants took %d copies", puts)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	mu.Lock()
	now = now.Add(2 * MaxAge)
	mu.Unlock()
	if _, err := d.Copy(gone, MaxAge); !errors.Is(err, errNoCopy) {
		t.Errorf("without an owner: %v", err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(gone, "GET", "/v1/jobs", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("without an owner: %d", w.Code)
	}
}

func TestServe(t *testing.T) {
	c := scenario(t)
	cert, err := SelfSigned(time.Now(), "sluice-api.sluice-system.svc")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	at := make(chan string, 1)
	done := make(chan error, 1)
	h := New(Fixed(c), Everybody{}, func() time.Time { return c.At })
	go func() { done <- Serve(ctx, "127.0.0.1:0", h, cert, func(a netAddr) { at <- a.String() }) }()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: insecure(), DisableKeepAlives: true}}
	res, err := client.Get("https://" + <-at + "/v1/queues")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(body), "team-b") {
		t.Errorf("%d %s: %v", res.StatusCode, body, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
