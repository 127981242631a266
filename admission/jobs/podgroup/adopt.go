package podgroup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission/kube"
)

// AdoptingAnnotation is on the Workload of a group that runs already while its adoption
// is under way: until it is gone nothing is done about the group.
const AdoptingAnnotation = "sluice.dev/adopting"

// GroupOf is the PodGroup that a pod names, or "".
func GroupOf(p *corev1.Pod) string { return named(p) }

// QueueOf is the Volcano Queue of the group.
func QueueOf(pg *volcano.PodGroup) string { return queueOf(pg) }

// Sets is the pod set of each pod of a group that runs, and why it cannot be one
// Workload, or "". What runs is enough for its minimum, however few pods are left.
func Sets(pg *volcano.PodGroup, pods []*corev1.Pod) (sets map[types.UID]string, why string) {
	g, bad := ofPods(running(pg), pods, nil)
	if bad != nil {
		return nil, bad.message
	}
	sets = map[types.UID]string{}
	for _, p := range pods {
		if s := g.setOf(p); s != nil {
			sets[p.UID] = s.name
		}
	}
	return sets, ""
}

// running is the group with a minimum that any number of pods meets.
func running(pg *volcano.PodGroup) *volcano.PodGroup {
	c := pg.DeepCopy()
	c.Spec.MinMember, c.Spec.MinTaskMember = 0, nil
	return c
}

// Adopted is the Workload of a group whose pods run, before it names its queue: marked,
// so that nothing is done about it until that is taken off.
func Adopted(ctx context.Context, c client.Client, pg *volcano.PodGroup, pods []*corev1.Pod) (*kueue.Workload, error) {
	g, bad := ofPods(pg, pods, nil)
	if bad != nil {
		if g, bad = ofPods(running(pg), pods, nil); bad != nil {
			return nil, fmt.Errorf("PodGroup %s/%s: %s", pg.Namespace, pg.Name, bad.message)
		}
	}
	wl, _, err := (&Reconciler{client: c}).draft(ctx, pg, g, pods)
	if err != nil {
		return nil, err
	}
	delete(wl.Annotations, kube.VolcanoQueueAnnotation)
	wl.Annotations[AdoptingAnnotation] = "true"
	return wl, nil
}
