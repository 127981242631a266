package kube

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/metrics"
	"sigs.k8s.io/kueue/pkg/workload"

	"sluice.dev/sluice/admission"
)

// fixed is a clock that stands at the moment of a decision, so that the time in a
// condition is the one that the core decided at.
type fixed struct {
	clock.RealClock
	at time.Time
}

func (f fixed) Now() time.Time { return f.at }

// adjusted is a copy of the Workload with the requests that its pods will have.
func (r *runner) adjusted(ctx context.Context, wl *kueue.Workload) *kueue.Workload {
	c := wl.DeepCopy()
	workload.AdjustResources(ctx, r.client, c)
	return c
}

// admit writes the admission, its first time or moved.
func (r *runner) admit(ctx context.Context, a *admission.Admission, first bool) (uint64, error) {
	known := r.workloads[a.Key]
	if known == nil {
		return 0, notSent("the workload is gone")
	}
	st, ok := status(a, r.adjusted(ctx, known.seen), r.catalog.clusterQueueOf(a.Queue), r.named(a.Queue), r.hosts.of)
	if !ok {
		return 0, notSent("a node of the plan has no label %s", hostname)
	}
	need := r.catalog.checksOf(st)
	wl, err := r.rewrite(ctx, a.Key, a.UID, known.seen, a.Based, fixed{at: a.At}, func(w *kueue.Workload, clk clock.Clock) {
		workload.SetQuotaReservation(w, st, clk)
		setChecks(w, need, clk)
	})
	if err != nil {
		return 0, err
	}
	r.sayAdmitted(wl, a, first)
	return version(wl.ResourceVersion), nil
}

// named says whether the flavors that an admission to the queue names exist. Those
// of a ClusterQueue without resource groups, and of a Volcano Queue, are ours.
func (r *runner) named(queue string) bool {
	if cq := r.catalog.clusterQueueOf(queue); cq != nil && len(cq.Spec.ResourceGroups) > 0 {
		return true
	}
	return r.catalog.flavors[DefaultFlavor] != nil
}

// rewrite changes the status of the Workload that was decided on, in one strict
// server-side apply. If somebody else wrote in between something that does not bear
// on the decision, it is done to what they wrote.
func (r *runner) rewrite(ctx context.Context, key, uid string, seen *kueue.Workload, based uint64, clk clock.Clock, change func(*kueue.Workload, clock.Clock)) (*kueue.Workload, error) {
	defer r.own.lock(key)()
	base := r.own.basis(key, seen, based)
	if base == nil || string(base.UID) != uid {
		return nil, notSent("the workload has changed since version %d", based)
	}
	for tries := 0; ; tries++ {
		wl := base.DeepCopy()
		err := workload.PatchAdmissionStatus(ctx, r.client, wl, clk, func(w *kueue.Workload) (bool, error) {
			change(w, clk)
			return true, nil
		})
		if err == nil {
			r.own.wrote(key, version(base.ResourceVersion), wl)
			return wl, nil
		}
		if !apierrors.IsConflict(err) || tries == 3 {
			return nil, err
		}
		now := &kueue.Workload{}
		if r.live.Get(ctx, client.ObjectKeyFromObject(base), now) != nil || !alike(base, now) {
			return nil, err
		}
		base = now
	}
}

// alike says whether two versions of a Workload lead to the same decisions.
func alike(a, b *kueue.Workload) bool {
	return a.UID == b.UID && a.Generation == b.Generation && (a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		equality.Semantic.DeepEqual(a.Labels, b.Labels) && equality.Semantic.DeepEqual(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(substance(a), substance(b))
}

// substance is the status without what only tells.
func substance(wl *kueue.Workload) *kueue.WorkloadStatus {
	s := wl.Status.DeepCopy()
	kept := s.Conditions[:0]
	for _, c := range s.Conditions {
		if c.Status == metav1.ConditionFalse && (c.Type == kueue.WorkloadQuotaReserved || c.Type == kueue.WorkloadPodsReady) {
			continue
		}
		c.ObservedGeneration = 0
		kept = append(kept, c)
	}
	s.Conditions = kept
	s.ResourceRequests = nil
	return s
}

func (r *runner) sayAdmitted(wl *kueue.Workload, a *admission.Admission, first bool) {
	nodes := a.Plan.Nodes()
	if !first {
		r.log.Info("workload moved", "workload", a.Key, "queue", a.Queue, "nodes", nodes)
		r.recorder.Eventf(wl, corev1.EventTypeNormal, "Moved", "Its places are now on %s", shortList(nodes))
		return
	}
	waited := a.At.Sub(wl.CreationTimestamp.Time)
	cq := kueue.ClusterQueueReference(a.Queue)
	metrics.QuotaReservedWorkload(cq, workload.PriorityClassName(wl), waited, nil, nil)
	if !workload.IsAdmitted(wl) {
		r.log.Info("workload has its places and waits for its checks", "workload", a.Key, "queue", a.Queue, "nodes", nodes)
		r.recorder.Eventf(wl, corev1.EventTypeNormal, "QuotaReserved", "Queue %s holds its places on %s after %s, until its admission checks are Ready", a.Queue, shortList(nodes), waited.Round(time.Second))
		return
	}
	r.log.Info("workload admitted", "workload", a.Key, "queue", a.Queue, "nodes", nodes)
	r.recorder.Eventf(wl, corev1.EventTypeNormal, "Admitted", "Admitted by queue %s after %s to %s", a.Queue, waited.Round(time.Second), shortList(nodes))
	metrics.AdmittedWorkload(cq, workload.PriorityClassName(wl), waited, nil, nil)
}

// sayChecked tells of a workload whose checks became Ready.
func (r *runner) sayChecked(wl *kueue.Workload) {
	cq := wl.Status.Admission.ClusterQueue
	waited := r.clock.Since(wl.CreationTimestamp.Time)
	r.log.Info("workload admitted", "workload", wl.Namespace+"/"+wl.Name, "queue", cq, "checks", len(wl.Status.AdmissionChecks))
	r.recorder.Eventf(wl, corev1.EventTypeNormal, "Admitted", "Admitted by queue %s after %s; all admission checks are Ready", cq, waited.Round(time.Second))
	metrics.AdmittedWorkload(cq, workload.PriorityClassName(wl), waited, nil, nil)
}

func shortList(names []string) string {
	const most = 8
	switch {
	case len(names) == 0:
		return "no node"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more nodes", strings.Join(names[:most], ", "), len(names)-most)
	default:
		return strings.Join(names, ", ")
	}
}

// admitEmpty admits a gang of no pods: its job is done as soon as it has begun.
// What came of it is told to the core as an observation, since nothing of it was
// assumed.
func (r *runner) admitEmpty(ctx context.Context, key string, at time.Time) {
	known := r.workloads[key]
	if known == nil {
		return
	}
	newest := r.own.newest(key, known.seen)
	a := &admission.Admission{Key: key, UID: string(newest.UID), Queue: known.queue, At: at, Based: version(newest.ResourceVersion)}
	if flavors := r.catalog.flavorsOf(known.queue); len(flavors) > 0 {
		a.Flavor = flavors[0].Name
	}
	limited, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if _, err := r.admit(limited, a, true); err != nil {
		r.log.V(1).Info("write did not succeed", "act", "admit", "object", key, "reason", err.Error())
		return
	}
	r.carried.progress = true
	r.carried.emptied = append(r.carried.emptied, key)
}
