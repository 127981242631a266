package podgroup

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission/kube"
)

// Annotations by which pods that name no group, or their owner, say what theirs is to
// be; Volcano's API has no constants for them.
const (
	modeAnnotation     = "volcano.sh/network-topology-mode"
	tierAnnotation     = "volcano.sh/network-topology-highest-tier"
	jobQueueAnnotation = "volcano.sh/queue-name"
)

// found makes the PodGroup of pods that name none: one for all pods of a controller,
// or one of a single pod, called and owned as Volcano's are. Nothing is made for pods
// that name a group which is not there.
func (r *Reconciler) found(ctx context.Context, name string, pods []*corev1.Pod) error {
	var first *corev1.Pod
	for _, p := range pods {
		if taken(p) && named(p) == "" && p.DeletionTimestamp == nil && !ended(p) && (first == nil || p.Name < first.Name) {
			first = p
		}
	}
	if first == nil {
		return nil
	}
	pg, err := r.groupFor(ctx, name, first)
	if err != nil {
		return err
	}
	if err := r.client.Create(ctx, pg, client.FieldOwner(kube.FieldOwner)); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create PodGroup %s/%s: %w", pg.Namespace, pg.Name, err)
	}
	return nil
}

func (r *Reconciler) groupFor(ctx context.Context, name string, p *corev1.Pod) (*volcano.PodGroup, error) {
	above, err := r.above(ctx, p)
	if err != nil {
		return nil, err
	}
	says := func(key string) string { return cmp.Or(p.Annotations[key], above[key]) }
	ns := &corev1.Namespace{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: p.Namespace}, ns); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read namespace %s: %w", p.Namespace, err)
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: ptr.To(true)}
	if o := metav1.GetControllerOf(p); o != nil {
		owner = *o
		owner.BlockOwnerDeletion = nil
	}
	pg := &volcano.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{owner}, Annotations: map[string]string{}},
		Spec: volcano.PodGroupSpec{
			MinMember: 1, PriorityClassName: p.Spec.PriorityClassName,
			Queue: cmp.Or(says(volcano.QueueNameAnnotationKey), says(jobQueueAnnotation), ns.Annotations[volcano.QueueNameAnnotationKey], volcano.DefaultQueue),
		},
		Status: volcano.PodGroupStatus{Phase: volcano.PodGroupPending},
	}
	r.amounts(pg, p, says)
	for _, key := range []string{volcano.PodPreemptable, volcano.CooldownTime} {
		if v := says(key); v != "" {
			pg.Annotations[key] = v
		}
	}
	return pg, nil
}

// amounts fills in how many pods the group needs, of what, and how near to each other.
func (r *Reconciler) amounts(pg *volcano.PodGroup, p *corev1.Pod, says func(string) string) {
	if text := says(volcano.VolcanoGroupMinMemberAnnotationKey); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			r.recorder.Eventf(p, corev1.EventTypeWarning, ReasonUnsupported, "annotation %s is %q, want a number; 1 is taken", volcano.VolcanoGroupMinMemberAnnotationKey, text)
		} else {
			pg.Spec.MinMember = int32(n)
		}
	}
	least := corev1.ResourceList{}
	if text := says(volcano.VolcanoGroupMinResourcesAnnotationKey); text == "" || json.Unmarshal([]byte(text), &least) != nil {
		least = corev1.ResourceList{}
		for res, q := range resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}) {
			q.Mul(int64(max(1, pg.Spec.MinMember)))
			least[res] = q
		}
	}
	pg.Spec.MinResources = &least
	if mode := says(modeAnnotation); mode != "" {
		pg.Spec.NetworkTopology = &volcano.NetworkTopologySpec{Mode: volcano.NetworkTopologyMode(mode)}
		if n, err := strconv.Atoi(says(tierAnnotation)); err == nil {
			pg.Spec.NetworkTopology.HighestTierAllowed = &n
		}
	}
}

// above is the annotations of the pod's controller, if they may be read.
func (r *Reconciler) above(ctx context.Context, p *corev1.Pod) (map[string]string, error) {
	o := metav1.GetControllerOf(p)
	if o == nil {
		return nil, nil
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
	err := r.live.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: o.Name}, m)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s/%s: %w", o.Kind, p.Namespace, o.Name, err)
	}
	return m.Annotations, nil
}
