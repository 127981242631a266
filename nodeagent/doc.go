// Package nodeagent will read one node's devices and publish them. Nothing of it is
// built yet: until then a node is what its allocatable and its labels say, which
// admission/kube reads.
//
// It will decide nothing. What it leaves to others: what a device's state means for
// placement (package gang), and who may use it (package quota).
package nodeagent
