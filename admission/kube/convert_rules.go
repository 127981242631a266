package kube

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/gang"
)

// gangID and podID are how groups know workloads, and pods that belong to none.
func gangID(key string) string { return "w/" + key }

func podID(uid string) string { return "p/" + uid }

// nodeKey is the core's name of a topology key. Hosts are nodes: one that shares its
// name with another takes no pods.
func nodeKey(key string) string {
	if key == hostname {
		return gang.NameField
	}
	return key
}

// ownLabels are labels that job controllers put on pods they make, by the kind of job;
// templates are without them.
var ownLabels = map[string][]string{
	"Job":        {"batch.kubernetes.io/job-name", "job-name"},
	"JobSet":     {"jobset.sigs.k8s.io/jobset-name"},
	"PyTorchJob": {"training.kubeflow.org/job-name"},
	"TFJob":      {"training.kubeflow.org/job-name"},
	"XGBoostJob": {"training.kubeflow.org/job-name"},
	"PaddleJob":  {"training.kubeflow.org/job-name"},
	"JAXJob":     {"training.kubeflow.org/job-name"},
	"MPIJob":     {"training.kubeflow.org/job-name"},
}

// podLabels are the labels of the set's pods, as far as they are known before these are.
func podLabels(wl *kueue.Workload, ps *kueue.PodSet) labels.Set {
	set := labels.Set(ps.Template.Labels)
	for _, o := range wl.OwnerReferences {
		for _, key := range ownLabels[o.Kind] {
			if _, said := set[key]; !said && o.Controller != nil && *o.Controller {
				set = labels.Merge(set, labels.Set{key: o.Name})
			}
		}
	}
	return set
}

// affinity is the pods that a term chooses for pods with such labels.
func affinity(t *corev1.PodAffinityTerm, namespace string, own labels.Set) (chosen, error) {
	pods, err := narrowed(t.LabelSelector, own, t.MatchLabelKeys, t.MismatchLabelKeys)
	if err != nil {
		return chosen{}, err
	}
	spaces := slices.Clone(t.Namespaces)
	var among labels.Selector
	if t.NamespaceSelector != nil {
		if among, err = metav1.LabelSelectorAsSelector(t.NamespaceSelector); err != nil {
			return chosen{}, err
		}
	} else if len(spaces) == 0 {
		spaces = []string{namespace}
	}
	return newChosen(spaces, among, pods), nil
}

// narrowed is the selector with the pods' own values of some label keys in it.
func narrowed(s *metav1.LabelSelector, own labels.Set, same, other []string) (labels.Selector, error) {
	pods, err := metav1.LabelSelectorAsSelector(s)
	if err != nil || s == nil {
		return pods, err
	}
	add := func(keys []string, op selection.Operator) error {
		for _, key := range keys {
			v, ok := own[key]
			if !ok {
				continue
			}
			r, err := labels.NewRequirement(key, op, []string{v})
			if err != nil {
				return err
			}
			pods = pods.Add(*r)
		}
		return nil
	}
	if err := add(same, selection.In); err != nil {
		return nil, err
	}
	return pods, add(other, selection.NotIn)
}

// socialGang is the workload as others mind it. What cannot be read is left out here,
// and said by rules.
func socialGang(key string, wl *kueue.Workload) *social {
	o := &social{id: gangID(key), space: wl.Namespace, gang: true}
	for i := range wl.Spec.PodSets {
		o.sets = append(o.sets, podLabels(wl, &wl.Spec.PodSets[i]))
	}
	for i := range wl.Spec.PodSets {
		spec := &wl.Spec.PodSets[i].Template.Spec
		eachTerm(spec, func(t *corev1.PodAffinityTerm, kind termKind, _ int32) {
			c, err := affinity(t, wl.Namespace, o.sets[i])
			if err != nil {
				return
			}
			b := bond{chosen: c, set: i}
			switch kind {
			case mustShun:
				b.shy = nodeKey(t.TopologyKey)
			case mustJoin: // of pods that are not of the gang it matters where they are
				b.hungry = !slices.ContainsFunc(o.sets, func(set labels.Set) bool { return c.pods.Matches(set) })
			case wouldShun, wouldJoin: // wishes bind nobody else
			}
			o.bonds = append(o.bonds, b)
		})
		for k := range spec.TopologySpreadConstraints {
			t := &spec.TopologySpreadConstraints[k]
			if pods, err := narrowed(t.LabelSelector, o.sets[i], t.MatchLabelKeys, nil); err == nil {
				o.bonds = append(o.bonds, bond{chosen: newChosen([]string{wl.Namespace}, nil, pods), set: i})
			}
		}
	}
	return o
}

// socialPod is a pod that belongs to no workload.
func socialPod(p *corev1.Pod) *social {
	o := &social{id: podID(string(p.UID)), space: p.Namespace, sets: []labels.Set{p.Labels}}
	eachTerm(&p.Spec, func(t *corev1.PodAffinityTerm, kind termKind, _ int32) {
		if kind != mustShun {
			return
		}
		if c, err := affinity(t, p.Namespace, p.Labels); err == nil {
			o.bonds = append(o.bonds, bond{chosen: c, shy: nodeKey(t.TopologyKey)})
		}
	})
	return o
}

type termKind int

const (
	mustShun termKind = iota
	mustJoin
	wouldShun
	wouldJoin
)

// eachTerm calls do with each term of pod affinity and anti-affinity.
func eachTerm(spec *corev1.PodSpec, do func(t *corev1.PodAffinityTerm, kind termKind, weight int32)) {
	if spec.Affinity == nil {
		return
	}
	if a := spec.Affinity.PodAntiAffinity; a != nil {
		for i := range a.RequiredDuringSchedulingIgnoredDuringExecution {
			do(&a.RequiredDuringSchedulingIgnoredDuringExecution[i], mustShun, 0)
		}
		for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
			w := &a.PreferredDuringSchedulingIgnoredDuringExecution[i]
			do(&w.PodAffinityTerm, wouldShun, w.Weight)
		}
	}
	if a := spec.Affinity.PodAffinity; a != nil {
		for i := range a.RequiredDuringSchedulingIgnoredDuringExecution {
			do(&a.RequiredDuringSchedulingIgnoredDuringExecution[i], mustJoin, 0)
		}
		for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
			w := &a.PreferredDuringSchedulingIgnoredDuringExecution[i]
			do(&w.PodAffinityTerm, wouldJoin, w.Weight)
		}
	}
}

// ruler fills in what the pods of one workload mind.
type ruler struct {
	groups *groups
	o      *social
	spec   *gang.Spec
	note   func(format string, args ...any)
}

// rules fills in what the pods mind of each other, of pods of others and of nodes.
func (r *reader) rules(wl *kueue.Workload, s *gang.Spec, note func(format string, args ...any)) {
	key := wl.Namespace + "/" + wl.Name
	x := &ruler{groups: r.groups, spec: s, note: note}
	if r.groups != nil {
		x.o = r.groups.all[gangID(key)]
	}
	if x.o == nil { // it has ended, or nobody else is known
		x.groups = newGroups(r.space, func(string) labels.Set { return nil })
		x.o = socialGang(key, wl)
		x.groups.put(x.o)
	}
	for i := range wl.Spec.PodSets {
		ps, out := &wl.Spec.PodSets[i], &s.PodSets[i]
		out.Wishes = wishes(&ps.Template.Spec)
		x.affinities(i, ps)
		for k := range ps.Template.Spec.TopologySpreadConstraints {
			x.spread(i, &ps.Template.Spec.TopologySpreadConstraints[k])
		}
		x.shunned(i)
		out.Groups = x.groups.dims(x.o, i)
	}
}

// group is the core's name of chosen pods. must says that it has to be right.
func (x *ruler) group(set int, c *chosen, must bool) gang.Group {
	g := gang.Group{Sets: make([]bool, len(x.o.sets))}
	for i := range g.Sets {
		g.Sets[i] = x.groups.chooses(c, x.o, x.o.sets[i])
	}
	switch m := x.groups.minded[c.key]; {
	case m == nil:
	case m.dim > 0:
		g.Dim = m.dim
	case m.dim < 0 && must:
		x.note("pod set %s: its rule about %s has to wait until less than %d different groups of pods are minded", x.spec.PodSets[set].Name, c.text(), groupsMost)
	}
	return g
}

func (x *ruler) affinities(i int, ps *kueue.PodSet) {
	out := &x.spec.PodSets[i]
	eachTerm(&ps.Template.Spec, func(t *corev1.PodAffinityTerm, kind termKind, weight int32) {
		c, err := affinity(t, x.o.space, x.o.sets[i])
		if err != nil {
			x.note("pod set %s: pod affinity: %v", out.Name, err)
			return
		}
		switch kind {
		case mustShun:
			out.Apart = append(out.Apart, gang.Apart{Key: nodeKey(t.TopologyKey), Group: x.group(i, &c, true), Most: 1, Text: c.text()})
		case mustJoin:
			x.join(i, &c, t.TopologyKey)
		case wouldShun, wouldJoin:
			if kind == wouldJoin {
				weight = -weight
			}
			out.Apart = append(out.Apart, gang.Apart{Key: nodeKey(t.TopologyKey), Group: x.group(i, &c, false), Most: 1, Weight: int(weight), Text: c.text()})
		}
	})
}

// join has pods of set i share a domain with chosen ones. Of those of the gang that is
// a level that holds them all; of others it is where they are.
func (x *ruler) join(i int, c *chosen, key string) {
	out := &x.spec.PodSets[i]
	g := x.group(i, c, true)
	if g.Dim != 0 || !slices.Contains(g.Sets, true) {
		out.Near = append(out.Near, gang.Near{Key: nodeKey(key), Dim: g.Dim, Self: g.Sets[i], Text: c.text()})
	}
	if !slices.Contains(g.Sets, true) {
		return
	}
	level := gang.Level{Key: key, Required: true}
	alone, all := true, true
	for k, in := range g.Sets {
		alone = alone && in == (k == i)
		all = all && (in || k == i)
	}
	to := &out.Level
	switch {
	case len(g.Sets) == 1 && (x.spec.Level == level || x.spec.Level == gang.Level{} && out.Level != gang.Level{} && out.Level != level):
		to = &x.spec.Level
	case alone:
	case all:
		to = &x.spec.Level
	default:
		x.note("pod set %s: required pod affinity to only some of the other pod sets cannot be planned", out.Name)
		return
	}
	if *to != (gang.Level{}) && *to != level {
		x.note("pod set %s: required pod affinity by %s and a topology level %s cannot be planned together", out.Name, key, to.Key)
		return
	}
	*to = level
}

// spread has the set spread over domains. A pod that is let go may be on one node alone
// then, so the scheduler sees one domain; where it wants more it compares with nothing,
// and takes no more than the skew on a node.
func (x *ruler) spread(i int, t *corev1.TopologySpreadConstraint) {
	out := &x.spec.PodSets[i]
	pods, err := narrowed(t.LabelSelector, x.o.sets[i], t.MatchLabelKeys, nil)
	if err != nil {
		x.note("pod set %s: topology spread constraint: %v", out.Name, err)
		return
	}
	must := t.WhenUnsatisfiable == corev1.DoNotSchedule
	c := newChosen([]string{x.o.space}, nil, pods)
	s := gang.Spread{Key: nodeKey(t.TopologyKey), Group: x.group(i, &c, must), Skew: int(t.MaxSkew), Must: must, Text: c.text()}
	s.All = t.NodeAffinityPolicy != nil && *t.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore
	s.Open = t.NodeTaintsPolicy != nil && *t.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
	if t.MinDomains != nil {
		s.Domains = int(*t.MinDomains)
	}
	out.Spread = append(out.Spread, s)
	if must && s.Domains > 1 && !s.All {
		out.Apart = append(out.Apart, gang.Apart{Key: gang.NameField, Group: s.Group, Most: s.Skew, Text: c.text()})
	}
}

// shunned keeps pods of set i out of domains of others who must not share one with them.
func (x *ruler) shunned(i int) {
	for _, m := range x.o.in {
		if !x.groups.chooses(&m.chosen, x.o, x.o.sets[i]) {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(m.shy)) {
			s := m.shy[key]
			switch {
			case s.dim < 0:
				x.note("pod set %s: that others keep apart from %s has to wait until less than %d different groups of pods are minded", x.spec.PodSets[i].Name, m.text(), groupsMost)
			case s.dim > 0:
				g := gang.Group{Dim: s.dim, Sets: make([]bool, len(x.o.sets))}
				for _, b := range x.o.bonds {
					if b.key == m.key && b.shy == key {
						g.Sets[b.set] = true
					}
				}
				x.spec.PodSets[i].Apart = append(x.spec.PodSets[i].Apart, gang.Apart{Key: key, Group: g, Most: 1, Text: fmt.Sprintf("pods that keep apart from %s", m.text())})
			}
		}
	}
}

// wishes are the node affinity terms that would be nice.
func wishes(spec *corev1.PodSpec) []gang.Wish {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	var list []gang.Wish
	for _, t := range spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		w := gang.Wish{Weight: int(t.Weight)}
		for _, e := range slices.Concat(t.Preference.MatchExpressions, t.Preference.MatchFields) {
			w.Terms = append(w.Terms, gang.Requirement{Key: e.Key, Op: gang.Operator(e.Operator), Values: e.Values})
		}
		if len(w.Terms) > 0 && w.Weight > 0 { // an empty term matches no node
			list = append(list, w)
		}
	}
	return list
}
