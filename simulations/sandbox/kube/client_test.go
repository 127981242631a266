package kube

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return New(server.URL, &tls.Config{RootCAs: pool})
}

func TestRequestsCarryTheirContentType(t *testing.T) {
	var seen []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, strings.TrimSpace(strings.Join([]string{r.Method, r.URL.String(), r.Header.Get("Content-Type"), string(body)}, " ")))
		_, _ = io.WriteString(w, `{"metadata":{"name":"n"}}`)
	})
	var out struct{ Metadata struct{ Name string } }
	in := map[string]any{"a": 1}
	for _, err := range []error{
		c.Read(t.Context(), "/r", &out), c.Create(t.Context(), "/c", in, nil), c.Merge(t.Context(), "/m", in, nil),
		c.Apply(t.Context(), "/a", in), c.Delete(t.Context(), "/d"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []string{
		`GET /r`, `POST /c application/json {"a":1}`, `PATCH /m application/merge-patch+json {"a":1}`,
		`PATCH /a?fieldManager=sandbox&force=true application/apply-patch+yaml {"a":1}`, `DELETE /d`,
	}
	if got := strings.Join(seen, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("requests:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	if out.Metadata.Name != "n" {
		t.Errorf("read %+v", out)
	}
}

func TestRefusalKeepsWhatTheServerSaid(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusConflict)
		if r.URL.Path == "/status" {
			_, _ = io.WriteString(w, `{"kind":"Status","reason":"AlreadyExists","message":"nodes \"n\" already exists"}`)
			return
		}
		_, _ = io.WriteString(w, "plain words\n")
	})
	err := c.Create(t.Context(), "/status", map[string]any{}, nil)
	if !IsCode(err, http.StatusConflict) || !strings.Contains(err.Error(), `nodes "n" already exists`) {
		t.Errorf("got %v", err)
	}
	err = c.Read(t.Context(), "/plain", nil)
	if !IsCode(err, http.StatusConflict) || !strings.Contains(err.Error(), "plain words") {
		t.Errorf("got %v", err)
	}
	if IsCode(err, http.StatusNotFound) || IsCode(nil, 0) {
		t.Error("IsCode matches another code")
	}
}
