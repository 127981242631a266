package kube

import (
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// agents is what the agents of nodes reported last, and when they were heard of.
type agents struct {
	inventories map[string]*v1alpha1.SliceInventory // by node
	heard       map[string]*coordinationv1.Lease    // by node
	silent      map[string]bool                     // as the core was told
	labelled    map[string]bool                     // nodes on which feature discovery names a product

	touched map[string]bool // nodes to convert once more
	next    time.Time       // when the next agent may have fallen silent; zero is never
	hush    time.Time       // since when no agent at all is heard, of several; zero is that one is
}

func newAgents() *agents {
	return &agents{
		inventories: map[string]*v1alpha1.SliceInventory{}, heard: map[string]*coordinationv1.Lease{},
		silent: map[string]bool{}, labelled: map[string]bool{}, touched: map[string]bool{},
	}
}

// sawAgent takes in what an agent reports, or that it is there.
func (r *runner) sawAgent(n news) {
	a := r.agents
	switch n.kind {
	case inventoryKind:
		keep(a.inventories, n.name, as[*v1alpha1.SliceInventory](n.now))
		if n.now == nil {
			delete(r.drifted, n.name)
		}
		a.touched[n.name] = true
		a.expect(n.name)
		if parts := partsOf(a.inventories); !maps.Equal(parts, r.catalog.parts) {
			r.catalog.parts, r.catalog.dirty = parts, true
		}
	case leaseKind:
		keep(a.heard, n.name, as[*coordinationv1.Lease](n.now))
		if n.now == nil || a.silent[n.name] {
			a.touched[n.name] = true
		}
		a.expect(n.name)
	default:
		panic("kube: " + kindName(n.kind) + " is no word of an agent")
	}
}

// expect sees to it that the agent's silence is noticed.
func (a *agents) expect(node string) {
	if a.inventories[node] == nil {
		return
	}
	if end, ok := v1alpha1.SilentAt(a.heard[node]); ok && (a.next.IsZero() || end.Before(a.next)) {
		a.next = end
	}
}

// sawNode keeps whether any node has labels of feature discovery: in a cluster without
// it none is missed.
func (a *agents) sawNode(name string, n *corev1.Node) {
	before := len(a.labelled) > 0
	if n != nil && n.Labels[v1alpha1.LabelProduct] != "" {
		a.labelled[name] = true
	} else {
		delete(a.labelled, name)
	}
	if before != (len(a.labelled) > 0) {
		for node := range a.inventories {
			a.touched[node] = true
		}
	}
}

// hushed says whether several agents fell silent together, and lately: then it is more
// likely that the API server was away than all of them. They get as long as a heartbeat
// counts to be heard again. Agents that were never heard get no such time.
func (a *agents) hushed(now time.Time) bool {
	known := 0
	for node := range a.inventories {
		end, ok := v1alpha1.SilentAt(a.heard[node])
		if !ok || a.silent[node] {
			continue
		}
		if known++; !now.After(end) {
			a.hush = time.Time{}
			return false
		}
	}
	if known < 2 {
		return false
	}
	if a.hush.IsZero() {
		a.hush = now
	}
	until := a.hush.Add(v1alpha1.HeartbeatTime)
	if now.After(until) {
		return false
	}
	a.next = until
	return true
}

// due are the nodes whose cards may be others than the core was told, by name: agents
// spoke, or fell silent.
func (a *agents) due(now time.Time) []string {
	if !a.next.IsZero() && now.After(a.next) && !a.hushed(now) {
		a.next = time.Time{}
		for node := range a.inventories {
			if end, ok := v1alpha1.SilentAt(a.heard[node]); ok && !now.After(end) {
				a.expect(node)
			} else if !a.silent[node] {
				a.touched[node] = true
			}
		}
	}
	if len(a.touched) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(a.touched))
	clear(a.touched)
	for _, node := range names {
		a.silent[node] = a.inventories[node] != nil && v1alpha1.Silent(a.heard[node], now) && !a.hushed(now)
		if !a.silent[node] {
			delete(a.silent, node)
		}
	}
	return names
}

// cardsOf is how many cards the node has, in the unit of quota.Cards.
func (a *agents) cardsOf(n *corev1.Node) int64 { return cardsOf(n, a.inventories[n.Name]) }

// cards are the cards of the node and the labels that follow from them.
func (a *agents) cards(reader *cardReader, n *corev1.Node) (*gang.Deck, []gang.Expected) {
	inv := a.inventories[n.Name]
	deck := reader.deck(n, inv, a.silent[n.Name])
	if inv == nil || len(a.labelled) == 0 {
		return deck, nil
	}
	var expected []gang.Expected
	for _, f := range inv.Report.Features() {
		expected = append(expected, gang.Expected{Key: f.Key, Value: f.Value, About: aboutLabel(f.Key)})
	}
	return deck, expected
}

// aboutLabel is in which way a node and its cards differ if the label does.
func aboutLabel(key string) gang.Drift {
	switch {
	case key == v1alpha1.LabelReplicas, key == v1alpha1.LabelSharing:
		return gang.DriftReplicas
	case strings.HasPrefix(key, "nvidia.com/mig-"):
		return gang.DriftLayout
	default:
		return gang.DriftLabels
	}
}
