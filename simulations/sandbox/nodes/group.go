package nodes

import (
	"fmt"
	"maps"
	"strconv"
)

// Group is one entry of a nodes file: Count nodes that are alike.
type Group struct {
	Name   string
	Count  int
	CPU    string
	Memory string
	Pods   int
	GPUs   int
	// Resources are extended resources besides GPUs, in whole units.
	Resources map[string]int
	Labels    map[string]string
	Taints    []Taint

	line int // in the file, for messages
}

// Taint keeps pods that do not tolerate it off a node.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Node is one node as the file wants it.
type Node struct {
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
	Taints    []Taint           `json:"taints,omitempty"`
	Resources map[string]string `json:"resources"`
}

// Labels and resources that every node of a sandbox has.
const (
	// SimulatedLabel selects the nodes that KWOK plays the kubelet for. Without
	// it a node stops reporting, as one that has failed.
	SimulatedLabel = "sluice.dev/simulated"
	hostnameLabel  = "kubernetes.io/hostname"
	gpuResource    = "nvidia.com/gpu"
)

// What a group has that does not say otherwise.
const (
	defaultCPU    = "64"
	defaultMemory = "256Gi"
	defaultPods   = 110
)

// names lists the group's nodes: NAME if there is one, else NAME-0, NAME-1 and on.
func (g Group) names() []string {
	if g.Count == 1 {
		return []string{g.Name}
	}
	names := make([]string, g.Count)
	for i := range names {
		names[i] = g.Name + "-" + strconv.Itoa(i)
	}
	return names
}

// Expand turns groups into nodes, in order.
func Expand(groups []Group) []Node {
	var nodes []Node
	for _, g := range groups {
		for _, name := range g.names() {
			nodes = append(nodes, g.node(name))
		}
	}
	return nodes
}

func (g Group) node(name string) Node {
	labels := map[string]string{
		hostnameLabel:        name,
		"kubernetes.io/os":   "linux",
		"kubernetes.io/arch": "amd64",
		SimulatedLabel:       "true",
	}
	maps.Copy(labels, g.Labels)
	resources := map[string]string{"cpu": g.CPU, "memory": g.Memory, "pods": strconv.Itoa(g.Pods)}
	for resource, count := range g.Resources {
		resources[resource] = strconv.Itoa(count)
	}
	if g.GPUs > 0 {
		resources[gpuResource] = strconv.Itoa(g.GPUs)
	}
	return Node{Name: name, Labels: labels, Taints: g.Taints, Resources: resources}
}

// Summary says in a few words what a list of groups amounts to.
func Summary(groups []Group) string {
	count, gpus := 0, 0
	for _, g := range groups {
		count += g.Count
		gpus += g.Count * g.GPUs
	}
	return fmt.Sprintf("%d nodes, %d GPUs", count, gpus)
}
