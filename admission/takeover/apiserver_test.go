package takeover_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	utiltas "sigs.k8s.io/kueue/pkg/util/tas"
	"sigs.k8s.io/kueue/pkg/workload"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/admission/jobs/plane"
	"sluice.dev/sluice/admission/jobs/podgroup"
	"sluice.dev/sluice/admission/journal"
	"sluice.dev/sluice/admission/kube"
	"sluice.dev/sluice/admission/takeover"
)

const root = "../.."

func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New(zap.UseDevMode(false), zap.WriteTo(os.Stderr)))
	os.Exit(m.Run())
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kube.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// world is an API server with two nodes of 8 GPUs, as another scheduler leaves it.
type world struct {
	*testing.T
	client.Client
	plane *plane.Plane
}

func newWorld(t *testing.T) *world {
	t.Helper()
	p, err := plane.Start(root)
	if errors.Is(err, plane.ErrNotBuilt) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	files, err := filepath.Glob(filepath.Join(root, "deploy", "crd", "*_*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Install(t.Context(), files...); err != nil {
		t.Fatal(err)
	}
	c, err := p.Client(scheme())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, Client: c, plane: p}
	w.eventually("there is a service account", func() error {
		return client.IgnoreAlreadyExists(w.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}))
	})
	for _, name := range []string{"node-0", "node-1"} {
		w.addNode(name)
	}
	return w
}

func (w *world) addNode(name string) {
	w.Helper()
	list := corev1.ResourceList{}
	for r, n := range map[corev1.ResourceName]string{"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"} {
		list[r] = resource.MustParse(n)
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: "host-of-" + name}},
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

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		if err := w.Create(w.Context(), o); err != nil {
			w.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

// start runs sluice until the test ends.
func (w *world) start() {
	w.Helper()
	mgr, err := ctrl.NewManager(w.plane.Config, ctrl.Options{
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
	config.GrowEvery = 10 * time.Millisecond // what could grow does
	file := filepath.Join(w.TempDir(), "journal.db")
	if err := kube.Setup(mgr, kube.Options{
		Config: config, Namespace: "default", CheckEvery: 50 * time.Millisecond, PodGroups: true,
		OpenJournal: func() (kube.Journal, error) { return journal.Open(file) },
	}); err != nil {
		w.Fatal(err)
	}
	if err := podgroup.Setup(ctx, mgr, nil); err != nil {
		w.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("sluice ended with %v", err)
		}
	})
}

func (w *world) eventually(what string, check func() error) {
	w.Helper()
	var last error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(25 * time.Millisecond) {
		if last = check(); last == nil {
			return
		}
	}
	w.Fatalf("%s: %v", what, last)
}

// uids are the pods that there are.
func (w *world) uids() map[string]types.UID {
	w.Helper()
	var list corev1.PodList
	if err := w.List(w.Context(), &list); err != nil {
		w.Fatal(err)
	}
	m := map[string]types.UID{}
	for i := range list.Items {
		if p := &list.Items[i]; p.DeletionTimestamp == nil {
			m[p.Name] = p.UID
		}
	}
	return m
}

func gpuPod(gpus int64) corev1.PodSpec {
	return corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
		Name: "main", Image: "busybox", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)},
			Limits:   corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)},
		},
	}}}
}

// runningPod is a pod that a scheduler put on the node.
func (w *world) runningPod(name, node string, gpus int64, change func(*corev1.Pod)) {
	w.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{}}, Spec: gpuPod(gpus)}
	p.Spec.NodeName = node
	change(p)
	w.create(p)
	p.Status.Phase = corev1.PodRunning
	if err := w.Status().Update(w.Context(), p); err != nil {
		w.Fatal(err)
	}
}

func ownedByJob(name, uid string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: types.UID(uid), Controller: ptr.To(true)}}
	}
}

// admitted is a Workload as Kueue admitted it, of a job, with so many GPUs a pod.
func (w *world) admitted(name, uid string, sets map[string][2]int64, hosts map[string]int32) *kueue.Workload {
	w.Helper()
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: kueue.WorkloadSpec{QueueName: "team"}}
	a := &kueue.Admission{ClusterQueue: "team"}
	for _, set := range slices.Sorted(maps.Keys(sets)) {
		count, gpus := sets[set][0], sets[set][1]
		wl.Spec.PodSets = append(wl.Spec.PodSets, kueue.PodSet{Name: kueue.PodSetReference(set), Count: int32(count), Template: corev1.PodTemplateSpec{Spec: gpuPod(gpus)}})
		psa := kueue.PodSetAssignment{
			Name: kueue.PodSetReference(set), Count: ptr.To(int32(count)),
			Flavors:       map[corev1.ResourceName]kueue.ResourceFlavorReference{"nvidia.com/gpu": "gpu"},
			ResourceUsage: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(count*gpus, resource.DecimalSI)},
		}
		if hosts != nil {
			ta := &utiltas.TopologyAssignment{Levels: []string{corev1.LabelHostname}}
			for _, host := range slices.Sorted(maps.Keys(hosts)) {
				ta.Domains = append(ta.Domains, utiltas.TopologyDomainAssignment{Values: []string{host}, Count: hosts[host]})
			}
			psa.TopologyAssignment = utiltas.V1Beta2From(ta)
		}
		a.PodSetAssignments = append(a.PodSetAssignments, psa)
	}
	if uid != "" {
		wl.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: types.UID(uid), Controller: ptr.To(true)}}
	}
	w.create(wl)
	if err := workload.PatchAdmissionStatus(w.Context(), w.Client, wl, clock.RealClock{}, func(wl *kueue.Workload) (bool, error) {
		workload.SetQuotaReservation(wl, a, clock.RealClock{})
		workload.SyncAdmittedCondition(wl, time.Now())
		return true, nil
	}); err != nil {
		w.Fatal(err)
	}
	return wl
}

func (w *world) adoptAll(f takeover.Family) string {
	w.Helper()
	found, err := takeover.Find(w.Context(), w.Client, f)
	if err != nil {
		w.Fatal(err)
	}
	var lines []string
	for i := range found {
		a := &found[i]
		lines = append(lines, fmt.Sprintf("%s %d %v done=%t %s", a.Name, len(a.Pods), a.Nodes(), a.Done, a.Problem))
		if err := takeover.Adopt(w.Context(), w.Client, a, time.Now()); err != nil {
			w.Fatal(err)
		}
	}
	return strings.Join(lines, "\n")
}

// What Kueue admitted goes on where it runs: its queue is charged what its pods hold,
// what is free is given out to the last card, and no pod is another than before.
func TestAdoptKueue(t *testing.T) {
	w := newWorld(t)
	w.create(
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}},
		&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"nvidia.com/gpu"}, Flavors: []kueue.FlavorQuotas{{
				Name: "gpu", Resources: []kueue.ResourceQuota{{Name: "nvidia.com/gpu", NominalQuota: resource.MustParse("16")}},
			}}}},
		}},
		&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "team"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "team"}},
	)
	// A Job without topology, one with unlike roles, one that Kueue placed, and one that
	// has ended.
	w.admitted("plain", "uid-plain", map[string][2]int64{"main": {2, 2}}, nil)
	w.runningPod("plain-0", "node-0", 2, ownedByJob("plain", "uid-plain"))
	w.runningPod("plain-1", "node-1", 2, ownedByJob("plain", "uid-plain"))
	w.admitted("roles", "uid-roles", map[string][2]int64{"head": {1, 1}, "worker": {1, 3}}, nil)
	w.runningPod("roles-head", "node-0", 1, ownedByJob("roles", "uid-roles"))
	w.runningPod("roles-worker", "node-0", 3, ownedByJob("roles", "uid-roles"))
	w.admitted("placed", "uid-placed", map[string][2]int64{"main": {1, 4}}, map[string]int32{"host-of-node-1": 1})
	w.runningPod("placed-0", "node-1", 4, func(p *corev1.Pod) { p.Annotations[kueue.WorkloadAnnotation] = "placed" })
	ended := w.admitted("ended", "uid-ended", map[string][2]int64{"main": {1, 8}}, nil)
	if err := workload.Finish(t.Context(), w.Client, ended, kueue.WorkloadFinishedReasonSucceeded, "done", clock.RealClock{}); err != nil {
		t.Fatal(err)
	}
	before := w.uids()
	want := "placed 1 [node-1] done=false \nplain 2 [node-0 node-1] done=false \nroles 2 [node-0] done=false "
	if got := w.adoptAll(takeover.Kueue); got != want {
		t.Fatalf("found\n%s\nwant\n%s", got, want)
	}
	if got := w.adoptAll(takeover.Kueue); got != strings.ReplaceAll(want, "false", "true") {
		t.Errorf("again\n%s", got)
	}
	// Four cards are left, two on each node: a gang of five pods waits, one of four runs.
	for name, count := range map[string]int32{"five": 5, "four": 4} {
		w.create(&kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: kueue.WorkloadSpec{
			QueueName: "team", PodSets: []kueue.PodSet{{Name: "main", Count: count, Template: corev1.PodTemplateSpec{Spec: gpuPod(1)}}},
		}})
	}
	w.start()
	w.eventually("the rest is given out, and no more", func() error {
		four, five := w.workload("four"), w.workload("five")
		if !workload.IsAdmitted(four) || workload.IsAdmitted(five) || len(five.Status.Conditions) == 0 {
			return fmt.Errorf("four %+v\nfive %+v", four.Status.Conditions, five.Status.Conditions)
		}
		return nil
	})
	w.eventually("the queue is charged what runs and what was admitted", func() error {
		cq := &kueue.ClusterQueue{}
		if err := w.Get(t.Context(), client.ObjectKey{Name: "team"}, cq); err != nil {
			return err
		}
		if len(cq.Status.FlavorsUsage) != 1 || cq.Status.FlavorsUsage[0].Resources[0].Total.Value() != 12+4 || cq.Status.AdmittedWorkloads != 4 {
			return fmt.Errorf("%+v", cq.Status)
		}
		return nil
	})
	if after := w.uids(); !maps.Equal(before, after) {
		t.Errorf("pods were %v and are %v", before, after)
	}
	for _, name := range []string{"plain", "roles", "placed"} {
		if wl := w.workload(name); !workload.IsAdmitted(wl) || workload.IsEvicted(wl) {
			t.Errorf("%s: %+v", name, wl.Status)
		}
	}
	w.quiet(t.Context())
}

func (w *world) workload(name string) *kueue.Workload {
	w.Helper()
	wl := &kueue.Workload{}
	if err := w.Get(w.Context(), client.ObjectKey{Namespace: "default", Name: name}, wl); err != nil {
		w.Fatal(err)
	}
	return wl
}

// quiet says that sluice found nothing that contradicts itself.
func (w *world) quiet(ctx context.Context) {
	w.Helper()
	var events corev1.EventList
	if err := w.List(ctx, &events); err != nil {
		w.Fatal(err)
	}
	for _, e := range events.Items {
		if strings.Contains(e.Reason, "Invariant") || e.Reason == "Moved" {
			w.Errorf("%s %s: %s", e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
}

// What Volcano started goes on where it runs, and is a gang like any other from then on.
func TestAdoptVolcano(t *testing.T) {
	w := newWorld(t)
	w.create(&volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: "heavy"}, Spec: volcano.QueueSpec{Weight: 1}})
	for name, minimum := range map[string]int32{"gang": 2, "waits": 2} {
		w.create(&volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: volcano.PodGroupSpec{MinMember: minimum, Queue: "heavy"}})
	}
	named := func(p *corev1.Pod) {
		p.Spec.SchedulerName, p.Annotations["scheduling.k8s.io/group-name"] = "volcano", "gang"
	}
	w.runningPod("gang-0", "node-0", 6, named)
	w.runningPod("gang-1", "node-1", 6, named)
	before := w.uids()
	if got := w.adoptAll(takeover.Volcano); got != "gang 2 [node-0 node-1] done=false " {
		t.Fatal(got)
	}
	if got := w.adoptAll(takeover.Volcano); got != "gang 2 [node-0 node-1] done=true " {
		t.Error(got)
	}
	w.start()
	w.eventually("its phase and its queue say that it runs", func() error {
		pg, q := &volcano.PodGroup{}, &volcano.Queue{}
		err := errors.Join(w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "gang"}, pg), w.Get(t.Context(), client.ObjectKey{Name: "heavy"}, q))
		if err != nil || pg.Status.Phase != volcano.PodGroupRunning || pg.Status.Running != 2 || q.Status.Running != 1 || q.Status.Allocated.Name("nvidia.com/gpu", resource.DecimalSI).Value() != 12 {
			return fmt.Errorf("%w %+v %+v", err, pg.Status, q.Status)
		}
		return nil
	})
	// Two cards are left on each node.
	for i := range 2 {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("waits-%d", i), Annotations: map[string]string{"scheduling.k8s.io/group-name": "waits"}},
			Spec:       gpuPod(3),
		}
		p.Spec.SchedulerName = "volcano"
		podgroup.TakeOver(p)
		w.create(p)
	}
	w.eventually("the other group waits for room", func() error {
		pg := &volcano.PodGroup{}
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "waits"}, pg); err != nil {
			return err
		}
		if pg.Status.Phase != volcano.PodGroupPending || len(pg.Status.Conditions) != 1 || pg.Status.Conditions[0].Reason != volcano.NotEnoughResourcesReason {
			return fmt.Errorf("%+v", pg.Status)
		}
		return nil
	})
	after := w.uids()
	for name, uid := range before {
		if after[name] != uid {
			t.Errorf("pod %s was %s and is %s", name, uid, after[name])
		}
	}
	w.quiet(t.Context())
	// Taken back, it is stopped as any other.
	wl := w.workload(podgroup.WorkloadName("gang"))
	next := wl.DeepCopy()
	next.Spec.Active = ptr.To(false)
	if err := w.Patch(t.Context(), next, client.MergeFrom(wl)); err != nil {
		t.Fatal(err)
	}
	w.eventually("its pods are stopped", func() error {
		for name := range w.uids() {
			if strings.HasPrefix(name, "gang") {
				return fmt.Errorf("%s is there", name)
			}
		}
		return nil
	})
}
