// Package takeover brings what runs under Kueue or Volcano under sluice, and says
// beforehand what will be otherwise.
//
// It decides nothing: what a field comes to is in deploy/COMPATIBILITY.md, and what runs
// goes on where it runs. It runs once, from the command line, with the rights of whoever
// calls it, after the other scheduler was stopped and best before sluice is started.
//
//	objects      ──▶ Changes   fields that mean something else here, or nothing
//	what runs    ──▶ Find      one Adoption each: its pods, by pod set and node
//	Adoption     ──▶ Adopt     pods are marked, the Workload's admission names their nodes
//
// Invariants:
//   - No pod is deleted, made or restarted: of pods only labels and annotations change.
//   - An admission that is written is where the pods are, no more and no less, so that
//     what is charged afterwards is what runs.
//   - Every step may be repeated: what was adopted is found as such.
//   - What cannot be adopted whole is left as it is, and said.
package takeover
