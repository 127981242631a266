package install

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
)

// gate stands between a container and the API server. It passes everything on, and
// writes down what was asked and what was refused.
type gate struct {
	address   string
	authority []byte // PEM

	mu      sync.Mutex
	asked   map[act]bool
	refused map[act]bool
}

// act is a request in the words of a rule.
type act struct{ verb, group, resource string }

func (p *plane) newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{asked: map[act]bool{}, refused: map[act]bool{}}
	target, err := url.Parse(p.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: p.config.CAData, CAFile: p.config.CAFile}})
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) }, // the token travels in the request
		Transport:     &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true},
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			g.note(r.Request, r.StatusCode)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := httptest.NewUnstartedServer(proxy)
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	g.address = server.Listener.Addr().String()
	g.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return g
}

func (g *gate) note(r *http.Request, status int) {
	a, ok := actOf(r.Method, r.URL)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked[a] = true
	if status == http.StatusForbidden {
		g.refused[a] = true
	}
}

// actOf reads a request as the API server's authorizer does.
func actOf(method string, u *url.URL) (act, bool) {
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	a := act{}
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		a.group, parts = parts[1], parts[3:]
	default:
		return a, false // discovery, health
	}
	if parts[0] == "namespaces" && len(parts) > 2 && !slices.Contains([]string{"status", "finalize"}, parts[2]) {
		parts = parts[2:]
	}
	a.resource = parts[0]
	if len(parts) > 2 {
		a.resource += "/" + parts[2]
	}
	named := len(parts) > 1
	switch method {
	case http.MethodGet:
		a.verb = "list"
		switch {
		case named:
			a.verb = "get"
		case u.Query().Get("watch") == "true" || u.Query().Get("watch") == "1":
			a.verb = "watch"
		}
	case http.MethodPost:
		a.verb = "create"
	case http.MethodPut:
		a.verb = "update"
	case http.MethodPatch:
		a.verb = "patch"
	case http.MethodDelete:
		a.verb = "delete"
		if !named {
			a.verb = "deletecollection"
		}
	}
	return a, true
}

// acts are all that rules grant.
func acts(rules []rbacv1.PolicyRule) map[act]bool {
	all := map[act]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all[act{verb, group, resource}] = true
				}
			}
		}
	}
	return all
}
