package gang

import (
	"slices"
	"strconv"

	"sluice.dev/sluice/quota"
)

// Drift is a way in which what is claimed of a node and what its cards are differ.
type Drift string

// The ways, in the order in which they are told.
const (
	DriftAllocatable Drift = "allocatable" // the device plugin claims more or less than the cards are
	DriftLabels      Drift = "labels"      // a label says something else of the hardware, or is missing
	DriftLayout      Drift = "layout"      // a label counts other slices; or a card is not cut as it should be
	DriftReplicas    Drift = "replicas"    // a label says that cards are shared otherwise
	DriftLost        Drift = "lost"        // a card is lost
	DriftSilent      Drift = "silent"      // the agent reports nothing, so nothing can be compared
)

var drifts = []Drift{DriftAllocatable, DriftLabels, DriftLayout, DriftReplicas, DriftLost, DriftSilent}

// Expected is a label that a node should carry by what its cards are.
type Expected struct {
	Key, Value string // "" is no such label
	About      Drift  // what differs if the label does
}

// Difference is one thing that is claimed of a node and that its cards contradict.
type Difference struct {
	About   Drift
	What    string // the resource, the label, or the card as "card 3"
	Claimed string // what is said of it; "" is nothing
	Found   string // what the cards say; "" is nothing
}

// Differences compares what is claimed of a node with its cards: what its device
// plugin offers with what the cards in order do, and its labels with those expected.
// Cards that are lost are no drift of labels or allocatable by themselves: a plugin
// that no longer offers them is right, and labels describe what is built in. They
// come in the order of the ways, then as the cards, dimensions and labels do. name is
// what a dimension is called.
func (d *Deck) Differences(claimed quota.Resources, labels map[string]string, want []Expected, name func(dim int) string) []Difference {
	if d.Silent {
		return []Difference{{About: DriftSilent, What: "agent"}}
	}
	var list []Difference
	for dim := range d.governs {
		if has, is := claimed.At(dim), d.now.At(dim); d.Governs(dim) && has != is {
			list = append(list, Difference{DriftAllocatable, name(dim), strconv.FormatInt(has, 10), strconv.FormatInt(is, 10)})
		}
	}
	for _, l := range want {
		if labels[l.Key] != l.Value {
			list = append(list, Difference{l.About, l.Key, labels[l.Key], l.Value})
		}
	}
	for i, c := range d.Cards {
		what := "card " + strconv.Itoa(i)
		switch c.Out {
		case LostCard:
			list = append(list, Difference{DriftLost, what, "", c.Out})
		case Recutting, BrokenCut:
			list = append(list, Difference{DriftLayout, what, "", c.Out})
		}
	}
	slices.SortStableFunc(list, func(a, b Difference) int { return slices.Index(drifts, a.About) - slices.Index(drifts, b.About) })
	return list
}

// Drifts are the ways in which the node and its cards differ, each once.
func (d *Deck) Drifts(claimed quota.Resources, labels map[string]string, want []Expected) []Drift {
	return Ways(d.Differences(claimed, labels, want, strconv.Itoa))
}

// Ways are the ways of the differences, each once, in the order in which they are told.
func Ways(list []Difference) []Drift {
	return slices.DeleteFunc(slices.Clone(drifts), func(x Drift) bool {
		return !slices.ContainsFunc(list, func(d Difference) bool { return d.About == x })
	})
}
