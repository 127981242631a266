package kube

import (
	"context"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// sawClass takes in a WorkloadPriorityClass; nil is gone. When its value becomes another
// the Workloads that name it get it, admitted or not, unless their priority was set by
// hand: to something that the class did not say. A class that goes leaves the last value
// in force.
func (r *runner) sawClass(name string, now *kueue.WorkloadPriorityClass) {
	if now == nil {
		return
	}
	was, known := r.classes[name]
	r.classes[name] = now.Value
	if !known || was == now.Value {
		return
	}
	for key, w := range r.workloads {
		if !w.finished && follows(w.seen, name) && priorityOf(w.seen) == was {
			r.reprioritize(key, w.seen, was, now.Value)
		}
	}
}

func follows(wl *kueue.Workload, class string) bool {
	ref := wl.Spec.PriorityClassRef
	return ref != nil && ref.Kind == kueue.WorkloadPriorityClassKind && ref.Name == class
}

func (r *runner) reprioritize(key string, seen *kueue.Workload, was, value int32) {
	r.chores.send("priority "+key, func(ctx context.Context) error {
		defer r.own.lock(key)()
		base := &kueue.Workload{}
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(seen), base); err != nil {
			return client.IgnoreNotFound(err)
		}
		if base.UID != seen.UID || priorityOf(base) != was {
			return nil
		}
		next := base.DeepCopy()
		next.Spec.Priority = ptr.To(value)
		if err := r.client.Patch(ctx, next, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldOwner)); err != nil {
			return client.IgnoreNotFound(err) // a conflict is tried again, with what it is then
		}
		r.own.wrote(key, version(base.ResourceVersion), next)
		r.log.Info("priority follows its class", "workload", key, "from", was, "to", value)
		return nil
	})
}
