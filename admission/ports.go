package admission

import "context"

// Journal makes decisions durable.
type Journal interface {
	// Append keeps the decision before anything of it is done, and gives it a number.
	Append(d *Decision) (seq uint64, err error)
	// Settle says that everything of the decision was answered.
	Settle(seq uint64) error
}

// Cluster carries decisions out. Every write may be repeated without harm.
type Cluster interface {
	// Carry writes what the decision says, in parallel if it likes, and returns one
	// Outcome for each admission, finish, move, eviction and release. It does not fail: a
	// write that was refused, or that nobody answered, is an Outcome.
	Carry(ctx context.Context, d *Decision) []Outcome
}
