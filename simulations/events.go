package simulations

import "time"

// Event is one thing that happens.
type Event struct {
	At     time.Duration
	Line   int
	Repeat int // which of `times`, from 0
	Action Action

	refs []ref // the names that it uses, for validate
}

// Action is what happens: one of the types below, by verb.
type Action interface {
	// Verb is the key under which a file asks for it.
	Verb() string
}

// Submit brings new workloads; the earlier is the older.
type Submit struct{ Workloads []Workload }

// Finish ends a gang well.
type Finish struct{ Workload string }

// Delete removes a workload, or a pod that no queue manages.
type Delete struct{ Name string }

// FinishPod ends one pod of a gang on a node well.
type FinishPod struct{ Workload, Node string }

// FailPod fails one pod of a gang on a node; its job makes it again.
type FailPod struct{ Workload, Node string }

// Hold keeps a workload from being admitted.
type Hold struct{ Workload string }

// Resume ends a Hold.
type Resume struct{ Workload string }

// Resize sets the pods of a pod set. PodSet is never empty: the reader fills in
// the only one.
type Resize struct {
	Workload, PodSet string
	Pods             int64
}

// SetPriority changes a workload's priority.
type SetPriority struct {
	Workload string
	Value    int64
}

// Cordon closes a node for new pods.
type Cordon struct{ Node string }

// Uncordon opens it again.
type Uncordon struct{ Node string }

// Drain is Cordon, and its pods stop.
type Drain struct{ Node string }

// RemoveNode takes a node away.
type RemoveNode struct{ Node string }

// AddNode brings nodes, expanded from one entry.
type AddNode struct{ Nodes []Node }

// NotReady loses contact with a node: its pods are lost.
type NotReady struct{ Node string }

// Ready ends NotReady.
type Ready struct{ Node string }

// Refuses sets whether the kubelet refuses GPU pods.
type Refuses struct {
	Node  string
	Value bool
}

// SetLabel sets a node label, or removes it if Value is nil.
type SetLabel struct {
	Node  string
	Key   string
	Value *string
}

// AddTaint taints a node.
type AddTaint struct {
	Node  string
	Taint Taint
}

// RemoveTaint ends AddTaint.
type RemoveTaint struct {
	Node  string
	Taint Taint
}

// LoseGPU takes a card out: GPU if it is set, else a card of the gang Of, else
// an idle card if there is one and the last if not.
type LoseGPU struct {
	Node string
	GPU  *int
	Of   string
}

// RestoreGPU brings a card back, or all that are lost if GPU is nil.
type RestoreGPU struct {
	Node string
	GPU  *int
}

// Recut cuts a card anew. The card is being cut for Takes; if Fails it is then
// empty and out of use until the next Recut.
type Recut struct {
	Node   string
	GPU    int
	Layout Layout
	Takes  time.Duration
	Fails  bool
}

// SetAllocatable makes the device plugin claim so much of a resource whatever
// the hardware is, until Value is nil.
type SetAllocatable struct {
	Node, Resource string
	Value          *int64
}

// SetTimeSlices sets the replicas of each whole card of a node; below 2 they
// are not shared.
type SetTimeSlices struct {
	Node  string
	Value int
}

// Foreign is a pod that no queue manages.
type Foreign struct {
	Node, Name string
	Requests   Amounts
}

// ChangeQueue changes some keys of a queue; see Queue.With.
type ChangeQueue struct {
	Queue Queue
	Keys  []string // those that the file gives, without name
}

// AddQueue brings a queue.
type AddQueue struct{ Queue Queue }

// DeleteQueue takes a queue away; what it holds stays.
type DeleteQueue struct{ Queue string }

// CloseQueue stops admissions to a queue.
type CloseQueue struct{ Queue string }

// OpenQueue ends CloseQueue.
type OpenQueue struct{ Queue string }

// Crash lets the controller die after its next writes, and start again.
type Crash struct{ After int64 }

// AgentSilent stops the reports of a node's agent.
type AgentSilent struct{ Node string }

// AgentBack ends AgentSilent.
type AgentBack struct{ Node string }

func (Submit) Verb() string         { return "submit" }
func (Finish) Verb() string         { return "finish" }
func (Delete) Verb() string         { return "delete" }
func (FinishPod) Verb() string      { return "finishPod" }
func (FailPod) Verb() string        { return "failPod" }
func (Hold) Verb() string           { return "hold" }
func (Resume) Verb() string         { return "resume" }
func (Resize) Verb() string         { return "resize" }
func (SetPriority) Verb() string    { return "priority" }
func (Cordon) Verb() string         { return "cordon" }
func (Uncordon) Verb() string       { return "uncordon" }
func (Drain) Verb() string          { return "drain" }
func (RemoveNode) Verb() string     { return "removeNode" }
func (AddNode) Verb() string        { return "addNode" }
func (NotReady) Verb() string       { return "notReady" }
func (Ready) Verb() string          { return "ready" }
func (Refuses) Verb() string        { return "refuses" }
func (SetLabel) Verb() string       { return "label" }
func (AddTaint) Verb() string       { return "taint" }
func (RemoveTaint) Verb() string    { return "untaint" }
func (LoseGPU) Verb() string        { return "gpuLost" }
func (RestoreGPU) Verb() string     { return "gpuBack" }
func (Recut) Verb() string          { return "mig" }
func (SetAllocatable) Verb() string { return "allocatable" }
func (SetTimeSlices) Verb() string  { return "timeSlices" }
func (Foreign) Verb() string        { return "foreign" }
func (ChangeQueue) Verb() string    { return "queue" }
func (AddQueue) Verb() string       { return "addQueue" }
func (DeleteQueue) Verb() string    { return "deleteQueue" }
func (CloseQueue) Verb() string     { return "closeQueue" }
func (OpenQueue) Verb() string      { return "openQueue" }
func (Crash) Verb() string          { return "crash" }
func (AgentSilent) Verb() string    { return "agentSilent" }
func (AgentBack) Verb() string      { return "agentBack" }
