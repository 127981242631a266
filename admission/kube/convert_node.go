package kube

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// outageTaints are the taints that Kubernetes itself puts on a node whose state it
// expresses, and the word for that state. They become outages, not taints: a pod
// is not kept out by what its owner wrote.
var outageTaints = map[string]string{
	corev1.TaintNodeUnschedulable:                    "cordoned",
	corev1.TaintNodeNotReady:                         gang.NotReady,
	corev1.TaintNodeUnreachable:                      gang.NotReady,
	corev1.TaintNodeMemoryPressure:                   "memoryPressure",
	corev1.TaintNodeDiskPressure:                     "diskPressure",
	corev1.TaintNodePIDPressure:                      "pidPressure",
	corev1.TaintNodeNetworkUnavailable:               "networkUnavailable",
	corev1.TaintNodeOutOfService:                     "outOfService",
	"node.cloudprovider.kubernetes.io/shutdown":      "shutdown",
	"node.cloudprovider.kubernetes.io/uninitialized": "uninitialized",
}

// convertNode is the node as the core sees it. collision names another node with
// the same hostname label, or is "". deck are its cards, nil if nobody tells of them,
// and expected the labels that follow from them.
func convertNode(space *quota.Space, n *corev1.Node, collision string, deck *gang.Deck, expected []gang.Expected) *gang.Node {
	out := &gang.Node{Name: n.Name, Labels: n.Labels, Outages: outages(n, collision)}
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if _, expressed := outageTaints[t.Key]; !expressed {
			out.Taints = append(out.Taints, gang.Taint{Key: t.Key, Value: t.Value, Effect: gang.Effect(t.Effect)})
		}
	}
	// A node that offers what cannot be counted offers none of it.
	out.Offer, _ = vector(space, n.Status.Allocatable)
	if deck == nil {
		return out
	}
	out.Drift = deck.Differences(out.Offer, n.Labels, expected, space.Name)
	return gang.Equip(*out, deck)
}

// outages is why the node takes no new pods now, each reason once.
func outages(n *corev1.Node, collision string) []gang.Outage {
	var list []gang.Outage
	add := func(what, detail string) {
		if !slices.ContainsFunc(list, func(o gang.Outage) bool { return o.What == what }) {
			list = append(list, gang.Outage{What: what, Detail: detail, Closed: true})
		}
	}
	if n.DeletionTimestamp != nil {
		add("leaving", "")
	}
	if ready, detail := isReady(n); !ready {
		add(gang.NotReady, detail)
	}
	if n.Spec.Unschedulable {
		add("cordoned", "")
	}
	for _, t := range n.Spec.Taints {
		if what, ok := outageTaints[t.Key]; ok && t.Effect != corev1.TaintEffectPreferNoSchedule {
			add(what, "")
		}
	}
	switch host := n.Labels[hostname]; {
	case host == "":
		add("unnamed", "has no label "+hostname)
	case collision != "":
		add("ambiguous", "shares the label "+hostname+"="+host+" with node "+collision)
	}
	return list
}

func isReady(n *corev1.Node) (ready bool, detail string) {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue, c.Reason
		}
	}
	return false, "never reported"
}

// hosts maps the values of the hostname label, which is how a topology assignment
// names nodes, to the names of nodes. The two may differ.
type hosts struct {
	nodes map[string][]string // by host, sorted
	host  map[string]string   // by node
	last  map[string]string   // host → the node that had it last, even if that is gone
}

func newHosts() *hosts {
	return &hosts{nodes: map[string][]string{}, host: map[string]string{}, last: map[string]string{}}
}

// set says which host a node is; "" is none. It returns the other nodes whose
// answer from collision may have changed.
func (h *hosts) set(node, host string) []string {
	old := h.host[node]
	if old == host {
		return nil
	}
	var touched []string
	if old != "" {
		h.nodes[old] = slices.DeleteFunc(h.nodes[old], func(n string) bool { return n == node })
		touched = append(touched, h.nodes[old]...)
		if len(h.nodes[old]) == 0 {
			delete(h.nodes, old)
		}
	}
	delete(h.host, node)
	if host != "" {
		touched = append(touched, h.nodes[host]...)
		h.host[node] = host
		h.nodes[host] = append(h.nodes[host], node)
		slices.SortFunc(h.nodes[host], cmp.Compare[string])
		h.last[host] = h.nodes[host][0]
	}
	return touched
}

// collision names a node that has the same host and comes before this one, or any
// other of that host; "" if there is none.
func (h *hosts) collision(node string) string {
	for _, other := range h.nodes[h.host[node]] {
		if other != node {
			return other
		}
	}
	return ""
}

// node is the name of the node that has, or had last, the host. known is false if
// none ever had; the host itself then stands for it.
func (h *hosts) node(host string) (name string, known bool) {
	if name, ok := h.last[host]; ok {
		return name, true
	}
	return host, false
}

// of is the host of a node.
func (h *hosts) of(node string) (string, bool) {
	host, ok := h.host[node]
	return host, ok
}
