package install

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	arv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/admission/jobs/webhook"
	"sluice.dev/sluice/cmd/sluice-controller/config"
)

// ports is the part of the configuration that a machine with other listeners needs.
// There is no kube-proxy either, so that the Service's port is the webhook's own.
func ports(t *testing.T) map[string]any {
	t.Helper()
	webhookPort := freePort(t)
	return map[string]any{
		"webhook": map[string]any{"port": webhookPort, "service": map[string]any{"port": webhookPort}},
		"metrics": map[string]any{"bindAddress": fmt.Sprintf("127.0.0.1:%d", freePort(t))},
		"health":  map[string]any{"bindAddress": fmt.Sprintf("127.0.0.1:%d", freePort(t))},
	}
}

// way is one way of installing.
type way struct {
	name               string
	install, uninstall func(t *testing.T, p *plane, config map[string]any)
}

var ways = []way{
	{
		name: "helm",
		install: func(t *testing.T, p *plane, config map[string]any) {
			p.apply(t, []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
				"name": namespace, "labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted"},
			}}}})
			p.helm(t, "install", release, chart, "--take-ownership", "--namespace", namespace, "--set-json", "config="+encode(t, config))
		},
		uninstall: func(t *testing.T, p *plane, _ map[string]any) {
			p.helm(t, "uninstall", release, "--namespace", namespace, "--wait")
		},
	},
	{
		name: "kustomize",
		install: func(t *testing.T, p *plane, config map[string]any) {
			p.apply(t, overlaid(t, config))
		},
		// As deploy/docs/install.md says: everything but the CRDs.
		uninstall: func(t *testing.T, p *plane, config map[string]any) {
			for _, o := range overlaid(t, config) {
				if o.GetKind() == "CustomResourceDefinition" {
					continue
				}
				if err := client.IgnoreNotFound(p.Delete(t.Context(), o)); err != nil {
					t.Fatalf("delete %s: %v", name(o), err)
				}
			}
		},
	},
}

// overlaid is overlays/single with a site's configuration and ports.
func overlaid(t *testing.T, config map[string]any) []*unstructured.Unstructured {
	t.Helper()
	file := map[string]any{"apiVersion": "config.sluice.dev/v1alpha1", "kind": "Configuration", "namespace": namespace}
	for key, value := range config {
		file[key] = value
	}
	port := func(part, key string) string {
		text := fmt.Sprint(config[part].(map[string]any)[key])
		return text[strings.LastIndexByte(text, ':')+1:]
	}
	patch := func(kind, name, path string, value any) string {
		return fmt.Sprintf("- target: {kind: %s, name: %s}\n  patch: %s", kind, name, encode(t, encode(t, []any{map[string]any{"op": "replace", "path": path, "value": value}})))
	}
	number := func(text string) json.Number { return json.Number(text) }
	container := "/spec/template/spec/containers/0/ports/"
	return build(t, overlay(t, "resources: [DEPLOY/overlays/single]", "patches:",
		patch("ConfigMap", "sluice-controller", "/data/config.yaml", encode(t, file)),
		patch("Deployment", "sluice-controller", container+"0/containerPort", number(port("webhook", "port"))),
		patch("Deployment", "sluice-controller", container+"1/containerPort", number(port("metrics", "bindAddress"))),
		patch("Deployment", "sluice-controller", container+"2/containerPort", number(port("health", "bindAddress"))),
		patch("Service", "sluice-webhook", "/spec/ports/0/port", number(port("webhook", "port"))),
	))
}

func encode(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (p *plane) helm(t *testing.T, args ...string) {
	t.Helper()
	tool(t, helmTool, append(args, "--kubeconfig", p.kubeconfig)...)
}

// route leads the webhooks' Service to this machine, where the controller is.
func (p *plane) route(t *testing.T) {
	t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: config.Default().Webhook.Service.Name}}
	patch := []byte(`{"spec":{"type":"ExternalName","externalName":"localhost","clusterIP":null,"clusterIPs":null,"selector":null}}`)
	if err := p.Patch(t.Context(), service, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// pods waits for the pods that the Deployment makes, which shows that the namespace's
// pod security lets them in, and that they find a node.
func (p *plane) pods(t *testing.T, want int) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	eventually(t, "the Deployment has its pods", func() error {
		if err := p.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/component": "controller"}); err != nil {
			return err
		}
		bound := 0
		for _, pod := range pods.Items {
			if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
				bound++
			}
		}
		if bound != want || len(pods.Items) != want {
			return fmt.Errorf("%d of %d pods are on a node, want %d", bound, len(pods.Items), want)
		}
		return nil
	})
	return pods.Items
}

// TestInstall: from nothing to a gang that runs and back to nothing, either way, with
// the arguments, the file, the user, the volumes and the rights that the manifests give.
func TestInstall(t *testing.T) {
	asked := map[act]bool{}
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			p := onPlane(t)
			p.cleanUp(t) // what an earlier test may have left
			settings := ports(t)
			w.install(t, p, settings)
			installed := true
			uninstall := func() {
				if installed {
					w.uninstall(t, p, settings)
				}
				installed = false
			}
			t.Cleanup(func() { p.cleanUp(t) })
			p.established(t)
			p.route(t)
			gate := p.newGate(t)
			c := p.start(t, &p.pods(t, 1)[0], gate)
			c.ready(t)

			team := "team-" + w.name
			p.teamSpace(t, team)
			gang := gangOf(team, "first", 3, queued)
			if err := p.Create(t.Context(), gang); err != nil {
				t.Fatal(err)
			}
			if !*gang.Spec.Suspend {
				t.Error("a queued Job was created unsuspended")
			}
			p.runs(t, gang)
			waiting := gangOf(team, "second", 4, queued) // sixteen more GPUs than are left
			if err := p.Create(t.Context(), waiting); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the second gang says why it waits", func() error {
				if said := p.saidOf(t, waiting); !strings.Contains(said, "QuotaReserved=False") {
					return fmt.Errorf("it says %s", said)
				}
				return nil
			})
			if w.name == "helm" { // again, as an upgrade does: what the controller filled in stays
				p.helm(t, "upgrade", release, chart, "--namespace", namespace, "--reuse-values")
			} else {
				p.apply(t, overlaid(t, settings))
			}
			if n := p.webhooks(t); n == 0 {
				t.Error("installing again emptied the webhooks")
			}
			gate.mu.Lock()
			for a := range gate.refused {
				t.Errorf("the service account may not %s %s %s", a.verb, a.group, a.resource)
			}
			maps.Copy(asked, gate.asked)
			gate.mu.Unlock()

			c.stop(t)
			uninstall()
			p.nothingLeft(t, overlaid(t, settings))
			p.runs(t, gang) // what runs goes on
			for _, kind := range []string{"workloads.kueue.x-k8s.io", "clusterqueues.kueue.x-k8s.io"} {
				if err := p.Get(t.Context(), client.ObjectKey{Name: kind}, &apiextensionsv1.CustomResourceDefinition{}); err != nil {
					t.Errorf("CRD %s went with it: %v", kind, err)
				}
			}
			if p.workload(t, gang) == nil {
				t.Error("the Workload went with it")
			}
			free := gangOf(team, "free", 1, queued)
			if err := p.Create(t.Context(), free); err != nil {
				t.Errorf("without sluice, a labelled Job: %v", err)
			}
			p.runs(t, free)
		})
	}
	t.Run("rights", func(t *testing.T) {
		if len(asked) == 0 || t.Failed() {
			t.Skip("sluice was not installed")
		}
		checkRights(t, asked)
	})
}

// webhooks counts the entries of both configurations.
func (p *plane) webhooks(t *testing.T) int {
	t.Helper()
	var m arv1.MutatingWebhookConfiguration
	var v arv1.ValidatingWebhookConfiguration
	for _, o := range []client.Object{&m, &v} {
		if err := p.Get(t.Context(), client.ObjectKey{Name: webhook.ConfigurationName}, o); err != nil {
			t.Fatal(err)
		}
	}
	return min(len(m.Webhooks), len(v.Webhooks))
}

// nothingLeft: of what was installed only CRDs are there, and no webhook of anybody
// leads to sluice.
func (p *plane) nothingLeft(t *testing.T, installed []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range installed {
		if o.GetKind() == "CustomResourceDefinition" || o.GetKind() == "Namespace" && o.GetName() == namespace {
			continue
		}
		p.gone(t, o.DeepCopy())
	}
	var m arv1.MutatingWebhookConfigurationList
	var v arv1.ValidatingWebhookConfigurationList
	if err := p.List(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	if err := p.List(t.Context(), &v); err != nil {
		t.Fatal(err)
	}
	if len(m.Items)+len(v.Items) > 0 {
		t.Errorf("webhooks are left: %v %v", m.Items, v.Items)
	}
}

// cleanUp removes what the test left, but for the CRDs: those outlive sluice anyway.
func (p *plane) cleanUp(t *testing.T) {
	ctx := context.Background()
	for _, o := range []client.Object{
		&arv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhook.ConfigurationName}},
		&arv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhook.ConfigurationName}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "sluice-controller"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "sluice-controller"}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "sluice-controller"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "sluice-agents"}},
	} {
		if err := client.IgnoreNotFound(p.Delete(ctx, o)); err != nil {
			t.Error(err)
		}
	}
	for _, ns := range []string{namespace, "sluice-agents"} {
		p.gone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	}
}
