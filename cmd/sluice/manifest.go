package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/admission/answer"
)

// queueLabel is the one label that a job needs.
const queueLabel = "kueue.x-k8s.io/queue-name"

// manifest is a job as somebody would submit it.
type manifest struct {
	namespace, name string
	queue           string // as the manifest names it
	priority        int64
	limit           int64 // seconds
	sets            []kueue.PodSet
	notes           []string
}

// readManifest reads a batch/v1 Job or a Kueue Workload.
func readManifest(file string, stdin io.Reader) (*manifest, error) {
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	var head metav1.TypeMeta
	if err := yaml.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var m *manifest
	switch {
	case head.Kind == "Job" && head.APIVersion == "batch/v1":
		var job batchv1.Job
		if err := yaml.UnmarshalStrict(text, &job); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		m = ofJob(&job)
	case head.Kind == "Workload" && strings.HasPrefix(head.APIVersion, "kueue.x-k8s.io/"):
		var wl kueue.Workload
		if err := yaml.UnmarshalStrict(text, &wl); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		m = ofWorkload(&wl)
	default:
		return nil, fmt.Errorf("%s: %s %s is no batch/v1 Job and no Kueue Workload", file, head.APIVersion, head.Kind)
	}
	if m.name == "" {
		m.name = "new"
	}
	return m, nil
}

func ofJob(job *batchv1.Job) *manifest {
	m := &manifest{namespace: job.Namespace, name: nameOf(&job.ObjectMeta), queue: job.Labels[queueLabel]}
	pods := int32(1)
	if job.Spec.Parallelism != nil {
		pods = *job.Spec.Parallelism
	}
	if c := job.Spec.Completions; c != nil {
		pods = min(pods, *c)
	}
	if s := job.Spec.ActiveDeadlineSeconds; s != nil {
		m.limit = *s
	}
	m.sets = []kueue.PodSet{{Name: "main", Count: pods, Template: job.Spec.Template}}
	if class := job.Spec.Template.Spec.PriorityClassName; class != "" {
		m.notes = append(m.notes, fmt.Sprintf("the priority of class %s is not known here; say --priority", class))
	}
	return m
}

func ofWorkload(wl *kueue.Workload) *manifest {
	m := &manifest{namespace: wl.Namespace, name: nameOf(&wl.ObjectMeta), queue: string(wl.Spec.QueueName), sets: wl.Spec.PodSets}
	if wl.Spec.Priority != nil {
		m.priority = int64(*wl.Spec.Priority)
	}
	if s := wl.Spec.MaximumExecutionTimeSeconds; s != nil {
		m.limit = int64(*s)
	}
	return m
}

func nameOf(o *metav1.ObjectMeta) string {
	if o.Name != "" {
		return o.Name
	}
	return strings.TrimRight(o.GenerateName, "-")
}

// workload is the manifest as a gang.
func (m *manifest) workload() answer.Workload {
	x := answer.Workload{Key: m.name, Queue: m.queue, Priority: m.priority}
	if m.namespace != "" {
		x.Key = m.namespace + "/" + m.name
	}
	x.Limit = answer.Seconds(m.limit)
	x.MaxRun = x.Limit
	for i := range m.sets {
		ps := &m.sets[i]
		one := answer.PodSet{Name: string(ps.Name), Count: int(ps.Count), Min: int(ps.Count)}
		if ps.MinCount != nil {
			one.Min = int(*ps.MinCount)
		}
		spec := withRequests(ps.Template.Spec)
		one.Request = answer.Amounts{"pods": 1}
		for name, q := range resourcehelper.PodRequests(&corev1.Pod{Spec: spec}, resourcehelper.PodResourcesOptions{}) {
			one.Request[string(name)] = units(name, q)
		}
		filter(&one, &spec)
		if t := ps.TopologyRequest; t != nil {
			switch {
			case t.Required != nil:
				one.Level = &answer.Level{Key: *t.Required, Required: true}
			case t.Preferred != nil:
				one.Level = &answer.Level{Key: *t.Preferred}
			}
		}
		x.PodSets = append(x.PodSets, one)
	}
	return x
}

// withRequests is the pod as the API server completes it: what only has a limit
// requests that much.
func withRequests(spec corev1.PodSpec) corev1.PodSpec {
	complete := func(list []corev1.Container) []corev1.Container {
		list = slices.Clone(list)
		for i := range list {
			r := list[i].Resources.Requests.DeepCopy()
			for name, q := range list[i].Resources.Limits {
				if _, ok := r[name]; !ok {
					if r == nil {
						r = corev1.ResourceList{}
					}
					r[name] = q
				}
			}
			list[i].Resources.Requests = r
		}
		return list
	}
	spec.Containers, spec.InitContainers = complete(spec.Containers), complete(spec.InitContainers)
	return spec
}

func units(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// filter is which nodes the pods may use.
func filter(ps *answer.PodSet, spec *corev1.PodSpec) {
	for _, key := range slices.Sorted(keysOf(spec.NodeSelector)) {
		ps.All = append(ps.All, answer.Requirement{Key: key, Op: "In", Values: []string{spec.NodeSelector[key]}})
	}
	for _, t := range spec.Tolerations {
		ps.Tolerations = append(ps.Tolerations, answer.Toleration{Key: t.Key, Exists: t.Operator == corev1.TolerationOpExists, Value: t.Value, Effect: string(t.Effect)})
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return
	}
	ps.Any = [][]answer.Requirement{}
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		var all []answer.Requirement
		for _, e := range slices.Concat(term.MatchExpressions, term.MatchFields) {
			all = append(all, answer.Requirement{Key: e.Key, Op: string(e.Operator), Values: e.Values})
		}
		ps.Any = append(ps.Any, all)
	}
}

func keysOf(m map[string]string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// amounts reads RESOURCE=QUANTITY.
func amounts(list []string) (answer.Amounts, error) {
	var out answer.Amounts
	for _, s := range list {
		name, text, ok := strings.Cut(s, "=")
		q, err := resource.ParseQuantity(text)
		if !ok || err != nil || q.Sign() < 0 {
			return nil, fmt.Errorf("is RESOURCE=QUANTITY, not %q", s)
		}
		if out == nil {
			out = answer.Amounts{}
		}
		_, plain, _ := strings.Cut(name, ":") // of a flavor
		if plain == "" {
			plain = name
		}
		out[name] = units(corev1.ResourceName(plain), q)
	}
	return out, nil
}
