// Package simulations reads scenario files and runs them on a virtual cluster
// and clock. A scenario is a small story: hardware, queues, what happens when,
// and what must be true. The same file is a test, a bug report and a what-if.
//
// The first half of the package is the reader. It decides whether a file is
// valid and turns it into plain structs in which nothing is implied any more:
//
//	bytes ── yaml ──▶ node tree ── tables ──▶ Scenario ── names over time ──▶ valid, or Errors
//	                  (lines)      (grammar.go)           (validate.go)
//
// Every key, verb and expectation is one row of a table with the function that
// reads it and the sentence that documents it; README.md shows the same rows
// and a test compares the two. What the engine cannot execute yet is listed in
// supported.go and is no error of the file.
//
// What holds for a Scenario that Parse returned without error:
//   - every name that it uses is declared, at that time, by the file itself;
//   - times and counts are not negative, amounts are int64 base units
//     (millicores, bytes, units) and math.MaxInt64 means "more than anything
//     can hold";
//   - `count`, `every`, `times` and `{i}` are expanded, events and expectations
//     are in the order in which they are due, file order within an instant;
//   - each layout has a legal placement on its card.
//
// It is left to the controller whether a workload makes sense: a minimum above
// the number of pods is a legal file, and the answer is Invalid.
//
// The second half runs a Scenario on the real admission.Loop:
//
//	Scenario ──events──▶ Clock ──due──▶ Cluster ──Changes──▶ Loop.Observe ─┐
//	                       ▲              ▲   │                            │
//	                       │ pods stop,   │   └─Snapshot─▶ a new State     │ State
//	                       │ gangs end    │                after a crash   │
//	                       └──────────────┴───── Carry ◀──── Loop.Step ◀───┘
//
// Cluster plays everything that the controller talks to: the API server with
// its objects and versions, job controllers, kube-scheduler and kubelets. It
// counts for itself who uses what, and believes nothing that the core says of
// it. What the core asks for and a real cluster could not do, what a check of
// the State finds, and two runs that differ end a scenario at once, with time
// and seed: these are not expectations of a file but of every file.
//
// What holds for a run:
//   - one goroutine, no wall time, and one trace for one seed, byte for byte;
//   - what is due at an instant is over before the controller decides, and all
//     of it has settled before an expectation looks;
//   - the controller learns of a change only from what Changes delivers, never
//     from inside a write, and a new one only from Snapshot;
//   - State.Check holds after every event and every step.
package simulations
