package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestReadsWaitForTheServer asks a server that is not there yet, then one that is
// there but not ready: the read is answered once it is, and never by the latter.
func TestReadsWaitForTheServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	asked := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			if asked++; asked < 3 {
				w.WriteHeader(http.StatusInternalServerError)
			}
			return
		}
		if asked < 3 {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, r.URL.String())
	}))
	defer server.Close()
	go func() {
		time.Sleep(retryEvery)
		if l, err := net.Listen("tcp", address); err == nil {
			server.Listener = l
			server.Start()
		}
	}()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/api?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := patient{http.DefaultTransport}.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK || string(body) != "/api?watch=1" {
		t.Fatalf("got %d %s", response.StatusCode, body)
	}
}

// TestWritesDoNotWait: a write to a server that is not there fails at once, and a
// read ends with its context.
func TestWritesDoNotWait(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for method, ctx := range map[string]context.Context{http.MethodPatch: t.Context(), http.MethodGet: ended} {
		request, err := http.NewRequestWithContext(ctx, method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := (patient{http.DefaultTransport}).RoundTrip(request); err == nil {
			_ = response.Body.Close()
			t.Errorf("%s was answered by nobody", method)
		}
	}
}
