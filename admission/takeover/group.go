package takeover

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	resourcehelper "k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission/jobs/podgroup"
	"sluice.dev/sluice/admission/kube"
)

// groups are the PodGroups that have pods on nodes.
func (c *cluster) groups(ctx context.Context) ([]Adoption, error) {
	var list volcano.PodGroupList
	if err := c.reader.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list PodGroups: %w", err)
	}
	var found []*Adoption
	for i := range list.Items {
		pg := &list.Items[i]
		a := &Adoption{Kind: "PodGroup", Namespace: pg.Namespace, Name: pg.Name, group: pg}
		var pods []*corev1.Pod
		for j := range c.pods {
			if p := &c.pods[j]; p.Namespace == pg.Namespace && podgroup.GroupOf(p) == pg.Name {
				pods = append(pods, p)
			}
		}
		if len(pods) == 0 {
			continue // it waits, and is laid out when sluice starts
		}
		found = append(found, a)
		wl := &kueue.Workload{}
		err := c.reader.Get(ctx, client.ObjectKey{Namespace: pg.Namespace, Name: podgroup.WorkloadName(pg.Name)}, wl)
		switch {
		case err == nil:
			a.workload = wl
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("read the Workload of PodGroup %s/%s: %w", pg.Namespace, pg.Name, err)
		}
		sets, why := podgroup.Sets(pg, pods)
		if why != "" {
			a.Problem = why
		}
		for _, p := range pods {
			a.add(c, p, sets[p.UID])
		}
		if a.workload != nil && a.workload.Status.Admission != nil && a.workload.Annotations[podgroup.AdoptingAnnotation] == "" {
			a.Done = true
		}
	}
	return sorted(found), nil
}

// adoptGroup makes the Workload of a PodGroup that runs. Until all is written it names
// no queue, so that nobody admits it elsewhere, and is marked, so that nobody retires it.
func (a *Adoption) adoptGroup(ctx context.Context, c client.Client, now time.Time) error {
	var pods []*corev1.Pod
	for _, p := range a.Pods {
		pods = append(pods, p.pod)
	}
	wl := a.workload
	if wl == nil {
		var err error
		if wl, err = podgroup.Adopted(ctx, c, a.group, pods); err != nil {
			return err
		}
		if err := c.Create(ctx, wl, client.FieldOwner(kube.FieldOwner)); err != nil {
			return fmt.Errorf("create Workload %s/%s: %w", wl.Namespace, wl.Name, err)
		}
		a.workload = wl
	}
	queue := podgroup.QueueOf(a.group)
	stamp := now.Unix()
	if wl.Status.Admission != nil {
		stamp = podgroup.Stamp(wl)
	}
	for _, p := range a.Pods {
		if err := mark(ctx, c, p, wl.Name, stamp, queue); err != nil {
			return err
		}
	}
	if wl.Status.Admission == nil {
		err := patchStatus(ctx, c, wl, fixed{at: now}, func(w *kueue.Workload) {
			workload.SetQuotaReservation(w, a.admission(w, queue), fixed{at: now})
			workload.SyncAdmittedCondition(w, now)
		})
		if err != nil {
			return fmt.Errorf("admit Workload %s/%s: %w", wl.Namespace, wl.Name, err)
		}
	}
	next := wl.DeepCopy()
	delete(next.Annotations, podgroup.AdoptingAnnotation)
	next.Annotations[kube.VolcanoQueueAnnotation] = queue
	if err := c.Patch(ctx, next, client.MergeFrom(wl), client.FieldOwner(kube.FieldOwner)); err != nil {
		return fmt.Errorf("hand Workload %s/%s over: %w", wl.Namespace, wl.Name, err)
	}
	return nil
}

// admission is what the pods of the group hold.
func (a *Adoption) admission(wl *kueue.Workload, queue string) *kueue.Admission {
	out := &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(queue)}
	for i := range wl.Spec.PodSets {
		ps := &wl.Spec.PodSets[i]
		n := a.size(string(ps.Name))
		psa := kueue.PodSetAssignment{Name: ps.Name, Count: n, ResourceUsage: corev1.ResourceList{}, TopologyAssignment: a.places(string(ps.Name))}
		for name, q := range resourcehelper.PodRequests(&corev1.Pod{Spec: ps.Template.Spec}, resourcehelper.PodResourcesOptions{}) {
			q.Mul(int64(*n))
			psa.ResourceUsage[name] = q
		}
		out.PodSetAssignments = append(out.PodSetAssignments, psa)
	}
	return out
}
