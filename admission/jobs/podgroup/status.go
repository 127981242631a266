package podgroup

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission/kube"
)

// reasonNotAdopted is the reason of a group that another scheduler started.
const reasonNotAdopted = "NotAdopted"

// tell writes the PodGroup's status. There is no subresource: the patch is of the
// object, of its status alone, and holds only for the version that was read.
func (r *Reconciler) tell(ctx context.Context, x *group) error {
	next := x.pg.DeepCopy()
	s := &next.Status
	s.Running, s.Succeeded, s.Failed = 0, 0, 0
	for _, p := range x.pods {
		switch p.Status.Phase {
		case corev1.PodRunning:
			s.Running++
		case corev1.PodSucceeded:
			s.Succeeded++
		case corev1.PodFailed:
			s.Failed++
		case corev1.PodPending, corev1.PodUnknown:
		}
	}
	waits := x.waits()
	s.Phase = phaseOf(x, waits != nil)
	r.condition(s, volcano.PodGroupUnschedulableType, waits)
	if waits == nil && s.Phase == volcano.PodGroupRunning {
		r.condition(s, volcano.PodGroupScheduled, &refusal{scheduledReason, ""})
	} else {
		r.condition(s, volcano.PodGroupScheduled, nil)
	}
	if equality.Semantic.DeepEqual(s, &x.pg.Status) {
		return nil
	}
	if x.refusal != nil && (x.refusal.reason == ReasonUnsupported || x.refusal.reason == reasonNotAdopted) {
		r.say(x.pg, x.refusal.reason, x.refusal.message)
	}
	return r.client.Patch(ctx, next, client.MergeFromWithOptions(x.pg, client.MergeFromWithOptimisticLock{}), client.FieldOwner(kube.FieldOwner))
}

// scheduledReason is what Volcano has as reason of the condition Scheduled.
const scheduledReason = "tasks in gang are ready to be scheduled"

// waits is why the group waits, nil if it does not.
func (x *group) waits() *refusal {
	wl := cmp.Or(x.wl, x.hold)
	switch {
	case x.refusal != nil:
		return x.refusal
	case wl == nil || workload.IsFinished(wl) || workload.IsAdmitted(wl) && !workload.IsEvicted(wl):
		return nil
	}
	c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
	if e := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted); workload.IsEvicted(wl) && wl.Status.Admission != nil {
		c = e
	}
	if c == nil || c.Message == "" {
		return &refusal{volcano.NotEnoughResourcesReason, string(volcano.PodGroupNotReady)}
	}
	// The reason is Volcano's one word for all that sluice tells apart; the message
	// begins with which it is.
	return &refusal{volcano.NotEnoughResourcesReason, c.Message}
}

// phaseOf is the phase by Volcano's rules, where room that is held stands for Inqueue:
// a group never falls back from Running to Inqueue but through an eviction or the loss
// of its pods.
func phaseOf(x *group, waits bool) volcano.PodGroupPhase {
	running, placed, over := x.census()
	switch {
	case running > 0 && waits:
		return volcano.PodGroupUnknown
	case placed >= max(1, int(x.pg.Spec.MinMember)) && over == placed, len(x.pods) == 0 && x.wl != nil && workload.IsFinished(x.wl):
		return volcano.PodGroupCompleted
	case placed >= max(1, int(x.pg.Spec.MinMember)):
		return volcano.PodGroupRunning
	case x.roomHeld(waits):
		return volcano.PodGroupInqueue
	}
	return volcano.PodGroupPending
}

// census is how many pods run, are on nodes or have been, and have ended.
func (x *group) census() (running, placed, over int) {
	for _, p := range x.pods {
		switch {
		case ended(p):
			placed++
			over++
		case p.Spec.NodeName != "":
			placed++
			if p.Status.Phase == corev1.PodRunning {
				running++
			}
		}
	}
	return running, placed, over
}

// roomHeld says that pods may be made: there is room for them, or nobody asked for any.
func (x *group) roomHeld(waits bool) bool {
	switch {
	case x.wl != nil:
		return !waits && workload.IsAdmitted(x.wl)
	case x.hold != nil: // also while not all its pods exist
		return workload.IsAdmitted(x.hold) && !workload.IsEvicted(x.hold)
	}
	return !waits && len(x.pods) == 0 && (x.pg.Spec.MinResources == nil || x.pg.Status.Phase == volcano.PodGroupInqueue)
}

// condition sets the condition to what is so, or to False if there is one and why is
// nil. A message that changes is no transition.
func (r *Reconciler) condition(s *volcano.PodGroupStatus, kind volcano.PodGroupConditionType, why *refusal) {
	i := slices.IndexFunc(s.Conditions, func(c volcano.PodGroupCondition) bool { return c.Type == kind })
	next := volcano.PodGroupCondition{Type: kind, Status: corev1.ConditionFalse}
	switch {
	case why != nil:
		next.Status, next.Reason, next.Message = corev1.ConditionTrue, why.reason, why.message
	case i < 0:
		return
	}
	if i >= 0 && s.Conditions[i].Status == next.Status {
		if why == nil {
			return
		}
		next.TransitionID, next.LastTransitionTime = s.Conditions[i].TransitionID, s.Conditions[i].LastTransitionTime
	} else {
		next.TransitionID, next.LastTransitionTime = string(uuid.NewUUID()), metav1.NewTime(r.clock.Now())
	}
	if i < 0 {
		s.Conditions = append(s.Conditions, next)
	} else {
		s.Conditions[i] = next
	}
}
