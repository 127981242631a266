package podgroup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	bus "volcano.sh/apis/pkg/apis/bus/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission/kube"
)

const (
	rootQueue = "root"
	// closedByParent is on a queue that was closed because its parent was, so that the
	// opening of the parent opens it again.
	closedByParent = "volcano.sh/closed-by-parent"
)

// queues writes how many PodGroups of each phase a Volcano Queue holds, and carries its
// state on: one that is closing is closed with its last PodGroup.
type queues struct{ *Reconciler }

// commands opens and closes queues as Command objects say.
type commands struct{ *Reconciler }

func setupQueues(mgr, to ctrl.Manager, r *Reconciler) error {
	if !served(mgr, "Queue") {
		return nil
	}
	err := ctrl.NewControllerManagedBy(to).Named("volcano-queue").
		For(&volcano.Queue{}).
		Watches(&volcano.PodGroup{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			pg, ok := o.(*volcano.PodGroup)
			if !ok {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: queueOf(pg)}}}
		})).
		Complete(queues{r})
	if err != nil {
		return fmt.Errorf("watch Volcano Queues: %w", err)
	}
	command := bus.SchemeGroupVersion.WithKind("Command")
	if _, err := mgr.GetRESTMapper().RESTMapping(command.GroupKind(), command.Version); apimeta.IsNoMatchError(err) {
		return nil
	}
	if err := ctrl.NewControllerManagedBy(to).Named("volcano-command").For(&bus.Command{}).Complete(commands{r}); err != nil {
		return fmt.Errorf("watch Commands: %w", err)
	}
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (q queues) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	have := &volcano.Queue{}
	if err := q.client.Get(ctx, request.NamespacedName, have); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var list volcano.PodGroupList
	if err := q.client.List(ctx, &list, client.MatchingFields{queueIndex: request.Name}); err != nil {
		return ctrl.Result{}, fmt.Errorf("list PodGroups of queue %s: %w", request.Name, err)
	}
	next := have.DeepCopy()
	s := &next.Status
	s.Unknown, s.Pending, s.Running, s.Inqueue, s.Completed = 0, 0, 0, 0, 0
	for i := range list.Items {
		switch list.Items[i].Status.Phase {
		case volcano.PodGroupUnknown:
			s.Unknown++
		case volcano.PodGroupRunning:
			s.Running++
		case volcano.PodGroupInqueue:
			s.Inqueue++
		case volcano.PodGroupCompleted:
			s.Completed++
		default:
			s.Pending++
		}
	}
	switch s.State {
	case "":
		s.State = volcano.QueueStateOpen
	case volcano.QueueStateClosing:
		if len(list.Items) == 0 {
			s.State = volcano.QueueStateClosed
		}
	case volcano.QueueStateOpen, volcano.QueueStateClosed, volcano.QueueStateUnknown:
	default:
		s.State = volcano.QueueStateUnknown
	}
	return ctrl.Result{}, q.write(ctx, have, next)
}

// write patches the status by what differs. The state is only written to the version
// that was read: others close and open queues.
func (r *Reconciler) write(ctx context.Context, have, next *volcano.Queue) error {
	if equality.Semantic.DeepEqual(have.Status, next.Status) {
		return nil
	}
	options := client.MergeFromWithOptions(have)
	if have.Status.State != next.Status.State {
		options = client.MergeFromWithOptions(have, client.MergeFromWithOptimisticLock{})
	}
	err := r.client.Status().Patch(ctx, next, options, client.FieldOwner(kube.FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of queue %s: %w", have.Name, err)
	}
	return nil
}

// Reconcile carries a Command out. It is deleted first: whoever deletes it carries it
// out, so that Volcano's own controllers beside do not do so a second time.
func (c commands) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	order := &bus.Command{}
	if err := c.client.Get(ctx, request.NamespacedName, order); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if order.TargetObject == nil || order.TargetObject.Kind != "Queue" || order.DeletionTimestamp != nil {
		return ctrl.Result{}, nil // of a Job, which is its controller's
	}
	if order.Action != string(bus.OpenQueueAction) && order.Action != string(bus.CloseQueueAction) {
		c.recorder.Eventf(order, corev1.EventTypeWarning, ReasonUnsupported, "action %q of a queue, want %s or %s", order.Action, bus.OpenQueueAction, bus.CloseQueueAction)
		return ctrl.Result{}, nil
	}
	err := c.client.Delete(ctx, order, client.Preconditions{UID: &order.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("take Command %s: %w", request, err)
	}
	name, open := order.TargetObject.Name, order.Action == string(bus.OpenQueueAction)
	for tries := 0; ; tries++ {
		err := c.turn(ctx, name, open, false)
		if err == nil || !apierrors.IsConflict(err) && tries >= 3 || tries >= 20 {
			if err != nil { // the order is gone, so the one who gave it is told
				c.recorder.Eventf(&volcano.Queue{ObjectMeta: order.ObjectMeta}, corev1.EventTypeWarning, ReasonUnsupported, "%s of queue %s: %v", order.Action, name, err)
			}
			return ctrl.Result{}, nil
		}
	}
}

// turn opens or closes a queue and those below it.
func (r *Reconciler) turn(ctx context.Context, name string, open, byParent bool) error {
	have := &volcano.Queue{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: name}, have); err != nil {
		return fmt.Errorf("read queue %s: %w", name, err)
	}
	if name == rootQueue && !open {
		r.recorder.Event(have, corev1.EventTypeWarning, ReasonUnsupported, "queue root cannot be closed")
		return nil
	}
	if open && !byParent {
		if kept, err := r.keptClosed(ctx, have); kept || err != nil {
			return err
		}
	}
	if err := r.setState(ctx, have, open, byParent); err != nil {
		return err
	}
	var all volcano.QueueList
	if err := r.live.List(ctx, &all); err != nil {
		return fmt.Errorf("list queues: %w", err)
	}
	for i := range all.Items {
		q := &all.Items[i]
		if q.Spec.Parent != name || q.Name == name || open && q.Annotations[closedByParent] == "" || !open && closed(q) {
			continue
		}
		if err := r.turn(ctx, q.Name, open, true); err != nil {
			return err
		}
	}
	return nil
}

// keptClosed says that the queue cannot be opened because of its parent, and tells so.
func (r *Reconciler) keptClosed(ctx context.Context, q *volcano.Queue) (bool, error) {
	p := q.Spec.Parent
	if p == "" || p == rootQueue {
		return false, nil
	}
	parent := &volcano.Queue{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: p}, parent); err != nil {
		return false, fmt.Errorf("read queue %s: %w", p, err)
	}
	if !closed(parent) {
		return false, nil
	}
	r.recorder.Eventf(q, corev1.EventTypeWarning, ReasonUnsupported, "it cannot be opened while its parent %s is %s", p, parent.Status.State)
	return true, nil
}

func closed(q *volcano.Queue) bool {
	return q.Status.State == volcano.QueueStateClosed || q.Status.State == volcano.QueueStateClosing
}

func (r *Reconciler) setState(ctx context.Context, have *volcano.Queue, open, byParent bool) error {
	mark := ""
	if !open && byParent {
		mark = "true"
	}
	if have.Annotations[closedByParent] != mark {
		next := have.DeepCopy()
		assign(&next.Annotations, closedByParent, mark)
		if err := r.client.Patch(ctx, next, client.MergeFrom(have), client.FieldOwner(kube.FieldOwner)); err != nil {
			return fmt.Errorf("mark queue %s: %w", have.Name, err)
		}
		have = next
	}
	next := have.DeepCopy()
	next.Status.State = volcano.QueueStateOpen
	if !open {
		var list volcano.PodGroupList
		if err := r.client.List(ctx, &list, client.MatchingFields{queueIndex: have.Name}); err != nil {
			return fmt.Errorf("list PodGroups of queue %s: %w", have.Name, err)
		}
		next.Status.State = volcano.QueueStateClosing
		if len(list.Items) == 0 {
			next.Status.State = volcano.QueueStateClosed
		}
	}
	return r.write(ctx, have, next)
}
