package kube

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// What neither family of objects has a field for is said by annotations.
const (
	// UserAnnotation names, as a label or an annotation of a Workload or of its pods,
	// the user that the gang counts for, if the configuration names no other key.
	UserAnnotation = "sluice.dev/user"
	// MinRuntimeAnnotation protects a Workload that long after its admission from
	// those who would take it back: a duration as 10m.
	MinRuntimeAnnotation = "sluice.dev/min-runtime"
	// SharingAnnotation, on pods that ask for nvidia.com/gpu, as an annotation or a
	// label, says on which cards: whole (if it is not said), shared, any.
	SharingAnnotation = "sluice.dev/sharing"
	// TurnsAnnotation, "true" on a queue, lets its users take turns.
	TurnsAnnotation = "sluice.dev/user-turns"
	// UserMaxAnnotation bounds what one user may have of a queue at a time:
	// nvidia.com/gpu=8,cpu=64. In a queue of several flavors it holds in each.
	UserMaxAnnotation = "sluice.dev/user-max"
	// PriorityAnnotation is the priority of a ClusterQueue among the others.
	PriorityAnnotation = "sluice.dev/queue-priority"
	// ReclaimableAnnotation, "false" on a ClusterQueue, says that others take nothing
	// back from it.
	ReclaimableAnnotation = "sluice.dev/reclaimable"
	// PlacementAnnotation on a ClusterQueue says which nodes its gangs take first: with
	// pack, if it is not said, the fullest that fits; with spread the emptiest.
	PlacementAnnotation = "sluice.dev/placement"
)

// userOf is the user that the Workload counts for, or "": its own word goes before
// that of its pods.
func userOf(wl *kueue.Workload, key string) string {
	if key == "" {
		key = UserAnnotation
	}
	said := []map[string]string{wl.Labels, wl.Annotations}
	for i := range wl.Spec.PodSets {
		said = append(said, wl.Spec.PodSets[i].Template.Labels, wl.Spec.PodSets[i].Template.Annotations)
	}
	for _, m := range said {
		if user := m[key]; user != "" {
			return user
		}
	}
	return ""
}

// minRuntimeOf is how long the Workload is protected. What cannot be read protects
// nobody; the text says so.
func minRuntimeOf(wl *kueue.Workload) (d time.Duration, bad string) {
	text, ok := wl.Annotations[MinRuntimeAnnotation]
	if !ok {
		return 0, ""
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Sprintf("annotation %s is %q, want a duration as 10m", MinRuntimeAnnotation, text)
	}
	return d, ""
}

// sharingOf is on which cards the pods want to run.
func sharingOf(o *metav1.ObjectMeta) (s gang.Sharing, bad string) {
	text, ok := o.Annotations[SharingAnnotation]
	if !ok {
		text, ok = o.Labels[SharingAnnotation]
	}
	switch {
	case !ok, text == "whole":
		return gang.WholeCards, ""
	case text == "shared":
		return gang.SharedCards, ""
	case text == "any":
		return gang.AnyCards, ""
	default:
		return gang.WholeCards, fmt.Sprintf("%s is %q, want whole, shared or any", SharingAnnotation, text)
	}
}

// annotated reads what annotations say of a queue. dims are the dimensions in which
// a resource of its pods is charged.
func annotated(q *queue.Queue, annotations map[string]string, dims func(corev1.ResourceName) []int) *fault {
	var err error
	if q.Turns, err = flag(annotations, TurnsAnnotation, q.Turns); err != nil {
		return faultf(reasonInvalid, "%v", err)
	}
	reclaimable, err := flag(annotations, ReclaimableAnnotation, !q.Sheltered)
	if err != nil {
		return faultf(reasonInvalid, "%v", err)
	}
	q.Sheltered = !reclaimable
	if text, ok := annotations[PriorityAnnotation]; ok {
		if q.Priority, err = strconv.ParseInt(text, 10, 32); err != nil {
			return faultf(reasonInvalid, "annotation %s is %q, want a whole number of 32 bits", PriorityAnnotation, text)
		}
	}
	switch text, ok := annotations[PlacementAnnotation]; {
	case !ok, text == "pack":
	case text == "spread":
		if len(q.Flavors) == 0 {
			q.Flavors = []queue.Flavor{{Name: DefaultFlavor}}
		}
		for k := range q.Flavors {
			q.Flavors[k].Roomy = true
		}
	default:
		return faultf(reasonInvalid, "annotation %s is %q, want pack or spread", PlacementAnnotation, text)
	}
	if q.UserMax, err = userMax(annotations[UserMaxAnnotation], dims); err != nil {
		return faultf(reasonInvalid, "annotation %s: %v", UserMaxAnnotation, err)
	}
	return nil
}

func flag(annotations map[string]string, key string, otherwise bool) (bool, error) {
	switch text, ok := annotations[key]; {
	case !ok:
		return otherwise, nil
	case text == "true", text == "false":
		return text == "true", nil
	default:
		return otherwise, fmt.Errorf("annotation %s is %q, want true or false", key, text)
	}
}

func userMax(text string, dims func(corev1.ResourceName) []int) (map[int]int64, error) {
	if text == "" {
		return nil, nil
	}
	bounds := map[int]int64{}
	for _, part := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not RESOURCE=AMOUNT", part)
		}
		q, err := resource.ParseQuantity(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is no quantity", name, value)
		}
		v, err := amount(corev1.ResourceName(name), q)
		if err != nil {
			return nil, err
		}
		for _, d := range dims(corev1.ResourceName(name)) {
			if _, twice := bounds[d]; twice {
				return nil, fmt.Errorf("%s is given twice", name)
			}
			bounds[d] = v
		}
	}
	return bounds, nil
}

// charged are the dimensions in which the flavors of a queue charge a resource.
func charged(space *quota.Space, flavors []queue.Flavor) func(corev1.ResourceName) []int {
	return func(name corev1.ResourceName) []int {
		d := space.Index(string(name))
		var dims []int
		seen := map[int]bool{}
		for _, f := range flavors {
			to, ok := f.Dims[d]
			if !ok {
				to = d
			}
			if !seen[to] {
				seen[to] = true
				dims = append(dims, to)
			}
		}
		if len(flavors) == 0 {
			dims = []int{d}
		}
		return dims
	}
}
