package deploy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	arv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission/jobs/webhook"
	"sluice.dev/sluice/cmd/sluice-controller/config"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// decoder refuses unknown and repeated fields, and kinds nobody defined.
var decoder = func() runtime.Decoder {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, kueue.AddToScheme, volcano.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(s, serializer.EnableStrict).UniversalDeserializer()
}()

// objects reads every object in the manifests under a folder, by file.
func objects(t *testing.T, folder string) map[string][]client.Object {
	t.Helper()
	all := map[string][]client.Object{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" || entry.Name() == "kustomization.yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			object, _, err := decoder.Decode(document, nil, nil)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			all[path] = append(all[path], object.(client.Object))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("no manifest under %s", folder)
	}
	return all
}

// of returns the objects of one kind under a folder.
func of[T client.Object](t *testing.T, folder string) []T {
	t.Helper()
	var found []T
	for _, list := range objects(t, folder) {
		for _, object := range list {
			if typed, ok := object.(T); ok {
				found = append(found, typed)
			}
		}
	}
	if len(found) == 0 {
		var want T
		t.Fatalf("no %T under %s", want, folder)
	}
	return found
}

func TestEveryManifestIsInItsKustomization(t *testing.T) {
	for _, folder := range []string{"base", "crd", "agent"} {
		text, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for path := range objects(t, folder) {
			if !strings.Contains(string(text), "- "+filepath.Base(path)+"\n") {
				t.Errorf("%s is not in %s/kustomization.yaml", path, folder)
			}
		}
	}
}

// One version of each kind is served: none can lose fields on the way to
// another.
func TestOneVersionServed(t *testing.T) {
	for _, crd := range of[*apiextensionsv1.CustomResourceDefinition](t, "crd") {
		var served []string
		for _, v := range crd.Spec.Versions {
			if v.Served {
				served = append(served, v.Name)
			}
		}
		if want := map[string]string{"kueue.x-k8s.io": "v1beta2", "scheduling.volcano.sh": "v1beta1", "sluice.dev": "v1alpha1"}[crd.Spec.Group]; len(served) != 1 || served[0] != want {
			t.Errorf("%s serves %v, want %s", crd.Name, served, want)
		}
	}
}

func TestNamesAgreeWithTheCode(t *testing.T) {
	defaults := config.Default()
	for path, list := range objects(t, "base") {
		for _, object := range list {
			if ns := object.GetNamespace(); ns != "" && ns != defaults.Namespace && ns != v1alpha1.HeartbeatNamespace {
				t.Errorf("%s: namespace %s, the controller's default is %s, the agents' is %s", path, ns, defaults.Namespace, v1alpha1.HeartbeatNamespace)
			}
			switch o := object.(type) {
			case *arv1.MutatingWebhookConfiguration:
				if o.Name != webhook.ConfigurationName || len(o.Webhooks) != 0 {
					t.Errorf("%s: %s with %d webhooks, want %s, empty", path, o.Name, len(o.Webhooks), webhook.ConfigurationName)
				}
			case *arv1.ValidatingWebhookConfiguration:
				if o.Name != webhook.ConfigurationName || len(o.Webhooks) != 0 {
					t.Errorf("%s: %s with %d webhooks, want %s, empty", path, o.Name, len(o.Webhooks), webhook.ConfigurationName)
				}
			case *corev1.Secret:
				if o.Name != webhook.SecretName || len(o.Data)+len(o.StringData) != 0 {
					t.Errorf("%s: secret %s, want %s, empty", path, o.Name, webhook.SecretName)
				}
			case *corev1.Namespace:
				if o.Name != defaults.Namespace && o.Name != v1alpha1.HeartbeatNamespace {
					t.Errorf("%s: namespace %s, want %s or %s", path, o.Name, defaults.Namespace, v1alpha1.HeartbeatNamespace)
				}
			}
		}
	}
	allowed := map[string][]string{}
	for _, role := range of[*rbacv1.Role](t, "base") {
		for _, rule := range role.Rules {
			allowed[rule.Resources[0]] = append(allowed[rule.Resources[0]], rule.ResourceNames...)
		}
	}
	if !slices.Contains(allowed["secrets"], webhook.SecretName) {
		t.Errorf("the role names secrets %v, want %s", allowed["secrets"], webhook.SecretName)
	}
	if !slices.Contains(allowed["leases"], defaults.LeaderElection.ResourceName) {
		t.Errorf("the role names leases %v, want %s", allowed["leases"], defaults.LeaderElection.ResourceName)
	}
}

// What would let a controller that was taken over take over the cluster.
func TestRolesAreNarrow(t *testing.T) {
	check := func(where string, rules []rbacv1.PolicyRule, ownNamespace bool) {
		for _, rule := range rules {
			for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
				if slices.Contains(list, "*") {
					t.Errorf("%s: a rule with *: %v", where, rule)
				}
			}
			writes := slices.ContainsFunc(rule.Verbs, func(v string) bool { return !slices.Contains([]string{"get", "list", "watch"}, v) })
			for _, resource := range rule.Resources {
				switch {
				case resource == "secrets" && !ownNamespace:
					t.Errorf("%s: secrets of every namespace: %v", where, rule)
				case (resource == "secrets" || strings.HasSuffix(resource, "webhookconfigurations")) && writes && len(rule.ResourceNames) == 0:
					t.Errorf("%s: may write any of %s: %v", where, resource, rule)
				case resource == "nodes" && writes, strings.HasSuffix(resource, "roles"), strings.HasSuffix(resource, "rolebindings"):
					t.Errorf("%s: %v", where, rule)
				}
			}
		}
	}
	for _, folder := range []string{"base", "agent"} {
		for _, role := range of[*rbacv1.ClusterRole](t, folder) {
			check("ClusterRole "+role.Name, role.Rules, false)
		}
		for _, role := range of[*rbacv1.Role](t, folder) {
			check("Role "+role.Name, role.Rules, true)
		}
	}
}

// The file that lists every key says what happens without it.
func TestConfigListsTheDefaults(t *testing.T) {
	got, err := config.ReadFile("config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := config.Default(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	text, err := os.ReadFile("config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys(reflect.TypeFor[config.Configuration]()) {
		if !regexp.MustCompile(`(?m)(^|[ {])` + key + `:`).Match(text) {
			t.Errorf("config.yaml does not have %s", key)
		}
	}
}

// keys are those of a configuration type and of the types in it.
func keys(of reflect.Type) []string {
	var all []string
	for i := range of.NumField() {
		all = append(all, of.Field(i).Tag.Get("yaml"))
		if of.Field(i).Type.Kind() == reflect.Struct {
			all = append(all, keys(of.Field(i).Type)...)
		}
	}
	return all
}

// Each example Job goes into a queue that its folder defines, says how it should
// come out, and how long a simulated node runs it.
func TestExamples(t *testing.T) {
	for _, folder := range []string{"examples/first-gangs", "examples/volcano-queue"} {
		queues := map[string]bool{}
		targets := map[string]bool{}
		for _, list := range objects(t, folder) {
			for _, object := range list {
				switch o := object.(type) {
				case *kueue.ClusterQueue, *volcano.Queue:
					targets[o.GetName()] = true
				}
			}
		}
		for _, lq := range of[*kueue.LocalQueue](t, folder) {
			queues[lq.Namespace+"/"+lq.Name] = true
			if !targets[string(lq.Spec.ClusterQueue)] {
				t.Errorf("%s: LocalQueue %s/%s points at %s, which is not there", folder, lq.Namespace, lq.Name, lq.Spec.ClusterQueue)
			}
		}
		for _, job := range of[*batchv1.Job](t, folder) {
			queue := job.Namespace + "/" + job.Labels["kueue.x-k8s.io/queue-name"]
			if !queues[queue] {
				t.Errorf("%s: Job %s goes into %s, which is not there", folder, job.Name, queue)
			}
			if expect := job.Annotations["demo.sluice.dev/expect"]; expect != "Succeeded" && !strings.HasPrefix(expect, "Pending/") {
				t.Errorf("%s: Job %s expects %q", folder, job.Name, expect)
			}
			if _, err := time.ParseDuration(job.Spec.Template.Annotations["sandbox.sluice.dev/run-for"]); err != nil {
				t.Errorf("%s: Job %s: %v", folder, job.Name, err)
			}
			if *job.Spec.Parallelism < 2 || *job.Spec.Parallelism > 16 || *job.Spec.Parallelism != *job.Spec.Completions {
				t.Errorf("%s: Job %s: %d at a time, %d in all", folder, job.Name, *job.Spec.Parallelism, *job.Spec.Completions)
			}
		}
	}
}

// The numbers that the first example's README gives: what fits beside what.
func TestFirstGangsNumbers(t *testing.T) {
	const cluster, node = 48, 8
	total, succeed := int64(0), map[string]int64{}
	for _, job := range of[*batchv1.Job](t, "examples/first-gangs") {
		limit := job.Spec.Template.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
		each := limit.Value()
		all := each * int64(*job.Spec.Parallelism)
		if job.Annotations["demo.sluice.dev/expect"] == "Pending/NeverFits" {
			if each <= node {
				t.Errorf("%s could fit: %d GPUs a pod on nodes of %d", job.Name, each, node)
			}
			continue
		}
		if each > node || all > cluster {
			t.Errorf("%s cannot fit: %d pods of %d", job.Name, *job.Spec.Parallelism, each)
		}
		succeed[job.Name] = all
		total += all
	}
	if len(succeed) != 4 || total-succeed["pretrain"] != cluster || succeed["pretrain"] != cluster {
		t.Errorf("%v: want the others to fill the %d GPUs, and pretrain to need all of them", succeed, cluster)
	}
}
