package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"sluice.dev/sluice/admission/answer"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways to log in that kubeconfigs name
)

// live is the controller of a cluster, reached through the API server's proxy to its
// service, so that a kubeconfig is all that one needs.
type live struct {
	kubeconfig, context, as string
	token                   string
	server                  string
	service                 string
}

func (l *live) flags(f *pflag.FlagSet) {
	f.StringVar(&l.kubeconfig, "kubeconfig", "", "the kubeconfig file; default: as of kubectl")
	f.StringVar(&l.context, "context", "", "the context of the kubeconfig")
	f.StringVar(&l.as, "as", "", "ask as this user, if you may impersonate it")
	f.StringVar(&l.token, "token", "", "the token to ask with; default: that of the kubeconfig. Who logs in by certificate has none: kubectl create token NAME makes one")
	f.StringVar(&l.service, "service", "https:sluice-system/sluice-api:8444", "the service of the controller: SCHEME:NAMESPACE/NAME:PORT")
	f.StringVar(&l.server, "api", "", "the address of the controller's API itself, as http://127.0.0.1:8444, instead of the service")
}

func (l *live) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = l.kubeconfig
	c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: l.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("which cluster? give --from FILE, or a kubeconfig: %w", err)
	}
	c.Impersonate.UserName = l.as
	return c, nil
}

// tokenHeader carries the token of the one who asks past the API server, which takes
// the usual one off.
const tokenHeader = "Sluice-Authorization"

// get asks a path of the controller.
func (l *live) get(ctx context.Context, path string) ([]byte, error) {
	if l.server != "" {
		return fetch(ctx, http.DefaultClient, strings.TrimSuffix(l.server, "/")+path, l.token)
	}
	scheme, rest, ok := strings.Cut(l.service, ":")
	namespace, name, split := strings.Cut(rest, "/")
	if !ok || !split {
		return nil, fmt.Errorf("--service is SCHEME:NAMESPACE/NAME:PORT, not %q", l.service)
	}
	return l.apiServer(ctx, fmt.Sprintf("/api/v1/namespaces/%s/services/%s/proxy%s", url.PathEscape(namespace), url.PathEscape(scheme+":"+name), path), true)
}

// apiServer asks a path of the API server; with proxied, one that leads on to the
// controller, which has to know who asks.
func (l *live) apiServer(ctx context.Context, path string, proxied bool) ([]byte, error) {
	c, err := l.config()
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	token := ""
	if proxied {
		token = cmp.Or(l.token, c.BearerToken)
	}
	return fetch(ctx, client, strings.TrimSuffix(c.Host, "/")+path, token)
}

func fetch(ctx context.Context, client *http.Client, address, token string) ([]byte, error) {
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set(tokenHeader, "Bearer "+token)
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the controller: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("ask the controller: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask the controller: %s: %s", res.Status, reason(body))
	}
	return body, nil
}

// reason is what an answer that is none says for people.
func reason(body []byte) string {
	var status struct{ Message, Error string }
	if json.Unmarshal(body, &status) == nil && status.Message+status.Error != "" {
		return status.Message + status.Error
	}
	text := strings.TrimSpace(string(body))
	return text[:min(len(text), 300)]
}

func (l *live) snapshot(ctx context.Context) (*answer.Snapshot, error) {
	body, err := l.get(ctx, "/v1/snapshot")
	if err != nil {
		return nil, err
	}
	return answer.Decode(strings.NewReader(string(body)))
}

// clusterQueue is the queue behind a LocalQueue.
func (l *live) clusterQueue(ctx context.Context, namespace, name string) (string, error) {
	if l.server != "" {
		return name, nil
	}
	if namespace == "" {
		namespace = "default"
	}
	body, err := l.apiServer(ctx, fmt.Sprintf("/apis/kueue.x-k8s.io/v1beta2/namespaces/%s/localqueues/%s", url.PathEscape(namespace), url.PathEscape(name)), false)
	if err != nil {
		return "", fmt.Errorf("look up LocalQueue %s/%s: %w", namespace, name, err)
	}
	var lq struct{ Spec struct{ ClusterQueue string } }
	if err := json.Unmarshal(body, &lq); err != nil {
		return "", fmt.Errorf("look up LocalQueue %s/%s: %w", namespace, name, err)
	}
	return lq.Spec.ClusterQueue, nil
}
