package podgroup

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission/kube"
)

// mostSets is how many pod sets a Workload may have.
const mostSets = 8

// source is where the pod sets of a Workload come from.
type source string

const (
	fromOwner   source = "owner"   // the tasks of the Volcano Job
	fromPods    source = "pods"    // pods that exist
	fromMinimum source = "minimum" // minResources; there are no pods yet
)

// set is a pod set: the pods of one task, or as many of them as are alike.
type set struct {
	name        string
	task        string
	least, most int
	template    corev1.PodTemplateSpec
}

// gang is what a PodGroup asks for.
type gang struct {
	source source
	sets   []set
	total  int // the fewest pods over all sets
}

func (g *gang) sizes() string {
	var sizes []kube.SetSize
	for _, s := range g.sets {
		sizes = append(sizes, kube.SetSize{Name: s.name, Least: s.least, Most: s.most})
	}
	return kube.FormatGang(sizes, g.total)
}

// podSets are the sets as a Workload has them. A minimum of 0, which Kueue does not
// know, is 1 there; GangAnnotation has the true one.
func (g *gang) podSets() []kueue.PodSet {
	var list []kueue.PodSet
	for _, s := range g.sets {
		ps := kueue.PodSet{Name: kueue.PodSetReference(s.name), Count: int32(s.most), Template: s.template}
		if s.least < s.most {
			ps.MinCount = ptr.To(int32(max(1, s.least)))
		}
		list = append(list, ps)
	}
	return list
}

// refusal is why no Workload can be made as things are: a reason of Volcano's
// conditions, or of an event, and a sentence.
type refusal struct{ reason, message string }

func refuse(reason, format string, args ...any) *refusal {
	return &refusal{reason, fmt.Sprintf(format, args...)}
}

// ReasonUnsupported is the reason of an event about what cannot be carried out.
const ReasonUnsupported = "Unsupported"

// ofPods is the gang of the pods that exist. Pods of one task that are unlike are sets
// of their own: the plan of one would not hold for the other.
func ofPods(pg *volcano.PodGroup, pods []*corev1.Pod, done map[string]int) (*gang, *refusal) {
	sorted := slices.Clone(pods)
	slices.SortFunc(sorted, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	g := &gang{source: fromPods}
	known, used := map[string]int{}, map[string]bool{}
	for _, p := range sorted {
		task := taskOf(p)
		key := task + " " + shape(&p.Spec)
		i, ok := known[key]
		if !ok {
			i = len(g.sets)
			known[key] = i
			name := setName(task)
			for n := 2; used[name]; n++ {
				name = setName(task) + "-" + strconv.Itoa(n)
			}
			used[name] = true
			g.sets = append(g.sets, set{name: name, task: task, template: templateOf(p)})
		}
		g.sets[i].most++
	}
	if len(g.sets) > mostSets {
		return nil, refuse(ReasonUnsupported, "its %d pods are of %d unlike kinds, and a Workload has at most %d pod sets: give pods of one task the same requests and node constraints", len(pods), len(g.sets), mostSets)
	}
	return g, g.atLeast(pg, done)
}

// atLeast works in the minimums. The pods that exist must be enough for them; those
// that have succeeded, by task, are.
func (g *gang) atLeast(pg *volcano.PodGroup, done map[string]int) *refusal {
	have, sum, minimum := 0, 0, int(pg.Spec.MinMember)
	for i := range g.sets {
		have += g.sets[i].most
	}
	for _, n := range done {
		minimum -= n
	}
	if have < minimum {
		return refuse(volcano.NotEnoughPodsReason, "%d/%d tasks in gang: pod group is not ready, %d minAvailable", have, minimum, pg.Spec.MinMember)
	}
	for _, task := range sortedKeys(pg.Spec.MinTaskMember) {
		left := max(0, int(pg.Spec.MinTaskMember[task])-done[task])
		sum += left
		for i := range g.sets {
			if s := &g.sets[i]; s.task == task {
				s.least = min(s.most, left)
				left -= s.least
			}
		}
		if left > 0 {
			return refuse(volcano.NotEnoughPodsOfTaskReason, "task %s misses %d of its %d pods", task, left, pg.Spec.MinTaskMember[task])
		}
	}
	g.total = max(1, sum, minimum)
	if len(g.sets) == 1 {
		g.sets[0].least = g.total
	}
	return nil
}

func sortedKeys(m map[string]int32) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// ofOwner is the gang of the tasks of a Volcano Job, whether its pods exist or not.
func ofOwner(pg *volcano.PodGroup, job *unstructured.Unstructured, done map[string]int) (*gang, *refusal) {
	tasks, _, err := unstructured.NestedSlice(job.Object, "spec", "tasks")
	if err != nil || len(tasks) == 0 {
		return nil, refuse(ReasonUnsupported, "its Job %s has no list of tasks", job.GetName())
	}
	g := &gang{source: fromOwner}
	for i, t := range tasks {
		task, ok := t.(map[string]any)
		if !ok {
			return nil, refuse(ReasonUnsupported, "task %d of its Job %s is no mapping", i, job.GetName())
		}
		name, _, _ := unstructured.NestedString(task, "name")
		name = cmp.Or(name, "default"+strconv.Itoa(i))
		replicas, found, _ := unstructured.NestedInt64(task, "replicas")
		if !found {
			replicas = 1
		}
		if replicas -= int64(done[name]); replicas <= 0 {
			continue
		}
		template := corev1.PodTemplateSpec{}
		fields, _, _ := unstructured.NestedMap(task, "template")
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &template); err != nil || len(template.Spec.Containers) == 0 {
			return nil, refuse(ReasonUnsupported, "task %s of its Job %s has no pod template that can be read", name, job.GetName())
		}
		if template.Annotations == nil {
			template.Annotations = map[string]string{}
		}
		template.Annotations[taskKey] = name
		g.sets = append(g.sets, set{name: setName(name), task: name, most: int(replicas), template: template})
	}
	if len(g.sets) > mostSets {
		return nil, refuse(ReasonUnsupported, "its Job has %d tasks, and a Workload has at most %d pod sets", len(g.sets), mostSets)
	}
	return g, g.atLeast(pg, done)
}

// ofMinimum is the gang of a group that has no pods yet, from what it says of its
// minimum in all. One that says nothing asks for nothing.
func ofMinimum(pg *volcano.PodGroup) *gang {
	if pg.Spec.MinResources == nil {
		return nil
	}
	n := max(1, int(pg.Spec.MinMember))
	requests := corev1.ResourceList{}
	for name, q := range *pg.Spec.MinResources {
		part, ok := strings.CutPrefix(string(name), "requests.")
		if !ok && (strings.HasPrefix(part, "limits.") || strings.HasPrefix(part, "count/") || part == string(corev1.ResourcePods)) {
			continue // as a ResourceQuota would count it; the pod itself counts anyway
		}
		per := resource.NewQuantity((q.Value()+int64(n)-1)/int64(n), q.Format)
		if part == string(corev1.ResourceCPU) {
			per = resource.NewMilliQuantity((q.MilliValue()+int64(n)-1)/int64(n), q.Format)
		}
		requests[corev1.ResourceName(part)] = *per
	}
	limits := corev1.ResourceList{}
	for name, q := range requests {
		if strings.Contains(string(name), "/") { // extended resources have equal limits
			limits[name] = q
		}
	}
	spec := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
		Name: "minimum", Image: "unknown", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
	}}}
	s := set{name: string(kueue.DefaultPodSetName), least: n, most: n, template: corev1.PodTemplateSpec{Spec: spec}}
	return &gang{source: fromMinimum, sets: []set{s}, total: n}
}

// ofWorkload is the gang as the Workload has it, with the sizes of its pod sets.
func ofWorkload(wl *kueue.Workload) *gang {
	g := &gang{source: source(wl.Annotations[sourceAnnotation])}
	for i := range wl.Spec.PodSets {
		ps := &wl.Spec.PodSets[i]
		g.sets = append(g.sets, set{name: string(ps.Name), task: ps.Template.Annotations[taskKey], most: int(ps.Count), template: ps.Template})
	}
	return g
}

// setOf is the set that the pod belongs to, or nil. Tasks of an owner are known by
// name; others must be alike as well.
func (g *gang) setOf(p *corev1.Pod) *set {
	if g.source == fromMinimum {
		return nil
	}
	for i := range g.sets {
		s := &g.sets[i]
		if s.task == taskOf(p) && (g.source == fromOwner || shape(&s.template.Spec) == shape(&p.Spec)) {
			return s
		}
	}
	return nil
}
