package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiserver "sluice.dev/sluice/admission/jobs/plane"
	"sluice.dev/sluice/admission/kube"
)

// installed puts what sluice is installed with into the API server, and the kind of
// Volcano's Jobs, and returns a configuration with Volcano's integration switched on
// and the webhooks on this machine.
func installed(t *testing.T, p *apiserver.Plane, c client.Client) string {
	t.Helper()
	s := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	crds, err := p.Client(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Create(t.Context(), &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "jobs.batch.volcano.sh"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "batch.volcano.sh", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "jobs", Singular: "job", Kind: "Job", ListKind: "JobList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1alpha1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
			}},
		},
	}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"namespace.yaml", "webhook.yaml"} {
		objects, err := apiserver.Read(filepath.Join("../../deploy/base", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range objects {
			if err := client.IgnoreAlreadyExists(c.Create(t.Context(), u)); err != nil {
				t.Fatal(err)
			}
		}
	}
	port := freePort(t)
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf(`apiVersion: config.sluice.dev/v1alpha1
kind: Configuration
integrations: {volcano: true}
webhook: {host: 127.0.0.1, port: %d, url: "https://localhost:%d", certDir: %q}
`, port, port, t.TempDir())
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runReleased does what the scheduler and the kubelets would for pods that were let go.
func runReleased(ctx context.Context, c client.Client, namespace string) error {
	var list corev1.PodList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		p := &list.Items[i]
		switch node := p.Annotations[kube.NodeAnnotation]; {
		case len(p.Spec.SchedulingGates) > 0 || p.Status.Phase == corev1.PodRunning:
		case p.Spec.NodeName == "" && node != "":
			b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
			if err := c.SubResource("binding").Create(ctx, p, b); err != nil && !apierrors.IsConflict(err) {
				return err
			}
		case p.Spec.NodeName != "":
			p.Status.Phase = corev1.PodRunning
			if err := c.Status().Update(ctx, p); err != nil && !apierrors.IsConflict(err) {
				return err
			}
		}
	}
	return nil
}

var podGroupKind = schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"}

// phaseIs says how the PodGroup, which a Job of Volcano's calls as itself, differs from
// what is wanted: a phase, and how many pods run.
func phaseIs(ctx context.Context, c client.Client, u *unstructured.Unstructured, want string) error {
	pg := &unstructured.Unstructured{}
	pg.SetGroupVersionKind(podGroupKind)
	if err := c.Get(ctx, client.ObjectKeyFromObject(u), pg); err != nil {
		return err
	}
	got, _, _ := unstructured.NestedString(pg.Object, "status", "phase")
	if n, _, _ := unstructured.NestedInt64(pg.Object, "status", "running"); n > 0 {
		got += fmt.Sprintf(" %d", n)
	}
	if got != want {
		return fmt.Errorf("it is %q: %v", got, pg.Object["status"])
	}
	return nil
}

// volcanoJob does for a Job what Volcano's controller of them does: it makes a PodGroup,
// and once that is Inqueue the pods.
func volcanoJob(ctx context.Context, c client.Client, job *unstructured.Unstructured) error {
	owner := metav1.OwnerReference{APIVersion: job.GetAPIVersion(), Kind: job.GetKind(), Name: job.GetName(), UID: job.GetUID(), Controller: ptr.To(true)}
	spec, _, err := unstructured.NestedMap(job.Object, "spec")
	if err != nil {
		return err
	}
	least := map[string]any{}
	tasks, _, _ := unstructured.NestedSlice(spec, "tasks")
	for _, t := range tasks {
		least[t.(map[string]any)["name"].(string)] = t.(map[string]any)["replicas"]
	}
	pg := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"minMember": spec["minAvailable"], "minTaskMember": least, "queue": spec["queue"], "minResources": map[string]any{"nvidia.com/gpu": "8"},
	}}}
	pg.SetGroupVersionKind(podGroupKind)
	pg.SetNamespace(job.GetNamespace())
	pg.SetName(job.GetName())
	pg.SetOwnerReferences([]metav1.OwnerReference{owner})
	if err := client.IgnoreAlreadyExists(c.Create(ctx, pg)); err != nil {
		return err
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(pg), pg); err != nil {
		return err
	}
	if phase, _, _ := unstructured.NestedString(pg.Object, "status", "phase"); phase == "" || phase == "Pending" {
		return errors.New("its PodGroup is Pending, so it has no pods")
	}
	for _, t := range tasks {
		name := t.(map[string]any)["name"].(string)
		template, _, _ := unstructured.NestedMap(t.(map[string]any), "template", "spec")
		for i := range t.(map[string]any)["replicas"].(int64) {
			template["schedulerName"] = spec["schedulerName"]
			pod := &unstructured.Unstructured{Object: map[string]any{"spec": template}}
			pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
			pod.SetNamespace(job.GetNamespace())
			pod.SetName(fmt.Sprintf("%s-%s-%d", job.GetName(), name, i))
			pod.SetOwnerReferences([]metav1.OwnerReference{owner})
			pod.SetAnnotations(map[string]string{"scheduling.k8s.io/group-name": pg.GetName(), "volcano.sh/task-spec": name})
			if err := client.IgnoreAlreadyExists(c.Create(ctx, pod)); err != nil {
				return err
			}
		}
	}
	return nil
}
