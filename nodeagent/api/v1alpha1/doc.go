// Package v1alpha1 holds SliceInventory, what one node's GPUs are, as the node's own
// agent sees them.
//
//	sluice-agent ──report──▶ SliceInventory ──▶ controller, people
//	controller ──status.conditions──▶
//
// Two writers, two parts: the agent of the node writes all but the status, the
// controller writes the status and nothing else. The object's generation therefore
// counts the changes of the report. A node without an agent has no such object.
//
// It decides nothing. Whether a card that is in order suits a pod is for package gang;
// what to do about a problem is for people.
//
// What always holds:
//   - The object has the name of its node and is owned by it.
//   - A card that the node has a slot for is listed, lost or not, with what could
//     be read of it. What could not be read is left out and named in Problems; it is
//     never guessed.
//   - Nothing in it is only a time or a counter that runs: it is written if something
//     changed, and an agent that is silent is known by its Lease.
//
// # For readers
//
// A node's cards as package gang wants them follow from the object and the Node:
//
//   - one Kind for each Model: its grid from Units and Profiles (Name, Size, Starts, Sole),
//     the dimension of a profile from Report.SliceResource;
//   - one Card for each card, in the order of Cards: what it offers from
//     Report.Offers, Cut from Card.InMIGMode, Replicas from Report.Replicas, Layout from
//     Card.Layout, Out from Card.Out;
//   - the dimension of whole cards, and their shares, from Report.WholeResource;
//   - that the deck is silent from Silent and the Lease of the node's name in
//     HeartbeatNamespace;
//   - that mig-manager cuts the cards, and that the plugin is paused, from the node's
//     labels: the agent does not repeat them.
//
// What is taken is counted from pods, as everywhere; Holdings say which device each got.
//
// +groupName=sluice.dev
// +kubebuilder:object:generate=true
package v1alpha1
