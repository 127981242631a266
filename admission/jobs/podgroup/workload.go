package podgroup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	utilpriority "sigs.k8s.io/kueue/pkg/util/priority"
	"sigs.k8s.io/kueue/pkg/workload"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission/kube"
)

const (
	// sourceAnnotation on a Workload is its source.
	sourceAnnotation = "sluice.dev/podgroup-source"
	// layoutAnnotation on a Workload is a hash of what it was made of, so that it is
	// only written again if that changed.
	layoutAnnotation = "sluice.dev/podgroup-layout"
)

// WorkloadName is what the Workload of a PodGroup is called.
func WorkloadName(group string) string {
	name := groupPrefix + group
	if len(name) <= 253 {
		return name
	}
	sum := sha256.Sum256([]byte(group))
	return name[:240] + "-" + hex.EncodeToString(sum[:6])
}

// holdName is what the Workload of a group's minimum is called.
func holdName(group string) string { return WorkloadName(group + "-minimum") }

// queueOf is the Volcano Queue of the group.
func queueOf(pg *volcano.PodGroup) string {
	if pg.Spec.Queue == "" {
		return volcano.DefaultQueue
	}
	return pg.Spec.Queue
}

// draft is the Workload of the gang, as far as it is not the deciding half's.
func (r *Reconciler) draft(ctx context.Context, pg *volcano.PodGroup, g *gang, pods []*corev1.Pod) (*kueue.Workload, string, error) {
	class, priority, err := utilpriority.GetPriorityFromPriorityClass(ctx, r.client, pg.Spec.PriorityClassName)
	if err != nil {
		return nil, "", fmt.Errorf("look up PriorityClass %q of PodGroup %s/%s: %w", pg.Spec.PriorityClassName, pg.Namespace, pg.Name, err)
	}
	wl := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: pg.Namespace, Name: WorkloadName(pg.Name), Annotations: map[string]string{
			kube.VolcanoQueueAnnotation: queueOf(pg), kube.GangAnnotation: g.sizes(), sourceAnnotation: string(g.source),
			kube.QueuedAtAnnotation: pg.CreationTimestamp.UTC().Format(time.RFC3339),
		}, Labels: map[string]string{}},
		Spec: kueue.WorkloadSpec{PodSets: g.podSets(), PriorityClassRef: class, Priority: ptr.To(priority)},
	}
	if g.source == fromMinimum {
		wl.Name = holdName(pg.Name)
	}
	request, note, err := r.level(ctx, pg)
	if err != nil {
		return nil, "", err
	}
	ask(wl.Spec.PodSets, request)
	if len(pg.Spec.SubGroupPolicy) > 0 {
		note = strings.TrimPrefix(note+"; subGroupPolicy is not heeded: the pods of all subgroups are one gang", "; ")
	}
	if pinned(pg, pods) {
		wl.Labels[kube.PreemptibleAnnotation] = "false"
	}
	if d := said(pg, pods, volcano.CooldownTime); d != "" {
		wl.Annotations[kube.MinRuntimeAnnotation] = d
	}
	wl.Annotations[layoutAnnotation] = layout(wl)
	return wl, note, controllerutil.SetControllerReference(pg, wl, r.client.Scheme(), controllerutil.WithBlockOwnerDeletion(false))
}

// said is the value of an annotation of the group or of one of its pods.
func said(pg *volcano.PodGroup, pods []*corev1.Pod, key string) string {
	if v := pg.Annotations[key]; v != "" {
		return v
	}
	for _, p := range pods {
		if v := p.Annotations[key]; v != "" {
			return v
		}
	}
	return ""
}

// pinned says that nobody may take the group back: what is there and is not true.
func pinned(pg *volcano.PodGroup, pods []*corev1.Pod) bool {
	text := said(pg, pods, volcano.PodPreemptable)
	yes, err := strconv.ParseBool(text)
	return text != "" && (err != nil || !yes)
}

func layout(wl *kueue.Workload) string {
	text, err := json.Marshal([]any{wl.Annotations, wl.Labels, wl.Spec})
	if err != nil {
		return err.Error()
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// holdsQuota says that the Workload's pod sets are not ours to change.
func holdsQuota(wl *kueue.Workload) bool {
	return wl != nil && (wl.Status.Admission != nil || workload.HasQuotaReservation(wl))
}

// put makes the Workload what the draft says; one that exists keeps its place in the
// queue. It returns what is there now.
func (r *Reconciler) put(ctx context.Context, have, draft *kueue.Workload) (*kueue.Workload, error) {
	if have == nil {
		return draft, r.client.Create(ctx, draft)
	}
	if have.Annotations[layoutAnnotation] == draft.Annotations[layoutAnnotation] {
		return have, nil
	}
	next := have.DeepCopy()
	next.Spec.PodSets, next.Spec.Priority, next.Spec.PriorityClassRef = draft.Spec.PodSets, draft.Spec.Priority, draft.Spec.PriorityClassRef
	for _, key := range []string{kube.VolcanoQueueAnnotation, kube.GangAnnotation, kube.MinRuntimeAnnotation, sourceAnnotation, layoutAnnotation} {
		assign(&next.Annotations, key, draft.Annotations[key])
	}
	assign(&next.Labels, kube.PreemptibleAnnotation, draft.Labels[kube.PreemptibleAnnotation])
	return next, r.client.Update(ctx, next)
}

func assign(m *map[string]string, key, value string) {
	if value == "" {
		delete(*m, key)
		return
	}
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
}

// resize says how many pods there are of each set of a Workload that holds quota, and
// how few are enough by what the group says now. The former only grows while it does: a
// pod that was deleted is made again.
func (r *Reconciler) resize(ctx context.Context, x *group) error {
	wl := x.wl
	sizes, total, err := kube.ParseGang(wl.Annotations[kube.GangAnnotation])
	if err != nil {
		return nil //nolint:nilerr // somebody else wrote it, and the Workload says so
	}
	g, count := ofWorkload(wl), map[string]int{}
	for _, p := range x.pods {
		if s := g.setOf(p); s != nil && p.DeletionTimestamp == nil && !earlier(p, wl) {
			count[s.name]++
		}
	}
	done := succeeded(slices.DeleteFunc(slices.Clone(x.pods), func(p *corev1.Pod) bool { return !earlier(p, wl) }))
	for i := range g.sets {
		g.sets[i].most = count[g.sets[i].name]
		for _, s := range sizes {
			if s.Name == g.sets[i].name {
				g.sets[i].most = max(g.sets[i].most, s.Most)
			}
		}
	}
	if g.atLeast(x.pg, done) != nil { // more than there are: it stays what it was
		g.total = total
		for i := range g.sets {
			for _, s := range sizes {
				if s.Name == g.sets[i].name {
					g.sets[i].least = s.Least
				}
			}
		}
	}
	if g.sizes() == wl.Annotations[kube.GangAnnotation] {
		return nil
	}
	next := wl.DeepCopy()
	next.Annotations[kube.GangAnnotation] = g.sizes()
	delete(next.Annotations, layoutAnnotation) // it is not as it was laid out any more
	return r.client.Patch(ctx, next, client.MergeFromWithOptions(wl, client.MergeFromWithOptimisticLock{}), client.FieldOwner(kube.FieldOwner))
}
