package podgroup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	bus "volcano.sh/apis/pkg/apis/bus/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission/kube"
)

// Indexes of the manager's cache.
const (
	groupIndex = "podgroup" // of pods: the group that looks after them
	queueIndex = "spec.queue"
)

var podGroupKind = volcano.SchemeGroupVersion.WithKind("PodGroup")

// Setup adds what looks after PodGroups, and after the state of Volcano's Queues, to a
// manager that has not started. They act once ready is closed, or at once if it is nil.
// Where the kinds are not installed nothing is added.
func Setup(ctx context.Context, mgr ctrl.Manager, ready <-chan struct{}) error {
	for _, add := range []func() error{
		func() error { return kube.AddToScheme(mgr.GetScheme()) },
		func() error { return bus.AddToScheme(mgr.GetScheme()) },
	} {
		if err := add(); err != nil {
			return fmt.Errorf("add kinds to the scheme: %w", err)
		}
	}
	if !served(mgr, podGroupKind.GroupKind().Kind) {
		mgr.GetLogger().Info("integrations.volcano is on, but PodGroups are not installed; nothing is done about them", "kind", podGroupKind.String())
		return nil
	}
	if err := index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	r := &Reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), clock: clock.RealClock{},
		recorder: mgr.GetEventRecorderFor("sluice"), //nolint:staticcheck // SA1019: as admission/kube, so that one object's events come from one source
	}
	to := mgr
	if ready != nil {
		to = after{Manager: mgr, ready: ready}
	}
	err := ctrl.NewControllerManagedBy(to).Named("podgroup").
		For(&volcano.PodGroup{}).
		Owns(&kueue.Workload{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			p, ok := o.(*corev1.Pod)
			if !ok || !taken(p) && named(p) == "" {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: p.Namespace, Name: groupOf(p)}}}
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 5}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("watch PodGroups: %w", err)
	}
	return setupQueues(mgr, to, r)
}

func index(ctx context.Context, to client.FieldIndexer) error {
	err := to.IndexField(ctx, &corev1.Pod{}, groupIndex, func(o client.Object) []string {
		p, ok := o.(*corev1.Pod)
		if !ok || !taken(p) && named(p) == "" {
			return nil
		}
		return []string{groupOf(p)}
	})
	if err != nil {
		return fmt.Errorf("index pods by PodGroup: %w", err)
	}
	err = to.IndexField(ctx, &volcano.PodGroup{}, queueIndex, func(o client.Object) []string {
		pg, ok := o.(*volcano.PodGroup)
		if !ok {
			return nil
		}
		return []string{queueOf(pg)}
	})
	if err != nil {
		return fmt.Errorf("index PodGroups by queue: %w", err)
	}
	return nil
}

// served says whether a kind of Volcano's scheduling is installed.
func served(mgr ctrl.Manager, kind string) bool {
	gvk := volcano.SchemeGroupVersion.WithKind(kind)
	_, err := mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	return !apimeta.IsNoMatchError(err)
}

// after is a manager whose controllers start once ready is closed: before the webhooks
// are in place, pods of a group may start by themselves.
type after struct {
	ctrl.Manager
	ready <-chan struct{}
}

func (a after) Add(r manager.Runnable) error {
	return a.Manager.Add(waiting{Runnable: r, ready: a.ready})
}

type waiting struct {
	manager.Runnable
	ready <-chan struct{}
}

func (w waiting) Start(ctx context.Context) error {
	select {
	case <-w.ready:
		return w.Runnable.Start(ctx)
	case <-ctx.Done():
		return nil
	}
}

// NeedLeaderElection keeps the controllers to the one that leads.
func (w waiting) NeedLeaderElection() bool { return true }
