package gang

import (
	"slices"

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

// Drifts compares what is claimed of a node with its cards: what its device plugin
// offers with what the cards in order do, and its labels with those expected. Cards
// that are lost are no drift of labels or allocatable by themselves: a plugin that
// no longer offers them is right, and labels describe what is built in.
func (d *Deck) Drifts(claimed quota.Resources, labels map[string]string, want []Expected) []Drift {
	if d.Silent {
		return []Drift{DriftSilent}
	}
	found := map[Drift]bool{}
	for dim := range d.governs {
		if d.Governs(dim) && claimed.At(dim) != d.now.At(dim) {
			found[DriftAllocatable] = true
		}
	}
	for _, l := range want {
		if labels[l.Key] != l.Value {
			found[l.About] = true
		}
	}
	for _, c := range d.Cards {
		switch c.Out {
		case LostCard:
			found[DriftLost] = true
		case Recutting, BrokenCut:
			found[DriftLayout] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(drifts), func(x Drift) bool { return !found[x] })
}
