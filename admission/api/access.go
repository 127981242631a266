package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	authn "k8s.io/api/authentication/v1"
	authz "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// User is who asks.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Access says who asks and what they may see.
type Access interface {
	// Who returns the user behind a token, or ErrUnknown.
	Who(ctx context.Context, token string) (User, error)
	// MayList says whether the user may list the Workloads of the namespace; "" is of
	// all namespaces.
	MayList(ctx context.Context, u User, namespace string) (bool, error)
}

// ErrUnknown is that of a token that the API server does not accept.
var ErrUnknown = errors.New("the API server does not know this token")

// Everybody is an Access for one's own machine: whoever asks sees everything.
type Everybody struct{}

// Who returns nobody in particular.
func (Everybody) Who(context.Context, string) (User, error) { return User{Name: "everybody"}, nil }

// MayList says yes.
func (Everybody) MayList(context.Context, User, string) (bool, error) { return true, nil }

// TokenHeader carries a token past the API server's proxy to services, which takes
// the usual header off.
const TokenHeader = "Sluice-Authorization"

// tokenOf is the bearer token of a request, or "".
func tokenOf(r *http.Request) string {
	for _, h := range []string{TokenHeader, "Authorization"} {
		if kind, token, ok := strings.Cut(r.Header.Get(h), " "); ok && strings.EqualFold(kind, "Bearer") {
			return strings.TrimSpace(token)
		}
	}
	return ""
}

// reviews asks the API server, by TokenReview and SubjectAccessReview.
type reviews struct {
	client client.Client
	now    func() time.Time
	mu     sync.Mutex
	users  map[string]remembered[User]
	may    map[string]remembered[bool]
}

type remembered[T any] struct {
	value T
	until time.Time
}

// remember is how long an answer of the API server is used again.
const remember = 10 * time.Second

// Reviews returns an Access that asks the API server, and remembers what it says for
// ten seconds.
func Reviews(c client.Client, now func() time.Time) Access {
	return &reviews{client: c, now: now, users: map[string]remembered[User]{}, may: map[string]remembered[bool]{}}
}

func (r *reviews) Who(ctx context.Context, token string) (User, error) {
	r.mu.Lock()
	known, ok := r.users[token]
	r.mu.Unlock()
	if ok && r.now().Before(known.until) {
		return known.value, nil
	}
	review := &authn.TokenReview{Spec: authn.TokenReviewSpec{Token: token}}
	if err := r.client.Create(ctx, review); err != nil {
		return User{}, fmt.Errorf("review a token: %w", err)
	}
	if !review.Status.Authenticated || review.Status.Error != "" {
		return User{}, ErrUnknown
	}
	u := User{Name: review.Status.User.Username, UID: review.Status.User.UID, Groups: review.Status.User.Groups}
	for key, values := range review.Status.User.Extra {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[key] = values
	}
	keep(r, r.users, token, u)
	return u, nil
}

func (r *reviews) MayList(ctx context.Context, u User, namespace string) (bool, error) {
	key := fmt.Sprintf("%q %q %q %q %q", u.Name, u.UID, u.Groups, u.Extra, namespace)
	r.mu.Lock()
	known, ok := r.may[key]
	r.mu.Unlock()
	if ok && r.now().Before(known.until) {
		return known.value, nil
	}
	review := &authz.SubjectAccessReview{Spec: authz.SubjectAccessReviewSpec{
		User: u.Name, UID: u.UID, Groups: u.Groups,
		ResourceAttributes: &authz.ResourceAttributes{Namespace: namespace, Verb: "list", Group: "kueue.x-k8s.io", Resource: "workloads"},
	}}
	for name, values := range u.Extra {
		if review.Spec.Extra == nil {
			review.Spec.Extra = map[string]authz.ExtraValue{}
		}
		review.Spec.Extra[name] = values
	}
	if err := r.client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("review whether %s may list workloads: %w", u.Name, err)
	}
	allowed := review.Status.Allowed && !review.Status.Denied
	keep(r, r.may, key, allowed)
	return allowed, nil
}

// rememberedMost bounds how many answers are kept.
const rememberedMost = 10_000

func keep[T any](r *reviews, m map[string]remembered[T], key string, v T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(m) >= rememberedMost {
		clear(m)
	}
	m[key] = remembered[T]{v, r.now().Add(remember)}
}
