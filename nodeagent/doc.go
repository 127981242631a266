// Package nodeagent says what the GPUs of one node are: which cards there are, how
// they can be cut and are, what is wrong with them.
//
// A Report is the answer of one look at them, in plain types without Kubernetes or
// driver, so that it can be recorded, replayed and compared. Package nodeagent/nvml
// fills it from the driver, nodeagent/kubelet knows what the neighbours on the node
// say, nodeagent/publish joins the two and writes the result to the cluster.
//
// It decides nothing. What it leaves to others: what a device's state means for
// placement (package gang), and who may use it (package quota).
package nodeagent
