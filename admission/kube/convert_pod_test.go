package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/quota"
)

func container(list map[corev1.ResourceName]string) corev1.Container {
	c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}
	for name, q := range list {
		c.Resources.Requests[name] = resource.MustParse(q)
	}
	return c
}

func TestConvertPod(t *testing.T) {
	managed := func(p *corev1.Pod) {
		p.Annotations = map[string]string{kueue.WorkloadAnnotation: "train"}
		p.Labels = map[string]string{"kueue.x-k8s.io/podset": "workers", "kueue.x-k8s.io/cluster-queue-name": "team-a"}
	}
	released := func(p *corev1.Pod) {
		managed(p)
		p.Annotations[NodeAnnotation], p.Annotations[StampAnnotation] = "n1", "1700000000"
	}
	with := admission.Pod{Workload: "ns/train", Set: "workers", Queue: "team-a"}
	for _, test := range []struct {
		name    string
		change  func(*corev1.Pod)
		matters bool
		want    admission.Pod
	}{
		{name: "foreign and unbound", change: func(*corev1.Pod) {}, want: admission.Pod{Phase: admission.PodPlaced}},
		{name: "foreign", change: func(p *corev1.Pod) { p.Spec.NodeName = "n0" }, matters: true, want: admission.Pod{Node: "n0", Phase: admission.PodPlaced}},
		{name: "foreign and ended", change: func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n0", corev1.PodFailed }, want: admission.Pod{Node: "n0", Phase: admission.PodFailed}},
		{name: "gated", change: func(p *corev1.Pod) {
			managed(p)
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "other"}, {Name: gate}}
		}, matters: true, want: admission.Pod{Workload: with.Workload, Set: with.Set, Queue: with.Queue, Phase: admission.PodGated}},
		{name: "gated, whatever its template says of a node", change: func(p *corev1.Pod) {
			released(p)
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}}
		}, matters: true, want: admission.Pod{Workload: with.Workload, Set: with.Set, Queue: with.Queue, Phase: admission.PodGated}},
		{name: "released", change: released, matters: true, want: admission.Pod{Workload: with.Workload, Set: with.Set, Queue: with.Queue, Node: "n1", Stamp: 1700000000, Phase: admission.PodPlaced}},
		{name: "bound and stopping", change: func(p *corev1.Pod) {
			released(p)
			p.Spec.NodeName, p.DeletionTimestamp = "n1", &metav1.Time{}
		}, matters: true, want: admission.Pod{Workload: with.Workload, Set: with.Set, Queue: with.Queue, Node: "n1", Stamp: 1700000000, Phase: admission.PodPlaced, Stopping: true}},
		{name: "released where there is no room any more", change: func(p *corev1.Pod) {
			released(p)
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		}, matters: true, want: admission.Pod{Workload: with.Workload, Set: with.Set, Queue: with.Queue, Node: "n1", Stamp: 1700000000, Phase: admission.PodPlaced, Stopping: true}},
		{name: "succeeded", change: func(p *corev1.Pod) {
			released(p)
			p.Status.Phase = corev1.PodSucceeded
		}, matters: true, want: admission.Pod{Workload: with.Workload, Set: with.Set, Queue: with.Queue, Node: "n1", Stamp: 1700000000, Phase: admission.PodSucceeded, Accepted: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", ResourceVersion: "42"}}
			test.change(p)
			space := quota.NewSpace()
			want := test.want
			want.UID, want.Key, want.Version, want.Request = "u", "ns/p", 42, space.Vector(map[string]int64{"pods": 1})
			if got := convertPod(space, p); !samePod(got, want) || got.Version != 42 {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if got := matters(p); got != test.matters {
				t.Errorf("matters: %t", got)
			}
		})
	}
}

func TestLetIn(t *testing.T) {
	ran := []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}
	for _, test := range []struct {
		name              string
		status            corev1.PodStatus
		refused, accepted bool
	}{
		{"not seen by a kubelet", corev1.PodStatus{Phase: corev1.PodPending}, false, false},
		{"pulls its image", corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}}, false, false},
		{"runs", corev1.PodStatus{Phase: corev1.PodRunning}, false, true},
		{"runs an init container", corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: ran}, false, true},
		{"failed by itself", corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: ran}, false, true},
		{"failed by itself, as if refused", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfmemory", ContainerStatuses: ran}, false, true},
		{"its device was not there", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError"}, true, false},
		{"nothing was left", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfnvidia.com/gpu"}, true, false},
		{"pushed out", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}, false, false},
	} {
		p := &corev1.Pod{Status: test.status}
		if refused(p) != test.refused || accepted(p) != test.accepted {
			t.Errorf("%s: refused %t, accepted %t", test.name, refused(p), accepted(p))
		}
	}
}

// A pod takes the larger of its init containers and its containers together, its
// overhead, and itself.
func TestPodRequest(t *testing.T) {
	p := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{container(map[corev1.ResourceName]string{"cpu": "5"})},
		Containers: []corev1.Container{
			container(map[corev1.ResourceName]string{"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}),
			container(map[corev1.ResourceName]string{"cpu": "2", "memory": "1Gi"}),
		},
		Overhead: corev1.ResourceList{"cpu": resource.MustParse("250m")},
	}}
	space := quota.NewSpace()
	want := space.Vector(map[string]int64{"cpu": 5250, "memory": 2 << 30, "nvidia.com/gpu": 1, "pods": 1})
	if got := podRequest(space, p); !got.Equal(want) {
		t.Errorf("takes %v, want %v", got, want)
	}
}

func TestAmount(t *testing.T) {
	for _, test := range []struct {
		name corev1.ResourceName
		q    string
		want int64
		bad  bool
	}{
		{"cpu", "1500m", 1500, false},
		{"cpu", "1n", 1, false},
		{"cpu", "9223372036854775807m", 9223372036854775807, false},
		{"cpu", "9223372036854775808m", 0, true},
		{"memory", "1Ki", 1024, false},
		{"memory", "1.5", 2, false},
		{"nvidia.com/gpu", "9223372036854775807", 9223372036854775807, false},
		{"nvidia.com/gpu", "9223372036854775808", 0, true},
		{"nvidia.com/gpu", "-1", 0, true},
	} {
		got, err := amount(test.name, resource.MustParse(test.q))
		if got != test.want || (err != nil) != test.bad {
			t.Errorf("%s of %s: %d, %v", test.name, test.q, got, err)
		}
		if err == nil && test.q != "1n" && test.q != "1.5" {
			back := quantity(test.name, got)
			if want := resource.MustParse(test.q); back.Cmp(want) != 0 {
				t.Errorf("%s of %s comes back as %s", test.name, test.q, back.String())
			}
		}
	}
}
