package kube_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
)

func preemptsWithin(cq *kueue.ClusterQueue) {
	cq.Spec.Preemption = &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority}
}

// job makes the workload look like one of a job, which is what a job integration
// looks after.
func job(wl *kueue.Workload) {
	wl.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: wl.Name, UID: "00000000-0000-0000-0000-000000000001", Controller: ptr.To(true)}}
}

// stopped does what the job integration does when no pod of an evicted job runs.
func (w *world) stopped(wl *kueue.Workload) {
	w.t.Helper()
	w.eventually("clearing the admission of "+wl.Name, func() string {
		wl = get(w, wl)
		err := workload.PatchAdmissionStatus(context.Background(), w.Client, wl, clock.RealClock{}, func(wl *kueue.Workload) (bool, error) {
			c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)
			workload.SetRequeuedCondition(wl, c.Reason, c.Message, c.Reason == kueue.WorkloadEvictedByPreemption || c.Reason == kueue.WorkloadEvictedDueToNodeFailures)
			return workload.UnsetQuotaReservationWithCondition(wl, "Pending", c.Message, time.Now()), nil
		})
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

func (w *world) evicted(wl *kueue.Workload, reason string) *kueue.Workload {
	w.t.Helper()
	w.eventually("eviction of "+wl.Name, func() string {
		wl = get(w, wl)
		c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)
		if c != nil && c.Status == metav1.ConditionTrue && c.Reason == reason {
			return ""
		}
		return why(wl)
	})
	return wl
}

// A victim is told for whom, keeps its place until its pods are gone, and only then
// does the other go. Later it comes back, with new pods beside none of the old.
func TestPreemption(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.queues(8, preemptsWithin)
	low := w.workload("low", 2, 4, job)
	w.create(low)
	low = w.admitted(low)
	pods := w.pods(low, 2)
	for _, p := range pods {
		w.bind(p, w.released(p))
	}
	high := w.workload("high", 1, 8, job, func(wl *kueue.Workload) { wl.Spec.Priority = ptr.To[int32](10) })
	w.create(high)
	low = w.evicted(low, kueue.WorkloadEvictedByPreemption)
	if low.Status.Admission == nil {
		t.Error("the eviction cleared the admission at once")
	}
	c := apimeta.FindStatusCondition(low.Status.Conditions, kueue.WorkloadPreempted)
	if c == nil || c.Reason != kueue.InClusterQueueReason || !strings.Contains(c.Message, w.ns+"/high") {
		t.Errorf("Preempted is %+v", c)
	}
	w.waits(high, "Preempting")

	w.stopped(low)
	w.gone(pods[0])
	w.waits(low, "Backoff") // its other pod still runs
	if wl := get(w, high); wl.Status.Admission != nil {
		t.Error("the claim was admitted while a pod of the victim held half of its place")
	}
	w.gone(pods[1])
	w.admitted(high)
	w.waits(low, "Quota")

	if err := w.Delete(t.Context(), high); err != nil {
		t.Fatal(err)
	}
	low = w.admitted(low)
	again := w.gatedPod(low, 7)
	w.create(again)
	if on := w.released(again); on != "n0" {
		t.Errorf("released to %q", on)
	}
}

// A node that is cordoned between admission and release is left for another.
func TestPlanMovesOffClosedNode(t *testing.T) {
	w := newWorld(t, node("n0", 8), node("n1", 8))
	w.queues(16)
	wl := w.workload("train", 2, 4)
	w.create(wl)
	before := plan(w.admitted(wl))
	host := slices.Collect(maps.Keys(before))[0]
	name := strings.TrimPrefix(host, "host-of-")
	change(w, node(name, 8), func(n *corev1.Node) { n.Spec.Unschedulable = true })
	w.eventually("the plan leaves "+name, func() string {
		if now := plan(get(w, wl)); now[host] == 0 {
			return ""
		}
		return fmt.Sprint("still on ", host)
	})
	for _, p := range w.pods(wl, 2) {
		if on := w.released(p); on == name {
			t.Errorf("%s was released to the closed node %s", p.Name, on)
		}
	}
}

// A controller that comes back goes on where the last one stopped: the same plan,
// the same charge, no pod released twice.
func TestRestartGoesOn(t *testing.T) {
	w := newWorld(t, node("n0", 8), node("n1", 8))
	w.queues(16)
	wl := w.workload("train", 4, 4)
	w.create(wl)
	wl = w.admitted(wl)
	first := w.gatedPod(wl, 0)
	w.create(first)
	on := map[string]int{w.released(first): 1}
	w.stop()

	second := w.gatedPod(wl, 1)
	w.create(second)
	w.start()
	on[w.released(second)]++
	waiting := w.workload("next", 1, 4)
	w.create(waiting)
	w.waits(waiting, "Quota")
	for i := 2; i < 4; i++ {
		p := w.gatedPod(wl, i)
		w.create(p)
		on[w.released(p)]++
	}
	if want := (map[string]int{"n0": 2, "n1": 2}); !maps.Equal(on, want) {
		t.Errorf("released to %v, want %v", on, want)
	}
	if now := get(w, wl); now.Status.Admission == nil || !maps.Equal(plan(now), plan(wl)) {
		t.Errorf("the plan changed: %v, was %v", now.Status.Admission, plan(wl))
	}
}

// A gang of which a pod was let go to a node that then had no room for it is taken
// back whole, and goes elsewhere.
func TestUnschedulablePodTakesItsGangBack(t *testing.T) {
	w := newWorld(t, node("n0", 8), node("n1", 8))
	w.stop()
	w.config.RecoveryWindow = 200 * time.Millisecond
	w.start()
	w.queues(16)
	wl := w.workload("train", 2, 4, job)
	w.create(wl)
	wl = w.admitted(wl)
	pods := w.pods(wl, 2)
	was := w.released(pods[0])
	w.bind(pods[0], was)
	w.released(pods[1])
	change(w, node(was, 8), func(n *corev1.Node) { n.Spec.Unschedulable = true })
	old := get(w, pods[1]).DeepCopy()
	pods[1].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	if err := w.Status().Patch(t.Context(), pods[1], client.MergeFrom(old)); err != nil {
		t.Fatal(err)
	}
	w.evicted(wl, kueue.WorkloadEvictedDueToNodeFailures)
	w.stopped(wl)
	for _, p := range pods {
		w.gone(p)
	}
	wl = w.admitted(wl)
	if on := plan(wl); on["host-of-"+was] != 0 {
		t.Errorf("planned on %v again, whose node is cordoned", on)
	}
}

// A replacement is not released to the place that the pod before it still holds.
func TestReplacementWaitsForItsPlace(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.queues(8)
	wl := w.workload("train", 1, 8)
	w.create(wl)
	wl = w.admitted(wl)
	old := w.gatedPod(wl, 0)
	w.create(old)
	w.bind(old, w.released(old))
	if err := w.Delete(t.Context(), old); err != nil { // it stops for as long as its grace lasts
		t.Fatal(err)
	}
	replacement := w.gatedPod(wl, 1)
	w.create(replacement)
	// Something that can only be decided after the replacement was seen.
	other := w.workload("other", 1, 8)
	w.create(other)
	w.waits(other, "Quota")
	if get(w, old) == nil {
		t.Fatal("the pod that should stop for a while is gone already")
	}
	if p := get(w, replacement); p.Annotations["sluice.dev/node"] != "" {
		t.Errorf("released to %s, which is still full; %v", p.Annotations["sluice.dev/node"], p.Annotations)
	}
	w.gone(old)
	w.released(replacement)
}

// A workload whose job was deleted without it and its pods ends when they do.
func TestOrphanEnds(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.queues(8)
	wl := w.workload("left", 1, 8, func(wl *kueue.Workload) {
		wl.Labels = map[string]string{"kueue.x-k8s.io/job-uid": "00000000-0000-0000-0000-000000000002"}
		wl.Finalizers = []string{kueue.ResourceInUseFinalizerName}
		job(wl)
	})
	w.create(wl)
	wl = w.admitted(wl)
	p := w.gatedPod(wl, 0)
	w.create(p)
	w.bind(p, w.released(p))
	change(w, wl, func(wl *kueue.Workload) { wl.OwnerReferences = nil })
	next := w.workload("next", 1, 8)
	w.create(next)
	w.waits(next, "Quota")
	w.gone(p)
	w.eventually("the orphan ends", func() string {
		if wl = get(w, wl); workload.IsFinished(wl) && len(wl.Finalizers) == 0 {
			return ""
		}
		return why(wl)
	})
	w.admitted(next)
}

// The eviction of a workload without a job is brought to its end.
func TestEvictionWithoutJob(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.queues(8)
	wl := w.workload("alone", 1, 8)
	w.create(wl)
	wl = w.admitted(wl)
	change(w, wl, func(wl *kueue.Workload) { wl.Spec.Active = ptr.To(false) })
	w.waits(wl, "Held")
	if wl = get(w, wl); wl.Status.Admission != nil {
		t.Errorf("still admitted: %s", why(wl))
	}
	change(w, wl, func(wl *kueue.Workload) { wl.Spec.Active = ptr.To(true) })
	w.admitted(wl)
}

// While the API server is away the controller waits, and then it goes on.
func TestAPIServerGone(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.queues(8)
	wl := w.workload("train", 2, 4)
	w.create(wl)
	wl = w.admitted(wl)
	w.pods(wl, 1)
	for _, args := range [][]string{{"stop", "kube-apiserver", "--kill"}, {"start", "kube-apiserver"}} {
		if out, err := w.server.command(args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	w.eventually("the API server is back", func() string {
		if err := w.List(context.Background(), &corev1.NamespaceList{}); err != nil {
			return err.Error()
		}
		return ""
	})
	for i := range 2 {
		p := w.gatedPod(wl, i)
		w.create(p)
		w.released(p)
	}
	if err := w.Delete(context.Background(), wl); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		w.gone(w.gatedPod(wl, i))
	}
	next := w.workload("next", 1, 8)
	w.create(next)
	w.admitted(next)
}

// Stopping a queue takes nothing back with Hold, and everything with HoldAndDrain.
func TestQueueIsStopped(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.queues(8)
	wl := w.workload("train", 1, 4)
	w.create(wl)
	wl = w.admitted(wl)
	stop := func(p kueue.StopPolicy) {
		change(w, clusterQueue(w.ns, 8), func(cq *kueue.ClusterQueue) { cq.Spec.StopPolicy = ptr.To(p) })
	}
	stop(kueue.Hold)
	next := w.workload("next", 1, 4)
	w.create(next)
	w.waits(next, "QueueClosed")
	if wl = get(w, wl); workload.IsEvicted(wl) {
		t.Errorf("Hold took back what runs: %s", why(wl))
	}
	stop(kueue.HoldAndDrain)
	w.evicted(wl, kueue.WorkloadEvictedByClusterQueueStopped)
	w.waits(wl, "QueueClosed")
	stop(kueue.None)
	w.admitted(wl)
	w.admitted(next)
}

// A gang that ran for longer than it may is taken back for good.
func TestMaximumExecutionTime(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.queues(8)
	wl := w.workload("short", 1, 8, func(wl *kueue.Workload) { wl.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](1) })
	w.create(wl)
	wl = w.evicted(wl, "DeactivatedDueToMaximumExecutionTimeExceeded")
	if *wl.Spec.Active {
		t.Error("it may come back")
	}
	w.waits(wl, "Held")
	next := w.workload("next", 1, 8)
	w.create(next)
	w.admitted(next)
}
