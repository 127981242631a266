package webhook

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/admission/jobs"
)

// Names of the objects that the deployment ships empty and this package fills.
const (
	// ConfigurationName is both the MutatingWebhookConfiguration and the
	// ValidatingWebhookConfiguration.
	ConfigurationName = "sluice"
	// SecretName is in Options.Namespace.
	SecretName = "sluice-webhook-cert"
)

// Options says where the webhooks listen, how the API server reaches them, and
// for which kinds.
type Options struct {
	// Namespace is sluice's own; the Secret and the Service are there.
	Namespace string
	// Host and Port are where the server listens; no Host means all addresses.
	Host string
	Port int
	// CertDir holds tls.crt and tls.key, and ca.crt if they are not rotated here.
	CertDir string
	// Rotate says that certificates are made, stored and renewed here.
	Rotate bool
	// URL is how the API server reaches the server, if it is not through the
	// Service.
	URL string
	// ServiceName and ServicePort are used if URL is empty.
	ServiceName string
	ServicePort int
	// Frameworks are the enabled job integrations.
	Frameworks []string
	// Kinds are further kinds, enabled as well.
	Kinds []jobs.Kind
	// Volcano takes over pods that ask for Volcano's scheduler.
	Volcano bool
	// Submit tells submitters what can be known of the devices that they ask for;
	// Refuse refuses what can never start.
	Submit, Refuse bool
	// ExcludedNamespaces are never asked about.
	ExcludedNamespaces []string
}

func (o Options) secret() types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: SecretName}
}

// hosts are the names that the certificate must hold, the one that the API
// server verifies first.
func (o Options) hosts() (string, []string, error) {
	service := fmt.Sprintf("%s.%s.svc", o.ServiceName, o.Namespace)
	if o.URL == "" {
		if o.ServiceName == "" || o.Namespace == "" {
			return "", nil, errors.New("webhooks need a URL, or a service and its namespace")
		}
		return service, []string{service + ".cluster.local", "localhost"}, nil
	}
	u, err := url.Parse(o.URL)
	if err != nil {
		return "", nil, fmt.Errorf("parse webhook URL: %w", err)
	}
	if u.Scheme != "https" || u.Hostname() == "" {
		return "", nil, fmt.Errorf("webhook URL %q, want https://HOST:PORT", o.URL)
	}
	return u.Hostname(), []string{service}, nil
}

// endpoint is the URL of one handler's path.
func (o Options) endpoint(path string) string {
	return strings.TrimSuffix(o.URL, "/") + path
}
