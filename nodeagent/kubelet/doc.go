// Package kubelet reads what the neighbours on a node say of its devices: the
// kubelet, which pod holds which (the podresources socket, API v1); NVIDIA's device
// plugin, how they are shared (its configuration file); and feature discovery, the
// same again (the node's labels).
//
//	podresources socket ──▶ Holdings, Offered     who holds what, what was registered
//	configuration file ─┐
//	node labels ────────┴─▶ Sharing               replicas, MPS, names, MIG strategy
//
// It decides nothing and joins nothing: what a device id means on this hardware is
// for package nodeagent/publish, what sharing means for placement for package gang.
//
// What always holds:
//   - Nothing here ends an agent. Each source may be missing, forbidden, old or
//     broken; the error or the warning says which, and the other sources still serve.
//   - The kubelet names devices only by the ids that the plugin gave it. Of several
//     replicas of one card the id does not say which pod computes where.
//   - Everything returned is sorted, so that equal states are equal values.
package kubelet
