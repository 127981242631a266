package sense

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// Node is what is known of one node.
type Node struct {
	Name    string
	Labels  map[string]string
	Devices map[string]int64 // what it offers of devices, 0 included
	Report  *v1alpha1.Report // nil without an agent
}

// Facts is what is known of the cluster.
type Facts struct{ Nodes []Node }

// Of collects the facts of nodes and of what their agents report.
func Of(nodes []corev1.Node, inventories []v1alpha1.SliceInventory) Facts {
	reports := map[string]*v1alpha1.Report{}
	for i := range inventories {
		reports[inventories[i].Name] = &inventories[i].Report
	}
	var f Facts
	for i := range nodes {
		n := Node{Name: nodes[i].Name, Labels: nodes[i].Labels, Devices: map[string]int64{}, Report: reports[nodes[i].Name]}
		for name, q := range nodes[i].Status.Allocatable {
			if isDevice(string(name)) {
				n.Devices[string(name)] = q.Value()
			}
		}
		f.Nodes = append(f.Nodes, n)
	}
	slices.SortFunc(f.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return f
}

const (
	vendor = "nvidia.com/"
	shared = ".shared"
)

// isDevice says whether the resource is a GPU, a slice or a share of one.
func isDevice(name string) bool {
	base := strings.TrimSuffix(name, shared)
	return base == v1alpha1.WholeCard || isSlice(name)
}

func isSlice(name string) bool { return strings.HasPrefix(name, v1alpha1.SliceResource("")) }

// offers says whether some node offers the resource now.
func (f *Facts) offers(resource string) bool {
	return slices.ContainsFunc(f.Nodes, func(n Node) bool { return n.Devices[resource] > 0 })
}

// offered are the names of devices that some node offers, sorted.
func (f *Facts) offered() []string {
	names := map[string]bool{}
	for _, n := range f.Nodes {
		for name, v := range n.Devices {
			if v > 0 {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// nodesWhere are the names of the nodes for which ok holds.
func (f *Facts) nodesWhere(ok func(*Node) bool) []string {
	var names []string
	for i := range f.Nodes {
		if ok(&f.Nodes[i]) {
			names = append(names, f.Nodes[i].Name)
		}
	}
	return names
}

// cuttable are the nodes whose cards could be cut so that they offer the resource,
// under the strategy that they have.
func (f *Facts) cuttable(resource string) []string {
	return f.nodesWhere(func(n *Node) bool {
		if n.Report == nil {
			return false
		}
		for i := range n.Report.Models {
			for k := range n.Report.Models[i].Profiles {
				if n.Report.SliceResource(n.Report.Models[i].Profiles[k].Name) == resource {
					return true
				}
			}
		}
		return false
	})
}

// named are the nodes whose cards know the profile of a slice under another strategy,
// and the name under which it is offered there; "" is not at all.
func (f *Facts) named(resource string) (nodes []string, name string) {
	for i := range f.Nodes {
		r := f.Nodes[i].Report
		if r == nil {
			continue
		}
		for m := range r.Models {
			for k := range r.Models[m].Profiles {
				profile := r.Models[m].Profiles[k].Name
				if v1alpha1.SliceResource(profile) == resource && r.SliceResource(profile) != resource {
					nodes, name = append(nodes, f.Nodes[i].Name), r.SliceResource(profile)
				}
			}
		}
	}
	return slices.Compact(nodes), name
}
