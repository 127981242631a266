// Package podgroup lets Volcano's PodGroups be queued: it makes a Workload of each,
// follows what becomes of it, and says so in the PodGroup's status as Volcano's
// scheduler does, so that Volcano's own controllers work beside it.
//
//	pod, schedulerName volcano ──▶ default scheduler, gate    TakeOver, at creation
//	PodGroup, pods ──▶ Workload podgroup-NAME                 here
//	Workload       ──▶ status.admission                       admission/kube
//	gated pod      ──▶ bound to a pod set of the Workload     here
//	bound pod      ──▶ node, gate removed                     admission/kube
//	Workload, pods ──▶ PodGroup phase, counts, conditions     here
//	Evicted        ──▶ pods deleted, admission cleared        here
//
// It decides nothing about who is admitted. Kueue's own groups of pods are not used:
// they delete what is beyond the number that was announced, and a PodGroup may have
// any number of pods above its minimum.
//
// Where the pod sets come from: of a group that a Volcano Job owns, from the Job's
// tasks, before there is any pod; else from the pods, once there are as many as the
// minimum; and of a group without pods that says its minResources, from these, so that
// whoever makes pods only once the group is Inqueue has room waiting.
//
// Invariants:
//   - A pod is bound to a pod set only if it asks for what the pods of the set ask for,
//     and only after the Workload says so. Until then nothing lets it go.
//   - Pod sets of a Workload that holds quota are left alone. What may change while it
//     runs, how many pods there are, is in kube.GangAnnotation.
//   - Status is written where it has no subresource: by a patch of the object's status
//     alone, with its resourceVersion. A write that was too late is done again.
//   - Only pods that run are deleted, and only those of a Workload that is evicted or
//     whose plan has no place for them any more.
package podgroup
