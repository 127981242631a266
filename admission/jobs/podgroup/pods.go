package podgroup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/constants"
	utiltas "sigs.k8s.io/kueue/pkg/util/tas"
	"sigs.k8s.io/kueue/pkg/workload"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission/kube"
)

// bound says that the pod counts for the Workload.
func bound(p *corev1.Pod, wl *kueue.Workload) bool {
	return p.Annotations[kueue.WorkloadAnnotation] == wl.Name
}

// earlier says that the pod ended under an earlier admission of the Workload.
func earlier(p *corev1.Pod, wl *kueue.Workload) bool {
	return ended(p) && p.Annotations[kube.StampAnnotation] != strconv.FormatInt(Stamp(wl), 10)
}

// ofGroup says that the pod counts for the group's Workload.
func ofGroup(p *corev1.Pod, pg *volcano.PodGroup) bool {
	return p.Annotations[kueue.WorkloadAnnotation] == WorkloadName(pg.Name)
}

// bind gives the pods that wait to the pod sets of the Workload.
func (r *Reconciler) bind(ctx context.Context, x *group, g *gang) error {
	var patches []func() error
	for _, p := range x.pods {
		if !gated(p) || !taken(p) || p.DeletionTimestamp != nil {
			continue
		}
		s := g.setOf(p)
		if s == nil || bound(p, x.wl) && p.Labels[kueueconstants.PodSetLabel] == s.name {
			continue
		}
		patch, err := bindPatch(p, x.pg, s.name)
		if err != nil {
			return err
		}
		patches = append(patches, func() error {
			err := r.client.Patch(ctx, p.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(kube.FieldOwner))
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("bind pod %s/%s to its Workload: %w", p.Namespace, p.Name, err)
			}
			return nil
		})
	}
	return parallel(patches)
}

// binders is how many pods are bound at a time.
const binders = 32

// parallel does the work and returns what went wrong.
func parallel(work []func() error) error {
	errs := make([]error, len(work))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(binders, len(work)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(work); i = int(next.Add(1)) - 1 {
				errs[i] = work[i]()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// bindPatch is a merge patch that makes the pod count for the group's Workload, in the
// pod set. Its UID makes sure that it is this pod.
func bindPatch(p *corev1.Pod, pg *volcano.PodGroup, set string) ([]byte, error) {
	labels := map[string]string{kueueconstants.PodSetLabel: set}
	if q := queueOf(pg); len(validation.IsValidLabelValue(q)) == 0 {
		labels[kueueconstants.ClusterQueueLabel] = q
	}
	annotations := map[string]string{kueue.WorkloadAnnotation: WorkloadName(pg.Name)}
	if named(p) == "" {
		annotations[volcano.KubeGroupNameAnnotationKey] = pg.Name
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID, "labels": labels, "annotations": annotations}})
}

// stop ends an eviction: pods that run are deleted, and when the last is gone the
// admission is. Pods that were never let go wait on.
func (r *Reconciler) stop(ctx context.Context, x *group) error {
	left := 0
	for _, p := range x.pods {
		if !runs(p) || !bound(p, x.wl) {
			continue
		}
		left++
		if err := r.delete(ctx, p); err != nil {
			return err
		}
	}
	if left > 0 {
		return nil
	}
	return r.release(ctx, x.wl)
}

func (r *Reconciler) delete(ctx context.Context, p *corev1.Pod) error {
	if p.DeletionTimestamp != nil {
		return nil
	}
	err := r.client.Delete(ctx, &corev1.Pod{ObjectMeta: p.ObjectMeta}, client.Preconditions{UID: &p.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

// trim deletes pods for which the plan has no place any more: surplus that was taken
// back for others. What the plan is now is read from the API server, since a pod that
// was let go by a newer one would be taken for such a pod.
func (r *Reconciler) trim(ctx context.Context, x *group) error {
	if len(r.over(ctx, x.wl, x.pods)) == 0 {
		return nil
	}
	now := &kueue.Workload{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(x.wl), now); err != nil {
		return err
	}
	if now.UID != x.wl.UID || now.Status.Admission == nil || workload.IsEvicted(now) || workload.IsFinished(now) {
		return nil
	}
	for _, p := range r.over(ctx, now, x.pods) {
		if err := r.delete(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// over are pods of the present admission beyond its places, the youngest of a node.
func (r *Reconciler) over(ctx context.Context, wl *kueue.Workload, pods []*corev1.Pod) []*corev1.Pod {
	if wl.Status.Admission == nil {
		return nil
	}
	type place struct{ set, host string }
	places, planned := map[place]int{}, map[string]bool{}
	for _, ps := range wl.Status.Admission.PodSetAssignments {
		if ps.TopologyAssignment == nil || !utiltas.IsLowestLevelHostname(ps.TopologyAssignment.Levels) {
			continue
		}
		planned[string(ps.Name)] = true
		for d := range utiltas.InternalSeqFrom(ps.TopologyAssignment) {
			places[place{string(ps.Name), d.Values[len(d.Values)-1]}] += int(d.Count)
		}
	}
	stamp := strconv.FormatInt(Stamp(wl), 10)
	young := slices.Clone(pods)
	slices.SortFunc(young, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var over []*corev1.Pod
	for _, p := range young {
		set, name := p.Labels[kueueconstants.PodSetLabel], cmp.Or(p.Spec.NodeName, p.Annotations[kube.NodeAnnotation])
		if !bound(p, wl) || gated(p) || ended(p) || p.DeletionTimestamp != nil || p.Annotations[kube.StampAnnotation] != stamp || !planned[set] {
			continue
		}
		node := &corev1.Node{}
		if err := r.client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			continue // its node is gone, and others look after that
		}
		at := place{set, node.Labels[corev1.LabelHostname]}
		if places[at]--; places[at] < 0 {
			over = append(over, p)
		}
	}
	return over
}
