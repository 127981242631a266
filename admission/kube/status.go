package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission"
)

// sentStatus is what was written of an object last, so that it is not written again
// while the watch is behind.
type sentStatus struct {
	status any
	at     time.Time
}

// tally counts the workloads of a queue.
type tally struct {
	pending, reserving, admitted int32
	inadmissible                 int32 // of pending: no room that frees up would help
	usage                        map[kueue.ResourceFlavorReference]corev1.ResourceList
}

// report works out the status of all queues if it may have changed, at most once a
// second, and returns when it wants to again; zero is never.
func (r *runner) report(now time.Time) (next time.Time) {
	if due := r.reported.Add(statusEvery); due.After(now) {
		if !r.changed {
			return time.Time{}
		}
		return due
	}
	if !r.changed {
		return time.Time{}
	}
	r.changed, r.reported = false, now
	queues, locals := r.tallies()
	problems := r.problems()
	for name, cq := range r.catalog.clusterQueues {
		r.reportClusterQueue(cq, queues[name], problems[name], now)
	}
	for key, lq := range r.catalog.localQueues {
		r.reportLocalQueue(lq, locals[key], now)
	}
	for name, v := range r.catalog.volcanoQueues {
		r.reportVolcanoQueue(v, queues[name], now)
	}
	r.releaseFlavors()
	return time.Time{}
}

// tallies counts by ClusterQueue or Volcano Queue, and by LocalQueue.
func (r *runner) tallies() (queues, locals map[string]*tally) {
	queues, locals = map[string]*tally{}, map[string]*tally{}
	at := func(m map[string]*tally, key string) *tally {
		if m[key] == nil {
			m[key] = &tally{usage: map[kueue.ResourceFlavorReference]corev1.ResourceList{}}
		}
		return m[key]
	}
	for key, known := range r.workloads {
		if known.finished {
			continue
		}
		wl := r.own.newest(key, known.seen)
		a := wl.Status.Admission
		name := known.queue
		if a != nil {
			name = string(a.ClusterQueue)
		}
		for _, t := range []*tally{at(queues, name), at(locals, localQueueKey(wl))} {
			t.count(wl)
		}
	}
	return queues, locals
}

func (t *tally) count(wl *kueue.Workload) {
	a := wl.Status.Admission
	switch {
	case a == nil && workload.IsActive(wl):
		t.pending++
		if c := told(wl); c != nil && hopeless(admission.Code(c.Reason)) {
			t.inadmissible++
		}
	case a != nil:
		t.reserving++
		if workload.IsAdmitted(wl) {
			t.admitted++
		}
		for _, ps := range a.PodSetAssignments {
			for name, q := range ps.ResourceUsage {
				f := ps.Flavors[name]
				if t.usage[f] == nil {
					t.usage[f] = corev1.ResourceList{}
				}
				sum := t.usage[f][name]
				sum.Add(q)
				t.usage[f][name] = sum
			}
		}
	}
}

// hopeless says that no pod that ends would help.
func hopeless(c admission.Code) bool {
	return slices.Contains([]admission.Code{
		admission.Held, admission.QueueClosed, admission.QueueMissing, admission.Invalid,
		admission.NeverFits, admission.Labels, admission.Layout, admission.Hardware,
	}, c)
}

// problems is what the core found wrong with the tree of queues, by queue.
func (r *runner) problems() map[string]string {
	m := map[string]string{}
	for _, p := range r.state.Problems() {
		if rest, ok := strings.CutPrefix(p, "queue "); ok {
			if name, why, ok := strings.Cut(rest, ": "); ok {
				m[name] = why
			}
		}
	}
	return m
}

func (r *runner) reportClusterQueue(cq *kueue.ClusterQueue, t *tally, problem string, now time.Time) {
	if t == nil {
		t = &tally{}
	}
	s := cq.Status.DeepCopy()
	s.PendingWorkloads, s.ReservingWorkloads, s.AdmittedWorkloads = t.pending, t.reserving, t.admitted
	s.FlavorsUsage = r.clusterQueueUsage(cq)
	s.FlavorsReservation = s.FlavorsUsage
	active := r.clusterQueueActive(cq, t, problem)
	active.ObservedGeneration = cq.Generation
	apimeta.SetStatusCondition(&s.Conditions, active)
	r.measureClusterQueue(cq, t, active.Status == metav1.ConditionTrue)
	if cq.DeletionTimestamp != nil && t.reserving == 0 {
		r.dropFinalizer(cq)
	}
	r.sendStatus(object{clusterQueueKind, "", cq.Name}, now, cq.Status, *s, func(ctx context.Context) error {
		next := cq.DeepCopy()
		next.Status = *s
		return r.client.Status().Patch(ctx, next, client.MergeFrom(cq), client.FieldOwner(FieldOwner))
	})
}

func (r *runner) clusterQueueActive(cq *kueue.ClusterQueue, t *tally, problem string) metav1.Condition {
	c := metav1.Condition{Type: kueue.ClusterQueueActive, Status: metav1.ConditionFalse}
	bad := r.catalog.faults[object{clusterQueueKind, "", cq.Name}]
	switch {
	case cq.DeletionTimestamp != nil:
		c.Reason, c.Message = kueue.ClusterQueueActiveReasonTerminating, fmt.Sprintf("Can't admit new workloads; it is being deleted: %d running, %d pending", t.reserving, t.pending)
	case bad != nil:
		c.Reason, c.Message = bad.reason, "Can't admit new workloads: "+bad.message
	case problem != "":
		c.Reason, c.Message = reasonInvalid, "Can't admit new workloads: "+problem
	case stops(cq.Spec.StopPolicy):
		c.Reason, c.Message = kueue.ClusterQueueActiveReasonStopped, "Can't admit new workloads: its stopPolicy is "+string(*cq.Spec.StopPolicy)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, kueue.ClusterQueueActiveReasonReady, "Can admit new workloads"
	}
	return c
}

// clusterQueueUsage is what the queue is charged, pods that still stop included.
func (r *runner) clusterQueueUsage(cq *kueue.ClusterQueue) []kueue.FlavorUsage {
	used := r.state.Usage(cq.Name)
	var list []kueue.FlavorUsage
	for _, g := range cq.Spec.ResourceGroups {
		for _, f := range g.Flavors {
			u := kueue.FlavorUsage{Name: f.Name}
			for _, res := range f.Resources {
				d, ok := r.state.Space.Lookup(dimension(f.Name, res.Name))
				if !ok {
					continue
				}
				total := used.At(d)
				nominal, err := amount(res.Name, res.NominalQuota)
				if err != nil {
					continue
				}
				u.Resources = append(u.Resources, kueue.ResourceUsage{
					Name: res.Name, Total: quantity(res.Name, total), Borrowed: quantity(res.Name, max(0, total-nominal)),
				})
			}
			if len(u.Resources) > 0 && len(list) < 64 {
				list = append(list, u)
			}
		}
	}
	return list
}

func (r *runner) reportLocalQueue(lq *kueue.LocalQueue, t *tally, now time.Time) {
	if t == nil {
		t = &tally{}
	}
	s := lq.Status.DeepCopy()
	s.PendingWorkloads, s.ReservingWorkloads, s.AdmittedWorkloads = t.pending, t.reserving, t.admitted
	s.FlavorsUsage = r.localQueueUsage(lq, t)
	s.FlavorsReservation = s.FlavorsUsage
	active := r.localQueueActive(lq)
	measureLocalQueue(lq, t, active.Status)
	active.ObservedGeneration = lq.Generation
	apimeta.SetStatusCondition(&s.Conditions, active)
	r.sendStatus(object{localQueueKind, lq.Namespace, lq.Name}, now, lq.Status, *s, func(ctx context.Context) error {
		next := lq.DeepCopy()
		next.Status = *s
		return r.client.Status().Patch(ctx, next, client.MergeFrom(lq), client.FieldOwner(FieldOwner))
	})
}

func (r *runner) localQueueActive(lq *kueue.LocalQueue) metav1.Condition {
	c := metav1.Condition{Type: kueue.LocalQueueActive, Status: metav1.ConditionFalse}
	to := r.catalog.resolve(lq.Namespace, lq.Name)
	q := r.catalog.told[to.queue]
	switch {
	case stops(lq.Spec.StopPolicy):
		c.Reason, c.Message = "Stopped", "Can't submit new workloads: its stopPolicy is "+string(*lq.Spec.StopPolicy)
	case to.invalid != "":
		c.Reason, c.Message = "ClusterQueueIsInactive", "Can't submit new workloads: "+to.invalid
	case q == nil:
		c.Reason, c.Message = "ClusterQueueDoesNotExist", "Can't submit new workloads: there is neither a ClusterQueue nor a Volcano Queue "+string(lq.Spec.ClusterQueue)
	case q.Closed:
		c.Reason, c.Message = "ClusterQueueIsInactive", "Can't submit new workloads: queue "+to.queue+" is closed"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Ready", "Can submit new workloads to queue "+to.queue
	}
	return c
}

func (r *runner) localQueueUsage(lq *kueue.LocalQueue, t *tally) []kueue.LocalQueueFlavorUsage {
	var list []kueue.LocalQueueFlavorUsage
	cq := r.catalog.clusterQueues[string(lq.Spec.ClusterQueue)]
	if cq == nil {
		return nil
	}
	for _, g := range cq.Spec.ResourceGroups {
		for _, f := range g.Flavors {
			u := kueue.LocalQueueFlavorUsage{Name: f.Name}
			for _, res := range f.Resources {
				total := resource.Quantity{}
				if q, ok := t.usage[f.Name][res.Name]; ok {
					total = q
				}
				v, err := amount(res.Name, total)
				if err != nil {
					continue
				}
				u.Resources = append(u.Resources, kueue.LocalQueueResourceUsage{Name: res.Name, Total: quantity(res.Name, v)})
			}
			if len(list) < 16 {
				list = append(list, u)
			}
		}
	}
	return list
}

func (r *runner) reportVolcanoQueue(v *volcano.Queue, t *tally, now time.Time) {
	if t == nil {
		t = &tally{}
	}
	if r.catalog.clusterQueues[v.Name] == nil {
		measureTally(kueue.ClusterQueueReference(v.Name), t)
	}
	s := v.Status.DeepCopy()
	if !r.podGroups { // else who reads them counts them, and opens and closes
		s.Pending, s.Running = t.pending, t.admitted
		switch {
		case s.State == "":
			s.State = volcano.QueueStateOpen
		case s.State == volcano.QueueStateClosing && t.pending+t.reserving == 0:
			s.State = volcano.QueueStateClosed
		}
	}
	used := r.state.Usage(v.Name)
	s.Allocated = corev1.ResourceList{}
	for i, n := range used {
		name := r.state.Space.Name(i)
		if ofPods(name) && n > 0 {
			s.Allocated[corev1.ResourceName(name)] = quantity(corev1.ResourceName(name), n)
		}
	}
	r.sendStatus(object{volcanoQueueKind, "", v.Name}, now, v.Status, *s, func(ctx context.Context) error {
		next := v.DeepCopy()
		next.Status = *s
		return r.client.Status().Patch(ctx, next, client.MergeFrom(v), client.FieldOwner(FieldOwner))
	})
}

// sendStatus has the status written if it differs from what the object has, unless
// just that was sent a moment ago.
func (r *runner) sendStatus(o object, now time.Time, have, want any, write errand) {
	if equality.Semantic.DeepEqual(have, want) {
		delete(r.statuses, o)
		return
	}
	if last, ok := r.statuses[o]; ok && now.Sub(last.at) < 10*statusEvery && sameStatus(last.status, want) {
		return
	}
	r.statuses[o] = sentStatus{want, now}
	r.chores.send("status "+o.key()+" "+kindName(o.kind), write)
}
