// Package chaos breaks a running sluice on a real control plane for as long as it is
// told to, under a load of gangs, and has the witness say whether any promise was
// broken meanwhile.
//
//	seed ─┬─▶ load: Jobs of many shapes, two teams that take back from each other
//	      └─▶ faults, one after the other ─▶ controllers, control plane, objects
//	witness (simulations/e2e/witness) ─▶ Verdict of each round ─▶ Report
//
// Two controllers run, one leads. In front of their webhooks stands what a Service
// would be: it hands a connection to one that is ready.
//
// A round is a few faults with the load going on, and ends when a controller leads
// again, both are ready and no Job is half released; then the witness is asked. After
// the last round the load ends by itself: every Job must come to its end, no queue
// may count anything any more, and no controller may have found its own state wrong.
//
// A seed fixes what is done and in which order, not the instants at which the
// cluster's parts answer: it repeats a kind of run, not a run.
//
// What is not tried here: a machine's clock that steps, a full disk under the journal,
// an API server that answers 429, nodes that go while gangs run on them. The first two
// and the last are faults of the simulator, which can repeat them.
package chaos
