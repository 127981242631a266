package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"sluice.dev/sluice/cmd/sluice-controller/config"
)

// errNotLeading is why a write was not sent.
var errNotLeading = errors.New("not sent: the lease was not renewed in time, another controller may lead")

// fence keeps a controller that has led from writing once it can no longer be sure
// that it still leads. One that was held for longer than its lease (its machine
// swapped, or was moved) wakes up in the middle of what it did, and would write to
// a cluster that another has gone on with: two gangs would be promised one node,
// though each Workload was written once. Nothing the API server compares would notice.
//
// It is told nothing: it sees the renewals of the lease go by. After one that was sent
// at t the others wait until t + leaseDuration; writes go until t + renewDeadline, and
// what is between is for those under way. Before the first renewal nothing is held back:
// a standby has certificates to write.
type fence struct {
	now  func() time.Time
	path string        // of the lease
	open time.Duration // after a renewal

	mu      sync.Mutex
	renewed time.Time // when the last renewal was sent; zero before the first
}

// putFence puts a fence before the API server.
func putFence(c *rest.Config, settings config.Configuration) {
	if !settings.LeaderElection.Enabled {
		return
	}
	f := &fence{
		now: time.Now, open: settings.LeaderElection.RenewDeadline,
		path: fmt.Sprintf("/apis/coordination.k8s.io/v1/namespaces/%s/leases/%s", settings.Namespace, settings.LeaderElection.ResourceName),
	}
	// One for all clients that are made of c: the lease is renewed through another
	// than the writes go through.
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return fenced{next: next, fence: f} })
}

type fenced struct {
	next  http.RoundTripper
	fence *fence
}

// RoundTrip implements http.RoundTripper.
func (f fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := f.fence.now()
	if f.fence.isRenewal(r) {
		response, err := f.next.RoundTrip(r)
		if err == nil && response.StatusCode/100 == 2 {
			f.fence.renew(sent)
		}
		return response, err
	}
	if r.Method != http.MethodGet && !f.fence.leads(sent) {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, errNotLeading)
	}
	return f.next.RoundTrip(r)
}

// isRenewal says whether the request takes or keeps the lease.
func (f *fence) isRenewal(r *http.Request) bool {
	if r.Method == http.MethodPost {
		return r.URL.Path == f.path[:strings.LastIndexByte(f.path, '/')] // only a leader to be makes one there
	}
	return r.Method == http.MethodPut && r.URL.Path == f.path
}

func (f *fence) renew(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = at
}

// leads says whether a write may go at that time. The longer of the two clocks counts:
// one stands still while the machine sleeps, the other may be set back.
func (f *fence) leads(at time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.renewed.IsZero() {
		return true
	}
	since := max(at.Sub(f.renewed), at.Round(0).Sub(f.renewed.Round(0)))
	return since < f.open
}
