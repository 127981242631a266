package simulations

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Label is a node label.
type Label struct{ Key, Value string }

// LabelHostname is the label that names the node itself, and the narrowest
// level of every topology.
const LabelHostname = "kubernetes.io/hostname"

// Labels that feature discovery sets and that scenarios speak of.
const (
	LabelProduct = "nvidia.com/gpu.product"
	gpuPrefix    = "nvidia.com/gpu."
)

// Layout is how one card is cut: whole, or in MIG mode with these slices
// (possibly none).
type Layout struct {
	MIG    bool
	Slices []string // profile names, `x7` expanded
}

// String is the layout as files have it: "3g.20gb, 1g.5gb x3".
func (l Layout) String() string {
	var parts []string
	for i, n := 0, 0; i < len(l.Slices); i += n {
		for n = 1; i+n < len(l.Slices) && l.Slices[i+n] == l.Slices[i]; {
			n++
		}
		part := l.Slices[i]
		if n > 1 {
			part = fmt.Sprintf("%s x%d", part, n)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// FeatureLabels are the labels that GPU feature discovery (strategy mixed)
// sets on a node with these cards, sorted by key. timeSlices below 2 means
// that whole cards are not shared. Labels that say nothing about the hardware
// (driver versions, time stamps, engines) are left out.
func FeatureLabels(product string, layouts []Layout, timeSlices int) []Label {
	if len(layouts) == 0 {
		return nil
	}
	card, _ := CardOf(product)
	set := labelSet{}
	set.parent(card, layouts, timeSlices)
	set.slices(card, layouts)
	return set.sorted()
}

type labelSet map[string]string

// parent sets what is said about the cards as a whole.
func (s labelSet) parent(card Card, layouts []Layout, timeSlices int) {
	whole := 0
	for _, l := range layouts {
		if !l.MIG {
			whole++
		}
	}
	shared := timeSlices > 1 && whole > 0
	if card.Product != "" {
		name := card.Product
		if shared {
			name += "-SHARED"
		}
		s[LabelProduct] = name
	}
	s[gpuPrefix+"count"] = strconv.Itoa(len(layouts))
	replicas, sharing := 1, "none"
	switch {
	case whole == 0:
		replicas = 0 // all are MIG parents, which nobody gets whole
	case shared:
		replicas, sharing = timeSlices, "time-slicing"
	}
	s[gpuPrefix+"replicas"] = strconv.Itoa(replicas)
	s[gpuPrefix+"sharing-strategy"] = sharing
	s.number(gpuPrefix+"memory", card.MemoryMiB)
	if card.Family != "" {
		major, minor, _ := strings.Cut(card.Compute, ".")
		s[gpuPrefix+"family"] = card.Family
		s[gpuPrefix+"compute.major"] = major
		s[gpuPrefix+"compute.minor"] = minor
	}
	s["nvidia.com/mig.capable"] = strconv.FormatBool(len(card.Profiles) > 0)
	s["nvidia.com/mig.strategy"] = "mixed"
}

// slices sets what is said about each kind of slice.
func (s labelSet) slices(card Card, layouts []Layout) {
	for _, p := range card.Profiles {
		n := 0
		for _, l := range layouts {
			for _, name := range l.Slices {
				if name == p.Name {
					n++
				}
			}
		}
		if n == 0 {
			continue
		}
		prefix := "nvidia.com/" + p.label() + "."
		s[prefix+"product"] = fmt.Sprintf("%s-MIG-%s", card.Product, strings.TrimPrefix(p.label(), "mig-"))
		s[prefix+"count"] = strconv.Itoa(n)
		s[prefix+"replicas"] = "1"
		s[prefix+"sharing-strategy"] = "none"
		s[prefix+"slices.gi"] = strconv.Itoa(p.Compute)
		s[prefix+"slices.ci"] = strconv.Itoa(p.Compute)
		s.number(prefix+"multiprocessors", p.SMs)
		s.number(prefix+"memory", p.MemoryMiB)
	}
}

// number sets a label unless the number is not known.
func (s labelSet) number(key string, n int) {
	if n > 0 {
		s[key] = strconv.Itoa(n)
	}
}

func (s labelSet) sorted() []Label {
	out := make([]Label, 0, len(s))
	for k, v := range s {
		out = append(out, Label{k, v})
	}
	slices.SortFunc(out, func(a, b Label) int { return strings.Compare(a.Key, b.Key) })
	return out
}
