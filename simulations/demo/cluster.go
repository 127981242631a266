package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// fieldOwner is the name under which the demo applies objects.
const fieldOwner = client.FieldOwner("sluice-demo")

// requestTimeout bounds one request. An API server that is stopped may leave a
// connection open without an answer.
const requestTimeout = 20 * time.Second

// Cluster is a client of the demo's API server, with the rights of the person
// who runs the demo.
type Cluster struct {
	client.Client
	Config *rest.Config
}

// connect makes a client from a kubeconfig. It asks the API server nothing yet.
func connect(kubeconfig string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 200, 400
	config.Timeout = requestTimeout
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, kueue.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return &Cluster{Client: c, Config: config}, nil
}

// identity tells this cluster from others: the uid of its first namespace.
func (c *Cluster) identity(ctx context.Context) (string, error) {
	ns := &corev1.Namespace{}
	if err := c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, ns); err != nil {
		return "", fmt.Errorf("identify the cluster: %w", err)
	}
	return string(ns.UID), nil
}

// apply makes an object what it says, and takes fields from whoever has them.
func (c *Cluster) apply(ctx context.Context, object *unstructured.Unstructured) error {
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), fieldOwner, client.ForceOwnership)
}

// pollEvery is how often a state that must come is looked for.
const pollEvery = 200 * time.Millisecond

// eventually repeats what fails for a while by its nature: the API server or
// the controller's webhook does not answer, a kind has just been installed. It
// returns any other error at once. After a while it says what it waits for.
func eventually(ctx context.Context, say func(format string, args ...any), what string, do func() error) error {
	told := time.Now()
	for {
		err := do()
		if err == nil || !passes(err) {
			return err
		}
		if time.Since(told) > 10*time.Second {
			say("%s: trying again: %v", what, err)
			told = time.Now()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w; last: %w", what, ctx.Err(), err)
		case <-time.After(pollEvery):
		}
	}
}

// errNotYet says that a state has not come yet.
var errNotYet = errors.New("not yet")

// passes reports whether an error may go away by itself.
func passes(err error) bool {
	var reach *url.Error
	var network net.Error
	switch {
	case errors.Is(err, errNotYet), errors.As(err, &reach), errors.As(err, &network), meta.IsNoMatchError(err):
		return true
	case apierrors.IsConflict(err), apierrors.IsTooManyRequests(err),
		apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), apierrors.IsServiceUnavailable(err):
		return true
	default:
		// A webhook that cannot be called is an internal error of the API server.
		return apierrors.IsInternalError(err) || apierrors.IsUnexpectedServerError(err)
	}
}

// refuses reports whether the API server has given its answer, and it is no.
func refuses(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}
