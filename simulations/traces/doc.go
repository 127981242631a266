// Package traces reads logs of real clusters that others have published: the
// Alibaba GPU lists (openb), the Standard Workload Format, such logs joined with the
// waits that a study published for every job, and Microsoft's Philly jobs.
//
// It decides what is a legal line and nothing else; what a job means to a cluster
// is left to who asks (package simulations/tables). Every reader is a sequence: a
// line is read when it is asked for, and nothing of the file is kept.
//
//	FILE[.gz] ── Open ──▶ File ── Pods, Nodes, Jobs, Records, ... ──▶ one value a line, or an error
//
// What holds:
//   - a line that is not legal ends the sequence with an Error of file, line and column;
//   - numbers are whole and in the unit that the field's comment gives;
//   - File.Fraction says how much has been read, for a progress line with an ETA.
//
// The data is not part of the repository; README.md says where it is published.
package traces
