package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"sluice.dev/sluice/admission/api"
	"sluice.dev/sluice/admission/api/pages"
)

// newUI opens the pages of the controller on this machine.
func newUI() *cobra.Command {
	var from, listen string
	var l live
	c := &cobra.Command{
		Use: "ui", Short: "Open the controller's pages on this machine, with the rights of your kubeconfig", Args: cobra.NoArgs,
		Long: `Open the controller's pages on this machine, with the rights of your kubeconfig.

Prints an address for a browser and serves it until it is interrupted. The address holds a
secret: whoever has it sees what you may see, so it is only served to this machine.
With --from the pages show a file that sluice snapshot wrote.`,
		Annotations: map[string]string{answers: "yes"},
		RunE: func(c *cobra.Command, _ []string) error {
			inner, err := uiHandler(c.Context(), from, &l)
			if err != nil {
				return err
			}
			secret := rand.Text()
			ctx, stop := signal.NotifyContext(background(c.Context()), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return api.Serve(ctx, listen, behind(secret, inner), nil, func(at net.Addr) {
				fmt.Fprintf(c.OutOrStdout(), "http://%s/%s/ui/\n", at, secret)
			})
		},
	}
	l.flags(c.Flags())
	c.Flags().StringVar(&from, "from", "", "show a file that `sluice snapshot` wrote instead of the cluster; - is stdin")
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "the address to serve on; it has to be one of this machine alone")
	c.PreRunE = func(*cobra.Command, []string) error { return onlyHere(listen) }
	return c
}

func background(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// onlyHere says why others could reach the address, or nil.
func onlyHere(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if !loopback(host) {
		return fmt.Errorf("--listen %s could be reached from elsewhere, with your rights; it has to be of 127.0.0.1 or [::1]", address)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// behind serves h below the secret only, and only to pages of this machine: a name
// that somebody else lets point here is refused.
func behind(secret string, h http.Handler) http.Handler {
	inner := http.StripPrefix("/"+secret, h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if !loopback(host) || !strings.HasPrefix(r.URL.Path, "/"+secret+"/") {
			http.NotFound(w, r)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// uiHandler is what lies behind the secret: the pages of a file, or the ways on to the
// controller and, for the weight of a queue, to the API server.
func uiHandler(ctx context.Context, from string, l *live) (http.Handler, error) {
	if from != "" {
		s, err := (&ask{from: from}).snapshot(background(ctx))
		if err != nil {
			return nil, err
		}
		im, err := s.Image()
		if err != nil {
			return nil, err
		}
		return api.New(api.Fixed{Image: im, At: s.Time}, api.Everybody{}, time.Now), nil
	}
	config, err := l.config()
	if err != nil && l.server == "" {
		return nil, err
	}
	u := &ui{token: l.token}
	if err == nil {
		if err := u.useCluster(config); err != nil {
			return nil, err
		}
	}
	if l.server != "" {
		if u.pages, err = url.Parse(strings.TrimSuffix(l.server, "/")); err != nil {
			return nil, fmt.Errorf("--api: %w", err)
		}
		u.toPages = plainTransport(u.pages.Hostname())
		return u, nil
	}
	path, err := l.proxyPath()
	if err != nil {
		return nil, err
	}
	u.pages, u.toPages = u.cluster.JoinPath(path), u.toCluster
	return u, nil
}

// plainTransport reaches the controller itself. On this machine its own certificate is
// as good as any.
func plainTransport(host string) http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if loopback(host) {
		t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // nobody else listens on one's own loopback
	}
	return t
}

// proxyPath leads from the API server to the controller's service.
func (l *live) proxyPath() (string, error) {
	scheme, rest, ok := strings.Cut(l.service, ":")
	namespace, name, split := strings.Cut(rest, "/")
	if !ok || !split {
		return "", fmt.Errorf("--service is SCHEME:NAMESPACE/NAME:PORT, not %q", l.service)
	}
	return fmt.Sprintf("/api/v1/namespaces/%s/services/%s/proxy", url.PathEscape(namespace), url.PathEscape(scheme+":"+name)), nil
}

// ui leads a browser to the controller's pages, and to the few things at the API
// server that a page may ask for.
type ui struct {
	token     string
	pages     *url.URL // of the controller
	toPages   http.RoundTripper
	cluster   *url.URL // of the API server; nil if none is known
	toCluster http.RoundTripper
}

func (u *ui) useCluster(config *rest.Config) error {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	// Whatever way of logging in the kubeconfig names, its token passes here last.
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &carrier{next} })
	t, err := rest.TransportFor(config)
	if err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	base.Path = "/" + strings.Trim(base.Path, "/")
	u.cluster, u.toCluster = base, t
	return nil
}

// carrier takes the token that the API server will take off on to the controller too.
type carrier struct{ next http.RoundTripper }

// RoundTrip sends the request with its token in both places.
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if token := r.Header.Get("Authorization"); strings.HasPrefix(token, "Bearer ") && strings.Contains(r.URL.Path, "/proxy/") && r.Header.Get(tokenHeader) == "" {
		r = r.Clone(r.Context())
		r.Header.Set(tokenHeader, token)
	}
	return c.next.RoundTrip(r)
}

// weights are the objects at the API server that a page may read and change.
var weights = regexp.MustCompile(`^/apis/kueue\.x-k8s\.io/v1beta2/(clusterqueues|cohorts)/[a-z0-9.-]+$`)

const review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

// leads says where a request goes: to the controller, to the API server, or nowhere.
func (u *ui) leads(r *http.Request) (base *url.URL, by http.RoundTripper) {
	p, reads := r.URL.Path, r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case (p == "/ui" || strings.HasPrefix(p, "/ui/") || strings.HasPrefix(p, "/v1/")) && reads:
		return u.pages, u.toPages
	case u.cluster == nil:
	case weights.MatchString(p) && (reads || r.Method == http.MethodPatch), p == review && r.Method == http.MethodPost:
		return u.cluster, u.toCluster
	}
	return nil, nil
}

// ServeHTTP passes a request on, without what the browser says of itself.
func (u *ui) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	base, by := u.leads(r)
	if base == nil {
		http.NotFound(w, r)
		return
	}
	proxy := &httputil.ReverseProxy{
		Transport: by,
		Rewrite: func(p *httputil.ProxyRequest) {
			for _, h := range []string{"Authorization", tokenHeader, "Cookie", "Origin", "Referer", pages.WritesHeader} {
				p.Out.Header.Del(h)
			}
			p.Out.URL.Scheme, p.Out.URL.Host = base.Scheme, base.Host
			p.Out.URL.Path = strings.TrimSuffix(base.Path, "/") + p.In.URL.Path
			p.Out.URL.RawPath = strings.TrimSuffix(base.EscapedPath(), "/") + p.In.URL.EscapedPath()
			p.Out.Host = base.Host
			if u.token != "" && by == u.toPages {
				p.Out.Header.Set(tokenHeader, "Bearer "+u.token)
			}
			if u.cluster != nil {
				p.Out.Header.Set(pages.WritesHeader, "yes")
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, context.Canceled) {
				http.Error(w, "the controller cannot be reached: "+err.Error(), http.StatusBadGateway)
			}
		},
	}
	proxy.ServeHTTP(w, r)
}
