package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	leaderworkerset "sigs.k8s.io/lws/api/leaderworkerset/v1"
)

var queued = map[string]string{"kueue.x-k8s.io/queue-name": "main"}

func template(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}, AutomountServiceAccountToken: ptr.To(false)},
	}
}

// podOf is a pod as the owner's controller makes it.
func (w *world) podOf(t corev1.PodTemplateSpec, name string, owner client.Object, gvk schema.GroupVersionKind, labels map[string]string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	p.Namespace, p.Name = w.ns, name
	for k, v := range labels {
		metav1.SetMetaDataLabel(&p.ObjectMeta, k, v)
	}
	if owner != nil {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, gvk)}
	}
	return p
}

func (w *world) gatedAtCreation(p *corev1.Pod) {
	w.Helper()
	w.create(p)
	if len(p.Spec.SchedulingGates) == 0 {
		w.Errorf("pod %s was created without a gate", p.Name)
	}
}

// workloadWith waits for a Workload with so many pods in all.
func (w *world) workloadWith(pods int32) *kueue.Workload {
	w.Helper()
	var found *kueue.Workload
	w.eventually(fmt.Sprintf("a Workload of %d pods", pods), func() error {
		var list kueue.WorkloadList
		if err := w.List(context.Background(), &list, client.InNamespace(w.ns)); err != nil {
			return err
		}
		for i := range list.Items {
			n := int32(0)
			for _, ps := range list.Items[i].Spec.PodSets {
				n += ps.Count
			}
			if n == pods && list.Items[i].Spec.QueueName == "main" {
				found = &list.Items[i]
				return nil
			}
		}
		return fmt.Errorf("none of %d has", len(list.Items))
	})
	return found
}

func TestDeployment(t *testing.T) {
	w := newWorld(t)
	app := map[string]string{"app": "web"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web", Labels: queued},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: app}, Template: template(app)},
	}
	w.create(d)
	w.gatedAtCreation(w.podOf(d.Spec.Template, "web-1", nil, schema.GroupVersionKind{}, nil))
	w.workloadWith(1)

	free := d.DeepCopy()
	free.Name, free.Labels, free.ResourceVersion, free.Spec.Template = "free", nil, "", template(app)
	w.create(free)
	if len(free.Spec.Template.Annotations) != 0 {
		t.Errorf("a Deployment that is not queued was given %v", free.Spec.Template.Annotations)
	}
}

// The pods of a StatefulSet carry no queue label when they are made.
func TestStatefulSet(t *testing.T) {
	w := newWorld(t)
	app := map[string]string{"app": "db"}
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "db", Labels: queued},
		Spec:       appsv1.StatefulSetSpec{Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: app}, Template: template(app), ServiceName: "db"},
	}
	w.create(s)
	gvk := appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	for i := range 2 {
		name := fmt.Sprintf("db-%d", i)
		w.gatedAtCreation(w.podOf(s.Spec.Template, name, s, gvk, map[string]string{"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": fmt.Sprint(i)}))
	}
	w.workloadWith(2)

	plain := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "plain-0", Labels: map[string]string{"statefulset.kubernetes.io/pod-name": "plain-0"}}, Spec: template(nil).Spec}
	w.create(plain)
	if len(plain.Spec.SchedulingGates) != 0 || len(plain.Finalizers) != 0 {
		t.Errorf("a StatefulSet's pod that is not queued was touched: %v %v", plain.Spec.SchedulingGates, plain.Finalizers)
	}
}

func TestLeaderWorkerSet(t *testing.T) {
	w := newWorld(t)
	installKinds(t)
	l := &leaderworkerset.LeaderWorkerSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "llm", Labels: queued},
		Spec: leaderworkerset.LeaderWorkerSetSpec{
			Replicas: ptr.To[int32](1), StartupPolicy: leaderworkerset.LeaderCreatedStartupPolicy,
			RolloutStrategy:      leaderworkerset.RolloutStrategy{Type: leaderworkerset.RollingUpdateStrategyType},
			LeaderWorkerTemplate: leaderworkerset.LeaderWorkerTemplate{Size: ptr.To[int32](3), WorkerTemplate: template(nil)},
		},
	}
	w.create(l)
	w.workloadWith(3)
	t.Log("its pods are made by StatefulSets that its controller makes from its template")
	p := w.podOf(l.Spec.LeaderWorkerTemplate.WorkerTemplate, "llm-0-1", nil, schema.GroupVersionKind{}, map[string]string{
		leaderworkerset.SetNameLabelKey: "llm", leaderworkerset.GroupIndexLabelKey: "0", leaderworkerset.WorkerIndexLabelKey: "1",
	})
	w.gatedAtCreation(p)
}

// Bare pods that say that they belong together are one Workload.
func TestPodGroup(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		p := w.podOf(template(queued), fmt.Sprintf("member-%d", i), nil, schema.GroupVersionKind{}, map[string]string{"kueue.x-k8s.io/pod-group-name": "trio"})
		p.Annotations = map[string]string{"kueue.x-k8s.io/pod-group-total-count": "3"}
		w.gatedAtCreation(p)
	}
	wl := w.workloadWith(3)
	if wl.Name != "trio" {
		t.Errorf("it is called %s", wl.Name)
	}
	single := w.podOf(template(queued), "single", nil, schema.GroupVersionKind{}, nil)
	w.gatedAtCreation(single)
	w.eventually("a Workload of the single pod", func() error {
		own, err := w.workloadOf(single)
		if err == nil && podSets(own) != "main=1" {
			return errors.New(podSets(own))
		}
		return err
	})
}
