// Package journal makes decisions durable and replays the unsettled ones.
//
// It decides nothing. The API server holds the truth about the cluster; the
// journal holds what the API server does not: decisions that were made and whose
// answers are not all in, and a bounded history of settled ones with their
// numbers. Without the file the same gangs are admitted; only history is lost.
// What an unsettled decision still asks for is left to whoever replays it, and
// when decisions are made to package admission.
//
//	Append(d) ──▶ unsettled ──Settle(seq)──▶ settled ──▶ dropped, oldest first,
//	                  │                                  when history is full
//	                  └── crash ──▶ Replay() in the next process
//
// Invariants:
//
//   - when Append returns a number the decision is on disk; when it returns an
//     error the decision was not acted on, and may or may not be on disk;
//   - numbers rise by one and are not used again while the file lives;
//   - an unsettled decision is never dropped;
//   - a file that is not what was written is never read as if it were: it is moved
//     aside, and a fresh one takes its place;
//   - one process has the file at a time.
//
// A file has a format number. A program refuses a file of a later format and
// leaves it as it is.
//
// Memory is the same without a file, for simulations: it can be made to crash
// before or after each call takes effect.
package journal
