package simulations

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/quota"
)

// The scheduler and the kubelets: where a pod can run, and how it ends. They
// count for themselves what is in use, so that the core's books are not their
// own judge.

// used is what the pods on the node take of a resource.
func (n *nodeObject) used(resource string) int64 {
	sum := int64(0)
	for _, p := range n.pods {
		v, _ := needs(p.requests).Of(resource)
		sum = quota.Sum(sum, v)
	}
	return sum
}

// room is what the node has of a resource that no pod uses.
func (n *nodeObject) room(resource string) int64 {
	has, _ := n.offer().Of(resource)
	return max(0, has-n.used(resource))
}

// cannotRun is why kube-scheduler would not bind the pod to the node, or "".
func (c *Cluster) cannotRun(p *podObject, node string) string {
	n := c.nodes[node]
	switch {
	case n == nil:
		return "there is no such node"
	case n.cordoned:
		return "the node is cordoned"
	case n.notReady:
		return "the node is not ready"
	}
	if p.owner != nil {
		if why := n.rejects(p.owner.podSet(p.set)); why != "" {
			return why
		}
		if why := n.unlike(p.owner.Sharing, p.requests); why != "" {
			return why
		}
	}
	return n.full(p)
}

// rejects is why labels or taints of the node keep pods of the set out, or "".
func (n *nodeObject) rejects(s *PodSet) string {
	for _, l := range s.Selector {
		if v, ok := n.labels[l.Key]; !ok || v != l.Value {
			return fmt.Sprintf("it selects %s=%s", l.Key, l.Value)
		}
	}
	if slices.Contains(s.NotNodes, n.Name) {
		return "it excludes the node by name"
	}
	for _, t := range n.taints {
		if hard(t) && !s.tolerates(t) {
			return "it does not tolerate " + taintText(t)
		}
	}
	return ""
}

func (s *PodSet) tolerates(t Taint) bool {
	return slices.ContainsFunc(s.Tolerations, func(l Toleration) bool {
		return l.Key == t.Key && l.Effect == t.Effect && (l.AnyValue || l.Value == t.Value)
	})
}

// full is why the node has no room for the pod, or "".
func (n *nodeObject) full(p *podObject) string {
	for _, a := range needs(p.requests) {
		if has, _ := n.offer().Of(a.Resource); a.Value > 0 && a.Value > n.room(a.Resource) {
			return fmt.Sprintf("it needs %d of %s, %d of %d are in use", a.Value, a.Resource, n.used(a.Resource), has)
		}
	}
	return ""
}

// bind gives a pod to the kubelet of its node, which may not let it in.
func (c *Cluster) bind(n *nodeObject, p *podObject) {
	if n.turnsAway(p) {
		p.phase, p.refused = podFailed, true
		c.outside()
		c.trace.add("the kubelet of %s refuses pod %s", n.Name, p.name)
		return
	}
	n.run(p)
}

// turnsAway says that the kubelet does not let the pod in.
func (n *nodeObject) turnsAway(p *podObject) bool {
	return n.refuses && slices.ContainsFunc(p.requests, func(a Amount) bool { return a.Value > 0 && strings.HasPrefix(a.Resource, vendor) })
}

// letIn says that a kubelet let a pod of the gang in under its current admission.
func (w *workloadObject) letIn() bool {
	return slices.ContainsFunc(w.pods, func(p *podObject) bool { return p.phase != podGated && !p.refused && w.current(p) })
}

// stop lets a pod end on its node, which takes as long as its owner said.
func (c *Cluster) stop(p *podObject) {
	if p.stopping {
		return
	}
	p.stopping = true
	c.podChanged(p)
	switch {
	case p.owner == nil:
		c.remove(p)
	case !p.owner.NeverStops:
		c.clock.At(c.clock.Now()+p.owner.Stops, func() {
			if c.pods[p.uid] == p {
				c.remove(p)
			}
		})
	}
}

// end lets a pod end well or badly; the object stays.
func (c *Cluster) end(p *podObject, how podPhase) {
	if n := c.nodes[p.node]; n != nil {
		delete(n.pods, p.uid)
	}
	p.phase = how
	c.podChanged(p)
}

// remove takes a pod away, from its node as well.
func (c *Cluster) remove(p *podObject) {
	if n := c.nodes[p.node]; n != nil {
		delete(n.pods, p.uid)
	}
	delete(c.pods, p.uid)
	c.changes = append(c.changes, change{pod: p.snapshot(), gone: true})
	if p.owner == nil {
		delete(c.foreign, p.name)
		return
	}
	p.owner.pods = slices.DeleteFunc(p.owner.pods, func(x *podObject) bool { return x == p })
	c.dirty[p.owner] = true
}

// podsOn is the pods on a node by age.
func (n *nodeObject) podsOn() []*podObject {
	return slices.SortedFunc(maps.Values(n.pods), byUID)
}

func (c *Cluster) addNode(n Node) {
	o := &nodeObject{Node: n, labels: map[string]string{}, taints: slices.Clone(n.Taints), pods: map[string]*podObject{}}
	o.Layouts, o.state, o.claims = slices.Clone(n.Layouts), make([]cardState, n.GPUs()), map[string]int64{}
	for _, l := range n.Labels() {
		o.labels[l.Key] = l.Value
	}
	c.nodes[n.Name] = o
	c.nodeChanged(o)
}

// removeNode takes a node away, and all that is on it.
func (c *Cluster) removeNode(n *nodeObject) {
	for _, p := range n.podsOn() {
		c.remove(p)
	}
	delete(c.nodes, n.Name)
	c.changes = append(c.changes, change{node: n.snapshot(), gone: true})
}

// loseNode is a node that no longer answers: its pods are lost.
func (c *Cluster) loseNode(n *nodeObject) {
	n.notReady = true
	c.nodeChanged(n)
	for _, p := range n.podsOn() {
		c.lose(p)
	}
}

// lose is a pod that ends because what it ran on is gone.
func (c *Cluster) lose(p *podObject) {
	if p.stopping || p.owner == nil {
		c.remove(p)
	} else {
		c.end(p, podFailed)
	}
}

// drain closes a node and stops its pods.
func (c *Cluster) drain(n *nodeObject) {
	n.cordoned = true
	c.nodeChanged(n)
	for _, p := range n.podsOn() {
		c.stop(p)
	}
}

// taint adds a taint; NoExecute stops pods that do not tolerate it.
func (c *Cluster) taint(n *nodeObject, t Taint) {
	n.taints = append(slices.DeleteFunc(n.taints, func(x Taint) bool { return x.Key == t.Key && x.Effect == t.Effect }), t)
	c.nodeChanged(n)
	if t.Effect != "NoExecute" {
		return
	}
	for _, p := range n.podsOn() {
		if p.owner == nil || !p.owner.podSet(p.set).tolerates(t) {
			c.stop(p)
		}
	}
}

// startForeign runs a pod that no queue manages, if the node has room for it.
func (c *Cluster) startForeign(a Foreign) {
	c.created++
	p := &podObject{uid: fmt.Sprintf("pod-%08d", c.created), name: a.Name, requests: a.Requests, node: a.Node, phase: podBound}
	n := c.nodes[a.Node]
	if why := n.full(p); why != "" {
		c.trace.add("the kubelet of %s refuses pod %s: %s", a.Node, a.Name, why)
		return
	}
	if n.turnsAway(p) {
		c.trace.add("the kubelet of %s refuses pod %s", a.Node, a.Name)
		return
	}
	c.pods[p.uid], c.foreign[p.name] = p, p
	n.run(p)
	c.podChanged(p)
}
