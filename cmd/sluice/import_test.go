package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission/kube"
	"sluice.dev/sluice/admission/takeover"
)

// importFrom runs `sluice import` against objects. What it does to running workloads is
// for the tests of admission/takeover, on an API server.
func importFrom(t *testing.T, f takeover.Family, dryRun bool, objects ...client.Object) (stdout, stderr string, err error) {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kube.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
	im := &importer{dryRun: dryRun, client: c, now: time.Now}
	var out, notes bytes.Buffer
	err = im.run(t.Context(), f, &out, &notes)
	return out.String(), notes.String(), err
}

func clusterQueue(name string) *kueue.ClusterQueue {
	return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ClusterQueueSpec{
		CohortName: "all",
		Preemption: &kueue.ClusterQueuePreemption{BorrowWithinCohort: &kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicyLowerPriority}},
	}}
}

func TestImportSaysWhatChanges(t *testing.T) {
	onNode := func(name, node string) *kueue.Workload {
		wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name}, Spec: kueue.WorkloadSpec{PodSets: []kueue.PodSet{{Name: "main", Count: 1}}}}
		wl.Spec.PodSets[0].Template.Spec.NodeName = node
		return wl
	}
	ended := onNode("ended", "n")
	ended.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue}}
	out, notes, err := importFrom(t, takeover.Kueue, true,
		clusterQueue("a"), clusterQueue("b"), clusterQueue("c"), clusterQueue("d"),
		onNode("hard", "n"), onNode("soft", ""), ended)
	want := `KIND          FIELD                                      OBJECTS           IN SLUICE
ClusterQueue  spec.preemption.borrowWithinCohort.policy  a,b,c and 1 more  ignored: Has no effect.
Workload      spec.podSets.template                      ml/hard           differs: `
	if !errors.Is(err, exitError(exitInvalid)) || !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 3 {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
	if notes != "Nothing runs that would have to be taken over.\n" {
		t.Errorf("notes %q", notes)
	}
	out, notes, err = importFrom(t, takeover.Kueue, true)
	if err != nil || out != "" || !strings.Contains(notes, "No field that is set means anything else") {
		t.Errorf("of an empty cluster: %v %q %q", err, out, notes)
	}
}

func TestImportVolcano(t *testing.T) {
	group := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "gang"}, Spec: volcano.PodGroupSpec{
		MinMember: 1, SubGroupPolicy: []volcano.SubGroupPolicySpec{{Name: "pairs"}},
	}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p", Annotations: map[string]string{"scheduling.volcano.sh/group-name": "gang"}},
		Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "main"}}},
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelHostname: "n"}}}
	out, _, err := importFrom(t, takeover.Volcano, true, group, pod, node)
	if !errors.Is(err, exitError(exitInvalid)) || !strings.Contains(out, "PodGroup  spec.subGroupPolicy.name  ml/gang") || !strings.Contains(out, "PodGroup  ml/gang  1     n      to adopt\n") {
		t.Errorf("%v\n%s", err, out)
	}
	// What cannot be told where it is is left, and said.
	node.Labels = nil
	out, notes, err := importFrom(t, takeover.Volcano, false, group, pod, node)
	if !errors.Is(err, exitError(exitInvalid)) || !strings.Contains(out, "left as it is") || !strings.Contains(notes, "node n of its pod p has no label kubernetes.io/hostname") {
		t.Errorf("%v\n%s%s", err, out, notes)
	}
}

// Nothing is changed beside a scheduler that runs.
func TestImportBesideTheOther(t *testing.T) {
	other := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kueue-system", Name: "kueue-controller-manager"},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "manager", Image: "example.com/kueue:v0.17.0"}},
		}}},
		Status: appsv1.DeploymentStatus{ReadyReplicas: 1},
	}
	if _, _, err := importFrom(t, takeover.Kueue, false, other); err == nil || !strings.Contains(err.Error(), "Kueue's scheduler runs (Deployment kueue-system/kueue-controller-manager): stop it first") {
		t.Errorf("it goes on: %v", err)
	}
	if _, notes, err := importFrom(t, takeover.Kueue, true, other); err != nil || !strings.Contains(notes, "stop it before you import") {
		t.Errorf("to look is refused: %v %q", err, notes)
	}
	if _, _, err := importFrom(t, takeover.Volcano, false, other); err != nil {
		t.Errorf("it is in nobody's way: %v", err)
	}
}

func TestImportExitCodes(t *testing.T) {
	var out, notes bytes.Buffer
	if code := execute([]string{"import", "kueue", "--kubeconfig", "/nowhere/at/all"}, &out, &notes); code != exitFailed || out.Len() > 0 || notes.Len() == 0 {
		t.Errorf("exit code %d, %q, %q", code, out.String(), notes.String())
	}
	if code := execute([]string{"import", "kueue", "--wet-run"}, &out, &notes); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
}
