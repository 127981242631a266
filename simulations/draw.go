package simulations

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/quota"
)

// draw shows what queues are charged and what is taken on nodes, in the
// resources that anybody uses. Nodes in a row that look alike share a line.
func (t *trace) draw(s *admission.State, c *Cluster) {
	dims := inUse(s)
	for _, name := range slices.Sorted(maps.Keys(c.queues)) {
		if use := s.Usage(name); !use.IsZero() {
			t.add("    queue %s: %s", name, drawn(s.Space, dims, use, nil))
		}
	}
	var first, last, look string
	n := 0
	put := func() {
		switch n {
		case 0:
		case 1:
			t.add("    node %s: %s", first, look)
		default:
			t.add("    nodes %s to %s: %s", first, last, look)
		}
	}
	inv := s.Inventory()
	for _, name := range inv.Names() {
		line := "gone"
		if node := inv.Node(name); node != nil {
			line = drawn(s.Space, dims, inv.Used(name), node.Offer)
			for _, o := range node.Outages {
				line += " " + o.What
			}
		}
		if n == 0 || line != look {
			put()
			first, look, n = name, line, 0
		}
		last = name
		n++
	}
	put()
}

// inUse are the dimensions of which something is taken, but for pods.
func inUse(s *admission.State) []int {
	inv, taken := s.Inventory(), map[int]bool{}
	for _, name := range inv.Names() {
		for i, v := range inv.Used(name) {
			taken[i] = taken[i] || v > 0 && i != quota.Pods
		}
	}
	maps.DeleteFunc(taken, func(_ int, used bool) bool { return !used })
	return slices.Sorted(maps.Keys(taken))
}

// drawn is amounts, each beside what there is of it if of is not nil.
func drawn(space *quota.Space, dims []int, r, of quota.Resources) string {
	var parts []string
	for _, d := range dims {
		text := amountText(Amount{space.Name(d), r.At(d)})
		if of != nil {
			if of.At(d) == 0 {
				continue
			}
			text += " of " + valueText(Amount{space.Name(d), of.At(d)})
		} else if r.At(d) == 0 {
			continue
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// amountText writes an amount as files have it: "memory 2Gi".
func amountText(a Amount) string { return a.Resource + " " + valueText(a) }

func valueText(a Amount) string {
	switch {
	case a.Resource == ResourceCPU && a.Value%1000 != 0:
		return fmt.Sprintf("%dm", a.Value)
	case a.Resource == ResourceCPU:
		return fmt.Sprint(a.Value / 1000)
	case !inBytes(a.Resource):
		return fmt.Sprint(a.Value)
	}
	units, v := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}, a.Value
	i := 0
	for v != 0 && v%1024 == 0 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return fmt.Sprintf("%d%s", v, units[i])
}
