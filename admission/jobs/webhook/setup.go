package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	arv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Hooks tells when the webhooks are in place.
type Hooks struct {
	ready chan struct{}

	mu      sync.Mutex
	missing error // what is still awaited
}

// Ready is closed when the server listens, the API server trusts its
// certificate, and both configurations hold every entry. It is never reopened.
func (h *Hooks) Ready() <-chan struct{} { return h.ready }

// Check is a readiness check that says what is still awaited.
func (h *Hooks) Check(*http.Request) error {
	select {
	case <-h.ready:
		return nil
	default:
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.missing
	}
}

func (h *Hooks) await(what error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.missing = what
}

// Setup adds to a manager that has not started all that the webhooks need
// besides their handlers. The manager's webhook server must be of NewServer,
// with the same options.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) (*Hooks, error) {
	log := mgr.GetLogger().WithName("webhook")
	host, others, err := o.hosts()
	if err != nil {
		return nil, err
	}
	if o.Rotate {
		if net.ParseIP(host) != nil {
			return nil, fmt.Errorf("webhook URL %q names an IP address, want a host name: certificates made here name hosts only", o.URL)
		}
		certificates := newRotator(o, host, others)
		if err := seed(ctx, mgr.GetAPIReader(), mgr.GetClient(), certificates); err != nil {
			return nil, err
		}
		f := &files{reader: mgr.GetAPIReader(), secret: o.secret(), certDir: o.CertDir, log: log}
		// After a restart the certificate is at hand at once.
		if err := f.copy(ctx); err != nil && !errors.Is(err, errNoCertificate) {
			return nil, err
		}
		if err := mgr.Add(f); err != nil {
			return nil, err
		}
		if err := rotator.AddRotator(mgr, certificates); err != nil {
			return nil, fmt.Errorf("add certificate rotator: %w", err)
		}
	}
	if o.Volcano {
		serveTakeOver(mgr)
	}
	if o.Submit {
		serveSubmit(mgr, o.Refuse)
	}
	if err := mgr.Add(&configurer{reader: mgr.GetAPIReader(), writer: mgr.GetClient(), options: o, log: log}); err != nil {
		return nil, err
	}
	hooks := &Hooks{ready: make(chan struct{}), missing: errors.New("webhooks have not started yet")}
	return hooks, mgr.Add(&observer{
		hooks: hooks, listening: mgr.GetWebhookServer().StartedChecker(),
		reader: mgr.GetAPIReader(), options: o, host: host, log: log,
	})
}

// Withdraw empties both configurations, for a controller whose webhooks are
// switched off: what an earlier one filled in would refuse queued objects.
func Withdraw(ctx context.Context, reader client.Reader, writer client.Client) error {
	mutating := &arv1.MutatingWebhookConfiguration{}
	validating := &arv1.ValidatingWebhookConfiguration{}
	for object, entries := range map[client.Object]func() int{
		mutating:   func() int { n := len(mutating.Webhooks); mutating.Webhooks = nil; return n },
		validating: func() int { n := len(validating.Webhooks); validating.Webhooks = nil; return n },
	} {
		err := reader.Get(ctx, client.ObjectKey{Name: ConfigurationName}, object)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil && entries() > 0 {
			err = writer.Update(ctx, object)
		}
		if err != nil {
			return fmt.Errorf("empty %s %s: %w", kindOf(object), ConfigurationName, err)
		}
	}
	return nil
}
