// Package kube turns API objects into events of the core, and decisions of the
// core into writes to the API.
//
// It decides nothing about who is admitted and where: that is package admission.
// It leaves to admission/jobs which jobs become Workloads, and how they start and
// stop; to admission/journal how decisions survive a crash.
//
//	informers ─▶ inbox ─▶ convert ─▶ admission.Loop ─▶ carrier ─▶ API server
//	              (the newest      one goroutine       many workers
//	               of each object)                        │
//	                    ▲                                 │ no answer: read again
//	                    └─────────────────────────────────┘
//
// One goroutine, the runner's, owns the Loop and everything that is known of the
// cluster; it runs on the leader only. Informers hand it the newest version of
// each object; what has not changed for the core makes no event.
//
// What is written:
//
//	Workload  status.admission with one node for every pod, and its conditions, in
//	          one server-side apply as field manager kueue-admission
//	Pod       required node affinity by metadata.name, the node as an annotation,
//	          the gate kueue.x-k8s.io/topology removed, in one merge patch
//	queues    status: counts, usage, Active; at most once a second each
//	Events    one for each change of the reason why a workload waits
//
// Invariants:
//
//   - a write about a workload carries the resourceVersion that was decided on; a
//     write about a pod carries its UID. Both may be repeated without harm;
//   - after a write without an answer nothing more is decided about the object
//     until the API server has said what it is now;
//   - what is refused is not tried again at once: its next try has a growing delay;
//   - one bad object never stops the others: it gets a condition or an event, and
//     what depends on it a reason.
//
// What pods mind of other pods (affinity, anti-affinity, topology spread) is planned as
// kube-scheduler will check it, in both directions: others may mind a gang too. The
// core knows no selectors but groups, dimensions called (group):N in which pods are
// counted on their nodes; a selector has one while it chooses pods of somebody else
// than the one gang that minds them. See groups.
//
// A queue that names AdmissionChecks admits in two steps: places and charge with
// QuotaReserved, and Admitted, on which jobs start, when the controllers of all checks
// that apply have said Ready. See checks.
//
// A ClusterQueue bounds only the resources that it lists; of others its workloads may
// use what the nodes have. Kueue's quota is counted by flavor and resource, in dimensions called
// FLAVOR:RESOURCE; Volcano's in the resources of the pods. Queues of the two
// families share the hardware and do not lend to one another.
package kube
