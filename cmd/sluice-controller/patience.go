package main

import (
	"errors"
	"net/http"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// retryEvery is how often an API server that does not listen is asked again.
const retryEvery = 500 * time.Millisecond

// bePatient lets reads wait while nobody listens at the API server's address, and
// go on as soon as it is ready again. Without it every informer would climb its own
// backoff, up to half a minute, and be blind that much longer than the API server
// was away. Writes are not held back: the loop must learn that they failed.
func bePatient(c *rest.Config) {
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return patient{next} })
}

type patient struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(r)
	if r.Method != http.MethodGet || !errors.Is(err, syscall.ECONNREFUSED) {
		return response, err
	}
	for {
		select {
		case <-r.Context().Done():
			return nil, err
		case <-time.After(retryEvery):
		}
		if p.ready(r) {
			return p.next.RoundTrip(r)
		}
	}
}

// ready asks the server of r, with the same credentials, whether it is ready. One
// that listens but is still starting would answer some reads with "forbidden".
func (p patient) ready(r *http.Request) bool {
	ask := r.Clone(r.Context())
	ask.URL.Path, ask.URL.RawPath, ask.URL.RawQuery = "/readyz", "", ""
	response, err := p.next.RoundTrip(ask)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode == http.StatusOK
}
