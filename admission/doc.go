// Package admission turns state and a time into decisions, and applies events to
// state.
//
// It decides which gangs start, on which nodes, which have to give back, and why
// the others wait. It leaves to others how that is written to the cluster
// (admission/kube) and kept through a crash (admission/journal).
//
//	Event ──State.Apply──▶ State ──Cycle(state, now)──▶ Decision
//	                        ▲                              │
//	                        │      Loop.Step: Journal.Append, Apply(Assumed),
//	                        └────── Outcomes ◀── Cluster.Carry, Journal.Settle
//
// One writer: only Apply changes a State. One decider: Cycle reads it and leaves
// it as it was. One actor: the Loop. A workload passes through these phases:
//
//	          Assumed{Admit}          Assumed{Evict} or seen evicted
//	Waiting ────────────────▶ Admitted ────────────────▶ Stopping
//	   ▲  ▲  Refused             │                           │
//	   │  └──────────────────────┤ seen finished             │ pods gone
//	   │                         ▼                           │
//	   │                      Finished                       │
//	   └─────────────────────────────────────────────────────┘
//
// Charge and capacity follow pods: a gang is charged for every place that its plan
// names and for every pod of it that still exists, whatever its phase. Invariants,
// all verified by State.Check:
//
//   - what queues and nodes count is what plans and pods add up to;
//   - an admitted gang has a place for at least its minimum;
//   - no node has more taken by plans than it offers when they were made;
//   - a workload waits in the set exactly when it is Waiting and may be tried.
//
// Nothing here reads a clock, draws a random number, starts a goroutine, logs or
// knows Kubernetes. Time comes in as now.
package admission
