package kube

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/admission"
)

// For whom a Workload stops is read back from what its eviction says.
func TestStopsFor(t *testing.T) {
	r := &runner{}
	to := admission.Claimant{Key: "team-a/big", UID: "1f2e"}
	for cause, want := range map[admission.Cause]admission.Claimant{
		admission.Preempted: to,
		admission.Reclaimed: to,
		admission.Broken:    {},
		admission.Expired:   {},
	} {
		e := &admission.Eviction{Cause: cause, For: to.Key, ForUID: to.UID}
		wl := &kueue.Workload{}
		reason, _ := r.evictionReason(e, wl)
		wl.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue, Reason: reason, Message: r.evictionMessage(e)}}
		if got := stopsFor(wl); got != want {
			t.Errorf("%s: stops for %v, want %v, after %q", cause, got, want, wl.Status.Conditions[0].Message)
		}
		wl.Status.Conditions[0].Status = metav1.ConditionFalse // admitted again
		if got := stopsFor(wl); got != (admission.Claimant{}) {
			t.Errorf("%s: stops for %v after it was admitted again", cause, got)
		}
	}
}
