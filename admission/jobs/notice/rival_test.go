package notice

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func lease(name, holder string, ago time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kueue-system", Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: noon.Add(-ago)},
		},
	}
}

func deployment(name, image string, ready int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "volcano-system", Name: name},
		Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}},
		Status:     appsv1.DeploymentStatus{ReadyReplicas: ready},
	}
}

func cluster(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build()
}

func TestRivals(t *testing.T) {
	for name, test := range map[string]struct {
		object client.Object
		want   string
	}{
		"Kueue leads":              {lease(kueueLease, "pod-1", 10*time.Second), "Kueue's scheduler runs (Lease kueue-system/c1f6bfd2.kueue.x-k8s.io)"},
		"Kueue led an hour ago":    {lease(kueueLease, "pod-1", time.Hour), ""},
		"Kueue has released it":    {lease(kueueLease, "", time.Second), ""},
		"another lease":            {lease("sluice-controller", "pod-1", time.Second), ""},
		"Kueue's Deployment":       {deployment("q", "mirror.example.com:5000/team/kueue:v0.17.0", 1), "Kueue's scheduler runs (Deployment volcano-system/q)"},
		"scaled to zero":           {deployment("q", "example.com/kueue:v0.17.0", 0), ""},
		"its dashboard":            {deployment("q", "example.com/kueueviz-backend:v0.17.0", 1), ""},
		"Volcano's, by digest":     {deployment("v", "example.com/vc-scheduler@sha256:00", 2), "Volcano's scheduler runs (Deployment volcano-system/v)"},
		"Volcano's controllers":    {deployment("v", "example.com/vc-controller-manager:v1.14.0", 1), ""},
		"anything else on the way": {deployment("web", "nginx", 3), ""},
	} {
		found, err := Rivals(t.Context(), cluster(test.object), noon)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range found {
			got += r.String()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Beside Kueue nothing begins, and the log says why; Volcano's scheduler is no reason
// to wait.
func TestAwait(t *testing.T) {
	if err := Await(t.Context(), cluster(deployment("v", "example.com/vc-scheduler:v1.14.0", 1)), funcr.New(func(string, string) {}, funcr.Options{})); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	said := ""
	log := funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		said += args
		cancel()
	}, funcr.Options{})
	err := Await(ctx, cluster(deployment("q", "example.com/kueue:v0.17.0", 1)), log)
	mu.Lock()
	defer mu.Unlock()
	if err == nil || !strings.Contains(said, "Kueue's scheduler runs (Deployment volcano-system/q)") {
		t.Errorf("began with %v, having said %q", err, said)
	}
}
