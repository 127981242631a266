package kube

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"

	"sluice.dev/sluice/admission"
)

// meetGang has the groups know the Workload as long as pods of it may come or be there.
func (r *runner) meetGang(key string, wl *kueue.Workload) {
	if workload.IsFinished(wl) {
		r.groups.drop(gangID(key))
		return
	}
	r.groups.put(socialGang(key, wl))
}

// meetPod is the pod as the core sees it. One that belongs to no workload counts in the
// groups that it is in; those of a workload count with that.
func (r *runner) meetPod(p *corev1.Pod) admission.Pod {
	out := convertPod(r.state.Space, p)
	if out.Workload != "" {
		return out
	}
	o := socialPod(p)
	r.groups.put(o)
	for _, dim := range r.groups.dims(r.groups.all[o.id], 0) {
		out.Request.Set(dim, 1)
	}
	return out
}

// settleGroups works out which groups there have to be, and tells the core anew of all
// that are in others than before.
func (r *runner) settleGroups(ctx context.Context) {
	told := r.groups.settle()
	if len(told) == 0 {
		return
	}
	anew := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(told)) {
		if kind, rest := id[:2], id[2:]; kind == gangID("") {
			anew[rest] = true
		} else if known := r.pods[types.UID(rest)]; known != nil && known.told {
			known.pod = r.meetPod(known.seen)
			r.loop.Observe(admission.PodSeen{Pod: known.pod})
		}
	}
	r.convertAnew(ctx, anew)
}
