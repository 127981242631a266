// Package nodeagent says what the GPUs of one node are. It is what the agent on each
// node knows before anybody turns it into objects of a cluster.
//
//	nodeagent/nvml ── Report ──▶ nodeagent/publish ──▶ SliceInventory (nodeagent/api/v1alpha1)
//	nodeagent/kubelet ───────────┘  which pod holds which device, how devices are shared
//
// It decides what a card's state means (Outage: lost, failing, to be reset, a mode that
// waits), what NVIDIA's catalog says of an error (Xid), and what outlives one look (Memory:
// errors that were heard, how often cards were cut otherwise).
//
// It leaves to others how the driver is asked (nvml), who else is asked (kubelet), what is
// written where (publish), and what any of it means for pods (package gang).
//
// What always holds:
//   - a card for which the driver has a slot is listed, lost or not; one that cannot be
//     read hides no other;
//   - what could not be read is absent and named in Errors, with the driver's answer; it
//     is never guessed;
//   - a Report is a value: equal states are equal reports but for their times.
package nodeagent
