package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	arv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/admission/jobs"
	"sluice.dev/sluice/admission/jobs/webhook"
	"sluice.dev/sluice/cmd/sluice-controller/config"
)

// kubeconfigVariable names a kubeconfig of a whole control plane that tests may
// fill and break, as the sandbox's. It is not KUBECONFIG, which may be anyone's.
const kubeconfigVariable = "SLUICE_TEST_KUBECONFIG"

// patience bounds the wait for a state that must come. Nothing is measured.
const patience = 90 * time.Second

func eventually(t *testing.T, what string, reached func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := reached()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// plane is a control plane, seen by its administrator.
type plane struct {
	client.Client
	rest      *rest.Config
	namespace string
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	path := os.Getenv(kubeconfigVariable)
	if path == "" {
		t.Skipf("%s is not set", kubeconfigVariable)
	}
	rest, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	rest.QPS, rest.Burst = 500, 1000
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{jobs.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(rest, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{Client: c, rest: rest, namespace: fmt.Sprintf("controller-test-%d", time.Now().UnixNano())}
	p.apply(t, "../../deploy/crd")
	p.apply(t, "../../deploy/base")
	eventually(t, "CRDs are established", p.established)
	p.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}})
	t.Cleanup(func() { p.clean(t) })
	return p
}

// apply applies every manifest of a folder.
func (p *plane) apply(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifest in %s: %v", folder, err)
	}
	for _, file := range append([]string{filepath.Join(folder, "namespace.yaml")}, files...) {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) || filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(document, &object.Object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if err := p.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("controller-test"), client.ForceOwnership); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
	}
}

func (p *plane) established() error {
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := p.List(context.Background(), &list); err != nil {
		return err
	}
	for _, crd := range list.Items {
		ready := false
		for _, c := range crd.Status.Conditions {
			ready = ready || c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		}
		if !ready {
			return fmt.Errorf("%s is not", crd.Name)
		}
	}
	return nil
}

func (p *plane) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := p.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// clean removes what the test made, the controller being gone: the webhooks'
// entries, which would refuse the next test's objects, and the finalizers that
// only the controller takes off.
func (p *plane) clean(t *testing.T) {
	ctx := context.Background()
	for _, object := range []client.Object{&arv1.MutatingWebhookConfiguration{}, &arv1.ValidatingWebhookConfiguration{}} {
		object.SetName(webhook.ConfigurationName)
		if err := p.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"webhooks":null}`))); err != nil {
			t.Errorf("clean up: %v", err)
		}
	}
	if err := p.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}); err != nil {
		t.Errorf("clean up: %v", err)
	}
	var workloads kueue.WorkloadList
	if err := p.List(ctx, &workloads, client.InNamespace(p.namespace)); err != nil {
		t.Errorf("clean up: %v", err)
	}
	for i := range workloads.Items {
		w := &workloads.Items[i]
		w.Finalizers = nil
		if err := client.IgnoreNotFound(p.Update(ctx, w)); err != nil && !apierrors.IsConflict(err) {
			t.Errorf("clean up: %v", err)
		}
	}
}

var queued = map[string]string{"kueue.x-k8s.io/queue-name": "main"}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "main", Image: "busybox", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
		}}},
	}
}

// job would start its pods at once but for us.
func (p *plane) job(name string, labels map[string]string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name, Labels: labels},
		Spec: batchv1.JobSpec{
			Suspend: ptr.To(false), Parallelism: ptr.To[int32](3), Completions: ptr.To[int32](3),
			Template: corev1.PodTemplateSpec{Spec: podSpec()},
		},
	}
}

func (p *plane) pod(namespace, name string, labels map[string]string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Spec: podSpec()}
	pod.Spec.AutomountServiceAccountToken = ptr.To(false)
	return pod
}

// pods lists the names of the pods of a Job.
func (p *plane) pods(t *testing.T, job string) []string {
	t.Helper()
	var list corev1.PodList
	if err := p.List(t.Context(), &list, client.InNamespace(p.namespace), client.MatchingLabels{batchv1.JobNameLabel: job}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	return names
}

// started is a controller that runs in this process, under its own service
// account's rights.
type started struct {
	stop func()
	log  *logLines
}

// logLines keeps what was logged.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) add(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, prefix+" "+args)
}

func (l *logLines) containing(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.lines {
		if strings.Contains(strings.ToLower(line), text) {
			found = append(found, line)
		}
	}
	return found
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (p *plane) start(t *testing.T) *started {
	t.Helper()
	settings := config.Default()
	settings.Webhook.Host, settings.Webhook.Port, settings.Webhook.CertDir = "127.0.0.1", freePort(t), t.TempDir()
	settings.Webhook.URL = fmt.Sprintf("https://localhost:%d", settings.Webhook.Port)
	settings.Metrics.BindAddress = "0"
	settings.Health.BindAddress = fmt.Sprintf("127.0.0.1:%d", freePort(t))
	settings.Journal.Path = filepath.Join(t.TempDir(), "journal.db")
	if err := settings.Validate(); err != nil {
		t.Fatal(err)
	}
	own := rest.CopyConfig(p.rest)
	own.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:sluice-system:sluice-controller",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:sluice-system", "system:authenticated"},
	}
	lines := &logLines{}
	ctrl.SetLogger(funcr.New(lines.add, funcr.Options{}))

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, own, settings) }()
	s := &started{log: lines, stop: sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("controller: %v", err)
		}
	})}
	t.Cleanup(s.stop)
	eventually(t, "the controller is ready", func() error {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("controller ended: %v", err)
		default:
		}
		response, err := http.Get("http://" + settings.Health.BindAddress + "/readyz")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		if response.StatusCode != http.StatusOK {
			return errors.New(string(body))
		}
		return nil
	})
	return s
}

// The job side on a real control plane: queued objects wait from their first
// instant, others never notice us, and when we are gone the first are refused
// and the others go on.
func TestJobSide(t *testing.T) {
	p := newPlane(t)
	s := p.start(t)

	t.Run("a queued Job is suspended at creation and gets a Workload", func(t *testing.T) {
		job := p.job("queued", queued)
		p.create(t, job)
		if !*job.Spec.Suspend {
			t.Fatal("created unsuspended")
		}
		eventually(t, "a Workload", func() error {
			var list kueue.WorkloadList
			if err := p.List(t.Context(), &list, client.InNamespace(p.namespace)); err != nil {
				return err
			}
			for _, w := range list.Items {
				if metav1.IsControlledBy(&w, job) && w.Spec.QueueName == "main" && w.Spec.PodSets[0].Count == 3 {
					return nil
				}
			}
			return fmt.Errorf("none of %d is the Job's", len(list.Items))
		})
	})

	t.Run("a queued Job cannot be started by hand", func(t *testing.T) {
		job := &batchv1.Job{}
		key := client.ObjectKey{Namespace: p.namespace, Name: "queued"}
		if err := p.Get(t.Context(), key, job); err != nil {
			t.Fatal(err)
		}
		job.Spec.Suspend = ptr.To(false)
		if err := p.Update(t.Context(), job); err != nil {
			return // Refused: as good.
		}
		eventually(t, "suspended again", func() error {
			if err := p.Get(t.Context(), key, job); err != nil {
				return err
			}
			if !*job.Spec.Suspend {
				return errors.New("still unsuspended")
			}
			return nil
		})
	})

	t.Run("of many queued Jobs none has a pod, while a plain one has", func(t *testing.T) {
		for i := range 20 {
			p.create(t, p.job(fmt.Sprintf("many-%d", i), queued))
		}
		p.create(t, p.job("plain", nil)) // Created last: its pods come after those there might be.
		eventually(t, "pods of the plain Job", func() error {
			if n := len(p.pods(t, "plain")); n != 3 {
				return fmt.Errorf("%d pods, want 3", n)
			}
			return nil
		})
		for i := range 20 {
			if pods := p.pods(t, fmt.Sprintf("many-%d", i)); len(pods) > 0 {
				t.Errorf("many-%d has pods %v", i, pods)
			}
		}
	})

	t.Run("a queued pod is gated at creation, others are not", func(t *testing.T) {
		pod := p.pod(p.namespace, "gated", queued)
		p.create(t, pod)
		if len(pod.Spec.SchedulingGates) == 0 {
			t.Error("created without a gate")
		}
		plain := p.pod(p.namespace, "free", nil)
		p.create(t, plain)
		if len(plain.Spec.SchedulingGates) != 0 {
			t.Errorf("a pod that is not ours has gates %v", plain.Spec.SchedulingGates)
		}
		if err := p.Delete(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the gated pod is gone", func() error {
			err := p.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("still there, finalizers %v, %w", pod.Finalizers, err)
		})
	})

	t.Run("a queue with a negative weight is refused with its reason", func(t *testing.T) {
		cq := &kueue.ClusterQueue{
			ObjectMeta: metav1.ObjectMeta{Name: p.namespace},
			Spec:       kueue.ClusterQueueSpec{FairSharing: &kueue.FairSharing{Weight: ptr.To(resource.MustParse("-1"))}},
		}
		err := p.Create(t.Context(), cq)
		if err == nil || !strings.Contains(err.Error(), "spec.fairSharing") {
			t.Fatalf("got %v", err)
		}
		cq.Spec.FairSharing.Weight = ptr.To(resource.MustParse("2"))
		p.create(t, cq)
		if len(cq.Finalizers) != 0 {
			t.Errorf("finalizers %v, which nobody would remove", cq.Finalizers)
		}
		if err := p.Delete(t.Context(), cq); err != nil {
			t.Fatal(err)
		}
	})

	if denied := s.log.containing("forbidden"); len(denied) > 0 {
		t.Errorf("the service account lacks rights:\n%s", strings.Join(denied, "\n"))
	}
	s.stop()
	t.Run("while down", func(t *testing.T) { testDown(t, p) })
}

func testDown(t *testing.T, p *plane) {
	p.create(t, p.job("down-plain", nil))
	p.create(t, p.pod(p.namespace, "down-plain", map[string]string{"app": "web"}))
	eventually(t, "pods of a plain Job", func() error {
		if n := len(p.pods(t, "down-plain")); n != 3 {
			return fmt.Errorf("%d pods, want 3", n)
		}
		return nil
	})
	for _, object := range []client.Object{p.job("down-queued", queued), p.pod(p.namespace, "down-queued", queued)} {
		err := p.Create(t.Context(), object)
		if err == nil || !strings.Contains(err.Error(), "jobs.sluice.dev") {
			t.Errorf("a queued %T while down: %v, want it refused in our webhook's name", object, err)
		}
	}
	system := p.pod(metav1.NamespaceSystem, p.namespace, queued)
	p.create(t, system)
	if err := p.Delete(t.Context(), system, client.GracePeriodSeconds(0)); err != nil {
		t.Error(err)
	}

	job := &batchv1.Job{}
	if err := p.Get(t.Context(), client.ObjectKey{Namespace: p.namespace, Name: "queued"}, job); err != nil {
		t.Fatal(err)
	}
	job.Spec.Suspend = ptr.To(false)
	if err := p.Update(t.Context(), job); err == nil {
		t.Error("a waiting Job was started by hand")
	}
	if err := p.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Errorf("delete a waiting Job: %v", err)
	}
}
