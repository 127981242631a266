package podgroup_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	bus "volcano.sh/apis/pkg/apis/bus/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission/jobs/podgroup"
)

// vcjob is a Job of Volcano's: a task of one pod with a card, and one of two with three.
func (w *world) vcjob(name string) *unstructured.Unstructured {
	w.Helper()
	template := func(gpus int64) map[string]any {
		return map[string]any{"spec": map[string]any{
			"restartPolicy": "Never",
			"containers": []any{map[string]any{
				"name": "main", "image": "busybox",
				"resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": gpus}},
			}},
		}}
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": w.ns, "name": name},
		"spec": map[string]any{"tasks": []any{
			map[string]any{"name": "head", "replicas": int64(1), "template": template(1)},
			map[string]any{"name": "worker", "replicas": int64(2), "template": template(3)},
		}},
	}}
	u.SetGroupVersionKind(vcjobKind)
	w.create(u)
	return u
}

// volcanoController does what Volcano's Job controller does: it makes the PodGroup, and
// the pods only once that is beyond Pending.
func (w *world) volcanoController(job *unstructured.Unstructured) {
	w.Helper()
	owner := metav1.OwnerReference{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Name: job.GetName(), UID: job.GetUID(), Controller: ptr.To(true)}
	pg := w.group(job.GetName(), 3, func(pg *volcano.PodGroup) {
		pg.OwnerReferences = []metav1.OwnerReference{owner}
		pg.Spec.MinTaskMember = map[string]int32{"head": 1, "worker": 2}
		pg.Spec.MinResources = &corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("7"), "count/pods": resource.MustParse("3")}
	})
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(pg), pg); err != nil {
		w.Fatal(err)
	}
	if pg.Status.Phase == "" || pg.Status.Phase == volcano.PodGroupPending {
		return
	}
	for _, p := range []struct {
		name, task string
		gpus       int
	}{{"head-0", "head", 1}, {"worker-0", "worker", 3}, {"worker-1", "worker", 3}} {
		name := job.GetName() + "-" + p.name
		w.pod(name, job.GetName(), p.gpus, task(p.task), func(pod *corev1.Pod) { pod.OwnerReferences = []metav1.OwnerReference{owner} })
	}
}

// Volcano's Jobs: their controller makes pods only once room for all of them is held.
// Two Jobs that cannot both fit never start half.
func TestVolcanoJobs(t *testing.T) {
	w := newWorld(t, 1)
	first := w.vcjob("first")
	w.eventually("the first is in the queue", func() error {
		w.volcanoController(first)
		if w.drawPods() == "" {
			return errors.New(w.drawWorkload("first"))
		}
		return nil
	})
	second := w.vcjob("second")
	w.eventually("the first runs whole", func() error {
		w.volcanoController(first)
		w.volcanoController(second)
		if got := w.drawPods(); got != "first-head-0 running, first-worker-0 running, first-worker-1 running" {
			return errors.New(got + "; " + w.drawWorkload("first"))
		}
		return nil
	})
	w.reaches("first", volcano.PodGroupRunning)
	w.reaches("second", volcano.PodGroupPending)
	w.queue("heavy", func(s volcano.QueueStatus) error {
		if s.Running != 1 || s.Pending != 1 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	// Its controller deletes the pods that have succeeded.
	for _, p := range w.pods() {
		w.phase(&p, corev1.PodSucceeded)
	}
	w.reaches("first", volcano.PodGroupCompleted)
	w.eventually("the second runs", func() error {
		w.volcanoController(second)
		if got := w.drawPods(); !strings.HasSuffix(got, "second-head-0 running, second-worker-0 running, second-worker-1 running") {
			return errors.New(got)
		}
		return nil
	})
}

// Of a group without pods, whose owner is of no kind that is known, only the minimum
// in all is known. Room for it is held; the pods that come then are counted as they are.
func TestMinimumWithoutPods(t *testing.T) {
	w := newWorld(t, 1)
	w.group("later", 2, func(pg *volcano.PodGroup) {
		pg.Spec.MinResources = &corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
	})
	w.reaches("later", volcano.PodGroupInqueue)
	w.group("other", 1, func(pg *volcano.PodGroup) {
		pg.Spec.MinResources = &corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
	})
	w.reaches("other", volcano.PodGroupPending)
	w.pod("a", "later", 6)
	w.eventually("one of two is seen", func() error { // its room waits for the other
		pg := &volcano.PodGroup{}
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "later"}, pg); err != nil {
			return err
		}
		if c := pg.Status.Conditions; pg.Status.Phase != volcano.PodGroupInqueue || len(c) == 0 || c[len(c)-1].Reason != volcano.NotEnoughPodsReason {
			return fmt.Errorf("%+v", pg.Status)
		}
		return nil
	})
	w.pod("b", "later", 2)
	w.havePods("a running, b running")
	w.reaches("later", volcano.PodGroupRunning)
	w.reaches("other", volcano.PodGroupPending)
}

// Pods that name no group get one, as Volcano makes it: one for all pods of an owner,
// one for a pod that has none.
func TestPodsWithoutGroup(t *testing.T) {
	w := newWorld(t, 2)
	ns := &corev1.Namespace{}
	if err := w.Get(t.Context(), client.ObjectKey{Name: w.ns}, ns); err != nil {
		t.Fatal(err)
	}
	next := ns.DeepCopy()
	next.Annotations = map[string]string{"scheduling.volcano.sh/queue-name": "heavy"}
	if err := w.Patch(t.Context(), next, client.MergeFrom(ns)); err != nil {
		t.Fatal(err)
	}
	alone := w.pod("alone", "", 1)
	for i := range 2 {
		w.pod(fmt.Sprintf("set-%d", i), "", 4, func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "set", UID: "0d5e2f8e-uid", Controller: ptr.To(true)}}
			p.Annotations["scheduling.volcano.sh/group-min-member"] = "2"
		})
	}
	w.havePods("alone running, set-0 running, set-1 running")
	for name, want := range map[string]int32{"podgroup-" + string(alone.UID): 1, "podgroup-0d5e2f8e-uid": 2} {
		if pg := w.reaches(name, volcano.PodGroupRunning); pg.Spec.MinMember != want || pg.Spec.Queue != "heavy" || len(pg.OwnerReferences) != 1 {
			t.Errorf("%s: %+v %v", name, pg.Spec, pg.OwnerReferences)
		}
	}
}

func (w *world) command(name, queue, action string) {
	w.Helper()
	w.create(&bus.Command{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Action: action,
		TargetObject: &metav1.OwnerReference{APIVersion: "scheduling.volcano.sh/v1beta1", Kind: "Queue", Name: queue, UID: types.UID("uid")},
	})
}

func (w *world) state(queue string, want volcano.QueueState) {
	w.Helper()
	w.queue(queue, func(s volcano.QueueStatus) error {
		if s.State != want {
			return fmt.Errorf("it is %q", s.State)
		}
		return nil
	})
}

// Commands open and close queues; with a parent go its children, and come back with it,
// but for those that were closed by themselves.
func TestCommands(t *testing.T) {
	w := newWorld(t, 1)
	for _, q := range [][2]string{{"top", ""}, {"a", "top"}, {"b", "top"}} {
		w.create(&volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: q[0]}, Spec: volcano.QueueSpec{Weight: 1, Parent: q[1]}})
		w.state(q[0], volcano.QueueStateOpen)
	}
	w.group("runs", 1, func(pg *volcano.PodGroup) { pg.Spec.Queue = "a" })
	w.pod("p", "runs", 1)
	w.reaches("runs", volcano.PodGroupRunning)
	w.command("close-b", "b", "CloseQueue")
	w.state("b", volcano.QueueStateClosed)
	w.command("close-top", "top", "CloseQueue")
	w.state("top", volcano.QueueStateClosed)
	w.state("a", volcano.QueueStateClosing)
	// What runs goes on; what comes waits.
	w.group("waits", 1, func(pg *volcano.PodGroup) { pg.Spec.Queue = "a" })
	w.pod("q", "waits", 1)
	w.reaches("waits", volcano.PodGroupPending)
	w.havePods("p running, q -")
	w.command("open-a", "a", "OpenQueue") // not under a parent that is closed
	w.command("open-top", "top", "OpenQueue")
	w.state("top", volcano.QueueStateOpen)
	w.state("a", volcano.QueueStateOpen)
	w.state("b", volcano.QueueStateClosed)
	w.havePods("p running, q running")
	var left bus.CommandList
	if err := w.List(t.Context(), &left); err != nil || len(left.Items) > 0 {
		t.Errorf("%d orders are left, %v", len(left.Items), err)
	}
	// A queue that is closing is closed with its last group.
	w.command("close-a", "a", "CloseQueue")
	w.state("a", volcano.QueueStateClosing)
	for _, name := range []string{"runs", "waits"} {
		if err := w.Delete(t.Context(), &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	w.state("a", volcano.QueueStateClosed)
}

// A tier is a level of the one Topology that there is.
func TestNetworkTopology(t *testing.T) {
	w := newWorld(t, 4)
	tier := func(mode volcano.NetworkTopologyMode, n int) func(*volcano.PodGroup) {
		return func(pg *volcano.PodGroup) {
			pg.Spec.NetworkTopology = &volcano.NetworkTopologySpec{Mode: mode, HighestTierAllowed: &n}
		}
	}
	w.group("unknown", 1, tier(volcano.HardNetworkTopologyMode, 1))
	w.pod("u", "unknown", 1)
	w.event("unknown", podgroup.ReasonUnsupported, "there are 0 Topologies")
	w.reaches("unknown", volcano.PodGroupPending)
	w.create(&kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{
		{NodeLabel: "example.com/rack"}, {NodeLabel: corev1.LabelHostname},
	}}})
	w.group("hard", 2, tier(volcano.HardNetworkTopologyMode, 1))
	w.pod("h-0", "hard", 8)
	w.pod("h-1", "hard", 8)
	w.reaches("hard", volcano.PodGroupRunning)
	racks := map[string]bool{}
	for _, p := range w.pods() {
		if strings.HasPrefix(p.Name, "h-") {
			n := &corev1.Node{}
			if err := w.Get(t.Context(), client.ObjectKey{Name: p.Spec.NodeName}, n); err != nil {
				t.Fatal(err)
			}
			racks[n.Labels["example.com/rack"]] = true
		}
	}
	if len(racks) != 1 {
		t.Errorf("the gang is on racks %v", racks)
	}
	// Three nodes are in no rack; softly that is no hindrance, and hard it is.
	w.group("wide", 3, tier(volcano.HardNetworkTopologyMode, 1))
	for i := range 3 {
		w.pod(fmt.Sprintf("w-%d", i), "wide", 5)
	}
	w.reaches("wide", volcano.PodGroupPending)
	for _, p := range w.pods() {
		if strings.HasPrefix(p.Name, "h-") {
			w.phase(&p, corev1.PodSucceeded)
		}
	}
	w.group("soft", 3, tier(volcano.SoftNetworkTopologyMode, 1))
	for i := range 3 {
		w.pod(fmt.Sprintf("s-%d", i), "soft", 5)
	}
	w.reaches("soft", volcano.PodGroupRunning)
	w.reaches("wide", volcano.PodGroupPending)
}

// What a PodGroup says of taking it back reaches its Workload; so does its priority.
func TestWhatAnnotationsSay(t *testing.T) {
	w := newWorld(t, 1)
	w.group("pinned", 1, func(pg *volcano.PodGroup) { pg.Spec.PriorityClassName = "system-cluster-critical" })
	w.pod("p", "pinned", 1, func(p *corev1.Pod) {
		p.Annotations["volcano.sh/preemptable"], p.Annotations["volcano.sh/cooldown-time"] = "no idea", "600s"
	})
	w.reaches("pinned", volcano.PodGroupRunning)
	wl := &kueue.Workload{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: podgroup.WorkloadName("pinned")}, wl); err != nil {
		t.Fatal(err)
	}
	if wl.Labels["sluice.dev/preemptible"] != "false" || wl.Annotations["sluice.dev/min-runtime"] != "600s" || wl.Spec.Priority == nil || *wl.Spec.Priority < 1e9 {
		t.Errorf("%v %v %v", wl.Labels, wl.Annotations, wl.Spec.Priority)
	}
	if !apimeta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadAdmitted) {
		t.Errorf("%+v", wl.Status)
	}
}

// Subgroups are not told apart, and the group says so.
func TestSubGroups(t *testing.T) {
	w := newWorld(t, 1)
	w.group("subs", 2, func(pg *volcano.PodGroup) {
		pg.Spec.SubGroupPolicy = []volcano.SubGroupPolicySpec{{Name: "pairs", SubGroupSize: ptr.To[int32](2), MinSubGroups: ptr.To[int32](1), MatchLabelKeys: []string{"pair"}}}
	})
	w.pod("a", "subs", 1)
	w.pod("b", "subs", 1)
	w.reaches("subs", volcano.PodGroupRunning)
	w.event("subs", podgroup.ReasonUnsupported, "subGroupPolicy is not heeded")
}

// A group whose pods another scheduler started is left alone until it is adopted.
func TestRunningGroupIsLeftAlone(t *testing.T) {
	w := newWorld(t, 1)
	w.group("old", 1)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "p", Annotations: map[string]string{"scheduling.k8s.io/group-name": "old"}},
		Spec:       corev1.PodSpec{SchedulerName: "volcano", NodeName: "node-0", Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
	}
	w.create(p)
	w.event("old", "NotAdopted", "sluice import volcano")
	w.havePods("p running")
	if got := w.drawWorkload("old"); !strings.Contains(got, "not found") {
		t.Errorf("it has a Workload: %s", got)
	}
}
