package v1alpha1

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// HeartbeatNamespace is the namespace of the agents and of their heartbeats. Each
// agent renews the Lease with its node's name there after each look at the devices,
// so that an agent that hangs in the driver is silent too.
const HeartbeatNamespace = "sluice-agents"

// AgentName is the service account of the agents in HeartbeatNamespace, and their
// field manager.
const AgentName = "sluice-agent"

// AgentUser is the user name of the agents. A token of theirs also names their node, in
// the extra field NodeNameClaim.
const AgentUser = "system:serviceaccount:" + HeartbeatNamespace + ":" + AgentName

// NodeNameClaim is the extra field of a user in which the API server says for which
// node a bound token was made.
const NodeNameClaim = "authentication.kubernetes.io/node-name"

// Of a heartbeat: an agent renews its Lease every RenewEvery, and is silent if it has
// not for HeartbeatTime.
const (
	RenewEvery    = 20 * time.Second
	HeartbeatTime = 60 * time.Second
)

// Silent says whether an agent has not renewed its Lease in time. An agent without
// one is silent. The Lease says how long it counts.
func Silent(l *coordinationv1.Lease, now time.Time) bool {
	end, ok := SilentAt(l)
	return !ok || now.After(end)
}

// SilentAt is when the agent counts as silent unless it renews its Lease before. It is
// false if there is none to speak of. Clocks of nodes may differ from the reader's.
func SilentAt(l *coordinationv1.Lease) (time.Time, bool) {
	if l == nil || l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return time.Time{}, false
	}
	return l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second), true
}
