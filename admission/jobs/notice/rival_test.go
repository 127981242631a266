package notice

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
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
		"Volcano leads":            {lease("vc-scheduler", "pod-1", 10*time.Second), "Volcano's scheduler runs (Lease kueue-system/vc-scheduler)"},
		"by its name":              {lease("volcano", "pod-1", 10*time.Second), "Volcano's scheduler runs (Lease kueue-system/volcano)"},
		"its controllers lead":     {lease("vc-controller-manager", "pod-1", time.Second), ""},
		"another lease":            {lease("sluice-controller", "pod-1", time.Second), ""},
		"Kueue's Deployment":       {deployment("q", "mirror.example.com:5000/team/kueue:v0.17.0", 1), "Kueue's scheduler runs (Deployment volcano-system/q)"},
		"scaled to zero":           {deployment("q", "example.com/kueue:v0.17.0", 0), ""},
		"its dashboard":            {deployment("q", "example.com/kueueviz-backend:v0.17.0", 1), ""},
		"Volcano's, by digest":     {deployment("v", "example.com/vc-scheduler@sha256:00", 2), "Volcano's scheduler runs (Deployment volcano-system/v)"},
		"Volcano's controllers":    {deployment("v", "example.com/vc-controller-manager:v1.14.0", 1), ""},
		"anything else on the way": {deployment("web", "nginx", 3), ""},
	} {
		found, err := Rivals(t.Context(), cluster(test.object), noon, noon.Add(-time.Minute))
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

func wrote(manager, version string, ago time.Duration) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: version, Time: &metav1.Time{Time: noon.Add(-ago)},
		FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{}}`)},
	}
}

// Who writes queues is known by the field manager; what was written before is past, and
// what sluice and Kueue's admissions have in common is no sign.
func TestWriters(t *testing.T) {
	queue := func(manager string, ago time.Duration) *kueue.ClusterQueue {
		return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "team", ManagedFields: []metav1.ManagedFieldsEntry{
			wrote(manager, "kueue.x-k8s.io/v1beta2", ago),
		}}}
	}
	group := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gang", ManagedFields: []metav1.ManagedFieldsEntry{
		wrote("vc-scheduler", "scheduling.volcano.sh/v1beta1", 0),
	}}}
	for name, test := range map[string]struct {
		object client.Object
		want   string
	}{
		"Kueue":              {queue("kueue", time.Second), "[Kueue's scheduler runs (field manager kueue of ClusterQueue team)]"},
		"Kueue, before":      {queue("kueue", time.Hour), "[]"},
		"an admission":       {queue("kueue-admission", time.Second), "[]"},
		"sluice":             {queue("sluice", time.Second), "[]"},
		"Volcano":            {group, "[Volcano's scheduler runs (field manager vc-scheduler of PodGroup ns/gang)]"},
		"a person, just now": {queue("kubectl-edit", 0), "[]"},
	} {
		s := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kueue.AddToScheme, volcano.AddToScheme} {
			if err := add(s); err != nil {
				t.Fatal(err)
			}
		}
		c := fake.NewClientBuilder().WithScheme(s).WithReturnManagedFields().WithObjects(test.object).Build()
		found, err := Rivals(t.Context(), c, noon, noon.Add(-time.Minute))
		if got := fmt.Sprint(found); err != nil || got != test.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, test.want)
		}
	}
}

// Beside Kueue nothing begins, and the log says why; Volcano's scheduler is a reason to
// wait for who reads PodGroups.
func TestAwait(t *testing.T) {
	if err := Await(t.Context(), cluster(deployment("v", "example.com/vc-scheduler:v1.14.0", 1)), false, funcr.New(func(string, string) {}, funcr.Options{})); err != nil {
		t.Error(err)
	}
	for image, podGroups := range map[string]bool{"kueue:v0.17.0": false, "vc-scheduler:v1.14.0": true} {
		waits(t, image, podGroups)
	}
}

func waits(t *testing.T, image string, podGroups bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	said := ""
	log := funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		said += args
		cancel()
	}, funcr.Options{})
	err := Await(ctx, cluster(deployment("q", "example.com/"+image, 1)), podGroups, log)
	mu.Lock()
	defer mu.Unlock()
	if err == nil || !strings.Contains(said, "'s scheduler runs (Deployment volcano-system/q)") {
		t.Errorf("began with %v, having said %q", err, said)
	}
}
