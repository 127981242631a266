package deploy

import (
	"reflect"
	"strings"
	"testing"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission/jobs/notice"
)

// fields are the paths of a type's fields down to what is of other modules: a pod
// template is one field, as is a list of conditions of Kubernetes' own type.
func fields(of reflect.Type, path string) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	ours := strings.HasPrefix(of.PkgPath(), "sigs.k8s.io/kueue") || strings.HasPrefix(of.PkgPath(), "volcano.sh/apis")
	if of.Kind() != reflect.Struct || !ours {
		return []string{path}
	}
	var all []string
	for i := range of.NumField() {
		f := of.Field(i)
		if f.Name == "TypeMeta" || f.Name == "ObjectMeta" {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		below := strings.Trim(path+"."+name, ".")
		all = append(all, fields(f.Type, below)...)
	}
	return all
}

// Every field of the ten kinds has one row in the table, and no other thing has.
func TestCompatibilityTableIsWhole(t *testing.T) {
	rows := map[string]bool{} // heading + field
	said := map[string]bool{} // those of a kind's spec that are ignored
	for _, r := range Compatibility() {
		key := r.Family + " " + r.Kind + " " + r.Field
		if rows[key] {
			t.Errorf("COMPATIBILITY.md:%d: %s is there twice", r.Line, key)
		}
		rows[key] = true
		switch r.Verdict {
		case "works":
		case "ignored":
			if strings.HasPrefix(r.Field, "spec.") {
				said[r.Kind+" "+r.Field] = true
			}
		case "differs":
			if r.How == "" {
				t.Errorf("COMPATIBILITY.md:%d: %s differs, but how?", r.Line, key)
			}
		default:
			t.Errorf("COMPATIBILITY.md:%d: %s: %q is no verdict", r.Line, key, r.Verdict)
		}
	}
	for _, i := range notice.All() {
		for _, field := range i.Fields {
			if !said[i.GVK.Kind+" "+field] {
				t.Errorf("an event says that %s of a %s is ignored, and COMPATIBILITY.md does not", field, i.GVK.Kind)
			}
			delete(said, i.GVK.Kind+" "+field)
		}
	}
	for field := range said {
		if kind, _, _ := strings.Cut(field, " "); kind != "Workload" && kind != "PodGroup" && kind != "AdmissionCheck" {
			t.Errorf("COMPATIBILITY.md says that %s is ignored, and no event does", field)
		}
	}
	for heading, object := range map[string]any{
		"Kueue ClusterQueue": kueue.ClusterQueue{}, "Kueue LocalQueue": kueue.LocalQueue{}, "Kueue Cohort": kueue.Cohort{},
		"Kueue ResourceFlavor": kueue.ResourceFlavor{}, "Kueue Topology": kueue.Topology{}, "Kueue WorkloadPriorityClass": kueue.WorkloadPriorityClass{},
		"Kueue AdmissionCheck": kueue.AdmissionCheck{}, "Kueue Workload": kueue.Workload{},
		"Volcano Queue": volcano.Queue{}, "Volcano PodGroup": volcano.PodGroup{},
	} {
		for _, field := range fields(reflect.TypeOf(object), "") {
			if !rows[heading+" "+field] {
				t.Errorf("%s has a field %s, and COMPATIBILITY.md no row for it", heading, field)
			}
			delete(rows, heading+" "+field)
		}
	}
	for row := range rows {
		t.Errorf("COMPATIBILITY.md has a row for %s, and there is no such field", row)
	}
}
