// Package witness watches a cluster from outside and says afterwards which of
// sluice's promises were broken in it.
//
//	watches ─▶ Record, one for each version of each object ─▶ Log
//	Log ─ in the order of their revisions ─▶ World, step by step ─▶ rules ─▶ Violation
//
// It knows nothing of sluice's code: only objects, as the API server hands them
// out. The order of what happened is that of the resource versions, which one
// store counts for all kinds; when a watch delivered it says nothing. Durations
// are those between deliveries.
//
// Rules:
//   - Unschedulable: no pod of a workload is ever said to be unschedulable;
//   - Unadmitted: no pod is released while its Workload is not admitted;
//   - Unmanaged: no pod of a queued Job, and no queued pod, is without a gate
//     when it is created;
//   - Elsewhere: a pod runs on a node of its plan, and no more of them there
//     than the plan says;
//   - NodeOver: what is bound to a node or released to it is no more than the
//     node has;
//   - QueueOver: the released pods of a queue ask for no more than its maximum;
//   - HalfReleased: no gang has both released pods and gated ones, for which its
//     plan has a place, for longer than a bound, leaving out times in which that
//     could not be mended.
//
// After a watch was broken and the objects had to be listed anew, what happened
// in between is unknown: such times are blind, and nothing is judged in them.
package witness
