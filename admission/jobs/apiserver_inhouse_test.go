package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/admission/jobs"
)

// inHouse is all that the queue is told of the invented kind.
func inHouse() []jobs.Kind {
	return []jobs.Kind{{
		GVK:     schema.GroupVersionKind{Group: "studio.example.com", Version: "v1", Kind: "Render"},
		Suspend: "spec.paused",
		PodSets: []jobs.KindPodSet{
			{Name: "director", Template: "spec.director.pod"},
			{Each: "spec.crews", Template: "pod", Count: "size", MinCount: "least"},
		},
		Succeeded: []jobs.Match{{Path: "status.phase", Values: []string{"Done"}}},
		Failed:    []jobs.Match{{Condition: "Broken"}},
	}}
}

const render = `
apiVersion: studio.example.com/v1
kind: Render
metadata:
  name: film
  labels: {kueue.x-k8s.io/queue-name: main}
spec:
  scene: 7
  director:
    pod:
      spec:
        containers: [{name: director, image: director, resources: {requests: {cpu: "1"}}}]
        schedulingHint: kept # a field that no Kubernetes knows
  crews:
    light:
      size: 2
      pod:
        metadata: {labels: {crew: light}}
        spec:
          containers: [{name: light, image: light, resources: {limits: {nvidia.com/gpu: "1"}}}]
    Sound:
      size: 3
      least: 2
      pod:
        spec:
          containers: [{name: sound, image: sound, resources: {limits: {nvidia.com/gpu: "1"}}}]
`

// A kind that nobody wrote Go for, from its creation to its end. The test is the
// kind's controller: it makes pods from the templates while spec.paused is false.
func TestInHouseKind(t *testing.T) {
	w := newWorld(t)
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(render), &u.Object); err != nil {
		t.Fatal(err)
	}
	if err := shared.Install(t.Context(), "testdata/renders.yaml"); err != nil {
		t.Fatal(err)
	}
	u.SetNamespace(w.ns)
	before := u.DeepCopy()

	w.create(u)
	if paused, _, _ := unstructured.NestedBool(u.Object, "spec", "paused"); !paused {
		t.Fatal("created unpaused")
	}
	var wl *kueue.Workload
	w.eventually("a Workload", func() (err error) {
		wl, err = w.workloadOf(u)
		return err
	})
	if got := podSets(wl); got != "director=1 sound=3 light=2" {
		t.Fatalf("pod sets %s", got)
	}
	if least := wl.Spec.PodSets[1].MinCount; wl.Spec.PodSets[2].MinCount != nil || ptr.Deref(least, 0) != 2 {
		t.Errorf("minCount of sound is %v, of light %v", least, wl.Spec.PodSets[2].MinCount)
	}

	w.admit(wl)
	w.eventually("started", func() error {
		if w.jobOf(u).IsSuspended() {
			return errors.New("still paused")
		}
		return nil
	})
	pods := w.perform(u)
	if len(pods) != 6 {
		t.Fatalf("%d pods", len(pods))
	}
	for _, p := range pods {
		if p.Annotations[kueue.WorkloadAnnotation] != wl.Name || len(p.Spec.SchedulingGates) != 1 || p.Labels["kueue.x-k8s.io/podset"] == "" {
			t.Errorf("pod %s cannot be released: %v %v %v", p.Name, p.Annotations, p.Labels, p.Spec.SchedulingGates)
		}
	}

	t.Log("taken back: paused at once, its place kept until the last pod is gone")
	w.setStatus(wl, func(wl *kueue.Workload) {
		set(wl, kueue.WorkloadEvicted, kueue.WorkloadEvictedByPreemption, metav1.ConditionTrue)
	})
	w.eventually("paused", func() error {
		if !w.jobOf(u).IsSuspended() {
			return errors.New("it runs")
		}
		return nil
	})
	if err := w.Get(context.Background(), client.ObjectKeyFromObject(wl), wl); err != nil || wl.Status.Admission == nil {
		t.Fatalf("its admission went before its pods did (%v)", err)
	}
	for i := range pods {
		if err := w.Delete(context.Background(), &pods[i], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	w.touch(u) // as its controller does when it counts its pods
	w.eventually("its admission is given back", func() error {
		if err := w.Get(context.Background(), client.ObjectKeyFromObject(wl), wl); err != nil {
			return err
		}
		if wl.Status.Admission != nil {
			return errors.New("it still has it")
		}
		return nil
	})
	w.sameSpec(u, before)

	w.admit(wl)
	w.touch(u)
	w.eventually("started again", func() error {
		if w.jobOf(u).IsSuspended() {
			return errors.New("still paused")
		}
		return nil
	})
	if err := w.Status().Patch(context.Background(), u, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Done"}}`))); err != nil {
		t.Fatal(err)
	}
	w.eventually("finished", func() error {
		if err := w.Get(context.Background(), client.ObjectKeyFromObject(wl), wl); err != nil {
			return err
		}
		if !workload.IsFinished(wl) {
			return fmt.Errorf("conditions %v", wl.Status.Conditions)
		}
		return nil
	})
}

// What the description does not find is said to the one who creates the object.
func TestInHouseKindRefusals(t *testing.T) {
	w := newWorld(t)
	if err := shared.Install(t.Context(), "testdata/renders.yaml"); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*unstructured.Unstructured)
		want   string
	}{
		"no template": {func(u *unstructured.Unstructured) { delete(u.Object["spec"].(map[string]any), "director") }, "spec.director.pod: there is no pod template"},
		"no roles":    {func(u *unstructured.Unstructured) { delete(u.Object["spec"].(map[string]any), "crews") }, "spec.crews: there is no list or mapping of roles"},
		"count is text": {func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, "two", "spec", "crews", "light", "size")
		}, "spec.crews.light.size is not a whole number"},
		"negative count": {func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, int64(-1), "spec", "crews", "light", "size")
		}, "spec.crews.light.size: -1 pods"},
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(render), &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetNamespace(w.ns)
		test.change(u)
		if err := w.Create(t.Context(), u); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

// perform makes the pods of the object's templates, as they are now.
func (w *world) perform(u *unstructured.Unstructured) []corev1.Pod {
	w.Helper()
	if err := w.Get(context.Background(), client.ObjectKeyFromObject(u), u); err != nil {
		w.Fatal(err)
	}
	var pods []corev1.Pod
	make := func(role string, n int64, at ...string) {
		fields, _, err := unstructured.NestedMap(u.Object, at...)
		if err != nil {
			w.Fatal(err)
		}
		var template corev1.PodTemplateSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &template); err != nil {
			w.Fatal(err)
		}
		for i := range n {
			p := corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
			p.Namespace, p.Name = w.ns, strings.ToLower(fmt.Sprintf("%s-%s-%d", u.GetName(), role, i))
			w.create(&p)
			pods = append(pods, p)
		}
	}
	make("director", 1, "spec", "director", "pod")
	crews, _, _ := unstructured.NestedMap(u.Object, "spec", "crews")
	for role, crew := range crews {
		make(role, crew.(map[string]any)["size"].(int64), "spec", "crews", role, "pod")
	}
	return pods
}

func (w *world) touch(u *unstructured.Unstructured) {
	w.Helper()
	patch := fmt.Sprintf(`{"status":{"counted":%q}}`, w.jobOf(u).Object().GetResourceVersion())
	if err := w.Status().Patch(context.Background(), u, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil && !apierrors.IsConflict(err) {
		w.Fatal(err)
	}
}

// sameSpec says that the object asks for what it asked for at first, to the field.
func (w *world) sameSpec(u, before *unstructured.Unstructured) {
	w.Helper()
	now := w.jobOf(u).Object().(*unstructured.Unstructured).DeepCopy()
	unstructured.RemoveNestedField(now.Object, "spec", "paused")
	have, _ := yaml.Marshal(now.Object["spec"])
	want, _ := yaml.Marshal(before.Object["spec"])
	if string(have) != string(want) {
		w.Errorf("the spec is now\n%s\nand was\n%s", have, want)
	}
}
