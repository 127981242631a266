package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	"sigs.k8s.io/kueue/pkg/workload"

	"sluice.dev/sluice/admission/jobs"
	"sluice.dev/sluice/admission/jobs/plane"
	"sluice.dev/sluice/admission/jobs/webhook"
)

// The tests in this package that need an API server share one, with one manager
// that has every integration enabled: the integrations register themselves for the
// process. What decides, the tests do themselves.

const root = "../.."

var shared struct {
	sync.Once
	*plane.Plane
	client client.Client
	certs  string
	worlds int
	stop   func() error
	err    error
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New(zap.UseDevMode(false), zap.WriteTo(os.Stderr)))
	code := m.Run()
	if shared.stop != nil {
		if err := shared.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "the manager ended with", err)
			code = 1
		}
	}
	if shared.Plane != nil {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if shared.certs != "" {
		_ = os.RemoveAll(shared.certs)
	}
	os.Exit(code)
}

// world is a namespace on the API server, with the manager running.
type world struct {
	*testing.T
	client.Client
	ns string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	shared.Do(func() { shared.err = start() })
	if errors.Is(shared.err, plane.ErrNotBuilt) {
		t.Skip(shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	shared.worlds++ // a test that is run twice finds nothing of its first run
	w := &world{T: t, Client: shared.client, ns: fmt.Sprintf("t-%d-%s", shared.worlds, strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())))}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}})
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "default"}})
	return w
}

// start starts the API server with Kueue's CRDs alone, and the manager.
func start() error {
	ctx, cancel := context.WithCancel(context.Background())
	done, hooks, err := startManager(ctx)
	shared.stop = func() error { cancel(); return nil }
	if err != nil {
		return err
	}
	shared.stop = func() error { cancel(); return <-done }
	select {
	case <-hooks.Ready():
		return nil
	case err := <-done:
		done <- err
		return fmt.Errorf("manager: %w", err)
	case <-time.After(patience):
		return fmt.Errorf("webhooks: %w", hooks.Check(nil))
	}
}

func startManager(ctx context.Context) (chan error, *webhook.Hooks, error) {
	p, err := plane.Start(root)
	if err != nil {
		return nil, nil, err
	}
	shared.Plane = p
	crds, err := filepath.Glob(filepath.Join(root, "deploy", "crd", "kueue*.yaml"))
	if err != nil {
		return nil, nil, err
	}
	if err := p.Install(ctx, crds...); err != nil {
		return nil, nil, err
	}
	s := runtime.NewScheme()
	if err := jobs.AddToScheme(s); err != nil {
		return nil, nil, err
	}
	if shared.client, err = p.Client(s); err != nil {
		return nil, nil, err
	}
	mgr, hooks, err := newManager(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return done, hooks, nil
}

func newManager(ctx context.Context, s *runtime.Scheme) (ctrl.Manager, *webhook.Hooks, error) {
	var frameworks []string
	for _, f := range jobs.Frameworks() {
		frameworks = append(frameworks, f.Name)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return nil, nil, err
	}
	if shared.certs, err = os.MkdirTemp("", "sluice-jobs-test-"); err != nil {
		return nil, nil, err
	}
	options := webhook.Options{
		Namespace: "default", Host: "127.0.0.1", Port: port, URL: fmt.Sprintf("https://localhost:%d", port),
		CertDir: shared.certs, Rotate: true, ServiceName: "unused", ServicePort: 443,
		Frameworks: frameworks, Kinds: inHouse(), ExcludedNamespaces: []string{"kube-system"},
	}
	mgr, err := ctrl.NewManager(shared.Config, ctrl.Options{
		Scheme: s, Metrics: metricsserver.Options{BindAddress: "0"}, WebhookServer: webhook.NewServer(options),
		Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return nil, nil, err
	}
	hooks, err := webhook.Setup(ctx, mgr, options)
	if err != nil {
		return nil, nil, err
	}
	return mgr, hooks, jobs.Setup(ctx, mgr, jobs.Options{
		Frameworks: frameworks, Kinds: inHouse(), ExcludedNamespaces: []string{"kube-system"}, Ready: hooks.Ready(),
	})
}

// patience is how long a state may take to be reached. It is no measure of speed.
const patience = 2 * time.Minute // a CRD that comes late may be noticed half a minute later

func (w *world) eventually(what string, check func() error) {
	w.Helper()
	var last error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(25 * time.Millisecond) {
		if last = check(); last == nil {
			return
		}
	}
	w.Fatalf("%s: %v", what, last)
}

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		if err := w.Create(context.Background(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			w.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

// crds are files with CRDs in the modules that the integrations have their types from.
func crds(t *testing.T) []string {
	t.Helper()
	var files []string
	for module, in := range map[string][]string{
		"sigs.k8s.io/jobset":                          {"config/components/crd/bases"},
		"sigs.k8s.io/lws":                             {"config/crd/bases"},
		"github.com/kubeflow/training-operator":       {"manifests/base/crds"},
		"github.com/kubeflow/mpi-operator":            {"manifests/base"},
		"github.com/kubeflow/trainer/v2":              {"manifests/base/crds"},
		"github.com/ray-project/kuberay/ray-operator": {"config/crd/bases"},
		"github.com/kubeflow/spark-operator/v2":       {"config/crd/bases"},
		"github.com/project-codeflare/appwrapper":     {"config/crd/bases"},
	} {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		if err != nil {
			t.Fatalf("find module %s: %v", module, err)
		}
		for _, folder := range in {
			found, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), folder, "*_*.yaml"))
			if err != nil || len(found) == 0 {
				t.Fatalf("no CRDs in %s of %s: %v", folder, module, err)
			}
			// The training operator's MPIJob is of an older version than the one queued.
			found = slices.DeleteFunc(found, func(f string) bool {
				return strings.HasSuffix(f, "_mpijobs.yaml") && !strings.Contains(module, "mpi-operator")
			})
			files = append(files, found...)
		}
	}
	return files
}

// installKinds installs the CRDs of all kinds. Kueue asks once, when TrainJobs are
// first served, which kinds of runtime there are: these come first.
func installKinds(t *testing.T) {
	t.Helper()
	var runtimes, rest []string
	for _, file := range crds(t) {
		if strings.HasSuffix(file, "runtimes.yaml") {
			runtimes = append(runtimes, file)
		} else {
			rest = append(rest, file)
		}
	}
	for _, files := range [][]string{runtimes, rest} {
		if err := shared.Install(t.Context(), files...); err != nil {
			t.Fatal(err)
		}
	}
}

// jobOf reads the object anew, as its integration sees it.
func (w *world) jobOf(u *unstructured.Unstructured) jobframework.GenericJob {
	w.Helper()
	cb, ok := jobframework.GetIntegrationByGVK(u.GroupVersionKind())
	if !ok {
		w.Fatalf("no integration for %s", u.GroupVersionKind())
	}
	job := cb.NewJob()
	if err := w.Get(context.Background(), client.ObjectKeyFromObject(u), job.Object()); err != nil {
		w.Fatal(err)
	}
	return job
}

// workloadOf is the Workload that the object owns, or an error.
func (w *world) workloadOf(u client.Object) (*kueue.Workload, error) {
	var list kueue.WorkloadList
	if err := w.List(context.Background(), &list, client.InNamespace(w.ns)); err != nil {
		return nil, err
	}
	for i := range list.Items {
		for _, owner := range list.Items[i].OwnerReferences {
			if owner.UID == u.GetUID() {
				return &list.Items[i], nil
			}
		}
	}
	return nil, fmt.Errorf("%s has none; %d others", u.GetName(), len(list.Items))
}

func podSets(wl *kueue.Workload) string {
	var sets []string
	for _, ps := range wl.Spec.PodSets {
		sets = append(sets, fmt.Sprintf("%s=%d", ps.Name, ps.Count))
	}
	return strings.Join(sets, " ")
}

// setStatus changes the status of a Workload, as the deciding half would.
func (w *world) setStatus(wl *kueue.Workload, change func(*kueue.Workload)) {
	w.Helper()
	w.eventually("write the status of "+wl.Name, func() error {
		if err := w.Get(context.Background(), client.ObjectKeyFromObject(wl), wl); err != nil {
			return err
		}
		return workload.PatchAdmissionStatus(context.Background(), w.Client, wl, clock.RealClock{}, func(wl *kueue.Workload) (bool, error) {
			change(wl)
			return true, nil
		})
	})
}

func set(wl *kueue.Workload, condition, reason string, status metav1.ConditionStatus) {
	apimeta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{Type: condition, Status: status, Reason: reason, Message: reason})
}

// admit admits the Workload onto one node.
func (w *world) admit(wl *kueue.Workload) {
	w.Helper()
	w.setStatus(wl, func(wl *kueue.Workload) {
		wl.Status.Admission = &kueue.Admission{ClusterQueue: "queue"}
		for _, ps := range wl.Spec.PodSets {
			psa := kueue.PodSetAssignment{Name: ps.Name, Count: ptr.To(ps.Count)}
			if ps.Count > 0 {
				psa.TopologyAssignment = &kueue.TopologyAssignment{Levels: []string{corev1.LabelHostname}, Slices: []kueue.TopologyAssignmentSlice{{
					DomainCount:    1,
					ValuesPerLevel: []kueue.TopologyAssignmentSliceLevelValues{{Universal: ptr.To("node-1")}},
					PodCounts:      kueue.TopologyAssignmentSlicePodCounts{Universal: ptr.To(ps.Count)},
				}}}
			}
			wl.Status.Admission.PodSetAssignments = append(wl.Status.Admission.PodSetAssignments, psa)
		}
		set(wl, kueue.WorkloadQuotaReserved, "QuotaReserved", metav1.ConditionTrue)
		set(wl, kueue.WorkloadEvicted, "QuotaReserved", metav1.ConditionFalse)
		set(wl, kueue.WorkloadAdmitted, "Admitted", metav1.ConditionTrue)
	})
}

// evict takes the Workload back, as far as the deciding half does that.
func (w *world) evict(wl *kueue.Workload) {
	w.Helper()
	w.setStatus(wl, func(wl *kueue.Workload) {
		set(wl, kueue.WorkloadEvicted, kueue.WorkloadEvictedByPreemption, metav1.ConditionTrue)
	})
	w.eventually("the admission of "+wl.Name+" is given back", func() error {
		if err := w.Get(context.Background(), client.ObjectKeyFromObject(wl), wl); err != nil {
			return err
		}
		if wl.Status.Admission != nil || workload.HasQuotaReservation(wl) {
			return errors.New("it still has it")
		}
		return nil
	})
}
