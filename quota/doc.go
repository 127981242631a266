// Package quota counts what each team is charged against what it owns, lends
// and may borrow.
//
// It decides one thing: whether a charge is within the bounds of a queue and
// of every queue above it, and how far each queue is beyond what it owns. It
// leaves to others who is served first (package queue), where pods go
// (package gang) and who has to give back (package admission).
//
// A Tree holds the queues under a nameless root, which is the hardware. Each
// queue owns its nominal, may lend it, may use at most its max, and borrows
// what its siblings lend and what no child of its parent owns:
//
//	root = the cluster
//	└── org            nominal 16
//	    ├── a  w 2     nominal 8, max 12
//	    └── b  w 1     no nominal: its part of the 8 that nobody owns
//
// A Ledger holds the charges. Invariants, all verified by Ledger.Check:
//
//   - the usage of a queue is the sum of its children's and its own charges;
//   - no usage is negative, and what is released was charged before;
//   - what a queue does not lend is never counted as free for its siblings.
//
// Amounts are int64 in the smallest unit of each resource (millicores, bytes,
// pieces). Sums saturate at Most, which no bound and no node ever reaches, so
// an amount too large for int64 means "never", not a negative number.
package quota
