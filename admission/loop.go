package admission

import (
	"context"
	"fmt"
	"time"
)

// Loop is the one actor: it lets a cycle decide, makes the decision durable, counts
// it as done, and has the cluster carry it out, in this order. A crash between any
// two of these steps loses nothing: before Append nothing was decided, after it
// the decision is in the journal, and the cluster tells what of it was done.
//
// A Loop is used by one goroutine at a time.
type Loop struct {
	state   *State
	journal Journal
	cluster Cluster
}

// NewLoop returns a loop over a state that has seen the whole cluster.
func NewLoop(s *State, j Journal, c Cluster) *Loop { return &Loop{state: s, journal: j, cluster: c} }

// State returns the loop's state, for reading between steps.
func (l *Loop) State() *State { return l.state }

// Observe applies what was seen in the cluster.
func (l *Loop) Observe(events ...Event) {
	for _, e := range events {
		l.state.Apply(e)
	}
}

// Step decides and acts once. It returns what was decided. An error is the
// journal's; nothing was then done of a decision that could not be appended.
func (l *Loop) Step(ctx context.Context, now time.Time) (Decision, error) {
	d := Cycle(l.state, now)
	if !d.Acts() {
		l.state.Apply(Assumed{d})
		if len(d.Verdicts) > 0 {
			l.cluster.Carry(ctx, &d)
		}
		return d, nil
	}
	seq, err := l.journal.Append(&d)
	if err != nil {
		return d, fmt.Errorf("append decision: %w", err)
	}
	d.Seq = seq
	l.state.Apply(Assumed{d})
	for _, o := range l.cluster.Carry(ctx, &d) {
		l.state.Apply(o)
	}
	if err := l.journal.Settle(seq); err != nil {
		return d, fmt.Errorf("settle decision %d: %w", seq, err)
	}
	return d, nil
}
