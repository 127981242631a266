package webhook

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	arv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// cluster has the three objects as the deployment ships them: empty.
func cluster() client.Client {
	named := metav1.ObjectMeta{Name: ConfigurationName}
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(
		&arv1.MutatingWebhookConfiguration{ObjectMeta: named},
		&arv1.ValidatingWebhookConfiguration{ObjectMeta: named},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "sluice-system", Name: SecretName}},
	).Build()
}

func mutating(t *testing.T, c client.Client) *arv1.MutatingWebhookConfiguration {
	t.Helper()
	var there arv1.MutatingWebhookConfiguration
	if err := c.Get(t.Context(), client.ObjectKey{Name: ConfigurationName}, &there); err != nil {
		t.Fatal(err)
	}
	return &there
}

func configure(t *testing.T, c client.Client, o Options) {
	t.Helper()
	if err := (&configurer{reader: c, writer: c, options: o, log: logr.Discard()}).configure(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// announce does what the rotator does to an entry.
func announce(t *testing.T, c client.Client, bundle []byte) {
	t.Helper()
	there := mutating(t, c)
	for i := range there.Webhooks {
		there.Webhooks[i].ClientConfig.CABundle = bundle
	}
	if err := c.Update(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	var validating arv1.ValidatingWebhookConfiguration
	if err := c.Get(t.Context(), client.ObjectKey{Name: ConfigurationName}, &validating); err != nil {
		t.Fatal(err)
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.CABundle = bundle
	}
	if err := c.Update(t.Context(), &validating); err != nil {
		t.Fatal(err)
	}
}

func TestConfigurerFillsAndThenLeavesAlone(t *testing.T) {
	c := cluster()
	configure(t, c, options())
	if got := len(mutating(t, c).Webhooks); got != 2 {
		t.Fatalf("%d entries, want 2", got)
	}
	announce(t, c, []byte("ca"))
	before := mutating(t, c)
	configure(t, c, options())
	if after := mutating(t, c); after.ResourceVersion != before.ResourceVersion {
		t.Error("written though nothing had changed")
	}
}

func TestConfigurerPutsBackWhatOthersChanged(t *testing.T) {
	c := cluster()
	configure(t, c, options())
	announce(t, c, []byte("ca"))
	changed := mutating(t, c)
	changed.Webhooks[0].FailurePolicy = new(arv1.FailurePolicyType)
	*changed.Webhooks[0].FailurePolicy = arv1.Ignore
	changed.Webhooks[1].ObjectSelector = nil
	if err := c.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	configure(t, c, options())
	for _, w := range mutating(t, c).Webhooks {
		if *w.FailurePolicy != arv1.Fail || w.ObjectSelector == nil || string(w.ClientConfig.CABundle) != "ca" {
			t.Errorf("%s: %v %v %q", w.Name, *w.FailurePolicy, w.ObjectSelector, w.ClientConfig.CABundle)
		}
	}
}

// A framework that is switched on later gets the CA that the others have; one
// that is switched off takes its entry along.
func TestConfigurerFollowsFrameworks(t *testing.T) {
	c := cluster()
	jobsOnly := options()
	jobsOnly.Frameworks = []string{"batch/job"}
	configure(t, c, jobsOnly)
	announce(t, c, []byte("ca"))
	configure(t, c, options())
	there := mutating(t, c).Webhooks
	if len(there) != 2 || string(there[1].ClientConfig.CABundle) != "ca" {
		t.Fatalf("after switching on: %+v", there)
	}
	configure(t, c, jobsOnly)
	if there := mutating(t, c).Webhooks; len(there) != 1 {
		t.Fatalf("after switching off: %+v", there)
	}
}

func TestConfigurerCreatesWhereItMay(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	configure(t, c, options())
	if got := len(mutating(t, c).Webhooks); got != 2 {
		t.Fatalf("%d entries, want 2", got)
	}
}

func TestWithdraw(t *testing.T) {
	c := cluster()
	configure(t, c, options())
	if err := Withdraw(t.Context(), c, c); err != nil {
		t.Fatal(err)
	}
	if got := len(mutating(t, c).Webhooks); got != 0 {
		t.Errorf("%d mutating webhooks are left", got)
	}
	var validating arv1.ValidatingWebhookConfiguration
	if err := c.Get(t.Context(), client.ObjectKey{Name: ConfigurationName}, &validating); err != nil {
		t.Fatal(err)
	}
	if got := len(validating.Webhooks); got != 0 {
		t.Errorf("%d validating webhooks are left", got)
	}
	nothing := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	if err := Withdraw(t.Context(), nothing, nothing); err != nil {
		t.Errorf("where there are none: %v", err)
	}
}

func TestBundleOfCertificatesMadeElsewhere(t *testing.T) {
	c, o := cluster(), options()
	o.Rotate, o.CertDir = false, t.TempDir()
	err := (&configurer{reader: c, writer: c, options: o, log: logr.Discard()}).configure(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ca.crt") {
		t.Fatalf("without ca.crt: %v", err)
	}
	if err := os.WriteFile(filepath.Join(o.CertDir, "ca.crt"), []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	configure(t, c, o)
	if got := string(mutating(t, c).Webhooks[0].ClientConfig.CABundle); got != "theirs" {
		t.Errorf("caBundle %q", got)
	}
}

func host(t *testing.T, o Options) (string, []string) {
	t.Helper()
	host, others, err := o.hosts()
	if err != nil {
		t.Fatal(err)
	}
	return host, others
}

// From an empty Secret to a certificate that the API server would accept, the
// way a first start goes.
func TestFirstStart(t *testing.T) {
	c, o := cluster(), options()
	o.CertDir, o.URL = filepath.Join(t.TempDir(), "certs"), "https://localhost:19443"
	name, others := host(t, o)
	f := &files{reader: c, secret: o.secret(), certDir: o.CertDir, log: logr.Discard()}
	watch := &observer{
		hooks: &Hooks{ready: make(chan struct{})}, listening: func(*http.Request) error { return nil },
		reader: c, options: o, host: name,
	}

	if err := f.copy(t.Context()); !errors.Is(err, errNoCertificate) {
		t.Fatalf("empty secret: %v", err)
	}
	if hasPair(o.CertDir) {
		t.Fatal("a certificate before one was made")
	}
	if err := seed(t.Context(), c, c, newRotator(o, name, others)); err != nil {
		t.Fatal(err)
	}
	if err := f.copy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !hasPair(o.CertDir) {
		t.Fatal("no certificate in the folder")
	}
	if err := watch.observe(t.Context()); err == nil || !strings.Contains(err.Error(), "not configured yet") {
		t.Fatalf("before the configurations: %v", err)
	}
	configure(t, c, o)
	if err := watch.observe(t.Context()); err == nil || !strings.Contains(err.Error(), "no caBundle") {
		t.Fatalf("before the CA is announced: %v", err)
	}

	var secret corev1.Secret
	if err := c.Get(t.Context(), o.secret(), &secret); err != nil {
		t.Fatal(err)
	}
	announce(t, c, secret.Data["ca.crt"])
	if err := watch.observe(t.Context()); err != nil {
		t.Fatalf("all in place: %v", err)
	}
	watch.host = "elsewhere"
	if err := watch.observe(t.Context()); err == nil {
		t.Fatal("trusted under a name that the certificate does not hold")
	}

	// A second start makes nothing anew.
	again := secret.DeepCopy()
	if err := seed(t.Context(), c, c, newRotator(o, name, others)); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), o.secret(), again); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Data["tls.crt"], secret.Data["tls.crt"]) {
		t.Error("a second start made another certificate")
	}
}

// After the CA changed, a certificate of the former one is not ready, and the
// files follow the Secret.
func TestCertificateOfAnotherCA(t *testing.T) {
	c, o := cluster(), options()
	o.CertDir = t.TempDir()
	name, others := host(t, o)
	f := &files{reader: c, secret: o.secret(), certDir: o.CertDir, log: logr.Discard()}
	start := func() []byte {
		if err := seed(t.Context(), c, c, newRotator(o, name, others)); err != nil {
			t.Fatal(err)
		}
		var secret corev1.Secret
		if err := c.Get(t.Context(), o.secret(), &secret); err != nil {
			t.Fatal(err)
		}
		ca := secret.Data["ca.crt"]
		secret.Data = nil
		defer func() {
			if err := c.Update(t.Context(), &secret); err != nil {
				t.Fatal(err)
			}
		}()
		if err := f.copy(t.Context()); err != nil {
			t.Fatal(err)
		}
		return ca
	}
	watch := &observer{listening: func(*http.Request) error { return nil }, reader: c, options: o, host: name}

	configure(t, c, o)
	first := start()
	announce(t, c, first)
	if err := watch.observe(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := start()
	if err := watch.observe(t.Context()); err == nil {
		t.Fatal("ready though the API server trusts the former CA only")
	}
	announce(t, c, second)
	if err := watch.observe(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestKeyIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tls.key")
	if _, err := replace(path, []byte("secret")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("folder holds %v, %v", left, err)
	}
}

func TestHosts(t *testing.T) {
	o := options()
	if name, others := host(t, o); name != "sluice-webhook.sluice-system.svc" || len(others) == 0 {
		t.Errorf("service: %s %v", name, others)
	}
	o.URL = "https://webhooks.example.org:8443"
	if name, _ := host(t, o); name != "webhooks.example.org" {
		t.Errorf("url: %s", name)
	}
	for _, bad := range []string{"http://localhost:1", "localhost:1", "https://"} {
		o.URL = bad
		if _, _, err := o.hosts(); err == nil {
			t.Errorf("%s accepted", bad)
		}
	}
}

func TestCheckSaysWhatIsMissing(t *testing.T) {
	h := &Hooks{ready: make(chan struct{}), missing: errors.New("x")}
	h.await(errors.New("webhook mjob is not configured yet"))
	if err := h.Check(nil); err == nil || !strings.Contains(err.Error(), "mjob") {
		t.Errorf("%v", err)
	}
	close(h.ready)
	if err := h.Check(nil); err != nil {
		t.Errorf("ready, but %v", err)
	}
}

// The server neither fails without a certificate nor outlives its context.
func TestServerWaitsForItsCertificate(t *testing.T) {
	o := options()
	o.CertDir = t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- NewServer(o).Start(ctx) }()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("%v", err)
	}
}
