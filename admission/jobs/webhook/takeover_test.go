package webhook

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	arv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// A pod of Volcano's waits for sluice, and nothing else of it changes, known or not.
func TestTakeOver(t *testing.T) {
	for name, test := range map[string]struct{ pod, want string }{
		"of a group": {
			`{"metadata":{"name":"a","annotations":{"scheduling.k8s.io/group-name":"g"}},"spec":{"schedulerName":"volcano","notYetKnown":{"a":1},"containers":[{"name":"c"}]}}`,
			`[add /metadata/annotations/sluice.dev~1taken-from volcano add /spec/schedulingGates [map[name:kueue.x-k8s.io/topology]] replace /spec/schedulerName default-scheduler]`,
		},
		"of none": {
			`{"metadata":{"name":"a"},"spec":{"schedulerName":"volcano"}}`,
			`[add /metadata/annotations map[sluice.dev/taken-from:volcano] add /spec/schedulingGates [map[name:kueue.x-k8s.io/topology]] replace /spec/schedulerName default-scheduler]`,
		},
		"of an admitted job": {
			`{"metadata":{"name":"a","annotations":{"kueue.x-k8s.io/workload":"job-a"}},"spec":{"schedulerName":"volcano","schedulingGates":[{"name":"kueue.x-k8s.io/topology"}]}}`,
			`[replace /spec/schedulerName default-scheduler]`,
		},
		"of another scheduler": {`{"metadata":{"name":"a"},"spec":{"schedulerName":"mine"}}`, "[]"},
		"with a node":          {`{"metadata":{"name":"a"},"spec":{"schedulerName":"volcano","nodeName":"n"}}`, "[]"},
	} {
		r := takeOver(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: []byte(test.pod)}}})
		var ops []string
		for _, p := range r.Patches {
			ops = append(ops, fmt.Sprintf("%s %s %v", p.Operation, p.Path, p.Value))
		}
		for i := range ops { // they come in no order
			for j := range ops[:i] {
				if ops[i] < ops[j] {
					ops[i], ops[j] = ops[j], ops[i]
				}
			}
		}
		if got := "[" + strings.Join(ops, " ") + "]"; got != test.want || !r.Allowed {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if r := takeOver(t.Context(), admission.Request{}); r.Allowed {
		t.Error("what is no pod is let in")
	}
}

// The API server asks about such pods alone, and refuses no other while nobody answers.
func TestVolcanoHook(t *testing.T) {
	o := options()
	before := len(o.MutatingWebhooks())
	o.Volcano = true
	all := o.MutatingWebhooks()
	if len(all) != before+1 {
		t.Fatalf("%d hooks more", len(all)-before)
	}
	w := all[len(all)-1]
	if len(w.MatchConditions) != 1 || w.MatchConditions[0].Expression != `object.spec.schedulerName == "volcano"` || *w.FailurePolicy != arv1.Fail ||
		len(w.ObjectSelector.MatchExpressions) != 0 || len(w.NamespaceSelector.MatchExpressions) != 1 || fmt.Sprint(w.Rules[0].Operations) != "[CREATE]" {
		t.Errorf("%+v", w)
	}
}
