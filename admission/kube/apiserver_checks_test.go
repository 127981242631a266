package kube_test

import (
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
)

func checked(rules ...kueue.AdmissionCheckStrategyRule) func(*kueue.ClusterQueue) {
	return func(cq *kueue.ClusterQueue) {
		cq.Spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{AdmissionChecks: rules}
	}
}

func admissionCheck(name string) *kueue.AdmissionCheck {
	return &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.AdmissionCheckSpec{ControllerName: "example.com/budget"}}
}

// activate says what the check's controller says when it is there.
func (w *world) activate(name string) {
	w.t.Helper()
	check := get(w, admissionCheck(name))
	old := check.DeepCopy()
	apimeta.SetStatusCondition(&check.Status.Conditions, metav1.Condition{Type: kueue.AdmissionCheckActive, Status: metav1.ConditionTrue, Reason: "Active"})
	if err := w.Status().Patch(w.t.Context(), check, client.MergeFrom(old)); err != nil {
		w.t.Fatal(err)
	}
}

// reserved waits until the workload has its places and the checks are as given.
func (w *world) reserved(wl *kueue.Workload, states ...string) *kueue.Workload {
	w.t.Helper()
	w.eventually("reservation of "+wl.Name, func() string {
		wl = get(w, wl)
		var have []string
		for _, s := range wl.Status.AdmissionChecks {
			have = append(have, string(s.Name)+" "+string(s.State))
		}
		if wl.Status.Admission != nil && workload.HasQuotaReservation(wl) && !workload.IsEvicted(wl) && strings.Join(have, ",") == strings.Join(states, ",") {
			return ""
		}
		return strings.Join(have, ",") + "; " + why(wl)
	})
	return wl
}

// says is what the controller of the check budget says of the workload.
func (w *world) says(wl *kueue.Workload, state kueue.CheckState, change ...func(*kueue.AdmissionCheckState)) {
	w.t.Helper()
	const name = "budget"
	w.eventually(name+" says "+string(state)+" of "+wl.Name, func() string {
		wl = get(w, wl)
		old := wl.DeepCopy()
		for i := range wl.Status.AdmissionChecks {
			if s := &wl.Status.AdmissionChecks[i]; string(s.Name) == name {
				s.State, s.Message, s.LastTransitionTime = state, "so it is", metav1.Now()
				for _, f := range change {
					f(s)
				}
			}
		}
		if err := w.Status().Patch(w.t.Context(), wl, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})); err != nil {
			return err.Error()
		}
		return ""
	})
}

// A queue with checks admits in two steps, a restart between every two: places and
// charge first, and the job may start when the checks that apply to its flavor are
// Ready. Retry takes it back until the time that the check gave, Rejected for good.
func TestAdmissionChecks(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	again := func() { w.stop(); w.start() }
	w.queues(8, checked(kueue.AdmissionCheckStrategyRule{Name: "budget"},
		kueue.AdmissionCheckStrategyRule{Name: "elsewhere", OnFlavors: []kueue.ResourceFlavorReference{"other"}}))
	w.create(admissionCheck("elsewhere"))
	w.activate("elsewhere")
	wl := w.workload("train", 2, 4, job)
	w.create(wl)
	activeIs(w, kueue.ClusterQueueActiveReasonAdmissionCheckNotFound)
	w.create(admissionCheck("budget"))
	activeIs(w, kueue.ClusterQueueActiveReasonAdmissionCheckInactive)
	w.eventually("it waits for the check to be Active", func() string {
		if text := w.waits(wl, "Invalid"); !strings.Contains(text, "AdmissionCheck budget is not Active") {
			return text
		}
		return ""
	})
	w.activate("budget")

	wl = w.reserved(wl, "budget Pending")
	if workload.IsAdmitted(wl) {
		t.Fatalf("admitted before its check was Ready: %s", why(wl))
	}
	next := w.workload("next", 1, 4)
	w.create(next)
	w.waits(next, "Quota") // what is reserved is charged
	again()
	w.says(wl, kueue.CheckStateReady)
	wl = w.admitted(wl)
	for _, p := range w.pods(wl, 2) {
		w.released(p)
	}

	again()
	w.says(wl, kueue.CheckStateRetry, func(s *kueue.AdmissionCheckState) { s.RequeueAfterSeconds = ptr.To[int32](3600) })
	wl = w.evicted(wl, kueue.WorkloadEvictedByAdmissionCheck)
	if wl.Status.RequeueState == nil || wl.Status.RequeueState.RequeueAt == nil {
		t.Errorf("evicted with no time to come back: %+v", wl.Status.RequeueState)
	}
	for i := range 2 {
		w.gone(w.gatedPod(wl, i))
	}
	w.stopped(wl)
	again()
	w.waits(wl, "Backoff")

	w.reserved(next, "budget Pending")
	w.says(next, kueue.CheckStateRejected)
	next = w.evicted(next, "DeactivatedDueToAdmissionCheck")
	if *next.Spec.Active {
		t.Error("a rejected workload may come back")
	}
	again()
	w.waits(next, "Held")
}

// A check that is asked no more holds nobody, and one that says Retry without a time
// has the workload wait all the same.
func TestAdmissionCheckIsDropped(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.queues(8, checked(kueue.AdmissionCheckStrategyRule{Name: "budget"}))
	w.create(admissionCheck("budget"))
	w.activate("budget")
	wl := w.workload("train", 1, 4)
	w.create(wl)
	w.reserved(wl, "budget Pending")
	w.says(wl, kueue.CheckStateRetry)
	w.eventually("back-off", func() string {
		if s := get(w, wl).Status.RequeueState; s != nil && s.RequeueAt != nil {
			return ""
		}
		return why(wl)
	})
	w.waits(wl, "Backoff")

	other := w.workload("other", 1, 4)
	w.create(other)
	w.reserved(other, "budget Pending")
	change(w, clusterQueue(w.ns, 8), func(cq *kueue.ClusterQueue) { cq.Spec.AdmissionChecksStrategy = nil })
	w.admitted(other)
}

func activeIs(w *world, reason string) {
	w.t.Helper()
	w.eventually("Active is "+reason, func() string {
		c := apimeta.FindStatusCondition(get(w, clusterQueue(w.ns, 8)).Status.Conditions, kueue.ClusterQueueActive)
		if c != nil && c.Reason == reason {
			return ""
		}
		if c == nil {
			return "no condition"
		}
		return c.Reason + ": " + c.Message
	})
}
