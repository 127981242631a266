package witness

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/constants"
	podconstants "sigs.k8s.io/kueue/pkg/controller/jobs/pod/constants"
)

// gates are those by which sluice holds a pod.
var gates = []string{kueue.TopologySchedulingGate, podconstants.SchedulingGateName}

// World is a cluster as it was at one revision.
type World struct {
	Nodes     map[string]*corev1.Node
	Queues    map[string]*kueue.ClusterQueue
	Jobs      map[types.UID]*batchv1.Job
	Workloads map[client.ObjectKey]*kueue.Workload
	Pods      map[client.ObjectKey]*Pod
}

// Pod is a pod with what the rules want to know of it.
type Pod struct {
	*corev1.Pod
	// Workload is the gang that it belongs to; an empty name is none.
	Workload client.ObjectKey
	// Gated says that sluice holds it.
	Gated bool
	// Plan is its Workload's admission at the moment of its release. It is nil
	// while the pod is gated, and if it was released out of sight.
	Plan *kueue.Admission
	// Before is the same pod one version earlier; nil for a new one.
	Before *Pod
	// InSight says that the version before is known, or that there was none.
	InSight bool
}

func newWorld() *World {
	return &World{
		Nodes: make(map[string]*corev1.Node), Queues: make(map[string]*kueue.ClusterQueue),
		Jobs: make(map[types.UID]*batchv1.Job), Workloads: make(map[client.ObjectKey]*kueue.Workload),
		Pods: make(map[client.ObjectKey]*Pod),
	}
}

// apply makes a record's change. It returns the pods that changed.
func (w *World) apply(r Record) []*Pod {
	if r.Verb == Listed {
		return w.list(r)
	}
	o := r.Objects[0]
	if r.Verb == Deleted {
		w.forget(o)
		return nil
	}
	if p := w.set(o, true); p != nil {
		return []*Pod{p}
	}
	return nil
}

// list replaces all objects of a kind.
func (w *World) list(r Record) (changed []*Pod) {
	pods := w.Pods
	switch r.Kind {
	case Nodes:
		clear(w.Nodes)
	case Queues:
		clear(w.Queues)
	case Jobs:
		clear(w.Jobs)
	case Workloads:
		clear(w.Workloads)
	case Pods:
		w.Pods = make(map[client.ObjectKey]*Pod)
	}
	for _, o := range r.Objects {
		if r.Kind == Pods {
			if before := pods[client.ObjectKeyFromObject(o)]; before != nil {
				w.Pods[client.ObjectKeyFromObject(o)] = before
			}
		}
		if p := w.set(o, false); p != nil {
			changed = append(changed, p)
		}
	}
	return changed
}

func (w *World) forget(o client.Object) {
	switch o := o.(type) {
	case *corev1.Node:
		delete(w.Nodes, o.Name)
	case *kueue.ClusterQueue:
		delete(w.Queues, o.Name)
	case *batchv1.Job:
		delete(w.Jobs, o.UID)
	case *kueue.Workload:
		delete(w.Workloads, client.ObjectKeyFromObject(o))
	case *corev1.Pod:
		delete(w.Pods, client.ObjectKeyFromObject(o))
	}
}

func (w *World) set(o client.Object, inSight bool) *Pod {
	switch o := o.(type) {
	case *corev1.Node:
		w.Nodes[o.Name] = o
	case *kueue.ClusterQueue:
		w.Queues[o.Name] = o
	case *batchv1.Job:
		w.Jobs[o.UID] = o
	case *kueue.Workload:
		w.Workloads[client.ObjectKeyFromObject(o)] = o
	case *corev1.Pod:
		return w.setPod(o, inSight)
	}
	return nil
}

func (w *World) setPod(o *corev1.Pod, inSight bool) *Pod {
	key := client.ObjectKeyFromObject(o)
	p := &Pod{Pod: o, Workload: workloadOf(o), Gated: gated(o), InSight: inSight}
	if before := w.Pods[key]; before != nil && before.UID == o.UID {
		p.Before, p.Plan = before, before.Plan
		before.Before = nil // one step back is enough
	}
	if !p.Gated && p.Plan == nil && inSight && (p.Before == nil || p.Before.Gated) {
		if workload := w.Workloads[p.Workload]; workload != nil {
			p.Plan = workload.Status.Admission
		}
	}
	w.Pods[key] = p
	return p
}

func gated(pod *corev1.Pod) bool {
	for _, g := range pod.Spec.SchedulingGates {
		for _, ours := range gates {
			if g.Name == ours {
				return true
			}
		}
	}
	return false
}

// workloadOf names the gang of a pod, as Kueue's integrations write it down.
func workloadOf(pod *corev1.Pod) client.ObjectKey {
	name := pod.Annotations[kueue.WorkloadAnnotation]
	if name == "" {
		name = pod.Labels[podconstants.GroupNameLabel]
	}
	if name == "" {
		return client.ObjectKey{}
	}
	return client.ObjectKey{Namespace: pod.Namespace, Name: name}
}

// queued reports whether somebody asked sluice for this pod: by a label of its
// own, or of the Job that made it.
func (w *World) queued(p *Pod) bool {
	if p.Labels[constants.QueueLabel] != "" {
		return true
	}
	owner := metav1.GetControllerOf(p)
	if owner == nil || owner.Kind != "Job" {
		return false
	}
	job := w.Jobs[owner.UID]
	return job != nil && job.Labels[constants.QueueLabel] != ""
}

// Ended reports whether the pod is over and holds nothing any more.
func (p *Pod) Ended() bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Node is where the pod is, or where its release sends it.
func (p *Pod) Node() string {
	if p.Spec.NodeName != "" || p.Gated {
		return p.Spec.NodeName
	}
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil || p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// Requests are what the pod takes where it runs.
func (p *Pod) Requests() corev1.ResourceList {
	return resourcehelper.PodRequests(p.Pod, resourcehelper.PodResourcesOptions{})
}

// Holding counts, for each gang, the pods that are released and not over. They
// hold what they asked for, whether they run or not.
func (w *World) Holding() map[client.ObjectKey]int {
	count := make(map[client.ObjectKey]int)
	for _, p := range w.Pods {
		if p.Workload.Name != "" && !p.Gated && !p.Ended() {
			count[p.Workload]++
		}
	}
	return count
}

// releases counts the pods of one gang.
type releases struct{ released, gated, planned int }

// half reports whether some of the gang go and others, for which there is a
// place in the plan, do not.
func (c releases) half() bool { return c.gated > 0 && c.released > 0 && c.released < c.planned }

// releases counts the pods of every gang. A pod that has failed or is being
// deleted has left its place to another; one that has succeeded has used it.
// More pods than places are the job's error: one that is made twice, say.
func (w *World) releases() map[client.ObjectKey]releases {
	counts := make(map[client.ObjectKey]releases)
	for _, p := range w.Pods {
		if p.Workload.Name == "" || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed {
			continue
		}
		c := counts[p.Workload]
		if p.Gated {
			c.gated++
		} else {
			c.released++
		}
		counts[p.Workload] = c
	}
	for gang, c := range counts {
		c.planned = c.gated + c.released
		if workload := w.Workloads[gang]; workload != nil && workload.Status.Admission != nil {
			c.planned = places(workload.Status.Admission)
		}
		counts[gang] = c
	}
	return counts
}

func admitted(w *kueue.Workload) bool {
	return w != nil && w.Status.Admission != nil && meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadAdmitted)
}
