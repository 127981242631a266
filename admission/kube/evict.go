package kube

import (
	"context"
	"fmt"
	"regexp"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"

	"sluice.dev/sluice/admission"
)

// preemptedBy is the reason of the condition Preempted by cause.
var preemptedBy = map[admission.Cause]string{
	admission.Preempted: kueue.InClusterQueueReason,
	admission.Reclaimed: kueue.InCohortReclamationReason,
}

// evict asks the Workload's job to stop. Its admission stays until its pods have;
// clearing it is the job integration's part.
func (r *runner) evict(ctx context.Context, e *admission.Eviction, at time.Time) (uint64, error) {
	known := r.workloads[e.Key]
	if known == nil {
		return 0, notSent("the workload is gone")
	}
	defer r.own.lock(e.Key)()
	base := r.own.basis(e.Key, known.seen, e.Based)
	switch {
	case base == nil || string(base.UID) != e.UID:
		return 0, notSent("the workload has changed since version %d", e.Based)
	case base.Status.Admission == nil || workload.IsFinished(base):
		return 0, notSent("the workload is not admitted any more")
	case workload.IsEvicted(base): // once is enough: a second time would count twice
		return version(base.ResourceVersion), nil
	}
	reason, cause := r.evictionReason(e, base)
	message := r.evictionMessage(e)
	wl := base.DeepCopy()
	if e.Cause == admission.Expired {
		// Taken back for good: it must not wait again, whatever happens next.
		wl.Spec.Active = ptr.To(false)
		if err := r.client.Patch(ctx, wl, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldOwner)); err != nil {
			return 0, err
		}
		r.own.wrote(e.Key, version(base.ResourceVersion), wl.DeepCopy())
		base = wl.DeepCopy()
	}
	err := workload.Evict(ctx, r.client, r.recorder, wl, reason, message, cause, fixed{at: at}, false, nil, nil,
		workload.WithCustomPrepare(func(w *kueue.Workload) {
			if why, ok := preemptedBy[e.Cause]; ok {
				workload.SetPreemptedCondition(w, at, why, message)
			}
		}))
	if err != nil {
		return 0, err
	}
	r.own.wrote(e.Key, version(base.ResourceVersion), wl)
	r.log.Info("workload evicted", "workload", e.Key, "queue", base.Status.Admission.ClusterQueue, "reason", string(e.Cause), "for", e.For)
	return version(wl.ResourceVersion), nil
}

// evictionReason is the reason by Kueue's names. After Preempted and NodeFailures
// the workload waits again by itself.
func (r *runner) evictionReason(e *admission.Eviction, wl *kueue.Workload) (string, kueue.EvictionUnderlyingCause) {
	switch e.Cause {
	case admission.Preempted, admission.Reclaimed:
		return kueue.WorkloadEvictedByPreemption, ""
	case admission.Stopped:
		if workload.IsActive(wl) {
			if to := r.catalog.resolve(wl.Namespace, queueOf(wl)); to.drain != "" {
				return to.drain, ""
			}
		}
		return kueue.WorkloadDeactivated, ""
	case admission.Expired:
		return kueue.WorkloadDeactivated, kueue.WorkloadMaximumExecutionTimeExceeded
	default:
		return kueue.WorkloadEvictedDueToNodeFailures, ""
	}
}

// gainer reads for whom a message of an eviction was written.
var gainer = regexp.MustCompile(`for workload (\S+) \(UID: ([^)]+)\)`)

// stopsFor is for whom a Workload was taken back: until it is admitted again the room
// that it leaves is that one's, also for a controller that has just started.
func stopsFor(wl *kueue.Workload) admission.Claimant {
	c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != kueue.WorkloadEvictedByPreemption {
		return admission.Claimant{}
	}
	m := gainer.FindStringSubmatch(c.Message)
	if m == nil { // another manager's words
		return admission.Claimant{}
	}
	return admission.Claimant{Key: m[1], UID: m[2]}
}

func (r *runner) evictionMessage(e *admission.Eviction) string {
	switch e.Cause {
	case admission.Preempted:
		return fmt.Sprintf("Preempted to make room for workload %s (UID: %s) of the same queue", e.For, e.ForUID)
	case admission.Reclaimed:
		queue := ""
		if w := r.workloads[e.For]; w != nil {
			queue = " of queue " + w.queue
		}
		return fmt.Sprintf("Taken back to make room for workload %s (UID: %s)%s", e.For, e.ForUID, queue)
	case admission.Broken:
		if e.Detail != "" {
			return fmt.Sprintf("Pods that it needs are missing for longer than the recovery window; node %s cannot be used", e.Detail)
		}
		return "Pods that it needs are missing for longer than the recovery window"
	case admission.Misplaced:
		return fmt.Sprintf("Before it ran, node %s became unusable and there is no other place", e.Detail)
	case admission.TurnedAway:
		return fmt.Sprintf("The kubelet of node %s did not let a pod of it in", e.Detail)
	case admission.Stopped:
		return "The workload or its queue is stopped"
	default:
		return "It ran for longer than its maximum execution time"
	}
}
