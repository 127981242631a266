package simulations

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// podSetDraft is a pod set before its defaults are filled in.
type podSetDraft struct {
	PodSet
	pods, min *int64
}

// workloadDraft is a workload before the short form and the long form become
// one. Of the short form, `shared` also holds what is merged into pod sets.
type workloadDraft struct {
	Workload
	shared  podSetDraft
	podSets []podSetDraft
}

var workloadKeys = table[workloadDraft]{
	name: "workload", noun: "a workload",
	fields: []field[workloadDraft]{
		{
			key: "name", need: true, form: "NAME", doc: "Free again after `delete`.",
			read: into((*parser).name, func(d *workloadDraft) *string { return &d.Name }),
		},
		{
			key: "queue", need: true, form: "QUEUE", doc: "A leaf of the tree. It may be missing for a while, if the file declares it anywhere.",
			read: into((*parser).queueAnywhere, func(d *workloadDraft) *string { return &d.Queue }),
		},
		{
			key: "pods", form: "N", doc: "Either this or podSets. A gang of 0 pods is admitted and finished at once.",
			read: intoRef((*parser).count, func(d *workloadDraft) **int64 { return &d.shared.pods }),
		},
		{
			key: "min", form: "N", doc: "The fewest pods it can run with. Default: all.",
			read: intoRef((*parser).count, func(d *workloadDraft) **int64 { return &d.shared.min }),
		},
		{
			key: "requests", form: "{RESOURCE: QUANTITY}", doc: "Of each pod. Default: nothing.",
			read: into((*parser).amounts, func(d *workloadDraft) *Amounts { return &d.shared.Requests }),
		},
		{key: "podSets", form: "[podSet..]", doc: "Pods of several kinds, instead of pods, min, requests and running.", read: readPodSets},
		{
			key: "minTotal", form: "N", doc: "The fewest pods over all pod sets. Default: the sum of their minima.",
			read: intoRef((*parser).count, func(d *workloadDraft) **int64 { return &d.MinTotal }),
		},
		{
			key: "priority", form: "N", doc: "Default: 0.",
			read: into((*parser).integer, func(d *workloadDraft) *int64 { return &d.Priority }),
		},
		{
			key: "preemptible", form: "BOOL", doc: "Whether it may be taken back. Default: true.",
			read: into((*parser).boolean, func(d *workloadDraft) *bool { return &d.Preemptible }),
		},
		{
			key: "selector", form: "{LABEL: VALUE}", doc: "Node labels that all pod sets want.",
			read: into((*parser).selector, func(d *workloadDraft) *[]Label { return &d.shared.Selector }),
		},
		{
			key: "notNodes", form: "[NODE..]", doc: "Nodes that no pod set wants.",
			read: into(list("a list of nodes", (*parser).nodeAnywhere), func(d *workloadDraft) *[]string { return &d.shared.NotNodes }),
		},
		{
			key: "tolerations", form: "[\"KEY=VALUE:EFFECT\"..]", doc: "Of all pod sets. Without `=VALUE` each value is tolerated.",
			read: into(list("a list of tolerations", (*parser).toleration), func(d *workloadDraft) *[]Toleration { return &d.shared.Tolerations }),
		},
		{
			key: "topology", form: "{required: LEVEL} or {preferred: LEVEL}", doc: "The level that holds the whole gang.",
			read: into((*parser).topology, func(d *workloadDraft) *Topology { return &d.Topology }),
		},
		{
			key: "sharing", form: "whole, shared or any", doc: "The cards that nvidia.com/gpu means: whole ones, time-sliced ones, or both. Default: whole.",
			read: into(oneOf(SharingWhole, SharingShared, SharingAny), func(d *workloadDraft) *Sharing { return &d.Sharing }),
		},
		{
			key: "runtime", form: "DURATION", doc: "It ends so long after all its pods run. Default: never. The scheduler does not see it.",
			read: intoRef((*parser).duration, func(d *workloadDraft) **time.Duration { return &d.Runtime }),
		},
		{
			key: "limit", form: "DURATION", doc: "The time limit that its owner declared. Default: none.",
			read: intoRef((*parser).duration, func(d *workloadDraft) **time.Duration { return &d.Limit }),
		},
		{
			key: "hold", form: "BOOL", doc: "It is held from the start. Default: false.",
			read: into((*parser).boolean, func(d *workloadDraft) *bool { return &d.Hold }),
		},
		{
			key: "running", form: "{NODE: N}", doc: "So many pods are in place on these nodes before time 0. Only at 0s.",
			read: into((*parser).running, func(d *workloadDraft) *[]NodePods { return &d.shared.Running }),
		},
		{key: "stops", form: "DURATION or never", doc: "How long its pods take to stop. Default: 0s.", read: readStops},
		{
			key: "gate", form: "TEXT", doc: "A gate of another's on its pods.",
			read: into((*parser).text, func(d *workloadDraft) *string { return &d.Gate }),
		},
	},
}

var podSetKeys = table[podSetDraft]{
	name: "podSet", noun: "a pod set",
	fields: []field[podSetDraft]{
		{
			key: "name", need: true, form: "NAME", doc: "One name in a workload, one pod set.",
			read: into((*parser).name, func(d *podSetDraft) *string { return &d.Name }),
		},
		{key: "pods", need: true, form: "N", doc: "May be 0.", read: intoRef((*parser).count, func(d *podSetDraft) **int64 { return &d.pods })},
		{
			key: "min", form: "N", doc: "The fewest pods of this set. Default: all.",
			read: intoRef((*parser).count, func(d *podSetDraft) **int64 { return &d.min }),
		},
		{
			key: "requests", form: "{RESOURCE: QUANTITY}", doc: "Of each pod. Default: nothing.",
			read: into((*parser).amounts, func(d *podSetDraft) *Amounts { return &d.Requests }),
		},
		{
			key: "selector", form: "{LABEL: VALUE}", doc: "Beside the workload's; its value of a label goes first.",
			read: into((*parser).selector, func(d *podSetDraft) *[]Label { return &d.Selector }),
		},
		{
			key: "notNodes", form: "[NODE..]", doc: "Beside the workload's.",
			read: into(list("a list of nodes", (*parser).nodeAnywhere), func(d *podSetDraft) *[]string { return &d.NotNodes }),
		},
		{
			key: "tolerations", form: "[\"KEY=VALUE:EFFECT\"..]", doc: "Beside the workload's.",
			read: into(list("a list of tolerations", (*parser).toleration), func(d *podSetDraft) *[]Toleration { return &d.Tolerations }),
		},
		{
			key: "topology", form: "{required: LEVEL} or {preferred: LEVEL}", doc: "The level that holds this pod set.",
			read: into((*parser).topology, func(d *podSetDraft) *Topology { return &d.Topology }),
		},
		{
			key: "running", form: "{NODE: N}", doc: "As of a workload.",
			read: into((*parser).running, func(d *podSetDraft) *[]NodePods { return &d.Running }),
		},
	},
}

func readPodSets(p *parser, n *yaml.Node, d *workloadDraft) {
	d.podSets = []podSetDraft{}
	seen := map[string]bool{}
	p.items(n, "a list of pod sets", func(item *yaml.Node) {
		s := podSetDraft{PodSet: PodSet{Line: item.Line}}
		podSetKeys.read(p, item, &s)
		if s.Name != "" && seen[s.Name] {
			p.failf(item.Line, "pod set name %q is in use", s.Name)
		}
		seen[s.Name] = true
		d.podSets = append(d.podSets, s)
	})
	if len(n.Content) == 0 && n.Kind == yaml.SequenceNode {
		p.failf(n.Line, "podSets is empty")
	}
}

func readStops(p *parser, n *yaml.Node, d *workloadDraft) {
	if n.Kind == yaml.ScalarNode && n.Value == "never" {
		d.NeverStops = true
		return
	}
	if v, ok := p.duration(n); ok {
		d.Stops = v
	}
}

// workload reads one gang. After errors it is returned as far as it goes, so
// that its name is known.
func (p *parser) workload(n *yaml.Node) (Workload, bool) {
	before := p.failed
	d := workloadDraft{Workload: Workload{Line: n.Line, Preemptible: true, Sharing: SharingWhole}}
	given, _ := workloadKeys.read(p, n, &d)
	if d.podSets == nil {
		d.shared.Name, d.shared.Line = DefaultPodSet, n.Line
		if d.shared.pods == nil && !slices.Contains(given, "pods") && p.failed == before {
			p.failf(n.Line, "workload %s needs \"pods\" or \"podSets\"", d.Name)
		}
		d.PodSets = []PodSet{p.podSet(d.shared)}
	} else {
		for _, key := range given {
			if slices.Contains([]string{"pods", "min", "requests", "running"}, key) {
				p.failf(n.Line, "workload %s has podSets, %q belongs into each of them", d.Name, key)
			}
		}
		for _, s := range d.podSets {
			d.PodSets = append(d.PodSets, p.podSet(s.merge(d.shared)))
		}
	}
	return d.Workload, p.failed == before
}

// merge adds what the workload says for all its pod sets.
func (s podSetDraft) merge(shared podSetDraft) podSetDraft {
	own := s.Selector
	s.Selector = slices.Clone(own)
	for _, l := range shared.Selector {
		if !slices.ContainsFunc(own, func(o Label) bool { return o.Key == l.Key }) {
			s.Selector = append(s.Selector, l)
		}
	}
	for _, name := range shared.NotNodes {
		if !slices.Contains(s.NotNodes, name) {
			s.NotNodes = append(s.NotNodes, name)
		}
	}
	for _, t := range shared.Tolerations {
		if !slices.Contains(s.Tolerations, t) {
			s.Tolerations = append(s.Tolerations, t)
		}
	}
	return s
}

// podSet fills the defaults in and checks what runs against the number of pods.
func (p *parser) podSet(s podSetDraft) PodSet {
	if s.pods != nil {
		s.Pods = *s.pods
	}
	s.Min = s.Pods
	if s.min != nil {
		s.Min = *s.min
	}
	left := s.Pods
	for _, r := range s.Running {
		if left -= r.Pods; left < 0 {
			p.failf(s.Line, "more pods are running than the %d of pod set %s", s.Pods, s.Name)
			break
		}
	}
	return s.PodSet
}

func (p *parser) selector(n *yaml.Node) ([]Label, bool) {
	before := p.failed
	var out []Label
	p.pairs(n, "{LABEL: VALUE}", func(key, value *yaml.Node) {
		k, ok := p.labelKey(key)
		v, good := p.labelValue(value)
		if ok && good {
			out = append(out, Label{k, v})
		}
	})
	return out, p.failed == before
}

// running reads {NODE: pods} of nodes that are there.
func (p *parser) running(n *yaml.Node) ([]NodePods, bool) { return p.nodePods(n, (*parser).nodeRef) }

func (p *parser) nodePods(n *yaml.Node, node func(*parser, *yaml.Node) (string, bool)) ([]NodePods, bool) {
	before := p.failed
	var out []NodePods
	p.pairs(n, "{NODE: pods}", func(key, value *yaml.Node) {
		name, ok := node(p, key)
		pods, good := p.count(value)
		if ok && good {
			out = append(out, NodePods{name, pods})
		}
	})
	return out, p.failed == before
}

// topologyDraft holds the two ways to ask for a level.
type topologyDraft struct{ required, preferred string }

var topologyKeys = table[topologyDraft]{
	name: "topology", noun: "a topology",
	fields: []field[topologyDraft]{
		{
			key: "required", form: "LEVEL", doc: "One value of this level holds it, or it waits.",
			read: into((*parser).levelRef, func(d *topologyDraft) *string { return &d.required }),
		},
		{
			key: "preferred", form: "LEVEL", doc: "This level is tried first.",
			read: into((*parser).levelRef, func(d *topologyDraft) *string { return &d.preferred }),
		},
	},
}

func (p *parser) topology(n *yaml.Node) (Topology, bool) {
	var d topologyDraft
	given, ok := topologyKeys.read(p, n, &d)
	if !ok {
		return Topology{}, false
	}
	if len(given) != 1 {
		p.failf(n.Line, "a topology is either required or preferred")
		return Topology{}, false
	}
	return Topology{Level: d.required + d.preferred, Required: d.required != ""}, true
}
