package install

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The tools that people install with, pinned. The first run of each builds it.
const (
	helmTool      = "helm.sh/helm/v3/cmd/helm@v3.22.0"
	kustomizeTool = "sigs.k8s.io/kustomize/kustomize/v5@v5.8.1"
)

const (
	release   = "sluice"
	namespace = "sluice-system"
	chart     = "../chart"
)

// tool runs a pinned tool and returns what it wrote to standard output.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := try(t, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// try is tool for what may fail; the error is what the tool said.
func try(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", name}, args...)...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, &complaint)
	}
	return out.String(), nil
}

// template is the chart with values, as --set takes them.
func template(t *testing.T, values ...string) []*unstructured.Unstructured {
	t.Helper()
	args := []string{"template", release, chart, "--namespace", namespace, "--kube-version", "1.35.0"}
	for _, v := range values {
		args = append(args, "--set-json", v)
	}
	return parse(t, tool(t, helmTool, args...))
}

// build is an overlay.
func build(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	return parse(t, tool(t, kustomizeTool, "build", folder))
}

// overlay is a kustomization of its own, as a site makes one.
func overlay(t *testing.T, lines ...string) string {
	t.Helper()
	folder := t.TempDir()
	deploy, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		t.Fatal(err)
	}
	to, err := filepath.Rel(folder, deploy)
	if err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + strings.ReplaceAll(strings.Join(lines, "\n"), "DEPLOY", to)
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return folder
}

func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, document := range strings.Split("\n"+text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
	if len(all) == 0 {
		t.Fatal("nothing was rendered")
	}
	return all
}

func name(o *unstructured.Unstructured) string {
	return strings.TrimPrefix(o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName(), "/")
}

// byName lists objects by kind, namespace and name, each once.
func byName(t *testing.T, objects []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	t.Helper()
	all := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		if all[name(o)] != nil {
			t.Errorf("%s is there twice", name(o))
		}
		all[name(o)] = o
	}
	return all
}

// alike takes off in what the two ways of installing differ for a reason: Helm makes
// the release's namespace, keeps CRDs when it uninstalls, restarts pods when the
// configuration changes, and names the image's version.
func alike(t *testing.T, objects []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	t.Helper()
	all := byName(t, objects)
	delete(all, "Namespace /"+namespace)
	for _, o := range all {
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "helm.sh/resource-policy")
		unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "annotations", "checksum/config")
		containers, found, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			c := c.(map[string]any)
			c["image"], _, _ = strings.Cut(c["image"].(string), ":")
			delete(c, "imagePullPolicy")
		}
		if found {
			_ = unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers")
		}
		// The file is compared by what it says.
		if text, ok, _ := unstructured.NestedString(o.Object, "data", "config.yaml"); ok {
			var said map[string]any
			if err := yaml.UnmarshalStrict([]byte(text), &said); err != nil {
				t.Fatal(err)
			}
			_ = unstructured.SetNestedMap(o.Object, said, "data")
		}
	}
	return all
}

// One source: what the chart makes of its values is what the overlays make.
func TestChartAndOverlaysAgree(t *testing.T) {
	part := func(names ...string) string {
		lines := []string{"resources: [DEPLOY/overlays/single]", "components:"}
		for _, name := range names {
			lines = append(lines, "- DEPLOY/overlays/parts/"+name)
		}
		return overlay(t, lines...)
	}
	for _, c := range []struct {
		name, folder string
		values       []string
	}{
		{"single", "../overlays/single", nil},
		{"high-availability", "../overlays/high-availability", []string{`replicas=2`}},
		{"agents", "../overlays/agents", []string{`agent.enabled=true`}},
		{"cert-manager", part("cert-manager"), []string{`certManager.enabled=true`}},
		{"service-monitor", part("service-monitor"), []string{`serviceMonitor={"enabled":true,"interval":null}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fromChart, fromOverlay := alike(t, template(t, c.values...)), alike(t, build(t, c.folder))
			for _, o := range fromChart {
				endpoints, ok, _ := unstructured.NestedSlice(o.Object, "spec", "endpoints")
				for _, e := range endpoints {
					delete(e.(map[string]any), "interval") // null, Prometheus's own
				}
				if ok {
					_ = unstructured.SetNestedSlice(o.Object, endpoints, "spec", "endpoints")
				}
			}
			names := slices.Sorted(maps.Keys(fromOverlay))
			if got := slices.Sorted(maps.Keys(fromChart)); !slices.Equal(got, names) {
				t.Fatalf("the chart has   %q\nthe overlay has %q", got, names)
			}
			for _, name := range names {
				if got, want := fromChart[name].Object, fromOverlay[name].Object; !reflect.DeepEqual(got, want) {
					a, _ := yaml.Marshal(got)
					b, _ := yaml.Marshal(want)
					t.Errorf("%s differs\nchart:\n%s\noverlay:\n%s", name, a, b)
				}
			}
		})
	}
}

// Every value reaches the objects that it is for.
func TestValues(t *testing.T) {
	objects := byName(t, template(t,
		`image={"registry":"registry.example.org/batch/","digest":"sha256:`+strings.Repeat("ab", 32)+`"}`,
		`imagePullSecrets=[{"name":"registry"}]`,
		`config={"policy":{"reserveAfter":"5m"},"webhook":{"port":10443,"service":{"port":8443}},"metrics":{"bindAddress":":9090"},"health":{"bindAddress":"127.0.0.1:9091"}}`,
		`resources={"requests":{"cpu":"2"}}`, `nodeSelector={"role":"system"}`, `tolerations=[{"operator":"Exists"}]`,
		`affinity={"podAntiAffinity":{}}`, `topologySpreadConstraints=[{"maxSkew":2}]`, `podAnnotations={"a":"1"}`, `podLabels={"b":"2"}`,
		`priorityClass={"create":true,"name":"ours"}`, `podDisruptionBudget.enabled=false`, `people.enabled=false`, `crds.install=false`,
		`journal.persistence={"enabled":true,"storageClass":"fast","size":"5Gi"}`,
		`agent={"enabled":true,"image":{"registry":"registry.example.org"},"runtimeClassName":"","nodeSelector":{"gpu":"yes"},"tolerations":[{"key":"x"}],"resources":{"limits":{"memory":"1Gi"}},"imagePullSecrets":[{"name":"registry"}]}`,
		`certManager={"enabled":true,"issuerRef":{"kind":"ClusterIssuer","name":"internal"}}`,
		`serviceMonitor={"enabled":true,"labels":{"release":"prometheus"}}`,
	))
	for _, absent := range []string{"PriorityClass /sluice-controller", "PodDisruptionBudget sluice-system/sluice-controller", "ClusterRole /sluice-viewer", "Issuer sluice-system/sluice-webhook", "CustomResourceDefinition /workloads.kueue.x-k8s.io"} {
		if objects[absent] != nil {
			t.Errorf("%s is there", absent)
		}
	}
	for _, c := range []struct{ object, path, want string }{
		{"Deployment sluice-system/sluice-controller", "spec.template.spec", `affinity:\n  podAntiAffinity: {}`},
		{"Deployment sluice-system/sluice-controller", "spec.template.spec", "image: registry.example.org/batch/sluice-controller@sha256:" + strings.Repeat("ab", 32)},
		{"Deployment sluice-system/sluice-controller", "spec.template.spec", `imagePullSecrets:\n- name: registry`},
		{"Deployment sluice-system/sluice-controller", "spec.template.spec", `- containerPort: 10443\n    name: webhook\n  - containerPort: 9090\n    name: metrics\n  - containerPort: 9091\n    name: health`},
		{"Deployment sluice-system/sluice-controller", "spec.template.spec", `resources:\n    requests:\n      cpu: "2"`},
		{"Deployment sluice-system/sluice-controller", "spec.template.spec", `nodeSelector:\n  role: system`},
		{"Deployment sluice-system/sluice-controller", "spec.template.spec", `tolerations:\n- operator: Exists`},
		{"Deployment sluice-system/sluice-controller", "spec.template.spec", `topologySpreadConstraints:\n- maxSkew: 2\n`},
		{"Deployment sluice-system/sluice-controller", "spec.template.spec", `priorityClassName: ours`},
		{"Deployment sluice-system/sluice-controller", "spec.template.spec", `claimName: sluice-journal`},
		{"Deployment sluice-system/sluice-controller", "spec.template.metadata", `b: "2"`},
		{"Deployment sluice-system/sluice-controller", "spec.template.metadata", `a: "1"`},
		{"ConfigMap sluice-system/sluice-controller", "data", `reserveAfter: 5m`},
		{"ConfigMap sluice-system/sluice-controller", "data", `rotateCertificates: false`},
		{"Service sluice-system/sluice-webhook", "spec", `port: 8443`},
		{"Service sluice-system/sluice-metrics", "spec", `port: 9090`},
		{"PersistentVolumeClaim sluice-system/sluice-journal", "spec", `storage: 5Gi`},
		{"PersistentVolumeClaim sluice-system/sluice-journal", "spec", `storageClassName: fast`},
		{"Certificate sluice-system/sluice-webhook", "spec", `kind: ClusterIssuer`},
		{"ServiceMonitor sluice-system/sluice-controller", "metadata", `release: prometheus`},
		{"DaemonSet sluice-agents/sluice-agent", "spec.template.spec", `image: registry.example.org/sluice-agent:v0.1.0`},
		{"DaemonSet sluice-agents/sluice-agent", "spec.template.spec", `gpu: "yes"`},
		{"DaemonSet sluice-agents/sluice-agent", "spec.template.spec", `tolerations:\n- key: x\n`},
		{"DaemonSet sluice-agents/sluice-agent", "spec.template.spec", `memory: 1Gi`},
		{"DaemonSet sluice-agents/sluice-agent", "spec.template.spec", `imagePullSecrets:\n- name: registry`},
	} {
		if objects[c.object] == nil {
			t.Errorf("there is no %s", c.object)
			continue
		}
		part, _, _ := unstructured.NestedFieldNoCopy(objects[c.object].Object, strings.Split(c.path, ".")...)
		text, err := yaml.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(c.want, `\n`, "\n"); !strings.Contains(string(text), want) {
			t.Errorf("%s: in its %s there is no\n%s\nbut\n%s", c.object, c.path, want, text)
		}
	}
	if _, has, _ := unstructured.NestedString(objects["DaemonSet sluice-agents/sluice-agent"].Object, "spec", "template", "spec", "runtimeClassName"); has {
		t.Error("the agent has a runtime class")
	}
}

// Another namespace than the usual is everywhere, in names and rights alike.
func TestAnotherNamespace(t *testing.T) {
	text := tool(t, helmTool, "template", release, chart, "--namespace", "batch", "--kube-version", "1.35.0", "--set", "agent.enabled=true,certManager.enabled=true")
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, namespace) && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			t.Errorf("still %s: %s", namespace, line)
		}
	}
}

// What the chart refuses, and where it says the mistake is.
func TestRefusedValues(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{`replcas=2`, "replcas"},
		{`replicas=0`, "/replicas"},
		{`replicas="two"`, "/replicas"},
		{`config.polcy={}`, "polcy"},
		{`config.policy.reserveAfter=120`, "/config/policy/reserveAfter"},
		{`config.policy.reserveAfter="soon"`, "/config/policy/reserveAfter"},
		{`config.namespace="other"`, "namespace"},
		{`image.digest="latest"`, "/image/digest"},
		{`agent.image.repo="x"`, "repo"},
	} {
		_, err := try(t, helmTool, "template", release, chart, "--kube-version", "1.35.0", "--set-json", c.value)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want it refused with %s", c.value, err, c.want)
		}
	}
	_, err := try(t, helmTool, "template", release, chart, "--kube-version", "1.35.0", "--set", "replicas=2,journal.persistence.enabled=true")
	if err == nil || !strings.Contains(err.Error(), "journal.persistence is of one replica") {
		t.Errorf("two replicas on one claim: got %v", err)
	}
}
