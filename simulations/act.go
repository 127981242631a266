package simulations

import (
	"fmt"
	"slices"
)

// act lets an event of a scenario happen. Names that it uses are there: the
// reader has checked that; but a gang or a pod may have ended by itself.
func (c *Cluster) act(a Action) {
	switch a := a.(type) {
	case Submit:
		for _, w := range a.Workloads {
			c.submit(w)
		}
	case Finish:
		c.finish(c.workloads[a.Workload])
	case Delete:
		if w := c.workloads[a.Name]; w != nil {
			c.deleteWorkload(w)
		} else if p := c.foreign[a.Name]; p != nil {
			c.remove(p)
		}
	case FinishPod:
		c.endPod(a.Workload, a.Node, podSucceeded)
	case FailPod:
		c.endPod(a.Workload, a.Node, podFailed)
	case Hold:
		c.change(a.Workload, func(w *workloadObject) { w.hold = true })
	case Resume:
		c.change(a.Workload, func(w *workloadObject) { w.hold = false })
	case SetPriority:
		c.change(a.Workload, func(w *workloadObject) { w.Priority = a.Value })
	case Resize:
		c.change(a.Workload, func(w *workloadObject) { w.resize(a.PodSet, a.Pods) })
	case Foreign:
		c.startForeign(a)
	case Crash:
		if a.After == 0 {
			c.dead = true
		} else {
			c.deaths = append(c.deaths, a.After)
		}
	default:
		if !c.actOnNode(a) && !c.actOnQueue(a) {
			panic(fmt.Sprintf("simulations: event %q is not executed and not listed as unsupported", a.Verb()))
		}
	}
	c.react()
}

func (c *Cluster) change(workload string, how func(*workloadObject)) {
	w := c.workloads[workload]
	how(w)
	c.workloadChanged(w)
}

func (c *Cluster) endPod(workload, node string, how podPhase) {
	p := c.workloads[workload].podOn(node)
	if p == nil {
		c.trace.add("no pod of %s runs on %s", workload, node)
		return
	}
	c.end(p, how)
}

// resize sets the pods of a set. A set that was not elastic does not become so.
func (w *workloadObject) resize(set string, pods int64) {
	w.PodSets = slices.Clone(w.PodSets) // the scenario's own stay as they are
	s := w.podSet(set)
	if !s.Elastic() {
		s.Min = pods
	}
	s.Pods = pods
}

func (c *Cluster) actOnNode(a Action) bool {
	switch a := a.(type) {
	case AddNode:
		for _, n := range a.Nodes {
			c.addNode(n)
		}
	case RemoveNode:
		c.removeNode(c.nodes[a.Node])
	case Cordon:
		c.changeNode(a.Node, func(n *nodeObject) { n.cordoned = true })
	case Uncordon:
		c.changeNode(a.Node, func(n *nodeObject) { n.cordoned = false })
	case Ready:
		c.changeNode(a.Node, func(n *nodeObject) { n.notReady = false })
	case NotReady:
		c.loseNode(c.nodes[a.Node])
	case Drain:
		c.drain(c.nodes[a.Node])
	case SetLabel:
		c.changeNode(a.Node, func(n *nodeObject) {
			if a.Value == nil {
				delete(n.labels, a.Key)
			} else {
				n.labels[a.Key] = *a.Value
			}
		})
	case AddTaint:
		c.taint(c.nodes[a.Node], a.Taint)
	case RemoveTaint:
		c.changeNode(a.Node, func(n *nodeObject) {
			n.taints = slices.DeleteFunc(n.taints, func(t Taint) bool { return t == a.Taint })
		})
	default:
		return c.actOnCards(a)
	}
	return true
}

func (c *Cluster) changeNode(name string, how func(*nodeObject)) {
	n := c.nodes[name]
	how(n)
	c.nodeChanged(n)
}

func (c *Cluster) actOnQueue(a Action) bool {
	switch a := a.(type) {
	case ChangeQueue:
		c.putQueue(c.queues[a.Queue.Name].With(a))
	case AddQueue:
		c.putQueue(a.Queue)
	case DeleteQueue:
		q := *c.queues[a.Queue]
		delete(c.queues, a.Queue)
		c.changes = append(c.changes, change{queue: &q, gone: true})
	case CloseQueue:
		q := *c.queues[a.Queue]
		q.Closed = true
		c.putQueue(q)
	case OpenQueue:
		q := *c.queues[a.Queue]
		q.Closed = false
		c.putQueue(q)
	default:
		return false
	}
	return true
}

func (c *Cluster) putQueue(q Queue) {
	c.queues[q.Name] = &q
	seen := q
	c.changes = append(c.changes, change{queue: &seen})
}
