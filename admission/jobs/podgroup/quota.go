package podgroup

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/constants"
	"sigs.k8s.io/kueue/pkg/workload"
)

// Stamp is what pods that the present admission let go carry: when it was made.
func Stamp(wl *kueue.Workload) int64 {
	c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
	if c == nil {
		return 0
	}
	return c.LastTransitionTime.Unix()
}

// release gives the quota of a Workload back that is evicted. It waits again if that was
// for others' sake.
func (r *Reconciler) release(ctx context.Context, wl *kueue.Workload) error {
	evicted := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)
	again := evicted.Reason == kueue.WorkloadEvictedByPreemption || evicted.Reason == kueue.WorkloadEvictedDueToNodeFailures
	return workload.PatchAdmissionStatus(ctx, r.client, wl.DeepCopy(), clock.RealClock{}, func(w *kueue.Workload) (bool, error) {
		workload.SetRequeuedCondition(w, evicted.Reason, evicted.Message, again)
		return workload.UnsetQuotaReservationWithCondition(w, "Pending", evicted.Message, r.clock.Now()), nil
	})
}

// count gives back what pods that have ended held, and ends the Workload with the last.
func (r *Reconciler) count(ctx context.Context, x *group, g *gang) error {
	ends, failed, live, all := map[string]int32{}, 0, 0, 0
	for _, p := range x.pods {
		switch {
		case !bound(p, x.wl):
			if gated(p) {
				live++
			}
		case !ended(p):
			live++
		default:
			if !earlier(p, x.wl) {
				ends[p.Labels[kueueconstants.PodSetLabel]]++
			}
			all++
			if p.Status.Phase == corev1.PodFailed {
				failed++
			}
		}
	}
	if done, err := r.hasEnded(ctx, x, g, live, all); err != nil {
		return err
	} else if done {
		return r.finish(ctx, x.wl, all, failed)
	}
	var give []kueue.ReclaimablePod
	for _, s := range g.sets {
		if n := ends[s.name]; n > 0 {
			give = append(give, kueue.ReclaimablePod{Name: kueue.PodSetReference(s.name), Count: n})
		}
	}
	if equality.Semantic.DeepEqual(give, slices.Clip(x.wl.Status.ReclaimablePods)) || len(give)+len(x.wl.Status.ReclaimablePods) == 0 {
		return nil
	}
	return workload.UpdateReclaimablePods(ctx, r.client, x.wl.DeepCopy(), give)
}

// hasEnded says that nothing of the group runs any more or will: as many pods as it was
// laid out for have ended, or its owner makes no more.
func (r *Reconciler) hasEnded(ctx context.Context, x *group, g *gang, live, ended int) (bool, error) {
	if live > 0 || ended == 0 {
		return false, nil
	}
	if g.source != fromOwner {
		return ended >= int(x.pg.Spec.MinMember), nil
	}
	want := 0
	for _, s := range g.sets {
		want += s.most
	}
	if ended >= want {
		return true, nil
	}
	job, err := r.owner(ctx, x.pg)
	return job == nil || jobEnded(job), err
}

func (r *Reconciler) finish(ctx context.Context, wl *kueue.Workload, all, failed int) error {
	reason, message := kueue.WorkloadFinishedReasonSucceeded, fmt.Sprintf("All %d pods have succeeded", all)
	if failed > 0 {
		reason, message = kueue.WorkloadFinishedReasonFailed, fmt.Sprintf("%d of %d pods have failed", failed, all)
	}
	return workload.Finish(ctx, r.client, wl.DeepCopy(), reason, message, r.clock)
}

// again makes room for a Workload of the pods that come after the first have ended, as
// when a Job is started anew.
func (r *Reconciler) again(ctx context.Context, x *group) error {
	if !slices.ContainsFunc(x.pods, func(p *corev1.Pod) bool { return gated(p) && taken(p) && p.DeletionTimestamp == nil }) {
		return nil
	}
	return r.drop(ctx, x.wl)
}
