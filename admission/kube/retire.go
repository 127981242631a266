package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/constants"
	"sigs.k8s.io/kueue/pkg/workload"
)

// abandonedAfter is how long after an eviction, with all pods gone, the admission
// of a Workload with an owner is cleared for it: its job integration takes moments,
// so by then there is none.
const abandonedAfter = time.Minute

// orphaned says that the Workload was of a job that was deleted without it.
func orphaned(wl *kueue.Workload) bool {
	return len(wl.OwnerReferences) == 0 && wl.Labels[constants.JobUIDLabel] != ""
}

// loose says whether it may be left to us to bring the Workload to its end.
func loose(wl *kueue.Workload) bool {
	if workload.IsFinished(wl) {
		return len(wl.OwnerReferences) == 0 && controllerutil.ContainsFinalizer(wl, finalizer)
	}
	return orphaned(wl) || len(wl.OwnerReferences) == 0 && wl.DeletionTimestamp != nil ||
		workload.IsEvicted(wl) && wl.Status.Admission != nil
}

// endEvictions does for Workloads without a job what the job integration does for
// the others: stop their pods, clear their admission, let them go.
func (r *runner) endEvictions() {
	now := r.clock.Now()
	for key := range r.loose {
		wl := r.own.newest(key, r.workloads[key].seen)
		pods := r.podsOf[key]
		owned := len(wl.OwnerReferences) > 0
		evicted := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)
		stopping := workload.IsEvicted(wl) && wl.Status.Admission != nil
		switch {
		case workload.IsFinished(wl), !owned && wl.DeletionTimestamp != nil:
			r.chores.send("end "+key, func(ctx context.Context) error { return r.letGo(ctx, wl) })
		case stopping && orphaned(wl) && len(pods) > 0:
			r.stopPods(key, pods)
		case len(pods) > 0:
		case stopping && (!owned || now.Sub(evicted.LastTransitionTime.Time) >= abandonedAfter):
			r.chores.send("end "+key, func(ctx context.Context) error { return r.clear(ctx, key, wl, evicted) })
		case orphaned(wl):
			r.chores.send("end "+key, func(ctx context.Context) error {
				return client.IgnoreNotFound(workload.Finish(ctx, r.client, wl.DeepCopy(), kueue.WorkloadFinishedReasonOutOfSync, "Its job was deleted without it, and its pods are gone", r.clock))
			})
		}
	}
}

// stopPods deletes the pods of an orphan that was evicted: its job is not there to.
func (r *runner) stopPods(key string, pods map[types.UID]*knownPod) {
	for uid, p := range pods {
		if p.seen.DeletionTimestamp != nil {
			continue
		}
		pod := p.seen
		r.chores.send("stop "+string(uid), func(ctx context.Context) error {
			r.log.V(1).Info("pod stopped", "workload", key, "pod", pod.Namespace+"/"+pod.Name)
			return client.IgnoreNotFound(r.client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}},
				client.Preconditions{UID: &uid}))
		})
	}
}

// clear ends an eviction as the job integration does.
func (r *runner) clear(ctx context.Context, key string, wl *kueue.Workload, evicted *metav1.Condition) error {
	defer r.own.lock(key)()
	again := evicted.Reason == kueue.WorkloadEvictedByPreemption || evicted.Reason == kueue.WorkloadEvictedDueToNodeFailures
	now := wl.DeepCopy()
	err := workload.PatchAdmissionStatus(ctx, r.client, now, clock.RealClock{}, func(w *kueue.Workload) (bool, error) {
		workload.SetRequeuedCondition(w, evicted.Reason, evicted.Message, again)
		workload.UnsetQuotaReservationWithCondition(w, "Pending", evicted.Message, r.clock.Now())
		return true, nil
	})
	if err == nil {
		r.own.wrote(key, version(wl.ResourceVersion), now)
	}
	return client.IgnoreNotFound(err)
}

// letGo takes our finalizer off a Workload that nobody else looks after.
func (r *runner) letGo(ctx context.Context, wl *kueue.Workload) error {
	return client.IgnoreNotFound(workload.RemoveFinalizer(ctx, r.client, wl.DeepCopy()))
}
