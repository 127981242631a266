package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// The controller answers whom the API server knows, from the state that it decides
// on, and names the gangs of a namespace to those who may list them.
func TestAnswersToPeople(t *testing.T) {
	p, c := bare(t, "kueue*.yaml")
	if err := rbacv1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	process(t, p, "--api-bind-address", address)
	account := func(name string) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, account("ann"), account("eve"),
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "reader"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"kueue.x-k8s.io"}, Resources: []string{"workloads"}, Verbs: []string{"list"}}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ann"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "ann"}},
		},
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}, bareQueue("8"),
		&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "main"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "team"}},
		bareWorkload("first"), bareWorkload("second"),
	} {
		if err := client.IgnoreAlreadyExists(c.Create(t.Context(), o)); err != nil {
			t.Fatal(err)
		}
	}
	token := func(name string) string {
		r := &authenticationv1.TokenRequest{}
		if err := c.SubResource("token").Create(t.Context(), account(name), r); err != nil {
			t.Fatal(err)
		}
		return r.Status.Token
	}
	unverified := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // as the API server's proxy
	get := func(path, token string) (int, string, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+path, nil)
		if err != nil {
			return 0, "", err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := unverified.Do(request)
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		return response.StatusCode, string(text), err
	}
	ann, eve := token("ann"), token("eve")
	eventually(t, "ann is told why one of two waits", func() error {
		for _, name := range []string{"first", "second"} {
			code, text, err := get("/v1/why/default/"+name, ann)
			if err != nil {
				return err
			}
			if code == http.StatusOK && strings.Contains(text, "Quota") {
				return nil
			}
		}
		return fmt.Errorf("neither waits for Quota")
	})
	if code, text, err := get("/v1/jobs", ann); err != nil || code != http.StatusOK || !strings.Contains(text, "first") {
		t.Errorf("ann: %d %v %s", code, err, text)
	}
	if code, text, err := get("/v1/jobs", eve); err != nil || code != http.StatusOK || strings.Contains(text, "first") {
		t.Errorf("eve reads names: %d %v %s", code, err, text)
	}
	if code, text, err := get("/v1/jobs", "not a token"); err != nil || code != http.StatusUnauthorized {
		t.Errorf("a stranger: %d %v %s", code, err, text)
	}
}
