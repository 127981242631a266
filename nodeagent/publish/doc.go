// Package publish puts what a node's agent saw into the cluster: the node's
// SliceInventory, and a Lease that says that the agent is alive.
package publish
