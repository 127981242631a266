package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/admission/journal"
)

// guests see names of the namespace b alone.
type guests struct{ Everybody }

func (guests) MayList(_ context.Context, _ User, ns string) (bool, error) { return ns == "b", nil }

// History is read from the journal's file, so that it is the same after a restart; who
// may not see a job is not told that there was one.
func TestHistory(t *testing.T) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	path := t.TempDir() + "/journal.db"
	j, err := journal.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(&admission.Decision{At: at, Evict: []admission.Eviction{{Key: "b/small", Cause: admission.Preempted, For: "a/big"}}}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, err = journal.Open(path); err != nil { // the next process
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	records := func(workload, queue string, limit int) ([]admission.Decision, error) {
		return j.History(journal.Filter{Workload: workload, Queue: queue}, limit)
	}
	source := Fixed{Image: admission.NewState(admission.DefaultConfig()).Image(), At: at}
	get := func(a Access, r Records, path string) (int, string) {
		h := New(source, a, time.Now)
		h.Remember(r)
		w := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodGet, path, nil)
		request.Header.Set("Authorization", "Bearer x")
		h.ServeHTTP(w, request)
		return w.Code, w.Body.String()
	}
	for _, c := range []struct {
		access   Access
		records  Records
		path     string
		code     int
		has, not string
	}{
		{Everybody{}, records, "/v1/history/b/small", http.StatusOK, "for a/big", "Took"},
		{Everybody{}, records, "/v1/history/a/big", http.StatusOK, "Took", "Evicted"},
		{guests{}, records, "/v1/history/b/small", http.StatusOK, "a gang of another team", "a/big"},
		{guests{}, records, "/v1/history/a/big", http.StatusNotFound, "there is no job", "Took"},
		{Everybody{}, records, "/v1/history/b/small?limit=0", http.StatusBadRequest, "limit is 1 to", "for"},
		{Everybody{}, nil, "/v1/history/b/small", http.StatusServiceUnavailable, "no journal", "for a"},
	} {
		code, text := get(c.access, c.records, c.path)
		if code != c.code || !strings.Contains(text, c.has) || strings.Contains(text, c.not) {
			t.Errorf("%s: %d %s", c.path, code, text)
		}
	}
}
