package podgroup

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/util/api"
	"sigs.k8s.io/kueue/pkg/workload"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

const (
	// settling is how long it is since the last pod of a group that nobody announced,
	// but at most mostSettling since the first, before it is laid out: pods that are made
	// one after the other are then one gang, not one and late comers.
	settling     = time.Second
	mostSettling = 3 * time.Second
	// idleAfter is how long room is held for pods that were never made.
	idleAfter = 5 * time.Minute
)

// Reconciler looks after PodGroups.
type Reconciler struct {
	client   client.Client // reads from the cache
	live     client.Reader // reads from the API server
	recorder record.EventRecorder
	clock    clock.Clock
}

// group is one PodGroup with what there is of it.
type group struct {
	pg   *volcano.PodGroup
	pods []*corev1.Pod
	wl   *kueue.Workload // nil if there is none
	hold *kueue.Workload // that of its minimum, before there are pods; nil if there is none
	// refusal is why there is none, or why it cannot go on.
	refusal *refusal
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	x, err := r.read(ctx, request)
	if err != nil || x == nil {
		return ctrl.Result{}, err
	}
	after, err := r.advance(ctx, x)
	if err == nil {
		err = r.tell(ctx, x)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) { // the cache is behind
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return ctrl.Result{RequeueAfter: after}, client.IgnoreNotFound(err)
}

// read is the group as the cache has it; nil if there is nothing to do. A group that
// does not exist and whose pods name none is made.
func (r *Reconciler) read(ctx context.Context, request ctrl.Request) (*group, error) {
	pods, err := podsOf(ctx, r.client, request.Namespace, request.Name)
	if err != nil {
		return nil, err
	}
	x := &group{pg: &volcano.PodGroup{}, pods: pods}
	if err := r.client.Get(ctx, request.NamespacedName, x.pg); err != nil {
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read PodGroup %s: %w", request, err)
		}
		return nil, r.found(ctx, request.Name, pods)
	}
	if x.pg.DeletionTimestamp != nil {
		return nil, nil
	}
	for name, at := range map[string]**kueue.Workload{WorkloadName(request.Name): &x.wl, holdName(request.Name): &x.hold} {
		wl := &kueue.Workload{}
		err = r.client.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: name}, wl)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("read Workload %s/%s: %w", request.Namespace, name, err)
		case metav1.IsControlledBy(wl, x.pg):
			*at = wl
		case metav1.GetControllerOf(wl) == nil || metav1.GetControllerOf(wl).Kind != podGroupKind.Kind:
			x.refusal = refuse(ReasonUnsupported, "there is a Workload %s that is not of this PodGroup", name)
		default: // of an earlier group of this name
			return nil, r.drop(ctx, wl)
		}
	}
	return x, nil
}

// drop deletes the Workload, if it is still this one.
func (r *Reconciler) drop(ctx context.Context, wl *kueue.Workload) error {
	return client.IgnoreNotFound(r.client.Delete(ctx, wl, client.Preconditions{UID: &wl.UID}))
}

// advance does the next thing about the group, and says when to look again.
func (r *Reconciler) advance(ctx context.Context, x *group) (time.Duration, error) {
	switch {
	case x.refusal != nil:
		return 0, nil
	case x.wl == nil && x.hold != nil && holdsQuota(x.hold):
		return r.keep(ctx, x)
	case x.wl == nil:
		return r.lay(ctx, x)
	case x.hold != nil: // its room is for the Workload that there is now
		return 0, r.drop(ctx, x.hold)
	case x.wl.DeletionTimestamp != nil, x.wl.Annotations[AdoptingAnnotation] != "":
		return 0, nil
	case workload.IsFinished(x.wl):
		return 0, r.again(ctx, x)
	case workload.IsEvicted(x.wl) && x.wl.Status.Admission != nil:
		return 0, r.stop(ctx, x)
	case !holdsQuota(x.wl):
		return r.lay(ctx, x)
	}
	return r.follow(ctx, x)
}

// lay makes the Workload, or makes it fit what there is now, and binds the pods to it.
func (r *Reconciler) lay(ctx context.Context, x *group) (time.Duration, error) {
	for _, p := range x.pods {
		switch {
		case !runs(p) || ofGroup(p, x.pg):
			continue
		case p.Spec.NodeName != "":
			x.refusal = refuse(reasonNotAdopted, "pod %s of it was started by another scheduler: sluice import volcano takes the group over as it is", p.Name)
		default:
			x.refusal = refuse(reasonNotAdopted, "pod %s of it waits for scheduler %s since before sluice was there to hold it: delete it, so that it is made again", p.Name, p.Spec.SchedulerName)
		}
		return 0, nil
	}
	g, after, err := r.gang(ctx, x)
	if err != nil || g == nil {
		if x.refusal != nil && x.wl != nil { // nothing could be admitted of it any more
			err = client.IgnoreNotFound(r.client.Delete(ctx, x.wl, client.Preconditions{UID: &x.wl.UID, ResourceVersion: &x.wl.ResourceVersion}))
			x.wl = nil
		}
		return after, err
	}
	if x.wl != nil && len(x.wl.Status.ReclaimablePods) > 0 { // of the last time
		return 0, workload.UpdateReclaimablePods(ctx, r.client, x.wl.DeepCopy(), nil)
	}
	draft, note, err := r.draft(ctx, x.pg, g, x.pods)
	if err != nil {
		return 0, err
	}
	if note != "" && (x.wl == nil || x.wl.Annotations[layoutAnnotation] != draft.Annotations[layoutAnnotation]) {
		r.say(x.pg, ReasonUnsupported, note)
	}
	at := &x.wl
	if g.source == fromMinimum {
		at = &x.hold
	}
	if *at, err = r.put(ctx, *at, draft); err != nil {
		return 0, fmt.Errorf("write Workload %s/%s: %w", draft.Namespace, draft.Name, err)
	}
	if g.source == fromMinimum {
		return 0, nil
	}
	return 0, r.bind(ctx, x, g)
}

// keep looks after room that is held for pods that do not exist yet. When they come,
// their Workload is in the queue before the room is given back, so that nobody who has
// waited for less long gets in between.
func (r *Reconciler) keep(ctx context.Context, x *group) (time.Duration, error) {
	switch since := apimeta.FindStatusCondition(x.hold.Status.Conditions, kueue.WorkloadQuotaReserved).LastTransitionTime; {
	case workload.IsEvicted(x.hold):
		return 0, r.release(ctx, x.hold)
	case len(x.pods) > 0:
		return r.lay(ctx, x)
	case r.clock.Since(since.Time) < idleAfter:
		return idleAfter - r.clock.Since(since.Time), nil
	}
	return 0, r.idle(ctx, x, x.hold)
}

// idle gives room back for which no pods were made.
func (r *Reconciler) idle(ctx context.Context, x *group, wl *kueue.Workload) error {
	r.say(x.pg, "NoPods", fmt.Sprintf("no pod was made for %s; the room that was held is given back", idleAfter))
	return r.drop(ctx, wl)
}

// gang is what the group asks for as things are; nil if it asks for nothing yet, with
// a refusal if that is for its owner to mend.
func (r *Reconciler) gang(ctx context.Context, x *group) (g *gang, after time.Duration, err error) {
	job, err := r.owner(ctx, x.pg)
	if err != nil {
		return nil, 0, err
	}
	alive := slices.DeleteFunc(slices.Clone(x.pods), func(p *corev1.Pod) bool { return ended(p) || p.DeletionTimestamp != nil || !taken(p) })
	switch {
	case job != nil && jobEnded(job):
	case job != nil:
		g, x.refusal = ofOwner(x.pg, job, succeeded(x.pods))
	case len(alive) > 0:
		if first, last := between(alive); x.wl == nil {
			if left := min(settling-r.clock.Since(last), mostSettling-r.clock.Since(first)); left > 0 {
				return nil, left, nil
			}
		}
		g, x.refusal = ofPods(x.pg, alive, succeeded(x.pods))
	case len(x.pods) > 0 && countEnded(x.pods) >= max(1, int(x.pg.Spec.MinMember)): // it is over
	case len(x.pods) > 0:
		x.refusal = refuse(volcano.NotEnoughPodsReason, "0/%d tasks in gang: pod group is not ready, its pods have ended or stop", x.pg.Spec.MinMember)
	case x.pg.Status.Phase == volcano.PodGroupInqueue && x.wl == nil && x.hold == nil: // room was held for it, and no pod came
	default:
		g = ofMinimum(x.pg)
	}
	if x.refusal != nil {
		g = nil
	}
	return g, 0, nil
}

// succeeded counts the pods that have, by task.
func succeeded(pods []*corev1.Pod) map[string]int {
	done := map[string]int{}
	for _, p := range pods {
		if p.Status.Phase == corev1.PodSucceeded {
			done[taskOf(p)]++
		}
	}
	return done
}

func countEnded(pods []*corev1.Pod) int {
	n := 0
	for _, p := range pods {
		if ended(p) {
			n++
		}
	}
	return n
}

// between is when the first and the last of the pods were made.
func between(pods []*corev1.Pod) (first, last time.Time) {
	for i, p := range pods {
		if at := p.CreationTimestamp.Time; i == 0 || at.Before(first) {
			first = at
		}
		if p.CreationTimestamp.After(last) {
			last = p.CreationTimestamp.Time
		}
	}
	return first, last
}

// jobGroup is where Volcano's own Jobs are.
const jobGroup = "batch.volcano.sh"

// owner is the Volcano Job that the group is of, or nil.
func (r *Reconciler) owner(ctx context.Context, pg *volcano.PodGroup) (*unstructured.Unstructured, error) {
	o := metav1.GetControllerOf(pg)
	if o == nil || o.Kind != "Job" {
		return nil, nil
	}
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(o.APIVersion)
	u.SetKind(o.Kind)
	if u.GroupVersionKind().Group != jobGroup {
		return nil, nil
	}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: pg.Namespace, Name: o.Name}, u)
	switch {
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err), apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read Job %s/%s of Volcano: %w", pg.Namespace, o.Name, err)
	}
	return u, nil
}

func phaseOfJob(job *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(job.Object, "status", "state", "phase")
	return phase
}

// jobEnded says that the Job makes no more pods.
func jobEnded(job *unstructured.Unstructured) bool {
	return slices.Contains([]string{"Completed", "Failed", "Terminated", "Aborted"}, phaseOfJob(job))
}

// follow looks after a group that holds quota: its pods are bound, counted, and when
// all have ended the Workload has finished.
func (r *Reconciler) follow(ctx context.Context, x *group) (time.Duration, error) {
	g := ofWorkload(x.wl)
	strangers := slices.ContainsFunc(x.pods, func(p *corev1.Pod) bool {
		return gated(p) && taken(p) && p.DeletionTimestamp == nil && g.setOf(p) == nil
	})
	switch {
	case strangers:
		r.say(x.pg, ReasonUnsupported, "some of its pods are unlike those that it was admitted with; they wait until it is queued again")
	case len(x.pods) == 0:
		since := apimeta.FindStatusCondition(x.wl.Status.Conditions, kueue.WorkloadQuotaReserved).LastTransitionTime
		if left := idleAfter - r.clock.Since(since.Time); left > 0 {
			return left, nil
		}
		return 0, r.idle(ctx, x, x.wl)
	}
	if err := r.bind(ctx, x, g); err != nil {
		return 0, err
	}
	if err := r.resize(ctx, x); err != nil {
		return 0, err
	}
	if err := r.trim(ctx, x); err != nil {
		return 0, err
	}
	return 0, r.count(ctx, x, g)
}

// say makes an event on the PodGroup. The recorder counts those that come again.
func (r *Reconciler) say(pg *volcano.PodGroup, reason, message string) {
	r.recorder.Event(pg, corev1.EventTypeWarning, reason, api.TruncateEventMessage(message))
}
