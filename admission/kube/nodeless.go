package kube

import (
	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// anywhere stands for all nodes where the API server knows of none: then nothing can be
// planned, and quota alone decides, as with Kueue's queues without a topology. No node
// can have this name.
const anywhere = "(anywhere)"

// everywhere is that node: it has room for everything.
func everywhere(space *quota.Space) *gang.Node {
	n := &gang.Node{Name: anywhere, Offer: quota.Resources{}}
	for d := range space.Len() {
		if ofPods(space.Name(d)) {
			n.Offer.Set(d, ample)
		}
	}
	return n
}

// settleNodeless tells the core of anywhere while there are no nodes, and sees to it
// that nothing is asked of nodes then: neither labels of flavors nor those of pods. A
// flavor with a topology, and a gang that requires one, wait for nodes.
func (r *runner) settleNodeless(anew map[string]bool) {
	now := len(r.nodes) == 0
	if now != r.catalog.nodeless {
		r.catalog.nodeless, r.catalog.dirty = now, true
		if !now {
			r.loop.Observe(admission.NodeGone{Name: anywhere})
			r.log.Info("there are nodes: gangs are placed on them")
		} else {
			r.log.Info("there are no nodes: quota alone decides")
		}
		for key := range r.workloads {
			anew[key] = true
		}
		r.offered = 0
	}
	if n := plainDimensions(r.state.Space); now && n != r.offered {
		r.offered = n
		r.loop.Observe(admission.NodeSeen{Node: everywhere(r.state.Space)})
	}
}
