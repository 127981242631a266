// Package fleet plays the machines with GPUs of a cluster whose nodes are simulated:
// their cards, and the programs of NVIDIA and ours that run on them.
//
//	fleet file ─▶ Host ── mock cards ─▶ nvml.Probe ─▶ publish.Publisher ─▶ SliceInventory, Lease
//	               │          │                        (the agent's own code, its own token)
//	 control ──────┘          └─▶ device plugin ─▶ the node's allocatable
//	                          └─▶ feature discovery ─▶ the node's labels
//
// The agents are the real code with the rights of the real service account: each has
// a token bound to a pod on its node. The device plugin and feature discovery are played
// after their documentation, and can be told to stop looking, which is how a node
// comes to claim what its cards are not.
//
// It decides nothing about pods; kubelets are played by others.
//
// What holds:
//   - what a node claims follows from its cards within moments, unless the program
//     that says so was frozen;
//   - a resource that was offered once stays in the node's status with 0, as a kubelet
//     leaves it;
//   - a Host that stops leaves everything as it was last: its agent falls silent.
package fleet
