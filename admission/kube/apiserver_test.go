package kube_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/yaml"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/admission/journal"
	"sluice.dev/sluice/admission/kube"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// The tests in this file and its neighbours run against etcd and kube-apiserver,
// started by simulations/sandbox, with nothing else beside them: what kubelets,
// the scheduler and the job integrations would do, the tests do themselves.

// server is the one API server of this test run.
type server struct {
	dir, sandbox string
	config       *rest.Config
	client       client.Client
}

var theServer struct {
	sync.Once
	*server
	err  error
	skip string
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New(zap.UseDevMode(false), zap.WriteTo(os.Stderr)))
	code := m.Run()
	if s := theServer.server; s != nil {
		if out, err := s.command("reset").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "remove the sandbox: %v\n%s", err, out)
		}
		_ = os.RemoveAll(filepath.Dir(s.dir))
	}
	os.Exit(code)
}

func (s *server) command(args ...string) *exec.Cmd {
	return exec.Command(s.sandbox, append(args, "--dir", s.dir)...)
}

// apiServer is the API server, started if it does not run yet.
func apiServer(t testing.TB) *server {
	t.Helper()
	theServer.Do(func() { theServer.server, theServer.skip, theServer.err = startServer() })
	if theServer.skip != "" {
		t.Skip(theServer.skip)
	}
	if theServer.err != nil {
		t.Fatal(theServer.err)
	}
	return theServer.server
}

func startServer() (s *server, skip string, err error) {
	if !built() {
		return nil, "no control plane is built: run `go run ./cmd/sandbox build --only api` in simulations/sandbox", nil
	}
	dir, err := os.MkdirTemp("", "sluice-kube-test-")
	if err != nil {
		return nil, "", err
	}
	s = &server{dir: filepath.Join(dir, "box"), sandbox: filepath.Join(dir, "sandbox")}
	build := exec.Command("go", "build", "-o", s.sandbox, "./cmd/sandbox")
	build.Dir = filepath.Join(root, "simulations", "sandbox")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("build the sandbox: %w\n%s", err, out)
	}
	up := s.command("up", "--only", "api", "--nodes", "none")
	up.Stderr = os.Stderr
	out, err := up.Output()
	if err != nil {
		return s, "", fmt.Errorf("start the sandbox: %w", err)
	}
	if s.config, err = clientcmd.BuildConfigFromFlags("", strings.TrimSpace(string(out))); err != nil {
		return s, "", err
	}
	s.config.QPS, s.config.Burst = 500, 1000
	if s.client, err = client.New(s.config, client.Options{Scheme: scheme()}); err != nil {
		return s, "", err
	}
	return s, "", s.install()
}

// root is the repository.
var root = filepath.Join("..", "..")

// built says whether there are programs to run.
func built() bool {
	if os.Getenv("KUBEBUILDER_ASSETS") != "" {
		return true
	}
	dir := os.Getenv("SLUICE_CACHE")
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return false
		}
		dir = filepath.Join(base, "sluice")
	}
	for _, program := range []string{"etcd-*/etcd", "kubernetes-*/kube-apiserver"} {
		if found, _ := filepath.Glob(filepath.Join(dir, "bin", program)); len(found) == 0 {
			return false
		}
	}
	return true
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensions.AddToScheme, kube.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// install applies the CRDs and waits until they are served.
func (s *server) install() error {
	ctx := context.Background()
	files, err := filepath.Glob(filepath.Join(root, "deploy", "crd", "*_*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("find CRDs: %d files, %w", len(files), err)
	}
	// AdmissionChecks belong to whoever brings them; Kueue's own definition will do.
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kueue").Output()
	if err != nil {
		return fmt.Errorf("find the module of Kueue: %w", err)
	}
	files = append(files, filepath.Join(strings.TrimSpace(string(module)), "config", "components", "crd", "bases", "kueue.x-k8s.io_admissionchecks.yaml"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		crd := &apiextensions.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := s.client.Create(ctx, crd); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	lists := []client.ObjectList{&kueue.WorkloadList{}, &kueue.ClusterQueueList{}, &kueue.LocalQueueList{}, &kueue.CohortList{}, &kueue.ResourceFlavorList{}, &kueue.AdmissionCheckList{}, &kueue.WorkloadPriorityClassList{}, &volcano.QueueList{}, &v1alpha1.SliceInventoryList{}}
	for _, list := range lists {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
			fresh, err := client.New(s.config, client.Options{Scheme: scheme()})
			if err == nil {
				if err = fresh.List(ctx, list); err == nil {
					break
				}
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%T is not served: %w", list, err)
			}
		}
	}
	fresh, err := client.New(s.config, client.Options{Scheme: scheme()})
	s.client = fresh
	return err
}

// world is a namespace with its queues and nodes, and a controller that can be
// stopped and started.
type world struct {
	t      testing.TB
	server *server
	client.Client
	ns      string
	journal string
	config  admission.Config
	labels  []kube.LabelPolicy
	lossy   bool         // some writes get no answer
	patches atomic.Int64 // sent while lossy
	stop    func()
}

// newWorld makes a namespace and the nodes, and starts the controller.
func newWorld(t testing.TB, nodes ...*corev1.Node) *world {
	t.Helper()
	s := apiServer(t)
	w := &world{
		t: t, server: s, Client: s.client, ns: "t-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())),
		journal: filepath.Join(t.TempDir(), "journal.db"), config: admission.DefaultConfig(),
	}
	w.clean()
	t.Cleanup(func() {
		if w.stop != nil {
			w.stop()
		}
		if text := w.events("default"); strings.Contains(text, "InvariantViolated") {
			t.Error(text)
		}
		if !t.Failed() {
			w.clean()
		}
	})
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}})
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "default"}})
	for _, n := range nodes {
		w.addNode(n)
	}
	w.start()
	return w
}

// clean removes what tests left. Nothing else would: there is no garbage collector
// and no namespace controller here.
func (w *world) clean() {
	w.t.Helper()
	ctx := context.Background()
	for _, list := range []client.ObjectList{
		&kueue.WorkloadList{}, &corev1.PodList{}, &kueue.LocalQueueList{}, &kueue.ClusterQueueList{}, &kueue.CohortList{},
		&kueue.ResourceFlavorList{}, &volcano.QueueList{}, &corev1.NodeList{}, &corev1.LimitRangeList{},
		&kueue.AdmissionCheckList{}, &kueue.WorkloadPriorityClassList{}, &nodev1.RuntimeClassList{}, &corev1.ResourceQuotaList{},
		&v1alpha1.SliceInventoryList{}, &coordinationv1.LeaseList{},
	} {
		if err := w.List(ctx, list); err != nil {
			w.t.Fatal(err)
		}
		items, err := itemsOf(list)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, o := range items {
			if len(o.GetFinalizers()) > 0 {
				o.SetFinalizers(nil)
				_ = w.Update(ctx, o)
			}
			if err := w.Delete(ctx, o, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// start runs the controller until stop.
func (w *world) start() {
	w.t.Helper()
	config := rest.CopyConfig(w.server.config)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, NewClient: w.newClient,
		Cache:      cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: kube.OnlyOurs()},
		Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := indexer.Setup(ctx, mgr.GetFieldIndexer()); err != nil {
		w.t.Fatal(err)
	}
	err = kube.Setup(mgr, kube.Options{
		Config: w.config, Labels: w.labels, Namespace: "default", CheckEvery: 50 * time.Millisecond,
		OpenJournal: func() (kube.Journal, error) { return journal.Open(w.journal) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the controller ended with %v", err)
		}
		w.stop = nil
	}
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		if err := w.Create(context.Background(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			w.t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

// addNode creates the node and takes off the taint that every new node gets.
func (w *world) addNode(n *corev1.Node) {
	w.t.Helper()
	w.create(n)
	change(w, n, func(n *corev1.Node) { n.Spec.Taints = nil })
}

// patience is how long a state may take to be reached. It is no measure of speed.
const patience = 30 * time.Second

// eventually waits until check returns "". If it never does, the test fails with
// what it returned last.
func (w *world) eventually(what string, check func() string) {
	w.t.Helper()
	last := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(25 * time.Millisecond) {
		if last = check(); last == "" {
			return
		}
	}
	w.t.Fatalf("%s: %s", what, last)
}

// get reads an object anew; absent is nil.
func get[T client.Object](w *world, o T) T {
	w.t.Helper()
	var none T
	err := w.Get(context.Background(), client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) {
		return none
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}
