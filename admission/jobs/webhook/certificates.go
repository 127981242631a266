package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	certFile = corev1.TLSCertKey
	keyFile  = corev1.TLSPrivateKeyKey
	caFile   = "ca.crt"
)

// How long the certificates last. The rotator renews each 90 days before.
const (
	caLasts   = 10 * 365 * 24 * time.Hour
	certLasts = 365 * 24 * time.Hour
)

// newRotator has certificates renewed and announced: it writes the Secret and
// the caBundle of both configurations.
func newRotator(o Options, host string, others []string) *rotator.CertRotator {
	return &rotator.CertRotator{
		SecretKey:          o.secret(),
		CertDir:            o.CertDir,
		CAName:             "sluice-ca",
		CAOrganization:     "sluice",
		DNSName:            host,
		ExtraDNSNames:      others,
		ExtKeyUsages:       &[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		CaCertDuration:     caLasts,
		ServerCertDuration: certLasts,
		// It closes this a second or two after the fact; the observer looks
		// for itself.
		IsReady:        make(chan struct{}),
		FieldOwner:     "sluice-cert-rotator",
		ControllerName: rotatorName(),
		Webhooks: []rotator.WebhookInfo{
			{Name: ConfigurationName, Type: rotator.Mutating},
			{Name: ConfigurationName, Type: rotator.Validating},
		},
		// The server reloads its files, so a renewal needs no restart. Every
		// replica serves webhooks and needs them, leader or not.
		RestartOnSecretRefresh: false,
		RequireLeaderElection:  false,
	}
}

var rotators atomic.Int32

// rotatorName is another one for each rotator of this process: controller
// names must be unique, and a test may start the manager again.
func rotatorName() string {
	if n := rotators.Add(1); n > 1 {
		return fmt.Sprintf("webhook-cert-rotator-%d", n)
	}
	return "webhook-cert-rotator"
}

// seed makes the first certificates. The rotator would, but it begins at two
// places at once and reports the one that comes second as an error. It also
// cannot create a Secret that is missing.
func seed(ctx context.Context, reader client.Reader, writer client.Client, r *rotator.CertRotator) error {
	secret := &corev1.Secret{}
	err := reader.Get(ctx, r.SecretKey, secret)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return fmt.Errorf("read secret %s: %w", r.SecretKey, err)
	}
	if len(secret.Data) > 0 {
		return nil
	}
	begin := time.Now().Add(-time.Hour) // For clocks that are behind ours.
	ca, err := r.CreateCACert(begin, begin.Add(caLasts))
	if err != nil {
		return fmt.Errorf("make certificate authority: %w", err)
	}
	cert, key, err := r.CreateCertPEM(ca, begin, begin.Add(certLasts))
	if err != nil {
		return fmt.Errorf("make webhook certificate: %w", err)
	}
	secret.Data = map[string][]byte{certFile: cert, keyFile: key, caFile: ca.CertPEM, "ca.key": ca.KeyPEM}
	if missing {
		secret.Namespace, secret.Name = r.SecretKey.Namespace, r.SecretKey.Name
		err = writer.Create(ctx, secret)
	} else {
		err = writer.Update(ctx, secret)
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return nil // Another replica was first.
	case missing && err != nil:
		return fmt.Errorf("secret %s is missing and cannot be created, apply deploy/base: %w", r.SecretKey, err)
	case err != nil:
		return fmt.Errorf("write secret %s: %w", r.SecretKey, err)
	}
	return nil
}

// files copies the certificate from the Secret into certDir, where the server
// and the rotator look for it. A volume would do the same a minute later, and
// only inside a cluster.
type files struct {
	reader  client.Reader
	secret  types.NamespacedName
	certDir string
	log     logr.Logger
}

// How often the Secret is read once its certificate has been seen. A renewed
// server certificate is signed by the CA that is already trusted, so nothing
// waits for this.
const recheck = 10 * time.Second

func (f *files) NeedLeaderElection() bool { return false }

func (f *files) Start(ctx context.Context) error {
	failed := ""
	for {
		next := recheck
		switch err := f.copy(ctx); {
		case errors.Is(err, errNoCertificate):
			next = soon
		case err != nil && ctx.Err() == nil:
			next = retryAfter
			if err.Error() != failed {
				f.log.Error(err, "webhook certificate not copied")
			}
			failed = err.Error()
		default:
			failed = ""
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		}
	}
}

// errNoCertificate says that the Secret holds no usable certificate yet.
var errNoCertificate = errors.New("no certificate in the secret yet")

func (f *files) copy(ctx context.Context) error {
	var secret corev1.Secret
	if err := f.reader.Get(ctx, f.secret, &secret); err != nil {
		return fmt.Errorf("read secret %s: %w", f.secret, err)
	}
	cert, key := secret.Data[certFile], secret.Data[keyFile]
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		return errNoCertificate
	}
	if err := os.MkdirAll(f.certDir, 0o700); err != nil {
		return fmt.Errorf("make certificate folder: %w", err)
	}
	// The key goes first: the rotator and the server take the certificate's
	// presence as a sign that both are there.
	changed := false
	for _, file := range []struct {
		name    string
		content []byte
	}{{keyFile, key}, {certFile, cert}} {
		wrote, err := replace(filepath.Join(f.certDir, file.name), file.content)
		if err != nil {
			return fmt.Errorf("write certificate: %w", err)
		}
		changed = changed || wrote
	}
	if changed {
		f.log.Info("webhook certificate copied", "folder", f.certDir)
	}
	return nil
}

// replace gives the file this content, in one step, and reports whether it had
// another.
func replace(path string, content []byte) (bool, error) {
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, content) {
		return false, nil
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return false, err
	}
	defer os.Remove(temporary.Name()) // Fails, as it should, after the rename.
	if _, err := temporary.Write(content); err != nil {
		temporary.Close()
		return false, err
	}
	if err := temporary.Close(); err != nil {
		return false, err
	}
	return true, os.Rename(temporary.Name(), path)
}
