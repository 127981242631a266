package webhook

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	arv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// configurer fills the two configuration objects in and puts back what others
// change in them. Only the leader does, so that two versions of sluice do not
// take turns.
//
// It reads and updates rather than applies: the rotator owns the caBundle of
// every entry, and an entry that another owner has a part in cannot be removed
// by leaving it out of an apply.
type configurer struct {
	reader  client.Reader
	writer  client.Client
	options Options
	log     logr.Logger
}

// How often the configurations are looked at: when all is well, and when not.
const (
	lookAgain  = time.Minute
	retryAfter = 2 * time.Second
)

func (c *configurer) NeedLeaderElection() bool { return true }

func (c *configurer) Start(ctx context.Context) error {
	failed := ""
	for {
		next := lookAgain
		if err := c.configure(ctx); err != nil {
			next = retryAfter
			if err.Error() != failed {
				c.log.Error(err, "webhook configurations not written")
			}
			failed = err.Error()
		} else {
			failed = ""
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		}
	}
}

func (c *configurer) configure(ctx context.Context) error {
	bundle, err := c.options.bundle()
	if err != nil {
		return err
	}
	mutating := &arv1.MutatingWebhookConfiguration{}
	if err := c.fill(ctx, mutating, func() bool { return fillMutating(mutating, c.options.MutatingWebhooks(), bundle) }); err != nil {
		return fmt.Errorf("configure mutating webhooks: %w", err)
	}
	validating := &arv1.ValidatingWebhookConfiguration{}
	if err := c.fill(ctx, validating, func() bool { return fillValidating(validating, c.options.ValidatingWebhooks(), bundle) }); err != nil {
		return fmt.Errorf("configure validating webhooks: %w", err)
	}
	return nil
}

// fill reads the object, has it changed, and writes it if it was. A missing
// object is created where we may.
func (c *configurer) fill(ctx context.Context, object client.Object, change func() bool) error {
	err := c.reader.Get(ctx, client.ObjectKey{Name: ConfigurationName}, object)
	if apierrors.IsNotFound(err) {
		object.SetName(ConfigurationName)
		object.SetLabels(map[string]string{"app.kubernetes.io/name": "sluice"})
		change()
		if err := c.writer.Create(ctx, object); err != nil {
			return fmt.Errorf("%s is missing and cannot be created, apply deploy/base: %w", ConfigurationName, err)
		}
		c.log.Info("webhook configuration created", "kind", kindOf(object))
		return nil
	}
	if err != nil {
		return err
	}
	if !change() {
		return nil
	}
	if err := c.writer.Update(ctx, object); err != nil {
		return err
	}
	c.log.Info("webhook configuration written", "kind", kindOf(object))
	return nil
}

func kindOf(object client.Object) string {
	if _, ok := object.(*arv1.MutatingWebhookConfiguration); ok {
		return "MutatingWebhookConfiguration"
	}
	return "ValidatingWebhookConfiguration"
}

// fillMutating puts the wanted entries in, each with the bundle given, or else
// with the one that it has, or that another entry has. It reports a change.
func fillMutating(there *arv1.MutatingWebhookConfiguration, want []arv1.MutatingWebhook, bundle []byte) bool {
	for i := range there.Webhooks {
		if bundle == nil {
			bundle = there.Webhooks[i].ClientConfig.CABundle
		}
	}
	for i := range want {
		want[i].ClientConfig.CABundle = bundle
	}
	if equality.Semantic.DeepEqual(there.Webhooks, want) {
		return false
	}
	there.Webhooks = want
	return true
}

func fillValidating(there *arv1.ValidatingWebhookConfiguration, want []arv1.ValidatingWebhook, bundle []byte) bool {
	for i := range there.Webhooks {
		if bundle == nil {
			bundle = there.Webhooks[i].ClientConfig.CABundle
		}
	}
	for i := range want {
		want[i].ClientConfig.CABundle = bundle
	}
	if equality.Semantic.DeepEqual(there.Webhooks, want) {
		return false
	}
	there.Webhooks = want
	return true
}

// bundle is the CA to trust, if it is not the rotator who says so.
func (o Options) bundle() ([]byte, error) {
	if o.Rotate {
		return nil, nil
	}
	bundle, err := os.ReadFile(filepath.Join(o.CertDir, caFile))
	if err != nil {
		return nil, fmt.Errorf("read the CA that signed the webhook certificate: %w", err)
	}
	return bundle, nil
}
