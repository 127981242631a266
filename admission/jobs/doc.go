// Package jobs lets kinds of job be queued. It runs Kueue's job integrations
// inside sluice's manager: they suspend a labelled Job at creation, make its
// Workload, start it when the Workload is admitted, stop it when it is evicted,
// and say when it has finished.
//
// It decides nothing about who is admitted. It leaves to admission/kube the
// other half of the handshake:
//
//	Job, pods ──▶ Workload             here
//	Workload  ──▶ status.admission     admission/kube
//	Admitted  ──▶ Job unsuspended      here; its pods carry the gate kueue.x-k8s.io/topology
//	pod       ──▶ node, gate removed   admission/kube
//	Evicted   ──▶ Job suspended, pods deleted, then status.admission cleared   here
//
// A kind that nobody wrote an integration for is described by a Kind: paths of the
// few fields that matter. It is queued like the others. A kind whose CRD comes late is
// noticed within two minutes: Kueue looks for it less and less often.
//
// Volcano's PodGroups are queued by the subpackage podgroup, which has nothing to do with
// Kueue's integrations.
//
// Everything of Kueue's controllers stays behind this package and its
// subpackage webhook, since their signatures change from version to version.
// Other packages see Kueue's API types and the functions in its pkg/workload.
//
// Invariants:
//   - Kueue's queue manager and scheduler cache, which the integrations must
//     have, are real but never fed. So no LocalQueue is a namespace's default,
//     and only a label makes a job ours.
//   - Every integration is linked; the configuration says which are enabled. One
//     whose CRD is absent starts when it comes. One that is not enabled may have a
//     handler, of which the API server is told nothing.
//   - One process, one Setup: the integrations register themselves in a table
//     that is global to the process.
package jobs
