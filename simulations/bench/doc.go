// Package bench measures managers of Workloads beside each other on one machine:
// sluice, Kueue's own scheduler and core controllers, and one that admits everything
// at once and counts nothing, which is the ceiling that the API server and the load
// allow.
//
//	Shape ─▶ load: queues, then Workloads class by class, each at its own pace
//	fresh API server ◀─ manager under measure, a process of its own
//	watch ─┬─▶ runner: a Workload that was admitted ends after its run time
//	       ├─▶ ledger: no queue and no cohort over its quota, at any instant
//	       └─▶ Result: admissions a second, time to admission by class
//	audit log ─▶ writes by user agent; process ─▶ CPU seconds, peak memory
//
// There are no pods and no nodes: what is measured is the decision and its way into
// the API. All figures of a table are from one run, each manager on an API server of
// its own, one after the other; ratios are what they are for. A manager that admits
// more than the quota allows has no result, however fast it is.
//
// It is a module of its own because it builds Kueue's scheduler, which nothing else
// here needs.
package bench
