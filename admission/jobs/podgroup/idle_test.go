package podgroup

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission/kube"
)

// Room for pods that nobody makes is given back after a while. The group stays Inqueue,
// so that whoever makes them late still does, and is not laid out again without them.
func TestIdle(t *testing.T) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kube.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	pg := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "late", UID: "u"}, Spec: volcano.PodGroupSpec{
		MinMember: 1, Queue: "heavy", MinResources: &corev1.ResourceList{"cpu": resource.MustParse("1")},
	}}
	yes := true
	wl := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: holdName("late"), Annotations: map[string]string{sourceAnnotation: string(fromMinimum)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "scheduling.volcano.sh/v1beta1", Kind: "PodGroup", Name: "late", UID: "u", Controller: &yes}},
		},
		Status: kueue.WorkloadStatus{
			Admission: &kueue.Admission{ClusterQueue: "heavy"},
			Conditions: []metav1.Condition{
				{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)},
				{Type: kueue.WorkloadAdmitted, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)},
			},
		},
	}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(pg, wl).WithIndex(&corev1.Pod{}, groupIndex, func(client.Object) []string { return nil }).Build()
	clock := clocktesting.NewFakeClock(noon.Add(time.Minute))
	recorder := record.NewFakeRecorder(10)
	r := &Reconciler{client: c, live: c, recorder: recorder, clock: clock}
	look := func() (ctrl.Result, string, error) {
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "late"}})
		if err != nil {
			t.Fatal(err)
		}
		now := &volcano.PodGroup{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(pg), now); err != nil {
			t.Fatal(err)
		}
		return result, string(now.Status.Phase), c.Get(t.Context(), client.ObjectKeyFromObject(wl), &kueue.Workload{})
	}
	if result, phase, err := look(); result.RequeueAfter != idleAfter-time.Minute || phase != "Inqueue" || err != nil {
		t.Errorf("after a minute: %v %s %v", result, phase, err)
	}
	clock.Step(idleAfter)
	for range 3 {
		if _, phase, err := look(); phase != "Inqueue" || !apierrors.IsNotFound(err) {
			t.Errorf("after the time: %s %v", phase, err)
		}
	}
	if e := <-recorder.Events; !strings.Contains(e, "NoPods") {
		t.Error(e)
	}
}
