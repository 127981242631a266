package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"

	"sluice.dev/sluice/admission"
)

// An AdmissionCheck lets a controller outside of sluice have a say. A workload whose
// queue names checks is admitted in two steps: it gets its places and its charge at
// once (QuotaReserved), and Admitted, on which its job starts, when all checks that
// apply to its flavors are Ready. One check that says Retry has it taken back until
// the time that the check gave; Rejected takes it back for good.

const (
	// Of a check that says Retry and not after how long: the first wait, and the
	// longest. It doubles in between.
	retryBaseSeconds = 60
	retryMostSeconds = 3600
)

// checksFault is why the queue's checks let nothing be admitted, or nil.
func (c *catalog) checksFault(cq *kueue.ClusterQueue) *fault {
	for _, rule := range checkRules(cq) {
		check := c.checks[string(rule.Name)]
		switch {
		case check == nil:
			return faultf(kueue.ClusterQueueActiveReasonAdmissionCheckNotFound, "there is no AdmissionCheck %s", rule.Name)
		case !apimeta.IsStatusConditionTrue(check.Status.Conditions, kueue.AdmissionCheckActive):
			return faultf(kueue.ClusterQueueActiveReasonAdmissionCheckInactive,
				"AdmissionCheck %s is not Active; controller %s has to say so", rule.Name, check.Spec.ControllerName)
		}
	}
	return nil
}

func checkRules(cq *kueue.ClusterQueue) []kueue.AdmissionCheckStrategyRule {
	if cq == nil || cq.Spec.AdmissionChecksStrategy == nil {
		return nil
	}
	return cq.Spec.AdmissionChecksStrategy.AdmissionChecks
}

// checksOf are the checks that apply to an admission: those of its queue that are for
// every flavor or for one that it was given.
func (c *catalog) checksOf(a *kueue.Admission) []kueue.AdmissionCheckReference {
	var names []kueue.AdmissionCheckReference
	for _, rule := range checkRules(c.clusterQueues[string(a.ClusterQueue)]) {
		if len(rule.OnFlavors) == 0 || givesOneOf(a, rule.OnFlavors) {
			names = append(names, rule.Name)
		}
	}
	return names
}

func givesOneOf(a *kueue.Admission, flavors []kueue.ResourceFlavorReference) bool {
	for i := range a.PodSetAssignments {
		for _, f := range a.PodSetAssignments[i].Flavors {
			if slices.Contains(flavors, f) {
				return true
			}
		}
	}
	return false
}

// setChecks has the workload's list of checks be those that apply, each new one
// Pending, and Admitted say whether all are Ready. One that is Admitted keeps the
// checks it was admitted with.
func setChecks(w *kueue.Workload, need []kueue.AdmissionCheckReference, clk clock.Clock) {
	if !workload.IsAdmitted(w) {
		w.Status.AdmissionChecks = slices.DeleteFunc(w.Status.AdmissionChecks, func(s kueue.AdmissionCheckState) bool { return !slices.Contains(need, s.Name) })
		for _, name := range need {
			if !slices.ContainsFunc(w.Status.AdmissionChecks, func(s kueue.AdmissionCheckState) bool { return s.Name == name }) {
				workload.SetAdmissionCheckState(&w.Status.AdmissionChecks, kueue.AdmissionCheckState{Name: name, State: kueue.CheckStatePending}, clk)
			}
		}
	}
	if !workload.IsAdmitted(w) {
		workload.SyncAdmittedCondition(w, clk.Now())
	}
}

// verdictOfChecks is what the checks of a workload ask for now.
type verdictOfChecks int

const (
	checksWait   verdictOfChecks = iota // nothing
	checksList                          // its list is not the one that applies, or all are Ready
	checksRetry                         // take it back for now
	checksReject                        // take it back for good
)

func judgeChecks(wl *kueue.Workload, need []kueue.AdmissionCheckReference) verdictOfChecks {
	switch {
	case workload.IsFinished(wl), wl.DeletionTimestamp != nil, wl.Status.Admission == nil,
		!workload.HasQuotaReservation(wl), workload.IsEvicted(wl), !workload.IsActive(wl):
		return checksWait
	case workload.HasRejectedChecks(wl):
		return checksReject
	case workload.HasRetryChecks(wl):
		return checksRetry
	case workload.IsAdmitted(wl):
		return checksWait
	}
	listed := len(wl.Status.AdmissionChecks) == len(need)
	for _, s := range wl.Status.AdmissionChecks {
		listed = listed && slices.Contains(need, s.Name)
	}
	if !listed || workload.HasAllChecksReady(wl) {
		return checksList
	}
	return checksWait
}

// heedChecks has done what the checks of the workload ask for.
func (r *runner) heedChecks(key string, wl *kueue.Workload) {
	errandName := "checks " + key
	if wl.Status.Admission == nil {
		return
	}
	need := r.catalog.checksOf(wl.Status.Admission)
	verdict := judgeChecks(wl, need)
	if verdict == checksWait {
		return
	}
	r.chores.send(errandName, func(ctx context.Context) error {
		if verdict == checksList {
			return r.listChecks(ctx, key, wl, need)
		}
		return r.takeBackFor(ctx, key, wl, need)
	})
}

func (r *runner) listChecks(ctx context.Context, key string, seen *kueue.Workload, need []kueue.AdmissionCheckReference) error {
	base := r.own.newest(key, seen)
	if base.UID != seen.UID || judgeChecks(base, need) != checksList {
		return nil
	}
	now := fixed{at: r.clock.Now()}
	wl, err := r.rewrite(ctx, key, string(seen.UID), base, version(base.ResourceVersion), now, func(w *kueue.Workload, clk clock.Clock) {
		setChecks(w, need, clk)
	})
	switch {
	case err != nil:
		return unlessOvertaken(err)
	case workload.IsAdmitted(wl):
		r.sayChecked(wl)
	}
	return nil
}

// takeBackFor evicts the workload because of what its checks say.
func (r *runner) takeBackFor(ctx context.Context, key string, seen *kueue.Workload, need []kueue.AdmissionCheckReference) error {
	defer r.own.lock(key)()
	base := r.own.newest(key, seen)
	verdict := judgeChecks(base, need)
	if base.UID != seen.UID || verdict != checksRetry && verdict != checksReject {
		return nil
	}
	now := fixed{at: r.clock.Now()}
	wl := base.DeepCopy()
	reason, cause, message := kueue.WorkloadEvictedByAdmissionCheck, kueue.EvictionUnderlyingCause(""), "At least one admission check says Retry: "+saying(base, kueue.CheckStateRetry)
	if verdict == checksReject {
		reason, cause, message = kueue.WorkloadDeactivated, kueue.EvictionUnderlyingCause(kueue.WorkloadEvictedByAdmissionCheck), "Rejected by admission checks: "+saying(base, kueue.CheckStateRejected)
		wl.Spec.Active = ptr.To(false)
		if err := r.client.Patch(ctx, wl, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldOwner)); err != nil {
			return unlessOvertaken(err)
		}
		r.own.wrote(key, version(base.ResourceVersion), wl.DeepCopy())
		base = wl.DeepCopy()
	}
	err := workload.Evict(ctx, r.client, r.recorder, wl, reason, message, cause, now, false, nil, nil,
		workload.WithCustomPrepare(func(w *kueue.Workload) {
			if verdict == checksRetry {
				postpone(w, now)
			}
		}))
	if err != nil {
		return unlessOvertaken(err)
	}
	r.own.wrote(key, version(base.ResourceVersion), wl)
	r.log.Info("workload evicted", "workload", key, "queue", base.Status.Admission.ClusterQueue, "reason", reason, "checks", message)
	return nil
}

// postpone sets after when the workload is tried again: the latest time that its
// checks give; if they give none, after a wait that doubles with every time.
func postpone(w *kueue.Workload, clk clock.Clock) {
	given := false
	for i := range w.Status.AdmissionChecks {
		s := &w.Status.AdmissionChecks[i]
		given = given || s.State == kueue.CheckStateRetry && s.RequeueAfterSeconds != nil
	}
	if !given {
		for i := range w.Status.AdmissionChecks {
			if s := &w.Status.AdmissionChecks[i]; s.State == kueue.CheckStateRetry {
				workload.UpdateAdmissionCheckRequeueState(s, retryBaseSeconds, retryMostSeconds, clk)
				if s.LastTransitionTime.IsZero() {
					s.LastTransitionTime.Time = clk.Now()
				}
			}
		}
	}
	if at := workload.NeedsRequeueAtUpdate(w, clk); at != nil {
		workload.SetRequeueState(w, *at, true)
	}
}

// saying lists the checks in a state, with what they say.
func saying(wl *kueue.Workload, state kueue.CheckState) string {
	var parts []string
	for _, s := range wl.Status.AdmissionChecks {
		if s.State == state {
			parts = append(parts, fmt.Sprintf("%s (%q)", s.Name, s.Message))
		}
	}
	return strings.Join(parts, ", ")
}

// unlessOvertaken is nil for an error that says that the object is not what it was:
// what it is now asks anew.
func unlessOvertaken(err error) error {
	if resultOf(err) == admission.Refused {
		return nil
	}
	return err
}
