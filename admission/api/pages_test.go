package api

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/admission/api/pages"
)

// everyPage is all pages, with what is asked of those that speak of one thing.
var everyPage = []string{
	"/ui/", "/ui/queues", "/ui/queue?name=team-a", "/ui/queue?name=team-b", "/ui/jobs", "/ui/map", "/ui/drift", "/ui/job?name=ns-a%2Fmore", "/ui/job?name=ns-b%2Fhidden",
	"/ui/what-if?queue=team-b&weight=4", "/ui/jobs?format=csv", "/ui/map?format=csv", "/ui/queue?name=team-b&format=csv",
}

// What holds of answers holds of pages: nobody finds a name there that they may not list.
func TestPagesShowNamesByRight(t *testing.T) {
	c := scenario(t)
	h := New(Fixed(c), rights{"alice": {"ns-a"}, "bob": {"ns-b"}, "root": {""}, "broken": {""}, "guest": nil}, func() time.Time { return c.At })
	for token, names := range map[string][]string{"alice": {"ns-b/secret", "ns-b/hidden"}, "bob": {"ns-a/open"}, "guest": {"ns-a/open", "ns-b/secret", "ns-b/hidden"}} {
		for _, p := range everyPage {
			if strings.Contains(p, "ns-") {
				continue // what they ask for is told back
			}
			code, body := ask(t, h, "GET", p, token, "")
			for _, n := range names {
				if strings.Contains(body, n) {
					t.Errorf("%s sees %s in %s (%d): %s", token, n, p, code, body)
				}
			}
		}
	}
	for _, x := range []struct {
		path, token string
		code        int
		says        string
	}{
		{"/ui/jobs", "alice", http.StatusOK, "a gang of team-b ("},
		{"/ui/map", "alice", http.StatusOK, "a gang of team-b ("},
		{"/ui/jobs", "root", http.StatusOK, "ns-b/secret"},
		{"/ui/job?name=ns-b%2Fhidden", "alice", http.StatusNotFound, "there is no job"},
		{"/ui/", "", http.StatusUnauthorized, "sluice ui"},
		{"/ui/", "mallory", http.StatusUnauthorized, "does not know this token"},
		{"/ui/", "broken", http.StatusInternalServerError, "the API server is away"},
		{"/ui/nothing", "root", http.StatusNotFound, "there is no page nothing"},
		{"/ui", "root", http.StatusFound, ""},
	} {
		if code, body := ask(t, h, "GET", x.path, x.token, ""); code != x.code || !strings.Contains(body, x.says) {
			t.Errorf("%q opens %s: %d %s, want %d %q", x.token, x.path, code, body, x.code, x.says)
		}
	}
}

// Shares are sampled while somebody follows, and a replica that has no state yet goes
// on trying.
func TestFollow(t *testing.T) {
	c := scenario(t)
	var mu sync.Mutex
	leads, asked := false, make(chan struct{}, 100)
	source := sourceFunc(func() (Copy, error) {
		mu.Lock()
		defer mu.Unlock()
		asked <- struct{}{}
		if !leads {
			return Copy{}, errNoCopy
		}
		c.At = c.At.Add(time.Minute)
		return c, nil
	})
	h := New(source, Everybody{}, time.Now)
	h.sample(t.Context())
	if _, body := ask(t, New(Fixed(c), Everybody{}, time.Now), "GET", "/ui/queue?name=team-a", "", ""); !strings.Contains(body, "Nothing yet") {
		t.Errorf("without samples: %s", body)
	}
	leads = true
	for range 3 {
		h.sample(t.Context())
	}
	if _, body := ask(t, h, "GET", "/ui/queue?name=team-a", "", ""); !strings.Contains(body, "Share over time, ") {
		t.Errorf("three samples draw no line: %s", body)
	}
	ctx, stop := context.WithCancel(t.Context())
	var follower sync.WaitGroup
	follower.Go(func() { h.Follow(ctx) })
	for len(asked) > 0 {
		<-asked
	}
	<-asked // it begins at once
	stop()
	follower.Wait()
	if pages.SampleEvery <= 0 {
		t.Error("it never rests")
	}
}

// sourceFunc is a Source by its one method.
type sourceFunc func() (Copy, error)

func (f sourceFunc) Copy(context.Context, time.Duration) (Copy, error) { return f() }
