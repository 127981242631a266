package kube

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/util/api"
)

// sayFaults makes an Event of every new fault of an object about queues, and sees
// to the flavor that admissions name where a queue has none.
func (r *runner) sayFaults() {
	for o, bad := range r.catalog.faults {
		if r.said[o] == bad.message {
			continue
		}
		r.said[o] = bad.message
		if target := r.declared(o); target != nil {
			r.recorder.Event(target, corev1.EventTypeWarning, bad.reason, api.TruncateEventMessage(bad.message))
		}
		r.log.Info("queue cannot be used as it is written", "queue", o.key(), "kind", kindName(o.kind), "reason", bad.message)
	}
	for o := range r.said {
		if r.catalog.faults[o] == nil {
			delete(r.said, o)
		}
	}
	if r.catalog.wantsDefaultFlavor() && r.catalog.flavors[DefaultFlavor] == nil {
		r.chores.send("default flavor", func(ctx context.Context) error {
			err := r.client.Create(ctx, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: DefaultFlavor}}, client.FieldOwner(FieldOwner))
			if apierrors.IsAlreadyExists(err) || apierrors.IsForbidden(err) {
				return nil // without it admissions name no flavor, which jobs do without
			}
			return err
		})
	}
}

// wantsDefaultFlavor says whether some queue has no flavor of its own.
func (c *catalog) wantsDefaultFlavor() bool {
	for _, lq := range c.localQueues {
		name := string(lq.Spec.ClusterQueue)
		cq := c.clusterQueues[name]
		if cq != nil && len(cq.Spec.ResourceGroups) == 0 || cq == nil && c.volcanoQueues[name] != nil {
			return true
		}
	}
	return false
}

func (r *runner) declared(o object) runtime.Object {
	switch o.kind {
	case cohortKind:
		return r.catalog.cohorts[o.name]
	case clusterQueueKind:
		return r.catalog.clusterQueues[o.name]
	case volcanoQueueKind:
		return r.catalog.volcanoQueues[o.name]
	default:
		return nil
	}
}

// sayViolations makes an Event of invariants that do not hold.
func (r *runner) sayViolations(bad []string) {
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: r.namespace, Namespace: r.namespace}
	r.recorder.Event(about, corev1.EventTypeWarning, "InvariantViolated", api.TruncateEventMessage(strings.Join(bad, "; ")))
}

// dropFinalizer lets an object go that is being deleted and in use no more. Sluice
// puts no such finalizer on; Kueue does.
func (r *runner) dropFinalizer(o client.Object) {
	if !controllerutil.ContainsFinalizer(o, finalizer) {
		return
	}
	old := o.DeepCopyObject().(client.Object)
	r.chores.send("finalizer "+o.GetName()+" "+string(o.GetUID()), func(ctx context.Context) error {
		next := old.DeepCopyObject().(client.Object)
		controllerutil.RemoveFinalizer(next, finalizer)
		return client.IgnoreNotFound(r.client.Patch(ctx, next, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})))
	})
}

// releaseFlavors lets flavors go that no queue and no admission names any more.
func (r *runner) releaseFlavors() {
	for name, f := range r.catalog.flavors {
		if f.DeletionTimestamp != nil && !r.flavorInUse(name) {
			r.dropFinalizer(f)
		}
	}
}

func (r *runner) flavorInUse(name string) bool {
	for _, cq := range r.catalog.clusterQueues {
		for _, g := range cq.Spec.ResourceGroups {
			for _, f := range g.Flavors {
				if string(f.Name) == name {
					return true
				}
			}
		}
	}
	for _, known := range r.workloads {
		if a := known.seen.Status.Admission; a != nil && !known.finished {
			for _, ps := range a.PodSetAssignments {
				for _, f := range ps.Flavors {
					if string(f) == name {
						return true
					}
				}
			}
		}
	}
	return false
}

func sameStatus(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

func kindName(k kind) string {
	switch k {
	case flavorKind:
		return "ResourceFlavor"
	case cohortKind:
		return "Cohort"
	case clusterQueueKind:
		return "ClusterQueue"
	case volcanoQueueKind:
		return "Queue"
	case localQueueKind:
		return "LocalQueue"
	case namespaceKind:
		return "Namespace"
	case classKind:
		return "WorkloadPriorityClass"
	case checkKind:
		return "AdmissionCheck"
	case limitRangeKind:
		return "LimitRange"
	case inventoryKind:
		return "SliceInventory"
	case leaseKind:
		return "Lease"
	case nodeKind:
		return "Node"
	case workloadKind:
		return "Workload"
	default:
		return "Pod"
	}
}
