// Package gang finds a place for every pod of a gang, or says how near it came.
//
// It decides on which node each pod of a gang goes: all of its pods, or none. It
// leaves to others whether the gang may go at all (package quota), who goes first
// (package queue) and whose pods would have to leave (package admission).
//
// An Inventory is what nodes offer and what is taken of it. Place reads it and
// returns a Plan, which names a node for every pod, or a Shortfall, which counts
// for every pod set how many pods found a place and what kept the nodes out.
//
//	Spec + Inventory ──Place──▶ Plan | Shortfall
//	Inventory.Take(plan) / Give(plan), undone by Mark and Undo
//
// Invariants:
//
//   - a plan takes nothing that is not free, and only nodes that the pod set's
//     Filter passes;
//   - a required level holds the whole gang in one domain;
//   - a plan breaks no rule of its pods about other pods (Apart, Spread), nor one that
//     others have about them, as long as every pod says in which groups it is;
//   - the same inventory and spec give the same plan, whatever happened before.
//
// GPUs are a Deck of Cards on a Node, where somebody reports them: what each offers
// as it is cut and shared, and which are out of use. Only counts are promised; which
// card a pod gets is the device plugin's choice. What the cards could be cut into is
// a Grid for each model, learned from the hardware: no table of models is here.
//
//	allocatable + Deck ──Equip──▶ Node (the smaller of both, outages)
//	Deck + labels ──Drifts──▶ what is claimed otherwise than it is
//	Inventory ──Vacant(Relax)──▶ the empty cluster, with one excuse after the other taken back
//
// Which pods are alike to a rule is for others to say: a Group is a dimension in which
// its pods are counted on their nodes, as what they take is, and the pod sets of the
// gang itself that are in it. So whatever is taken, given back, tried and undone, the
// groups are too. Nobody offers them or is charged for them.
//
//	Apart    at most so many pods of a group in one domain, or a wish for few
//	Spread   domains hold about as many of a group, or a wish for that
//	Near     only domains in which others of a group are
//	Wishes   nodes that pods would rather be on, by weight
//	Roomy    the emptiest node first, not the fullest
//
// For alike pods filling nodes one by one is exact, also where they keep apart on
// nodes and in domains of one kind; with more kinds Shortfall.Cut says that it is not. For unlike pods it is not, so
// Place then searches, within a bound; Shortfall.Cut says when the bound ended it.
package gang
