package takeover

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/constants"
	utiltas "sigs.k8s.io/kueue/pkg/util/tas"
	"sigs.k8s.io/kueue/pkg/workload"

	"sluice.dev/sluice/admission/jobs/podgroup"
	"sluice.dev/sluice/admission/kube"
)

// fixed is a clock that stands still, so that admission and pods have one time.
type fixed struct {
	clock.RealClock
	at time.Time
}

func (f fixed) Now() time.Time { return f.at }

// Adopt makes what runs count for sluice where it runs.
func Adopt(ctx context.Context, c client.Client, a *Adoption, now time.Time) error {
	switch {
	case a.Problem != "" || a.Done:
		return nil
	case a.group != nil:
		return a.adoptGroup(ctx, c, now.Truncate(time.Second))
	}
	stamp := podgroup.Stamp(a.workload)
	for _, p := range a.Pods {
		if err := mark(ctx, c, p, a.workload.Name, stamp, string(a.workload.Status.Admission.ClusterQueue)); err != nil {
			return err
		}
	}
	if a.placed() {
		return nil
	}
	wl := a.workload.DeepCopy()
	err := patchStatus(ctx, c, wl, clock.RealClock{}, func(w *kueue.Workload) {
		for i := range w.Status.Admission.PodSetAssignments {
			ps := &w.Status.Admission.PodSetAssignments[i]
			ps.TopologyAssignment = a.places(string(ps.Name))
		}
	})
	if err != nil {
		return fmt.Errorf("write where the pods of Workload %s/%s are: %w", wl.Namespace, wl.Name, err)
	}
	return nil
}

// patchStatus changes the status as Kueue's scheduler would. If somebody wrote something
// else meanwhile, as why it waits, it is done to what they wrote.
func patchStatus(ctx context.Context, c client.Client, wl *kueue.Workload, clk clock.Clock, change func(*kueue.Workload)) error {
	admission := wl.Status.Admission != nil
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		err := workload.PatchAdmissionStatus(ctx, c, wl, clk, func(w *kueue.Workload) (bool, error) {
			change(w)
			return true, nil
		})
		if !apierrors.IsConflict(err) {
			return err
		}
		if bad := c.Get(ctx, client.ObjectKeyFromObject(wl), wl); bad != nil {
			return bad
		}
		if (wl.Status.Admission != nil) != admission {
			return fmt.Errorf("it was admitted or evicted by somebody else: %w", errMeanwhile)
		}
		return err
	})
}

var errMeanwhile = errors.New("look again with --dry-run")

// mark has a pod count for a Workload, in its pod set, under its admission. Its UID
// makes sure that it is this pod.
func mark(ctx context.Context, c client.Client, p Pod, workload string, stamp int64, queue string) error {
	if marked(p, workload, stamp) {
		return nil
	}
	labels := map[string]string{kueueconstants.PodSetLabel: p.Set}
	if len(validation.IsValidLabelValue(queue)) == 0 {
		labels[kueueconstants.ClusterQueueLabel] = queue
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": p.pod.UID, "labels": labels,
		"annotations": map[string]string{
			kueue.WorkloadAnnotation: workload, kube.NodeAnnotation: p.pod.Spec.NodeName, kube.StampAnnotation: strconv.FormatInt(stamp, 10),
		},
	}})
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, p.pod.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(kube.FieldOwner)); err != nil {
		return fmt.Errorf("mark pod %s/%s: %w", p.pod.Namespace, p.pod.Name, err)
	}
	return nil
}

func marked(p Pod, workload string, stamp int64) bool {
	return p.pod.Annotations[kueue.WorkloadAnnotation] == workload && p.pod.Labels[kueueconstants.PodSetLabel] == p.Set &&
		p.pod.Annotations[kube.StampAnnotation] == strconv.FormatInt(stamp, 10)
}

// placed says that the Workload's admission names nodes for its pods. What it names it
// was admitted to, and pods of it that do not exist yet go there.
func (a *Adoption) placed() bool {
	return slices.ContainsFunc(a.workload.Status.Admission.PodSetAssignments, func(ps kueue.PodSetAssignment) bool {
		return ps.TopologyAssignment != nil && utiltas.IsLowestLevelHostname(ps.TopologyAssignment.Levels)
	})
}

func (a *Adoption) adopted() bool {
	if a.workload == nil || a.workload.Status.Admission == nil {
		return false
	}
	stamp := podgroup.Stamp(a.workload)
	return a.placed() && !slices.ContainsFunc(a.Pods, func(p Pod) bool { return !marked(p, a.workload.Name, stamp) })
}

// places is where the pods of a set are, nil if there are none.
func (a *Adoption) places(set string) *kueue.TopologyAssignment {
	count := map[string]int32{}
	for _, p := range a.Pods {
		if p.Set == set {
			count[p.host]++
		}
	}
	var domains []utiltas.TopologyDomainAssignment
	for host, n := range count {
		domains = append(domains, utiltas.TopologyDomainAssignment{Values: []string{host}, Count: n})
	}
	if len(domains) == 0 {
		return nil
	}
	slices.SortFunc(domains, func(x, y utiltas.TopologyDomainAssignment) int { return cmp.Compare(x.Values[0], y.Values[0]) })
	return utiltas.V1Beta2From(&utiltas.TopologyAssignment{Levels: []string{corev1.LabelHostname}, Domains: domains})
}

// size is how many pods of the set run.
func (a *Adoption) size(set string) *int32 {
	n := int32(0)
	for _, p := range a.Pods {
		if p.Set == set {
			n++
		}
	}
	return ptr.To(n)
}
