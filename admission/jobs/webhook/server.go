package webhook

import (
	"context"
	"crypto/tls"
	"net/http"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
)

// How often a file or object that must appear is looked for.
const soon = 100 * time.Millisecond

// NewServer returns the server for the manager. It begins to listen when its
// certificate is there, and takes up a renewed one by itself.
func NewServer(o Options) crwebhook.Server {
	return &server{
		Server: crwebhook.NewServer(crwebhook.Options{
			Host: o.Host, Port: o.Port, CertDir: o.CertDir,
			TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion = tls.VersionTLS12 }},
		}),
		certDir: o.CertDir,
	}
}

type server struct {
	crwebhook.Server
	certDir string
}

func (s *server) Start(ctx context.Context) error {
	for !hasPair(s.certDir) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(soon):
		}
	}
	return s.Server.Start(ctx)
}

func hasPair(certDir string) bool {
	_, err := tls.LoadX509KeyPair(filepath.Join(certDir, certFile), filepath.Join(certDir, keyFile))
	return err == nil
}

// Disabled returns a server that serves nothing, for a manager without
// webhooks: the job integrations register their handlers in any case.
func Disabled() crwebhook.Server { return disabled{mux: http.NewServeMux()} }

type disabled struct{ mux *http.ServeMux }

func (disabled) NeedLeaderElection() bool        { return false }
func (disabled) Register(string, http.Handler)   {}
func (disabled) StartedChecker() healthz.Checker { return healthz.Ping }
func (d disabled) WebhookMux() *http.ServeMux    { return d.mux }
func (disabled) Start(ctx context.Context) error { <-ctx.Done(); return nil }
