package api

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	authn "k8s.io/api/authentication/v1"
	authz "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

type netAddr = net.Addr

func insecure() *tls.Config { return &tls.Config{InsecureSkipVerify: true} } //nolint:gosec // as the API server's proxy does

// The API server is asked who a token is and what they may list, with all that it
// said of them, and what it said is used for ten seconds.
func TestReviews(t *testing.T) {
	scheme := runtime.NewScheme()
	_ = authn.AddToScheme(scheme)
	_ = authz.AddToScheme(scheme)
	asked, away := 0, false
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			asked++
			if away {
				return errors.New("away")
			}
			switch o := o.(type) {
			case *authn.TokenReview:
				o.Status.Authenticated = o.Spec.Token == "good"
				o.Status.User = authn.UserInfo{Username: "alice", Groups: []string{"team-a"}, Extra: map[string]authn.ExtraValue{"scope": {"x"}}}
			case *authz.SubjectAccessReview:
				a := o.Spec.ResourceAttributes
				o.Status.Allowed = o.Spec.User == "alice" && len(o.Spec.Groups) == 1 && o.Spec.Extra["scope"][0] == "x" &&
					a.Verb == "list" && a.Group == "kueue.x-k8s.io" && a.Resource == "workloads" && a.Namespace == "ns-a"
				o.Status.Denied = a.Namespace == "denied"
			}
			return nil
		},
	})
	now := time.Unix(1000, 0)
	r := Reviews(c, func() time.Time { return now })
	if _, err := r.Who(t.Context(), "bad"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a bad token: %v", err)
	}
	u, err := r.Who(t.Context(), "good")
	if err != nil || u.Name != "alice" {
		t.Fatalf("%+v: %v", u, err)
	}
	for ns, want := range map[string]bool{"ns-a": true, "ns-b": false, "": false, "denied": false} {
		if may, err := r.MayList(t.Context(), u, ns); err != nil || may != want {
			t.Errorf("alice may list %q: %t, %v", ns, may, err)
		}
	}
	before := asked
	if _, err := r.Who(t.Context(), "good"); err != nil || asked != before {
		t.Errorf("asked again at once: %v", err)
	}
	now, away = now.Add(remember), true
	if _, err := r.Who(t.Context(), "good"); err == nil {
		t.Error("let in while the API server is away")
	}
	if may, err := r.MayList(t.Context(), u, "ns-a"); err == nil || may {
		t.Error("shown names while the API server is away")
	}
}
