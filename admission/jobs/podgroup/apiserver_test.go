package podgroup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	bus "volcano.sh/apis/pkg/apis/bus/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/admission/jobs/plane"
	"sluice.dev/sluice/admission/jobs/podgroup"
	"sluice.dev/sluice/admission/journal"
	"sluice.dev/sluice/admission/kube"
)

// The tests here run on etcd and kube-apiserver, with the half that decides and the
// half that is tested in one manager. What the webhook, the scheduler, the kubelets and
// Volcano's controllers would do, the tests do.

const root = "../../.."

var shared struct {
	sync.Once
	*plane.Plane
	err error
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New(zap.UseDevMode(false), zap.WriteTo(os.Stderr)))
	code := m.Run()
	if shared.Plane != nil {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kube.AddToScheme, bus.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// invented are the kinds of Volcano's that sluice ships no CRD of.
func invented() []*apiextensionsv1.CustomResourceDefinition {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, k := range []struct{ group, version, kind, plural string }{
		{"batch.volcano.sh", "v1alpha1", "Job", "jobs"},
		{"bus.volcano.sh", "v1alpha1", "Command", "commands"},
	} {
		crds = append(crds, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: k.plural + "." + k.group},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: k.group, Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: k.plural, Singular: strings.ToLower(k.kind), Kind: k.kind, ListKind: k.kind + "List"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: k.version, Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
				}},
			},
		})
	}
	return crds
}

func startPlane(ctx context.Context) (err error) {
	if shared.Plane, err = plane.Start(root); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(root, "deploy", "crd", "*_*.yaml"))
	if err != nil {
		return err
	}
	if err := shared.Install(ctx, files...); err != nil {
		return err
	}
	c, err := shared.Client(scheme())
	if err != nil {
		return err
	}
	for _, crd := range invented() {
		if err := c.Create(ctx, crd); err != nil {
			return err
		}
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c, err := shared.Client(scheme())
		if err == nil {
			err = errors.Join(c.List(ctx, &bus.CommandList{}), c.List(ctx, vcjobs()))
		}
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

var vcjobKind = schema.GroupVersionKind{Group: "batch.volcano.sh", Version: "v1alpha1", Kind: "Job"}

func vcjobs() *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(vcjobKind)
	return l
}

// world is a namespace with a queue "heavy", and the controller running.
type world struct {
	*testing.T
	client.Client
	ns   string
	stop func()
}

func newWorld(t *testing.T, nodes int) *world {
	t.Helper()
	shared.Do(func() { shared.err = startPlane(context.Background()) })
	if errors.Is(shared.err, plane.ErrNotBuilt) {
		t.Skip(shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	c, err := shared.Client(scheme())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, Client: c, ns: "t-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))}
	w.clean()
	w.create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "default"}},
		&volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: "heavy"}, Spec: volcano.QueueSpec{Weight: 1}},
	)
	for i := range nodes {
		w.addNode(fmt.Sprintf("node-%d", i))
	}
	w.start()
	t.Cleanup(func() {
		w.stop()
		if !t.Failed() {
			w.clean()
		}
	})
	return w
}

// addNode adds a node of 8 GPUs; two follow each other in one rack.
func (w *world) addNode(name string) {
	w.Helper()
	list := corev1.ResourceList{}
	for r, n := range map[corev1.ResourceName]string{"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"} {
		list[r] = resource.MustParse(n)
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, "example.com/rack": "rack-" + string('a'+(name[len(name)-1]-'0')/2)}},
		Status:     corev1.NodeStatus{Allocatable: list, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	w.create(n)
	w.eventually("node "+name+" has no taint", func() error {
		if err := w.Get(w.Context(), client.ObjectKeyFromObject(n), n); err != nil {
			return err
		}
		n.Spec.Taints = nil
		return w.Update(w.Context(), n)
	})
}

// clean removes everything: there is no garbage collector here.
func (w *world) clean() {
	w.Helper()
	ctx := context.Background()
	for _, l := range []client.ObjectList{
		&kueue.WorkloadList{}, &volcano.PodGroupList{}, vcjobs(), &corev1.PodList{}, &volcano.QueueList{}, &bus.CommandList{},
		&corev1.NodeList{}, &kueue.TopologyList{}, &kueue.LocalQueueList{},
	} {
		if err := w.List(ctx, l); err != nil {
			w.Fatal(err)
		}
		items, err := metaItems(l)
		if err != nil {
			w.Fatal(err)
		}
		for _, o := range items {
			if err := w.Delete(ctx, o, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				w.Fatal(err)
			}
		}
	}
}

func (w *world) start() {
	w.Helper()
	mgr, err := ctrl.NewManager(shared.Config, ctrl.Options{
		Scheme: scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: kube.OnlyOurs()},
		Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := indexer.Setup(ctx, mgr.GetFieldIndexer()); err != nil {
		w.Fatal(err)
	}
	config := admission.DefaultConfig()
	config.GrowEvery = 50 * time.Millisecond
	journalFile := filepath.Join(w.TempDir(), "journal.db")
	if err := kube.Setup(mgr, kube.Options{
		Config: config, Namespace: "default", CheckEvery: 50 * time.Millisecond, PodGroups: true,
		OpenJournal: func() (kube.Journal, error) { return journal.Open(journalFile) },
	}); err != nil {
		w.Fatal(err)
	}
	if err := podgroup.Setup(ctx, mgr, nil); err != nil {
		w.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("the controller ended with %v", err)
		}
	}
}

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		if err := w.Create(context.Background(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			w.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

// patience is how long a state may take to be reached. It is no measure of speed.
const patience = 30 * time.Second

// eventually waits until check returns nil; meanwhile nodes do their part.
func (w *world) eventually(what string, check func() error) {
	w.Helper()
	var last error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(25 * time.Millisecond) {
		w.kubelets()
		if last = check(); last == nil {
			return
		}
	}
	w.Fatalf("%s: %v", what, last)
}

// kubelets do what the scheduler and the nodes would: pods that were let go are bound
// and run; pods that are deleted end.
func (w *world) kubelets() {
	w.Helper()
	ctx := context.Background()
	for _, p := range w.pods() {
		switch node := p.Annotations[kube.NodeAnnotation]; {
		case p.DeletionTimestamp != nil:
			_ = w.Delete(ctx, &p, client.GracePeriodSeconds(0), client.Preconditions{UID: &p.UID})
		case len(p.Spec.SchedulingGates) > 0:
		case p.Spec.NodeName == "" && node != "":
			b := &corev1.Binding{ObjectMeta: p.ObjectMeta, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
			b.ResourceVersion = ""
			if err := w.SubResource("binding").Create(ctx, &p, b); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				w.Fatalf("bind %s: %v", p.Name, err)
			}
		case p.Spec.NodeName != "" && (p.Status.Phase == "" || p.Status.Phase == corev1.PodPending):
			w.phase(&p, corev1.PodRunning)
		}
	}
}

func (w *world) phase(p *corev1.Pod, phase corev1.PodPhase) {
	w.Helper()
	next := p.DeepCopy()
	next.Status.Phase = phase
	if err := w.Status().Patch(context.Background(), next, client.MergeFrom(p)); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
}

func (w *world) pods() []corev1.Pod {
	w.Helper()
	var list corev1.PodList
	if err := w.List(context.Background(), &list, client.InNamespace(w.ns)); err != nil {
		w.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

// pod is one of Volcano's, of the group, taken over as the webhook does.
func (w *world) pod(name, group string, gpus int, change ...func(*corev1.Pod)) *corev1.Pod {
	w.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			SchedulerName: "volcano", RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](30),
			Containers: []corev1.Container{{Name: "main", Image: "busybox", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(gpus), resource.DecimalSI)},
			}}},
		},
	}
	if group != "" {
		p.Annotations["scheduling.k8s.io/group-name"] = group
	}
	for _, c := range change {
		c(p)
	}
	if !podgroup.TakeOver(p) {
		w.Fatalf("pod %s is not taken over", name)
	}
	w.create(p)
	return p
}

func task(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations["volcano.sh/task-spec"] = name }
}

// group makes a PodGroup of the queue heavy.
func (w *world) group(name string, minMember int32, change ...func(*volcano.PodGroup)) *volcano.PodGroup {
	w.Helper()
	pg := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, Spec: volcano.PodGroupSpec{MinMember: minMember, Queue: "heavy"}}
	for _, c := range change {
		c(pg)
	}
	w.create(pg)
	return pg
}

// reaches waits for the phase of the group.
func (w *world) reaches(name string, want volcano.PodGroupPhase) *volcano.PodGroup {
	w.Helper()
	pg := &volcano.PodGroup{}
	w.eventually(fmt.Sprintf("PodGroup %s is %s", name, want), func() error {
		if err := w.Get(context.Background(), client.ObjectKey{Namespace: w.ns, Name: name}, pg); err != nil {
			return err
		}
		if pg.Status.Phase != want {
			return fmt.Errorf("it is %q, %+v; %s; %s", pg.Status.Phase, pg.Status, w.drawPods(), w.drawWorkload(name))
		}
		return nil
	})
	return pg
}

// drawPods is the pods by name: - is gated, ~ stops, else its phase.
func (w *world) drawPods() string {
	w.Helper()
	var all []string
	for _, p := range w.pods() {
		state := strings.ToLower(string(p.Status.Phase))
		switch {
		case p.DeletionTimestamp != nil:
			state = "~"
		case len(p.Spec.SchedulingGates) > 0:
			state = "-"
		}
		all = append(all, p.Name+" "+state)
	}
	return strings.Join(all, ", ")
}

func (w *world) drawWorkload(group string) string {
	wl := &kueue.Workload{}
	if err := w.Get(context.Background(), client.ObjectKey{Namespace: w.ns, Name: podgroup.WorkloadName(group)}, wl); err != nil {
		return err.Error()
	}
	text := wl.Annotations[kube.GangAnnotation]
	for _, c := range wl.Status.Conditions {
		text += fmt.Sprintf("; %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	return text
}

// havePods waits until the pods are as drawn.
func (w *world) havePods(want string) {
	w.Helper()
	w.eventually("pods are "+want, func() error {
		if got := w.drawPods(); got != want {
			return errors.New(got)
		}
		return nil
	})
}

func metaItems(l client.ObjectList) ([]client.Object, error) {
	var items []client.Object
	err := eachItem(l, func(o client.Object) { items = append(items, o) })
	return items, err
}

func eachItem(l client.ObjectList, do func(client.Object)) error {
	return apimeta.EachListItem(l, func(o runtime.Object) error {
		c, ok := o.(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", o)
		}
		do(c)
		return nil
	})
}
