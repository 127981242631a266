package notice

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// ReasonFieldIgnored is the reason of the events.
const ReasonFieldIgnored = "FieldIgnored"

// Ignored are the fields of a kind that have no effect. Paths are fields with dots
// between them; those of a list's elements follow the list's name. An empty list
// means that nothing of the kind is read.
type Ignored struct {
	GVK    schema.GroupVersionKind
	Fields []string
}

var (
	kueueVersion   = schema.GroupVersion{Group: "kueue.x-k8s.io", Version: "v1beta2"}
	volcanoVersion = schema.GroupVersion{Group: "scheduling.volcano.sh", Version: "v1beta1"}
)

var podGroup = volcanoVersion.WithKind("PodGroup")

// All are the kinds with such fields. Workloads are not among them: the
// integrations make them, and set fields of which their owners know nothing.
func All() []Ignored {
	return []Ignored{
		{kueueVersion.WithKind("ClusterQueue"), []string{
			"spec.flavorFungibility.preference",
			"spec.preemption.borrowWithinCohort.policy", "spec.preemption.borrowWithinCohort.maxPriorityThreshold",
			"spec.admissionScope.admissionMode",
		}},
		{kueueVersion.WithKind("LocalQueue"), []string{"spec.fairSharing.weight"}},
		{volcanoVersion.WithKind("Queue"), []string{
			"spec.extendClusters.name", "spec.extendClusters.weight", "spec.extendClusters.capacity",
			"spec.affinity.nodeGroupAffinity.requiredDuringSchedulingIgnoredDuringExecution",
			"spec.affinity.nodeGroupAffinity.preferredDuringSchedulingIgnoredDuringExecution",
			"spec.affinity.nodeGroupAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
			"spec.affinity.nodeGroupAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution",
			"spec.type",
		}},
		{podGroup, nil},
	}
}

// Of is which of the fields the object has set to something.
func (i Ignored) Of(object map[string]any) []string {
	var found []string
	for _, field := range i.Fields {
		if Has(object, field) {
			found = append(found, field)
		}
	}
	return found
}

// Has says whether the object has set the field, a path with dots between its parts, to
// something that is not nothing.
func Has(object map[string]any, field string) bool { return has(object, strings.Split(field, ".")) }

// has says whether the value has something at the path, in any element of a list.
func has(value any, path []string) bool {
	switch v := value.(type) {
	case nil:
		return false
	case []any:
		for _, element := range v {
			if has(element, path) {
				return true
			}
		}
		return false
	case map[string]any:
		if len(path) == 0 {
			return len(v) > 0
		}
		return has(v[path[0]], path[1:])
	case string:
		return len(path) == 0 && v != "" && v != "Never" // which is the default of policies
	default:
		return len(path) == 0
	}
}

// Message is what the owner of such an object is told, or "".
func (i Ignored) Message(object map[string]any) string {
	if len(i.Fields) == 0 {
		text := fmt.Sprintf("sluice does not read a %s: it has no effect", i.GVK.Kind)
		if i.GVK == podGroup {
			text += "; integrations.volcano in the controller's configuration changes that"
		}
		return text
	}
	switch fields := i.Of(object); len(fields) {
	case 0:
		return ""
	case 1:
		return fields[0] + " has no effect in sluice"
	default:
		return strings.Join(fields, ", ") + " have no effect in sluice"
	}
}

// Setup adds to a manager that has not started one controller for each of the kinds
// that is served. With podGroups, somebody reads PodGroups and tells their owners.
func Setup(mgr ctrl.Manager, podGroups bool) error {
	for _, i := range All() {
		if podGroups && i.GVK == podGroup {
			continue
		}
		if _, err := mgr.GetRESTMapper().RESTMapping(i.GVK.GroupKind(), i.GVK.Version); apimeta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			return fmt.Errorf("look for kind %s: %w", i.GVK.Kind, err)
		}
		t := &teller{
			Ignored: i, reader: mgr.GetAPIReader(), told: map[types.UID]int64{},
			recorder: mgr.GetEventRecorderFor("sluice"), //nolint:staticcheck // SA1019: as admission/kube, so that one object's events come from one source
		}
		err := ctrl.NewControllerManagedBy(mgr).Named("notice-" + strings.ToLower(i.GVK.Group+"-"+i.GVK.Kind)).
			For(object(i.GVK)).WithEventFilter(predicate.GenerationChangedPredicate{}).Complete(t)
		if err != nil {
			return fmt.Errorf("watch %s: %w", i.GVK.Kind, err)
		}
	}
	return nil
}

func object(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// teller makes the events of one kind.
type teller struct {
	Ignored
	reader   client.Reader
	recorder record.EventRecorder

	mu   sync.Mutex
	told map[types.UID]int64 // the generation that was told
}

// Reconcile implements reconcile.Reconciler.
func (t *teller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	u := object(t.GVK)
	if err := t.reader.Get(ctx, request.NamespacedName, u); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	message := t.Message(u.Object)
	t.mu.Lock()
	defer t.mu.Unlock()
	// Where status is no subresource every write of it is a new generation.
	if last, ok := t.told[u.GetUID()]; message == "" || ok && (last == u.GetGeneration() || len(t.Fields) == 0) {
		return ctrl.Result{}, nil
	}
	t.told[u.GetUID()] = u.GetGeneration()
	t.recorder.Event(u, corev1.EventTypeWarning, ReasonFieldIgnored, message)
	return ctrl.Result{}, nil
}
