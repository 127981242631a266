package gang

import (
	"fmt"
	"slices"
	"strings"
)

// Plan names a node for every pod of a gang.
type Plan struct {
	Sets []SetPlan // in the order of Spec.PodSets
}

// SetPlan is where the pods of one pod set go.
type SetPlan struct {
	Name  string
	Slots []Slot // one per node, in the order of compareNames
}

// Slot is room for Count pods of a pod set on one node.
type Slot struct {
	Node  string
	Count int
}

// Sizes returns how many pods of each pod set the plan places.
func (p Plan) Sizes() []int {
	n := make([]int, len(p.Sets))
	for i, s := range p.Sets {
		for _, slot := range s.Slots {
			n[i] += slot.Count
		}
	}
	return n
}

// Nodes returns the names of all nodes of the plan, each once, in order.
func (p Plan) Nodes() []string {
	var names []string
	for _, s := range p.Sets {
		for _, slot := range s.Slots {
			names = append(names, slot.Node)
		}
	}
	slices.SortFunc(names, compareNames)
	return slices.Compact(names)
}

// Clone returns a copy that shares nothing with p.
func (p Plan) Clone() Plan {
	c := Plan{Sets: slices.Clone(p.Sets)}
	for i := range c.Sets {
		c.Sets[i].Slots = slices.Clone(c.Sets[i].Slots)
	}
	return c
}

// Add puts n pods more (or, if negative, fewer) of pod set set on node.
func (p *Plan) Add(set int, node string, n int) {
	slots := &p.Sets[set].Slots
	i, ok := slices.BinarySearchFunc(*slots, node, func(s Slot, name string) int { return compareNames(s.Node, name) })
	if !ok {
		*slots = slices.Insert(*slots, i, Slot{Node: node})
	}
	(*slots)[i].Count += n
	if (*slots)[i].Count < 0 {
		panic(fmt.Sprintf("gang: plan has %d pods of %s on %s", (*slots)[i].Count, p.Sets[set].Name, node))
	}
	if (*slots)[i].Count == 0 {
		*slots = slices.Delete(*slots, i, i+1)
	}
}

// Empty returns a plan for spec that places no pod yet.
func Empty(spec *Spec) Plan {
	p := Plan{Sets: make([]SetPlan, len(spec.PodSets))}
	for i, ps := range spec.PodSets {
		p.Sets[i].Name = ps.Name
	}
	return p
}

// String writes the plan as set: node×count ... for one pod set without the name.
func (p Plan) String() string {
	var b strings.Builder
	for i, s := range p.Sets {
		if i > 0 {
			b.WriteString("; ")
		}
		if len(p.Sets) > 1 {
			b.WriteString(s.Name + ": ")
		}
		for k, slot := range s.Slots {
			if k > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "%s×%d", slot.Node, slot.Count)
		}
	}
	return b.String()
}
