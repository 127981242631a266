package kube_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	utiltas "sigs.k8s.io/kueue/pkg/util/tas"
	"sigs.k8s.io/kueue/pkg/workload"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

func itemsOf(list client.ObjectList) ([]client.Object, error) {
	raw, err := apimeta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	var out []client.Object
	for _, o := range raw {
		out = append(out, o.(client.Object))
	}
	return out, nil
}

func resources(list map[corev1.ResourceName]string) corev1.ResourceList {
	r := corev1.ResourceList{}
	for name, q := range list {
		r[name] = resource.MustParse(q)
	}
	return r
}

// node is a node that is ready. Its host is not its name.
func node(name string, gpus int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: "host-of-" + name}},
		Status: corev1.NodeStatus{
			Allocatable: resources(map[corev1.ResourceName]string{"cpu": "64", "memory": "256Gi", "pods": "110", gpu: fmt.Sprint(gpus)}),
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func flavor(name string) *kueue.ResourceFlavor {
	return &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// clusterQueue owns gpus of the flavor "gpu" and takes workloads of every namespace.
func clusterQueue(name string, gpus int, change ...func(*kueue.ClusterQueue)) *kueue.ClusterQueue {
	cq := &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{gpu},
				Flavors: []kueue.FlavorQuotas{{Name: "gpu", Resources: []kueue.ResourceQuota{{
					Name: gpu, NominalQuota: resource.MustParse(fmt.Sprint(gpus)),
				}}}},
			}},
		},
	}
	for _, f := range change {
		f(cq)
	}
	return cq
}

// queues makes a flavor, a ClusterQueue and a LocalQueue "main" that leads there.
func (w *world) queues(gpus int, change ...func(*kueue.ClusterQueue)) {
	w.t.Helper()
	w.create(flavor("gpu"), clusterQueue(w.ns, gpus, change...), w.localQueue("main", w.ns))
}

func (w *world) localQueue(name, to string) *kueue.LocalQueue {
	return &kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(to)},
	}
}

// workload is a gang of n pods with so many GPUs each.
func (w *world) workload(name string, n, gpus int, change ...func(*kueue.Workload)) *kueue.Workload {
	wl := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name},
		Spec: kueue.WorkloadSpec{QueueName: "main", PodSets: []kueue.PodSet{{
			Name: "main", Count: int32(n), Template: corev1.PodTemplateSpec{Spec: podSpec(gpus)},
		}}},
	}
	for _, f := range change {
		f(wl)
	}
	return wl
}

func podSpec(gpus int) corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "main", Image: "busybox",
			Resources: corev1.ResourceRequirements{Limits: resources(map[corev1.ResourceName]string{gpu: fmt.Sprint(gpus)})},
		}},
	}
}

// gatedPod is pod i of the workload as its job would make it once it is admitted.
func (w *world) gatedPod(wl *kueue.Workload, i int) *corev1.Pod {
	set := wl.Spec.PodSets[0]
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: wl.Namespace, Name: fmt.Sprintf("%s-%d", wl.Name, i),
			Annotations: map[string]string{kueue.WorkloadAnnotation: wl.Name},
			Labels:      map[string]string{"kueue.x-k8s.io/podset": string(set.Name), "kueue.x-k8s.io/cluster-queue-name": wl.Namespace},
		},
		Spec: *set.Template.Spec.DeepCopy(),
	}
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: kueue.TopologySchedulingGate}}
	p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](600) // without a kubelet it stays until it is deleted with 0
	return p
}

// pods creates n gated pods of the workload.
func (w *world) pods(wl *kueue.Workload, n int) []*corev1.Pod {
	w.t.Helper()
	var list []*corev1.Pod
	for i := range n {
		p := w.gatedPod(wl, i)
		w.create(p)
		list = append(list, p)
	}
	return list
}

// admitted waits for the workload's admission and returns it as it then is.
func (w *world) admitted(wl *kueue.Workload) *kueue.Workload {
	w.t.Helper()
	w.eventually("admission of "+wl.Name, func() string {
		if wl = get(w, wl); workload.IsAdmitted(wl) && wl.Status.Admission != nil {
			return ""
		}
		return "not admitted: " + why(wl)
	})
	return wl
}

// waits waits until the workload waits for the given reason, and returns the text.
func (w *world) waits(wl *kueue.Workload, code string) string {
	w.t.Helper()
	text := ""
	w.eventually(fmt.Sprintf("%s waits for %s", wl.Name, code), func() string {
		wl = get(w, wl)
		c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
		if c != nil && c.Status == metav1.ConditionFalse && c.Reason == code {
			text = c.Message
			return ""
		}
		return why(wl)
	})
	return text
}

// why is the conditions of a workload in a line.
func why(wl *kueue.Workload) string {
	var parts []string
	for _, c := range wl.Status.Conditions {
		parts = append(parts, fmt.Sprintf("%s=%s %s %q", c.Type, c.Status, c.Reason, c.Message))
	}
	if len(parts) == 0 {
		return "no conditions"
	}
	return strings.Join(parts, "; ")
}

// plan is how many pods of the first pod set the admission puts on each host.
func plan(wl *kueue.Workload) map[string]int {
	m := map[string]int{}
	for d := range utiltas.InternalSeqFrom(wl.Status.Admission.PodSetAssignments[0].TopologyAssignment) {
		m[d.Values[0]] += int(d.Count)
	}
	return m
}

// released waits until the pod's gate is gone and returns the node it may go to.
func (w *world) released(p *corev1.Pod) string {
	w.t.Helper()
	w.eventually("release of "+p.Name, func() string {
		if p = get(w, p); slices.ContainsFunc(p.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == kueue.TopologySchedulingGate }) {
			return "gated"
		}
		return ""
	})
	return p.Annotations["sluice.dev/node"]
}

// bind does what the scheduler does, and waits until the API server's own cache has
// it: a deletion begins from there, and a pod that is not bound is removed at once,
// whatever its grace.
func (w *world) bind(p *corev1.Pod, node string) {
	w.t.Helper()
	err := w.SubResource("binding").Create(context.Background(), p, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.eventually("binding of "+p.Name, func() string {
		cached := &corev1.Pod{}
		if err := w.Get(context.Background(), client.ObjectKeyFromObject(p), cached, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}}); err != nil {
			return err.Error()
		}
		if cached.Spec.NodeName != node {
			return "not in the cache of the API server yet"
		}
		return ""
	})
}

// phase does what a kubelet does.
func (w *world) phase(p *corev1.Pod, phase corev1.PodPhase) {
	w.t.Helper()
	old := get(w, p).DeepCopy()
	p.Status.Phase = phase
	if err := w.Status().Patch(context.Background(), p, client.MergeFrom(old)); err != nil {
		w.t.Fatal(err)
	}
}

// gone deletes the pod for good, as a kubelet does when it has stopped.
func (w *world) gone(p *corev1.Pod) {
	w.t.Helper()
	if err := client.IgnoreNotFound(w.Delete(context.Background(), p, client.GracePeriodSeconds(0))); err != nil {
		w.t.Fatal(err)
	}
}

// change updates an object until it succeeds.
func change[T client.Object](w *world, o T, f func(T)) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("change of %s", o.GetName()), func() string {
		o = get(w, o)
		f(o)
		if err := w.Update(context.Background(), o); err != nil {
			return err.Error()
		}
		return ""
	})
}

// events are the texts of the events about an object of that name.
func (w *world) events(name string) string {
	w.t.Helper()
	list := &corev1.EventList{}
	if err := w.List(context.Background(), list); err != nil {
		w.t.Fatal(err)
	}
	var texts []string
	for _, e := range list.Items {
		if e.InvolvedObject.Name == name {
			texts = append(texts, e.Type+" "+e.Reason+": "+e.Message)
		}
	}
	return strings.Join(texts, "\n")
}

func named(ns, name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }

// volcanoQueue may use so many GPUs.
func volcanoQueue(name, gpus string) *volcano.Queue {
	return &volcano.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       volcano.QueueSpec{Weight: 1, Capability: resources(map[corev1.ResourceName]string{gpu: gpus})},
	}
}

func resourceText(x any) string { return fmt.Sprintf("%+v", x) }
