// Package publish puts what a node's agent saw into the cluster: the node's
// SliceInventory, and a Lease that says that the agent is alive.
//
//	nodeagent/nvml ──Report──────┐
//	nodeagent/kubelet ─Neighbours┴▶ Seen ─Convert─▶ report ─Book─▶ changed? ─▶ SliceInventory
//	                                 └──────────── was there a look lately? ─▶ Lease
//
// It joins the two sources and decides nothing: not what an outage means for pods, and
// not what to do about it.
//
// What always holds:
//   - Every report is one that the API server accepts: texts are cut, lists bounded,
//     placements that contradict each other left out, and a problem says so.
//   - An inventory is written if it says something else than the last one, at most once a
//     second, the latest at a time. What fails is said once and tried again, seldomer
//     the longer it lasts.
//   - Since when something is as it is outlives the agent: it is read back at the start.
//   - A heartbeat is sent only if the devices were looked at lately, so that an agent that
//     hangs in its driver falls silent. It does not depend on inventories being accepted.
package publish
