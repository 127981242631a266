package demo

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/constants"
)

var trainKey = client.ObjectKey{Namespace: "ml", Name: "train"}

func trainGang() *gang {
	return &gang{key: trainKey, expect: "Succeeded", manifest: &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"labels": map[string]any{constants.QueueLabel: "main"}},
		"spec":     map[string]any{"parallelism": float64(2)},
	}}}
}

// trainWorld has the Job ml/train, in a queue of team-a.
func trainWorld() *world {
	return &world{
		jobs:      map[client.ObjectKey]*batchv1.Job{trainKey: {ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train", UID: "now"}}},
		workloads: make(map[client.ObjectKey]*kueue.Workload),
		pods:      make(map[client.ObjectKey][]*corev1.Pod),
		queues:    map[client.ObjectKey]string{{Namespace: "ml", Name: "main"}: "team-a"},
	}
}

func owned(uid string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ml", OwnerReferences: []metav1.OwnerReference{{
		Kind: "Job", Name: "train", UID: trainWorld().jobs[trainKey].UID, Controller: ptr.To(true),
	}}, Labels: map[string]string{"uid": uid}}
}

func (w *world) withPod(phase corev1.PodPhase, node string) *world {
	p := &corev1.Pod{ObjectMeta: owned(node), Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	w.pods[trainKey] = append(w.pods[trainKey], p)
	return w
}

func (w *world) withWorkload(admitted bool, conditions ...metav1.Condition) *world {
	wl := &kueue.Workload{ObjectMeta: owned("w"), Status: kueue.WorkloadStatus{Conditions: conditions}}
	if admitted {
		wl.Status.Admission = &kueue.Admission{}
	}
	w.workloads[trainKey] = wl
	return w
}

func (w *world) withJob(change func(*batchv1.Job)) *world {
	change(w.jobs[trainKey])
	return w
}

func waitsFor(reason, message string) metav1.Condition {
	return metav1.Condition{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

func TestRow(t *testing.T) {
	ends := func(c batchv1.JobConditionType) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: c, Status: corev1.ConditionTrue}}
		}
	}
	for name, test := range map[string]struct {
		world *world
		want  string // STATE PODS NODES OUTCOME
	}{
		"no Job":      {&world{}, "Missing 0/2  Missing"},
		"no Workload": {trainWorld(), "Submitted 0/2  Submitted"},
		"waits": {
			trainWorld().withWorkload(false, waitsFor("Quota", "Quota: asks 8; queue team-a uses 4 of at most 8")),
			"Pending 0/2  Pending/Quota",
		},
		"waits, and says so without a code": {
			trainWorld().withWorkload(false, waitsFor("Inadmissible", "no room at all: none")),
			"Pending 0/2  Pending/Inadmissible",
		},
		"waits without a word": {trainWorld().withWorkload(false), "Pending 0/2  Pending"},
		"admitted, one pod bound": {
			trainWorld().withWorkload(true).withPod(corev1.PodPending, "gpu-1"),
			"Admitted 0/2 gpu-1 Admitted",
		},
		"both pods run": {
			trainWorld().withWorkload(true).withPod(corev1.PodRunning, "gpu-1").withPod(corev1.PodRunning, "gpu-0").
				withJob(func(j *batchv1.Job) { j.Status.Ready = ptr.To(int32(2)) }),
			"Running 2/2 gpu-{0,1} Running",
		},
		"taken back, pods stop": {
			trainWorld().withWorkload(false, waitsFor("Pending", "Capacity: x")).withPod(corev1.PodRunning, "gpu-1"),
			"Stopping 1/2 gpu-1 Stopping",
		},
		"being taken back": {
			trainWorld().withWorkload(true, metav1.Condition{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue}),
			"Stopping 0/2  Stopping",
		},
		"succeeded": {trainWorld().withWorkload(true).withPod(corev1.PodSucceeded, "gpu-1").withPod(corev1.PodSucceeded, "gpu-1").
			withJob(ends(batchv1.JobComplete)), "Succeeded 2/2 gpu-1 Succeeded"},
		"failed": {trainWorld().withWorkload(true).withJob(ends(batchv1.JobFailed)), "Failed 0/2  Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := test.world.row(trainGang())
			got := strings.Join([]string{string(r.State), r.cells()[2], shortNodes(r.Nodes), r.Outcome()}, " ")
			if got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// A pod of an earlier Job of the name does not count.
func TestRowIgnoresPodsOfAnotherJob(t *testing.T) {
	w := trainWorld().withWorkload(true).withPod(corev1.PodRunning, "gpu-1")
	w.pods[trainKey][0].OwnerReferences[0].UID = "before"
	if r := w.row(trainGang()); r.Pods != 0 || len(r.Nodes) != 0 {
		t.Errorf("got %d pods on %v", r.Pods, r.Nodes)
	}
}

func TestRowNamesTheQueueBehindTheLocalQueue(t *testing.T) {
	w := trainWorld()
	if r := w.row(trainGang()); r.Queue != "team-a" {
		t.Errorf("got %q, want team-a", r.Queue)
	}
	clear(w.queues)
	if r := w.row(trainGang()); r.Queue != "main" {
		t.Errorf("got %q, want main", r.Queue)
	}
}

func TestRefusedManifest(t *testing.T) {
	g := trainGang()
	g.refused = "spec.parallelism: must not be negative"
	r := (&world{}).row(g)
	if r.State != Refused || r.Text != g.refused || !r.Over() || r.AsExpected() {
		t.Errorf("got %+v", r)
	}
}

func TestOver(t *testing.T) {
	for name, test := range map[string]struct {
		row              Row
		over, asExpected bool
	}{
		"as it should wait":     {Row{State: Pending, Code: "NeverFits", Expect: "Pending/NeverFits"}, true, true},
		"waits for another":     {Row{State: Pending, Code: "Quota", Expect: "Pending/NeverFits"}, false, false},
		"waits, should succeed": {Row{State: Pending, Code: "NeverFits", Expect: "Succeeded"}, false, false},
		"runs":                  {Row{State: Running, Expect: "Succeeded"}, false, false},
		"succeeded":             {Row{State: Succeeded, Expect: "Succeeded"}, true, true},
		"should have waited":    {Row{State: Succeeded, Expect: "Pending/NeverFits"}, true, false},
		"failed":                {Row{State: Failed, Expect: "Succeeded"}, true, false},
		"should fail":           {Row{State: Failed, Expect: "Failed"}, true, true},
		"never seen":            {Row{Expect: "Succeeded"}, false, false},
	} {
		if got := test.row.Over(); got != test.over {
			t.Errorf("%s: over %v, want %v", name, got, test.over)
		}
		if got := test.row.AsExpected(); got != test.asExpected {
			t.Errorf("%s: as expected %v, want %v", name, got, test.asExpected)
		}
	}
}

func TestShortNodes(t *testing.T) {
	for want, names := range map[string][]string{
		"":                nil,
		"gpu-0":           {"gpu-0"},
		"gpu-{0,1,10}":    {"gpu-0", "gpu-1", "gpu-10"},
		"a b":             {"a", "b"},
		"h100-{a-0,b-0}":  {"h100-a-0", "h100-b-0"},
		"dc1.{n1.x,n2.x}": {"dc1.n1.x", "dc1.n2.x"},
		"gpu-{10,11}":     {"gpu-10", "gpu-11"},
	} {
		if got := shortNodes(names); got != want {
			t.Errorf("%v: got %q, want %q", names, got, want)
		}
	}
}
