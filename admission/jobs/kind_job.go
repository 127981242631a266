package jobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	"sigs.k8s.io/kueue/pkg/podset"
	utilpod "sigs.k8s.io/kueue/pkg/util/pod"
)

// kindJob is an object of a described kind, as the job framework wants it.
type kindJob struct {
	kind   *Kind
	object *unstructured.Unstructured
	reader client.Reader // of pods
}

var _ jobframework.GenericJob = (*kindJob)(nil)

func newKindJob(k *Kind, r client.Reader) *kindJob {
	j := &kindJob{kind: k, object: &unstructured.Unstructured{}, reader: r}
	j.object.SetGroupVersionKind(k.GVK)
	return j
}

func (j *kindJob) Object() client.Object        { return j.object }
func (j *kindJob) GVK() schema.GroupVersionKind { return j.kind.GVK }
func (j *kindJob) Suspend()                     { j.setSuspend(true) }

func (j *kindJob) IsSuspended() bool {
	suspended, _, _ := unstructured.NestedBool(j.object.Object, path(j.kind.Suspend)...)
	return suspended
}

// setSuspend leaves an object that has something else in the way as it is; its pod
// sets are refused with the reason.
func (j *kindJob) setSuspend(on bool) {
	_ = unstructured.SetNestedField(j.object.Object, on, path(j.kind.Suspend)...)
}

func path(dotted string) []string { return strings.Split(dotted, ".") }

// role is one pod set of an object: its element and what is found there. The
// element is a part of the object; changing it changes the object.
type role struct {
	name    string
	where   string // for messages
	of      KindPodSet
	element map[string]any
}

// roles are the pod sets of the object, in the order of the list, or of the keys.
func (j *kindJob) roles() ([]role, error) {
	var all []role
	for _, ps := range j.kind.PodSets {
		if ps.Each == "" {
			name := ps.Name
			if name == "" {
				name = string(kueue.DefaultPodSetName)
			}
			all = append(all, role{name: name, of: ps, element: j.object.Object})
			continue
		}
		more, err := j.elements(ps)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

func (j *kindJob) elements(ps KindPodSet) ([]role, error) {
	field, found, err := unstructured.NestedFieldNoCopy(j.object.Object, path(ps.Each)...)
	if err != nil || !found {
		return nil, fmt.Errorf("%s: there is no list or mapping of roles", ps.Each)
	}
	var all []role
	add := func(where, name string, element any) error {
		m, ok := element.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is not a mapping", where)
		}
		if ps.Name != "" {
			if name, _, _ = unstructured.NestedString(m, path(ps.Name)...); name == "" {
				return fmt.Errorf("%s.%s: a role has no name", where, ps.Name)
			}
		}
		if name == "" {
			return fmt.Errorf("%s: nothing names the roles of a list", where)
		}
		all = append(all, role{name: strings.ToLower(name), where: where + ".", of: ps, element: m})
		return nil
	}
	switch f := field.(type) {
	case []any:
		for i, element := range f {
			err = errors.Join(err, add(fmt.Sprintf("%s[%d]", ps.Each, i), "", element))
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(f)) {
			err = errors.Join(err, add(ps.Each+"."+key, key, f[key]))
		}
	default:
		err = fmt.Errorf("%s is neither a list nor a mapping", ps.Each)
	}
	return all, err
}

// template is the pod template of the role.
func (r role) template() (*corev1.PodTemplateSpec, error) {
	fields, found, err := unstructured.NestedMap(r.element, path(r.of.Template)...)
	if err != nil || !found {
		return nil, fmt.Errorf("%s%s: there is no pod template", r.where, r.of.Template)
	}
	t := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, t); err != nil {
		return nil, fmt.Errorf("%s%s: %w", r.where, r.of.Template, err)
	}
	if len(t.Spec.Containers) == 0 {
		return nil, fmt.Errorf("%s%s: its pods have no containers", r.where, r.of.Template)
	}
	return t, nil
}

// number is the whole number at the dotted path, or otherwise.
func (r role) number(dotted string, otherwise int32) (int32, error) {
	if dotted == "" {
		return otherwise, nil
	}
	n, found, err := unstructured.NestedInt64(r.element, path(dotted)...)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s%s is not a whole number", r.where, dotted)
	case !found:
		return otherwise, nil
	case n < 0 || n > 1<<30:
		return 0, fmt.Errorf("%s%s: %d pods", r.where, dotted, n)
	}
	return int32(n), nil
}

func (r role) podSet() (kueue.PodSet, error) {
	t, err := r.template()
	if err != nil {
		return kueue.PodSet{}, err
	}
	count, err := r.number(r.of.Count, 1)
	if err != nil {
		return kueue.PodSet{}, err
	}
	ps := kueue.PodSet{Name: kueue.NewPodSetReference(r.name), Template: *t, Count: count}
	least, err := r.number(r.of.MinCount, count)
	if err != nil {
		return kueue.PodSet{}, err
	}
	if least != count {
		ps.MinCount = &least
	}
	ps.TopologyRequest, err = jobframework.NewPodSetTopologyRequest(&t.ObjectMeta).Build()
	return ps, err
}

func (j *kindJob) PodSets(context.Context) ([]kueue.PodSet, error) {
	roles, err := j.roles()
	if err != nil {
		return nil, jobframework.UnretryableError(err.Error())
	}
	var sets []kueue.PodSet
	for _, r := range roles {
		ps, err := r.podSet()
		if err != nil {
			return nil, jobframework.UnretryableError(err.Error())
		}
		sets = append(sets, ps)
	}
	return sets, nil
}

// RunWithPodSetsInfo starts the object with what its pods need: the gate, the
// labels, the nodes of its flavor. Of a template nothing else is touched.
func (j *kindJob) RunWithPodSetsInfo(_ context.Context, infos []podset.PodSetInfo) error {
	roles, err := j.roles()
	if err != nil {
		return err
	}
	if len(roles) != len(infos) {
		return podset.BadPodSetsInfoLenError(len(roles), len(infos))
	}
	for i, r := range roles {
		t, err := r.template()
		if err != nil {
			return err
		}
		if err := podset.Merge(&t.ObjectMeta, &t.Spec, infos[i]); err != nil {
			return err
		}
		if err := r.put(t, infos[i].Count); err != nil {
			return err
		}
	}
	j.setSuspend(false)
	return nil
}

// RestorePodSetsInfo takes back what RunWithPodSetsInfo did to the templates.
func (j *kindJob) RestorePodSetsInfo(infos []podset.PodSetInfo) bool {
	roles, err := j.roles()
	if err != nil || len(roles) != len(infos) {
		return false
	}
	changed := false
	for i, r := range roles {
		t, err := r.template()
		if err != nil {
			continue
		}
		count, err := r.number(r.of.Count, 1)
		if !podset.RestorePodSpec(&t.ObjectMeta, &t.Spec, infos[i]) && (err != nil || count == infos[i].Count) {
			continue
		}
		changed = r.put(t, infos[i].Count) == nil || changed
	}
	return changed
}

// put writes the parts of the template that the queue has a say in, and the count.
func (r role) put(t *corev1.PodTemplateSpec, count int32) error {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.PodSpec{
		NodeSelector: t.Spec.NodeSelector, Tolerations: t.Spec.Tolerations, SchedulingGates: t.Spec.SchedulingGates,
	})
	if err != nil {
		return err
	}
	texts := func(m map[string]string) any {
		out := map[string]any{}
		for k, v := range m {
			out[k] = v
		}
		return out
	}
	parts := map[string]any{"metadata.labels": texts(t.Labels), "metadata.annotations": texts(t.Annotations)}
	for _, field := range []string{"nodeSelector", "tolerations", "schedulingGates"} {
		parts["spec."+field] = spec[field]
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		to := append(path(r.of.Template), path(name)...)
		if empty(parts[name]) {
			unstructured.RemoveNestedField(r.element, to...)
		} else if err := unstructured.SetNestedField(r.element, parts[name], to...); err != nil {
			return fmt.Errorf("%s%s: %w", r.where, strings.Join(to, "."), err)
		}
	}
	// What only held what the queue put there goes with it.
	meta := append(path(r.of.Template), "metadata")
	if m, found, err := unstructured.NestedMap(r.element, meta...); err == nil && found && len(m) == 0 {
		unstructured.RemoveNestedField(r.element, meta...)
	}
	if now, err := r.number(r.of.Count, 1); r.of.Count == "" || err == nil && now == count {
		return nil
	}
	return unstructured.SetNestedField(r.element, int64(count), path(r.of.Count)...)
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// Finished says whether the object has ended, by its status.
func (j *kindJob) Finished(context.Context) (message string, success, finished bool) {
	for _, m := range j.kind.Failed {
		if text, ok := m.holds(j.object.Object); ok {
			return text, false, true
		}
	}
	for _, m := range j.kind.Succeeded {
		if text, ok := m.holds(j.object.Object); ok {
			return text, true, true
		}
	}
	return "", false, false
}

// holds says whether the object matches, and in what words.
func (m Match) holds(object map[string]any) (text string, ok bool) {
	if m.Condition != "" {
		conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")
		for _, c := range conditions {
			c, isMap := c.(map[string]any)
			if isMap && c["type"] == m.Condition && c["status"] == "True" {
				text, _ := c["message"].(string)
				if text == "" {
					text = "its condition " + m.Condition + " is True"
				}
				return text, true
			}
		}
		return "", false
	}
	value, found, err := unstructured.NestedFieldNoCopy(object, path(m.Path)...)
	if err != nil || !found {
		return "", false
	}
	said := fmt.Sprint(value)
	return fmt.Sprintf("%s is %s", m.Path, said), slices.Contains(m.Values, said)
}

// IsActive says whether pods of the object may still run.
func (j *kindJob) IsActive() bool {
	if j.kind.Active != "" {
		n, _, _ := unstructured.NestedInt64(j.object.Object, path(j.kind.Active)...)
		return n > 0
	}
	pods, err := j.pods(context.Background())
	return err != nil || slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !utilpod.IsTerminated(&p) })
}

// PodsReady says whether every pod is ready or has succeeded.
func (j *kindJob) PodsReady(ctx context.Context) bool {
	sets, err := j.PodSets(ctx)
	if err != nil {
		return false
	}
	want, ready := 0, 0
	for _, ps := range sets {
		want += int(ps.Count)
	}
	pods, err := j.pods(ctx)
	if err != nil {
		return false
	}
	for _, p := range pods {
		if p.Status.Phase == corev1.PodSucceeded || slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			ready++
		}
	}
	return ready >= want
}

// pods are those that carry the name of the object's Workload, as all do that were
// made from the templates of an admitted object.
func (j *kindJob) pods(ctx context.Context) ([]corev1.Pod, error) {
	if j.object.GetName() == "" {
		return nil, nil
	}
	name := jobframework.GetWorkloadNameForOwnerWithGVK(j.object.GetName(), j.object.GetUID(), j.kind.GVK)
	var list corev1.PodList
	if err := j.reader.List(ctx, &list, client.InNamespace(j.object.GetNamespace())); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.Annotations[kueue.WorkloadAnnotation] != name }), nil
}
