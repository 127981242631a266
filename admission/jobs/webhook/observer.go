package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	arv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observer closes Hooks.ready once the API server can call the webhooks. It
// looks at what is there rather than at what our own parts have done: on a
// replica that does not lead, and after a restart, it is the work of others.
type observer struct {
	hooks     *Hooks
	listening func(*http.Request) error
	reader    client.Reader
	options   Options
	host      string
	log       logr.Logger
}

func (o *observer) NeedLeaderElection() bool { return false }

func (o *observer) Start(ctx context.Context) error {
	for {
		err := o.observe(ctx)
		if err == nil {
			o.log.Info("webhooks are in place")
			close(o.hooks.ready)
			return nil
		}
		o.hooks.await(err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(soon):
		}
	}
}

// observe returns what is still missing.
func (o *observer) observe(ctx context.Context) error {
	if err := o.listening(nil); err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(o.options.CertDir, certFile), filepath.Join(o.options.CertDir, keyFile))
	if err != nil {
		return fmt.Errorf("load webhook certificate: %w", err)
	}
	bundles, err := configured(ctx, o.reader)
	if err != nil {
		return err
	}
	for _, h := range append(o.options.mutating(), o.options.validating()...) {
		bundle, found := bundles[h.name]
		if !found {
			return fmt.Errorf("webhook %s is not configured yet", h.name)
		}
		if err := verify(pair.Leaf, bundle, o.host); err != nil {
			return fmt.Errorf("webhook %s: the API server does not trust our certificate yet: %w", h.name, err)
		}
	}
	return nil
}

// configured returns the caBundle of every entry of both configurations.
func configured(ctx context.Context, reader client.Reader) (map[string][]byte, error) {
	var mutating arv1.MutatingWebhookConfiguration
	var validating arv1.ValidatingWebhookConfiguration
	for _, object := range []client.Object{&mutating, &validating} {
		if err := reader.Get(ctx, client.ObjectKey{Name: ConfigurationName}, object); err != nil {
			return nil, err
		}
	}
	bundles := map[string][]byte{}
	for _, w := range mutating.Webhooks {
		bundles[w.Name] = w.ClientConfig.CABundle
	}
	for _, w := range validating.Webhooks {
		bundles[w.Name] = w.ClientConfig.CABundle
	}
	return bundles, nil
}

// verify does what the API server will do with the certificate.
func verify(leaf *x509.Certificate, bundle []byte, host string) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return errors.New("no caBundle")
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
	return err
}
