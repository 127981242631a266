package kube

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/util/api"
	"sigs.k8s.io/kueue/pkg/workload"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/queue"
)

const (
	// numbersEvery is how often the numbers of an unchanged reason are written.
	numbersEvery = 10 * time.Second
	// numbersFor is for how many workloads of a queue, from its head, they are.
	numbersFor = 20
)

// later is a verdict whose numbers changed and that is not due yet.
type later struct {
	verdict admission.Verdict
	due     time.Time
}

// tell hands on the verdicts that have to be written. A new code is written at
// once; new numbers only now and then, and only near the head of a queue.
func (r *runner) tell(verdicts []admission.Verdict) {
	var heads map[string]bool
	now := r.clock.Now()
	for _, v := range verdicts {
		known := r.workloads[v.Key]
		if known == nil {
			continue
		}
		delete(r.later, v.Key)
		c := told(r.own.newest(v.Key, known.seen))
		switch {
		case c == nil || c.Reason != string(v.Reason.Code):
			r.tellNow(v, known, now)
		case c.Message == api.TruncateConditionMessage(v.Text):
		default:
			if heads == nil {
				heads = r.heads()
			}
			if heads[v.Key] {
				r.later[v.Key] = later{v, r.lastTold[v.Key].Add(numbersEvery)}
			}
		}
	}
}

// tellDue hands on what has become due, and returns when the next will; zero is never.
func (r *runner) tellDue(now time.Time) (next time.Time) {
	for key, l := range r.later {
		known := r.workloads[key]
		switch {
		case known == nil || known.admitted:
			delete(r.later, key)
		case !l.due.After(now):
			delete(r.later, key)
			r.tellNow(l.verdict, known, now)
		case next.IsZero() || l.due.Before(next):
			next = l.due
		}
	}
	return next
}

// told is the condition that says why the Workload waits, or nil.
func told(wl *kueue.Workload) *metav1.Condition {
	c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	return c
}

// heads are the first workloads of every queue that wait.
func (r *runner) heads() map[string]bool {
	first := map[string][]*queue.Workload{}
	for _, known := range r.workloads {
		if known.admitted || known.finished {
			continue
		}
		w := known.workload
		list := first[w.Queue]
		at := len(list)
		for at > 0 && queue.Compare(w, list[at-1]) < 0 {
			at--
		}
		if at < numbersFor {
			list = append(list[:at:at], append([]*queue.Workload{w}, list[at:]...)...)
			first[w.Queue] = list[:min(len(list), numbersFor)]
		}
	}
	heads := map[string]bool{}
	for _, list := range first {
		for _, w := range list {
			heads[w.Key] = true
		}
	}
	return heads
}

func (r *runner) tellNow(v admission.Verdict, known *knownWorkload, now time.Time) {
	r.lastTold[v.Key] = now
	seen := known.seen
	r.verdicts.send(v.Key, func(ctx context.Context) error { return r.writeVerdict(ctx, v, seen, now) })
}

// writeVerdict writes why the workload waits, unless it does not wait any more.
func (r *runner) writeVerdict(ctx context.Context, v admission.Verdict, seen *kueue.Workload, at time.Time) error {
	defer r.own.lock(v.Key)()
	base := r.own.newest(v.Key, seen)
	code := string(v.Reason.Code)
	for {
		if base.Status.Admission != nil || workload.IsFinished(base) || base.UID != seen.UID {
			return nil
		}
		before := told(base)
		if before != nil && before.Reason == code && before.Message == api.TruncateConditionMessage(v.Text) {
			return nil
		}
		wl := base.DeepCopy()
		err := workload.PatchAdmissionStatus(ctx, r.client, wl, clock.RealClock{}, func(w *kueue.Workload) (bool, error) {
			return workload.UnsetQuotaReservationWithCondition(w, code, v.Text, at), nil
		})
		switch {
		case err == nil:
			r.own.wrote(v.Key, version(base.ResourceVersion), wl)
			if before == nil || before.Reason != code {
				r.announce(wl, v)
			}
			return nil
		case !apierrors.IsConflict(err):
			return client.IgnoreNotFound(err)
		}
		base = &kueue.Workload{}
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(seen), base); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
}

// wrong are the reasons that its owner has to mend.
var wrong = []admission.Code{admission.Invalid, admission.NeverFits, admission.Labels, admission.QueueMissing}

// announce makes an Event of a new reason, on the Workload and on its job, which is
// where its owner looks.
func (r *runner) announce(wl *kueue.Workload, v admission.Verdict) {
	kind := corev1.EventTypeNormal
	if slices.Contains(wrong, v.Reason.Code) {
		kind = corev1.EventTypeWarning
	}
	text := api.TruncateEventMessage(v.Text)
	r.recorder.Event(wl, kind, "Pending", text)
	if owner := ownerOf(wl); owner != nil {
		r.recorder.Event(owner, kind, "Pending", text)
	}
	r.log.V(1).Info("workload waits", "workload", v.Key, "reason", v.Text)
}

// ownerOf refers to the job that the Workload is of, or is nil.
func ownerOf(wl *kueue.Workload) runtime.Object {
	o := metav1.GetControllerOf(wl)
	if o == nil {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: wl.Namespace, Name: o.Name, UID: o.UID}
}
