package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"sluice.dev/sluice/cmd/sluice-controller/config"
)

// server counts what reaches it, and answers what it is told to.
type server struct {
	mu     sync.Mutex
	status int
	got    map[string]int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got[r.Method]++
	w.WriteHeader(s.status)
}

const leasePath = "/apis/coordination.k8s.io/v1/namespaces/sluice-system/leases/sluice-controller"

// TestFence follows a controller that leads, is held for longer than its lease, and
// wakes up.
func TestFence(t *testing.T) {
	s := &server{status: http.StatusOK, got: make(map[string]int)}
	web := httptest.NewServer(s)
	defer web.Close()
	settings := config.Default()
	settings.LeaderElection.Enabled = true
	now := time.Now()
	f := &fence{now: func() time.Time { return now }, path: leasePath, open: settings.LeaderElection.RenewDeadline}
	send := func(method, path string) error {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, web.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := fenced{next: http.DefaultTransport, fence: f}.RoundTrip(r)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	write := func(want error) {
		t.Helper()
		before := s.got[http.MethodPatch]
		err := send(http.MethodPatch, "/api/v1/namespaces/team-a/pods/train-0")
		if !errors.Is(err, want) {
			t.Errorf("a write after %v: %v, want %v", now.Sub(f.renewed), err, want)
		}
		if reached := s.got[http.MethodPatch] > before; reached != (want == nil) {
			t.Errorf("a write that should say %v reached the server: %v", want, reached)
		}
	}
	renew := func(status int) {
		t.Helper()
		s.status = status
		if err := send(http.MethodPut, leasePath); err != nil {
			t.Error(err)
		}
		s.status = http.StatusOK
	}

	write(nil) // a standby
	renew(http.StatusOK)
	now = now.Add(settings.LeaderElection.RenewDeadline - time.Millisecond)
	write(nil)
	renew(http.StatusConflict) // another was faster
	now = now.Add(time.Millisecond)
	write(errNotLeading)
	if err := send(http.MethodGet, "/api/v1/nodes"); err != nil {
		t.Errorf("a read: %v", err)
	}
	renew(http.StatusOK)
	write(nil)
	now = now.Round(0).Add(-time.Hour) // a wall clock that is set back leaves it open
	write(nil)
	now = now.Add(2 * time.Hour)
	write(errNotLeading)
}

// TestFenceStands: all clients made of one configuration share a fence, and without
// leader election there is none.
func TestFenceStands(t *testing.T) {
	settings := config.Default()
	c := &rest.Config{}
	putFence(c, settings)
	if c.WrapTransport != nil {
		t.Error("a single controller has a fence")
	}
	settings.LeaderElection.Enabled = true
	putFence(c, settings)
	a, isA := c.WrapTransport(http.DefaultTransport).(fenced)
	b, isB := rest.CopyConfig(c).WrapTransport(http.DefaultTransport).(fenced)
	if !isA || !isB || a.fence != b.fence || a.fence.path != leasePath {
		t.Errorf("two clients have the fences %v and %v", a.fence, b.fence)
	}
}
