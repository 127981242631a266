package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// A submitter is warned of a name that nobody offers; told to refuse, sluice does,
// but only what can never start.
func TestSubmit(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}}}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(node).Build()
	asks := func(name string, env ...corev1.EnvVar) *batchv1.Job {
		j := &batchv1.Job{}
		j.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Env: env, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
			corev1.ResourceName(name): resource.MustParse("1"),
		}}}}
		return j
	}
	for name, c := range map[string]struct {
		kind    string
		object  any
		refuse  bool
		allowed bool
		says    string
	}{
		"as offered":         {"Job", asks("nvidia.com/gpu"), true, true, ""},
		"an unknown name":    {"Job", asks("nvidia.com/mig-1g.5gb"), false, true, "no node offers nvidia.com/mig-1g.5gb"},
		"and told to refuse": {"Job", asks("nvidia.com/mig-1g.5gb"), true, false, "no node offers nvidia.com/mig-1g.5gb"},
		"a pod":              {"Pod", &corev1.Pod{Spec: asks("nvidia.com/gpu.shared").Spec.Template.Spec}, true, false, "nvidia.com/gpu.shared"},
		"another kind":       {"Node", node, true, false, "nothing is known of pods of a Node"},
		"no object":          {"Job", "not a job", false, false, "read the Job"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(c.object)
			if err != nil {
				t.Fatal(err)
			}
			r := (&submit{reader: reader, refuse: c.refuse}).Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Kind: metav1.GroupVersionKind{Kind: c.kind}, Object: runtime.RawExtension{Raw: raw},
			}})
			text := strings.Join(r.Warnings, "\n")
			if r.Result != nil {
				text += r.Result.Message
			}
			if r.Allowed != c.allowed || !strings.Contains(text, c.says) || c.says == "" && len(r.Warnings) > 0 {
				t.Errorf("allowed %t: %s", r.Allowed, text)
			}
		})
	}
}
