package simulations

import (
	"time"

	"go.yaml.in/yaml/v3"
)

// verbs is all verbs of an event, in the order of README.md.
var verbs = []verb{
	{name: "submit", form: "[workload..]", doc: "New workloads; the earlier in the list is the older.", read: readSubmit},
	onWorkload("finish", "The gang ends well.", func(name string) Action { return Finish{name} }),
	{
		name: "delete", form: "NAME", doc: "A workload, or the pod of a `foreign`, is deleted; the name may be used again.",
		read: func(p *parser, n *yaml.Node) (Action, bool) {
			name, ok := p.name(n)
			if ok {
				p.refer(refDeletable, n, name, "")
			}
			return Delete{name}, ok
		},
	},
	withKeys("One pod of the gang on that node ends well.", &finishPodKeys),
	withKeys("One pod of the gang on that node fails; its job makes it again.", &failPodKeys),
	onWorkload("hold", "It is not admitted until `resume`.", func(name string) Action { return Hold{name} }),
	onWorkload("resume", "Ends `hold`.", func(name string) Action { return Resume{name} }),
	withKeys("Waiting: a new request that keeps its age. Running: more pods are a claim to grow, fewer stop.", &resizeKeys),
	withKeys("Changes a workload's priority.", &priorityKeys),
	onNode("cordon", "Closed for new pods.", func(name string) Action { return Cordon{name} }),
	onNode("uncordon", "Open again.", func(name string) Action { return Uncordon{name} }),
	onNode("drain", "cordon, and its pods stop.", func(name string) Action { return Drain{name} }),
	onNode("removeNode", "The node is gone; the name may be used again.", func(name string) Action { return RemoveNode{name} }),
	{
		name: "addNode", form: "{node..}", doc: "New nodes, as in `nodes`.",
		read: func(p *parser, n *yaml.Node) (Action, bool) {
			nodes, ok := p.nodes(n)
			return AddNode{nodes}, ok
		},
	},
	onNode("notReady", "Its pods are lost.", func(name string) Action { return NotReady{name} }),
	onNode("ready", "Ends `notReady`.", func(name string) Action { return Ready{name} }),
	withKeys("The kubelet refuses GPU pods, or no longer.", &refusesKeys),
	withKeys("Sets a node label; null removes it.", &labelKeys),
	withKeys("Taints a node.", &taintKeys),
	withKeys("Ends `taint`.", &untaintKeys),
	withKeys("A card is lost, and the pod on it fails.", &gpuLostKeys),
	withKeys("A lost card is back.", &gpuBackKeys),
	withKeys("Cuts a card anew.", &migKeys),
	allocatableVerb(),
	withKeys("Changes the replicas of each whole card of a node.", &timeSlicesKeys),
	withKeys("A pod that no queue manages.", &foreignKeys),
	{
		name: "queue", form: "{queue..}", doc: "Changes those keys of a queue.",
		read: func(p *parser, n *yaml.Node) (Action, bool) {
			q, given, ok := p.queue(n)
			change := ChangeQueue{Queue: q}
			for _, key := range given {
				if key != "name" {
					change.Keys = append(change.Keys, key)
				}
			}
			return change, ok
		},
	},
	{
		name: "addQueue", form: "{queue..}", doc: "A new queue, as in `queues`.",
		read: func(p *parser, n *yaml.Node) (Action, bool) {
			q, _, ok := p.queue(n)
			return AddQueue{q}, ok
		},
	},
	onQueue("deleteQueue", "The queue is gone; the name may be used again.", func(name string) Action { return DeleteQueue{name} }),
	onQueue("closeQueue", "It admits nothing.", func(name string) Action { return CloseQueue{name} }),
	onQueue("openQueue", "Ends `closeQueue`.", func(name string) Action { return OpenQueue{name} }),
	withKeys("The controller dies, and starts again from what the API holds.", &crashKeys),
	onNode("agentSilent", "The node's agent reports nothing.", func(name string) Action { return AgentSilent{name} }),
	onNode("agentBack", "Ends `agentSilent`.", func(name string) Action { return AgentBack{name} }),
}

func readSubmit(p *parser, n *yaml.Node) (Action, bool) {
	before := p.failed
	var s Submit
	p.items(n, "a list of workloads", func(item *yaml.Node) {
		w, _ := p.workload(item)
		s.Workloads = append(s.Workloads, w)
	})
	return s, p.failed == before
}

// withKeys is a verb whose value is a map with keys of its own.
func withKeys[T Action](doc string, t *table[T]) verb {
	keys := t.section()
	return verb{
		name: t.name, form: "{..}", doc: doc, payload: &keys,
		read: func(p *parser, n *yaml.Node) (Action, bool) {
			var v T
			_, ok := t.read(p, n, &v)
			return v, ok
		},
	}
}

func onWorkload(name, doc string, build func(string) Action) verb {
	return onName(name, "WORKLOAD", doc, (*parser).workloadRef, build)
}

func onNode(name, doc string, build func(string) Action) verb {
	return onName(name, "NODE", doc, (*parser).nodeRef, build)
}

func onQueue(name, doc string, build func(string) Action) verb {
	return onName(name, "QUEUE", doc, (*parser).queueRef, build)
}

func onName(name, form, doc string, read func(*parser, *yaml.Node) (string, bool), build func(string) Action) verb {
	return verb{name: name, form: form, doc: doc, read: func(p *parser, n *yaml.Node) (Action, bool) {
		what, ok := read(p, n)
		return build(what), ok
	}}
}

// allocatableDraft waits with its value until the resource tells the unit.
type allocatableDraft struct {
	SetAllocatable
	value *yaml.Node
}

func allocatableVerb() verb {
	v := withKeys("The device plugin claims so much of a resource, whatever the hardware is.", &allocatableKeys)
	v.read = func(p *parser, n *yaml.Node) (Action, bool) {
		var d allocatableDraft
		_, ok := allocatableKeys.read(p, n, &d)
		if ok && !isNull(d.value) {
			var value int64
			value, ok = p.amountOf(d.Resource, d.value)
			d.Value = &value
		}
		return d.SetAllocatable, ok
	}
	return v
}

// workloadRef is the name of a workload that must be there: submitted and not
// deleted, or in an expectation submitted before.
func (p *parser) workloadRef(n *yaml.Node) (string, bool) { return p.reference(n, refWorkload) }

// nodeRef is the name of a node that must be there.
func (p *parser) nodeRef(n *yaml.Node) (string, bool) { return p.reference(n, refNode) }

// nodeSeen is the name of a node that must be there or have been there.
func (p *parser) nodeSeen(n *yaml.Node) (string, bool) { return p.reference(n, refNodeSeen) }

// nodeAnywhere is the name of a node that the file declares at any time.
func (p *parser) nodeAnywhere(n *yaml.Node) (string, bool) { return p.reference(n, refNodeAnywhere) }

// queueAnywhere is the name of a queue that the file declares at any time.
func (p *parser) queueAnywhere(n *yaml.Node) (string, bool) { return p.reference(n, refQueueAnywhere) }

// levelRef is a level of the topology.
func (p *parser) levelRef(n *yaml.Node) (string, bool) { return p.reference(n, refLevel) }

func (p *parser) reference(n *yaml.Node, kind refKind) (string, bool) {
	name, ok := p.name(n)
	if ok {
		p.refer(kind, n, name, "")
	}
	return name, ok
}

var finishPodKeys = table[FinishPod]{name: "finishPod", noun: "finishPod", fields: []field[FinishPod]{
	{key: "workload", need: true, form: "WORKLOAD", doc: "The gang.", read: into((*parser).workloadRef, func(a *FinishPod) *string { return &a.Workload })},
	{key: "node", need: true, form: "NODE", doc: "Where the pod runs.", read: into((*parser).nodeSeen, func(a *FinishPod) *string { return &a.Node })},
}}

var failPodKeys = table[FailPod]{name: "failPod", noun: "failPod", fields: []field[FailPod]{
	{key: "workload", need: true, form: "WORKLOAD", doc: "The gang.", read: into((*parser).workloadRef, func(a *FailPod) *string { return &a.Workload })},
	{key: "node", need: true, form: "NODE", doc: "Where the pod runs.", read: into((*parser).nodeSeen, func(a *FailPod) *string { return &a.Node })},
}}

var resizeKeys = table[Resize]{name: "resize", noun: "resize", fields: []field[Resize]{
	{key: "workload", need: true, form: "WORKLOAD", doc: "The gang.", read: into((*parser).workloadRef, func(a *Resize) *string { return &a.Workload })},
	{key: "podSet", form: "PODSET", doc: "Default: the only one.", read: into((*parser).name, func(a *Resize) *string { return &a.PodSet })},
	{key: "pods", need: true, form: "N", doc: "How many it wants now.", read: into((*parser).count, func(a *Resize) *int64 { return &a.Pods })},
}}

var priorityKeys = table[SetPriority]{name: "priority", noun: "priority", fields: []field[SetPriority]{
	{key: "workload", need: true, form: "WORKLOAD", doc: "The gang.", read: into((*parser).workloadRef, func(a *SetPriority) *string { return &a.Workload })},
	{key: "value", need: true, form: "N", doc: "Its priority from now on.", read: into((*parser).integer, func(a *SetPriority) *int64 { return &a.Value })},
}}

var refusesKeys = table[Refuses]{name: "refuses", noun: "refuses", fields: []field[Refuses]{
	{key: "node", need: true, form: "NODE", doc: "The node.", read: into((*parser).nodeRef, func(a *Refuses) *string { return &a.Node })},
	{key: "value", need: true, form: "BOOL", doc: "Whether it refuses.", read: into((*parser).boolean, func(a *Refuses) *bool { return &a.Value })},
}}

var labelKeys = table[SetLabel]{name: "label", noun: "label", fields: []field[SetLabel]{
	{key: "node", need: true, form: "NODE", doc: "The node.", read: into((*parser).nodeRef, func(a *SetLabel) *string { return &a.Node })},
	{key: "key", need: true, form: "LABEL", doc: "The label.", read: into((*parser).labelKey, func(a *SetLabel) *string { return &a.Key })},
	{key: "value", need: true, form: "VALUE or null", doc: "null removes it.", read: into(optional((*parser).labelValue), func(a *SetLabel) **string { return &a.Value })},
}}

var taintKeys = table[AddTaint]{name: "taint", noun: "taint", fields: []field[AddTaint]{
	{key: "node", need: true, form: "NODE", doc: "The node.", read: into((*parser).nodeRef, func(a *AddTaint) *string { return &a.Node })},
	{key: "taint", need: true, form: "\"KEY=VALUE:EFFECT\"", doc: "As in `taints` of a node.", read: into((*parser).taint, func(a *AddTaint) *Taint { return &a.Taint })},
}}

var untaintKeys = table[RemoveTaint]{name: "untaint", noun: "untaint", fields: []field[RemoveTaint]{
	{key: "node", need: true, form: "NODE", doc: "The node.", read: into((*parser).nodeRef, func(a *RemoveTaint) *string { return &a.Node })},
	{key: "taint", need: true, form: "\"KEY=VALUE:EFFECT\"", doc: "As in `taints` of a node.", read: into((*parser).taint, func(a *RemoveTaint) *Taint { return &a.Taint })},
}}

var gpuLostKeys = table[LoseGPU]{name: "gpuLost", noun: "gpuLost", fields: []field[LoseGPU]{
	{key: "node", need: true, form: "NODE", doc: "The node.", read: into((*parser).nodeRef, func(a *LoseGPU) *string { return &a.Node })},
	{key: "gpu", form: "N", doc: "That card. Without gpu and of: an idle card, else the last.", read: intoRef(upTo(maxCards), func(a *LoseGPU) **int { return &a.GPU })},
	{key: "of", form: "WORKLOAD", doc: "A card of that gang.", read: into((*parser).workloadRef, func(a *LoseGPU) *string { return &a.Of })},
}}

var gpuBackKeys = table[RestoreGPU]{name: "gpuBack", noun: "gpuBack", fields: []field[RestoreGPU]{
	{key: "node", need: true, form: "NODE", doc: "The node.", read: into((*parser).nodeRef, func(a *RestoreGPU) *string { return &a.Node })},
	{key: "gpu", form: "N", doc: "That card. Default: all that are lost.", read: intoRef(upTo(maxCards), func(a *RestoreGPU) **int { return &a.GPU })},
}}

var migKeys = table[Recut]{name: "mig", noun: "mig", fields: []field[Recut]{
	{key: "node", need: true, form: "NODE", doc: "The node.", read: into((*parser).nodeRef, func(a *Recut) *string { return &a.Node })},
	{key: "gpu", need: true, form: "N", doc: "The card.", read: into(upTo(maxCards), func(a *Recut) *int { return &a.GPU })},
	{key: "layout", need: true, form: "[PROFILE..]", doc: "As in `mig` of a node.", read: into((*parser).layout, func(a *Recut) *Layout { return &a.Layout })},
	{key: "takes", form: "DURATION", doc: "It is being cut for so long. Default: 0s.", read: into((*parser).duration, func(a *Recut) *time.Duration { return &a.Takes })},
	{key: "fails", form: "BOOL", doc: "It ends empty and out of use, until the next `mig`. Default: false.", read: into((*parser).boolean, func(a *Recut) *bool { return &a.Fails })},
}}

var allocatableKeys = table[allocatableDraft]{name: "allocatable", noun: "allocatable", fields: []field[allocatableDraft]{
	{key: "node", need: true, form: "NODE", doc: "The node.", read: into((*parser).nodeRef, func(a *allocatableDraft) *string { return &a.Node })},
	{key: "resource", need: true, form: "RESOURCE", doc: "What is claimed.", read: into((*parser).resource, func(a *allocatableDraft) *string { return &a.Resource })},
	{key: "value", need: true, form: "QUANTITY or null", doc: "null ends the claim.", read: func(_ *parser, n *yaml.Node, a *allocatableDraft) { a.value = n }},
}}

var timeSlicesKeys = table[SetTimeSlices]{name: "timeSlices", noun: "timeSlices", fields: []field[SetTimeSlices]{
	{key: "node", need: true, form: "NODE", doc: "The node.", read: into((*parser).nodeRef, func(a *SetTimeSlices) *string { return &a.Node })},
	{key: "value", need: true, form: "N", doc: "Below 2 they are not shared.", read: into(upTo(maxTimeSlices), func(a *SetTimeSlices) *int { return &a.Value })},
}}

var foreignKeys = table[Foreign]{name: "foreign", noun: "foreign", fields: []field[Foreign]{
	{key: "node", need: true, form: "NODE", doc: "Where it runs.", read: into((*parser).nodeRef, func(a *Foreign) *string { return &a.Node })},
	{key: "name", need: true, form: "NAME", doc: "For `delete`; no workload has it.", read: into((*parser).name, func(a *Foreign) *string { return &a.Name })},
	{key: "requests", need: true, form: "{RESOURCE: QUANTITY}", doc: "What it takes.", read: into((*parser).amounts, func(a *Foreign) *Amounts { return &a.Requests })},
}}

var crashKeys = table[Crash]{name: "crash", noun: "crash", fields: []field[Crash]{
	{key: "after", need: true, form: "N", doc: "After its Nth next write.", read: into((*parser).count, func(a *Crash) *int64 { return &a.After })},
}}
