// Package queue holds the workloads that wait, per team, and puts them in order.
//
// It decides which workload is the next claim: within its queue, and among
// queues. It leaves to others whether the claim can be met (packages quota and
// gang) and what happens if not (package admission).
//
// A Set keeps the waiting workloads of every queue grouped by shape: workloads of
// one shape ask for the same from the same queue, so one answer serves them all.
// A Contest finds, again and again, the best next claim over the tree of queues:
//
//	Set: queue ─▶ groups by shape ─▶ members by priority, age, UID
//	Contest.Best ─▶ leaf by leaf up the tree: owned before borrowed, then the
//	                queue's priority, then the smaller share, then the workload
//
// Invariants:
//
//   - the order is total: two workloads never tie, since UIDs differ;
//   - it depends on the values alone, not on the order in which they came in;
//   - a workload is in at most one group.
package queue
