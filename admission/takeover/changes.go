package takeover

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission/jobs/notice"
	"sluice.dev/sluice/deploy"
)

// Family is whose objects are taken over.
type Family string

// The two families.
const (
	Kueue   Family = "Kueue"
	Volcano Family = "Volcano"
)

func (f Family) version() schema.GroupVersion {
	if f == Kueue {
		return kueue.SchemeGroupVersion
	}
	return volcano.SchemeGroupVersion
}

// Change is a field that objects have set and that is not as it was.
type Change struct {
	Kind, Field string
	Verdict     string   // differs or ignored
	How         string   // "" says that it has no effect
	Objects     []string // NAMESPACE/NAME or NAME, in order
}

// Changes are the fields set on the family's objects that mean something else here, or
// nothing: those of COMPATIBILITY.md in its order. A kind that is not installed has no
// objects.
func Changes(ctx context.Context, reader client.Reader, f Family) ([]Change, error) {
	objects := map[string][]unstructured.Unstructured{}
	var changes []Change
	for _, row := range deploy.Compatibility() {
		if row.Family != string(f) || row.Verdict == "works" || strings.HasPrefix(row.Field, "status.") {
			continue
		}
		if _, read := objects[row.Kind]; !read {
			list, err := all(ctx, reader, f.version().WithKind(row.Kind))
			if err != nil {
				return nil, err
			}
			objects[row.Kind] = list
		}
		c := Change{Kind: row.Kind, Field: row.Field, Verdict: row.Verdict, How: row.How}
		for i := range objects[row.Kind] {
			if u := &objects[row.Kind][i]; concerned(u.Object, row.Kind+" "+row.Field, row.Field) {
				c.Objects = append(c.Objects, strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/"))
			}
		}
		if slices.Sort(c.Objects); len(c.Objects) > 0 {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// all are the objects of a kind that may still matter.
func all(ctx context.Context, reader client.Reader, gvk schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	err := reader.List(ctx, list)
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	return slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool { return over(u.Object) }), nil
}

// over says that the object is a Workload or PodGroup of which nothing comes any more.
func over(object map[string]any) bool {
	if phase, _, _ := unstructured.NestedString(object, "status", "phase"); phase == string(volcano.PodGroupCompleted) {
		return true
	}
	conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == kueue.WorkloadFinished && m["status"] == "True"
	})
}

// parts are fields that are always set, and of which only a part is otherwise.
var parts = map[string][]string{
	"Workload spec.podSets.template": {
		"spec.podSets.template.spec.nodeName",
		"spec.podSets.template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
	},
}

// concerned says whether the object has set the field to what is otherwise here.
func concerned(object map[string]any, row, field string) bool {
	few, limited := parts[row]
	if !limited {
		return notice.Has(object, field)
	}
	return slices.ContainsFunc(few, func(part string) bool { return notice.Has(object, part) })
}

// Text is what becomes of the field, for people.
func (c Change) Text() string { return cmp.Or(c.How, "Has no effect.") }
