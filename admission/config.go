package admission

import "time"

// Config is the policy of the controller. The zero value is not useful; start from
// DefaultConfig.
type Config struct {
	// ReserveAfter is how long a claim is blocked before room is reserved for it.
	ReserveAfter time.Duration
	// Reservations is for how many blocked claims room is reserved in a cycle.
	// 1 is what is called EASY backfill, more is conservative.
	Reservations int
	// ShortestFirst lets the shortest limit go first among what waits in a queue behind a
	// claim of it for which room is reserved (SJBF): of one priority, who declares
	// the shorter limit before who declares a longer one or none. Who is first in the
	// queue stays so, and has room kept, so nobody starves.
	ShortestFirst bool
	// MostActs is how many gangs one cycle admits at most; 0 has no bound. While the
	// writes of a decision are under way nothing else is decided and no pod of those
	// admitted is released, so a backlog that fits is better let in by pieces. The next
	// cycle goes on where this one stopped.
	MostActs int
	// RecoveryWindow is how long an admitted gang may miss pods that it needs before
	// it is taken back whole.
	RecoveryWindow time.Duration
	// MinRuntime protects every gang that long after its admission.
	MinRuntime time.Duration
	// GrowEvery is the least time between two growths of an elastic gang.
	GrowEvery time.Duration
	// FairReclaim lets borrowers take back from borrowers with the larger share.
	FairReclaim bool
	// HalfLife lets what queues used of late join their shares where the order is
	// decided; it counts half after that long. 0 forgets at once.
	HalfLife time.Duration
	// RetryBase and RetryMost bound the wait after a write that was refused: the
	// first wait, doubled each time, at most RetryMost.
	RetryBase, RetryMost time.Duration
}

// DefaultConfig returns the policy that holds where the owner says nothing.
func DefaultConfig() Config {
	return Config{
		ReserveAfter:   2 * time.Minute,
		Reservations:   100,
		RecoveryWindow: time.Minute,
		GrowEvery:      30 * time.Second,
		FairReclaim:    true,
		RetryBase:      time.Second,
		RetryMost:      time.Minute,
	}
}
