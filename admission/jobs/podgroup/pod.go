package podgroup

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/constants"
	"sigs.k8s.io/kueue/pkg/controller/constants"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

const (
	// Scheduler is what pods of Volcano's have as spec.schedulerName.
	Scheduler = "volcano"
	// TakenAnnotation is on every pod that was Volcano's at its creation and that waits
	// for sluice instead. Its value is the scheduler that it had.
	TakenAnnotation = "sluice.dev/taken-from"

	taskKey     = "volcano.sh/task-spec"
	groupPrefix = "podgroup-"
	gate        = kueue.TopologySchedulingGate
)

// TakeOver makes a new pod of Volcano's one that waits for sluice, and says whether it
// was one. A pod that is queued by a label, or that an admitted job made, has a gate or
// a Workload of its own and only gets a scheduler that is there.
func TakeOver(p *corev1.Pod) bool {
	if p.Spec.SchedulerName != Scheduler || p.Spec.NodeName != "" {
		return false
	}
	p.Spec.SchedulerName = corev1.DefaultSchedulerName
	if p.Labels[constants.QueueLabel] != "" || p.Annotations[kueue.WorkloadAnnotation] != "" {
		return true
	}
	if !gated(p) {
		p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: gate})
	}
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[TakenAnnotation] = Scheduler
	return true
}

// taken says that the pod is looked after here.
func taken(p *corev1.Pod) bool { return p.Annotations[TakenAnnotation] != "" }

func gated(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == gate })
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// runs says that the pod was let go and has not ended.
func runs(p *corev1.Pod) bool { return !gated(p) && !ended(p) }

// named is the PodGroup that the pod itself names, in either spelling, or "".
func named(p *corev1.Pod) string {
	return cmp.Or(p.Annotations[volcano.KubeGroupNameAnnotationKey], p.Annotations[volcano.VolcanoGroupNameAnnotationKey])
}

// groupOf is the PodGroup that the pod belongs to: the one that it names, or the one of
// its controller, or one of its own, called as Volcano calls them.
func groupOf(p *corev1.Pod) string {
	if name := named(p); name != "" {
		return name
	}
	if owner := metav1.GetControllerOf(p); owner != nil {
		return groupPrefix + string(owner.UID)
	}
	return groupPrefix + string(p.UID)
}

// taskOf is the task of the pod, "" if it has none.
func taskOf(p *corev1.Pod) string {
	return cmp.Or(p.Annotations[taskKey], p.Labels[taskKey])
}

var notOfNames = regexp.MustCompile(`[^a-z0-9-]+`)

// setName is the name of the pod set of a task: a DNS label.
func setName(task string) string {
	name := strings.Trim(notOfNames.ReplaceAllString(strings.ToLower(task), "-"), "-")
	if len(name) > 55 {
		name = strings.Trim(name[:55], "-")
	}
	return cmp.Or(name, string(kueue.DefaultPodSetName))
}

// shape is what a plan depends on of a pod: its requests and which nodes it may use.
// What sluice itself put there at the release is not part of it.
func shape(spec *corev1.PodSpec) string {
	s := struct {
		Requests    corev1.ResourceList
		Nodes       map[string]string
		Affinity    *corev1.Affinity
		Tolerations []corev1.Toleration
		Spread      []corev1.TopologySpreadConstraint
	}{
		resourcehelper.PodRequests(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{}),
		spec.NodeSelector, unpinned(spec.Affinity), spec.Tolerations, spec.TopologySpreadConstraints,
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// unpinned is the affinity without the one node that a release adds to it.
func unpinned(a *corev1.Affinity) *corev1.Affinity {
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return a
	}
	out := a.DeepCopy()
	required := out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	var terms []corev1.NodeSelectorTerm
	for _, t := range required.NodeSelectorTerms {
		t.MatchFields = slices.DeleteFunc(t.MatchFields, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == metav1.ObjectNameField && r.Operator == corev1.NodeSelectorOpIn
		})
		if len(t.MatchFields)+len(t.MatchExpressions) > 0 {
			terms = append(terms, t)
		}
	}
	if required.NodeSelectorTerms = terms; len(terms) == 0 {
		out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
	}
	if out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil && len(out.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		out.NodeAffinity = nil
	}
	if out.NodeAffinity == nil && out.PodAffinity == nil && out.PodAntiAffinity == nil {
		return nil
	}
	return out
}

// templateOf is the pod template of which the pod could have been made.
func templateOf(p *corev1.Pod) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{Spec: *p.Spec.DeepCopy()}
	t.Spec.NodeName, t.Spec.SchedulingGates = "", nil
	t.Spec.Affinity = unpinned(t.Spec.Affinity)
	t.Labels, t.Annotations = map[string]string{}, map[string]string{}
	for k, v := range p.Labels {
		if k != kueueconstants.PodSetLabel {
			t.Labels[k] = v
		}
	}
	for k, v := range p.Annotations {
		if k != kueue.WorkloadAnnotation && !strings.HasPrefix(k, "sluice.dev/") && k != corev1.LastAppliedConfigAnnotation {
			t.Annotations[k] = v
		}
	}
	for _, own := range []string{"sluice.dev/user", "sluice.dev/sharing"} { // what people say to sluice
		if v, ok := p.Annotations[own]; ok {
			t.Annotations[own] = v
		}
	}
	if task := taskOf(p); task != "" {
		t.Annotations[taskKey] = task
	}
	return t
}
