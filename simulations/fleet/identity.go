package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// tokenSeconds is how long a token is asked for.
const tokenSeconds = 24 * 3600

// identity is who an agent is to the API server: its token is bound to its pod, and so
// says which node it is on. A token that is refused, since the pod went with its node,
// is asked for anew, as a kubelet would.
type identity struct {
	fleet *Fleet
	node  string

	mu    sync.Mutex
	token string
}

// as is the config of the agent of a node.
func (f *Fleet) as(node string) *rest.Config {
	id := &identity{fleet: f, node: node}
	own := rest.AnonymousClientConfig(f.config)
	own.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			token, err := id.current(r.Context())
			if err != nil {
				return nil, err
			}
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+token)
			response, err := next.RoundTrip(r)
			if err == nil && response.StatusCode == http.StatusUnauthorized {
				id.forget(token)
			}
			return response, err
		})
	})
	return own
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (i *identity) forget(token string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.token == token {
		i.token = ""
	}
}

func (i *identity) current(ctx context.Context) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.token != "" {
		return i.token, nil
	}
	c := i.fleet.client
	// A pod on a node that is not there would be collected at once.
	if err := c.Get(ctx, client.ObjectKey{Name: i.node}, &corev1.Node{}); err != nil {
		return "", fmt.Errorf("the node of the agent: %w", err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HeartbeatNamespace, Name: v1alpha1.AgentName + "-" + i.node, Labels: map[string]string{"app.kubernetes.io/component": "agent"}},
		Spec: corev1.PodSpec{
			ServiceAccountName: v1alpha1.AgentName, NodeName: i.node,
			Containers:  []corev1.Container{{Name: "agent", Image: v1alpha1.AgentName}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
	if err := c.Create(ctx, pod); err != nil {
		if !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("make the pod of the agent: %w", err)
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return "", err
		}
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To[int64](tokenSeconds),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: v1alpha1.AgentName}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("ask for a token of the agent: %w", err)
	}
	if request.Status.Token == "" {
		return "", errors.New("the API server gave no token")
	}
	i.token = request.Status.Token
	return i.token, nil
}
