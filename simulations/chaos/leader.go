package chaos

import (
	"context"
	"errors"
	"time"

	"sluice.dev/sluice/simulations/demo"
	"sluice.dev/sluice/simulations/e2e/witness"
)

// watchEvery is how often it is asked who leads.
const watchEvery = 100 * time.Millisecond

// watchLeader keeps who leads, and the times in which nobody does, until ctx ends.
func (r *run) watchLeader(ctx context.Context) {
	for ctx.Err() == nil {
		asked := time.Now()
		var leader *demo.Supervisor
		for _, s := range r.controllers {
			if s.Leads(ctx) {
				leader = s
			}
		}
		r.saw(leader, asked)
		select {
		case <-ctx.Done():
		case <-time.After(watchEvery):
		}
	}
}

// saw keeps what an answer says, from when it was asked for.
func (r *run) saw(leader *demo.Supervisor, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.leaderless)
	open := n > 0 && r.leaderless[n-1].To.IsZero()
	switch {
	case leader == nil && !open:
		r.leaderless = append(r.leaderless, witness.Interval{From: at})
	case leader != nil && open:
		gap := &r.leaderless[n-1]
		gap.To = time.Now()
		if r.leader != nil && leader != r.leader {
			r.report.FailOvers = append(r.report.FailOvers, gap.To.Sub(gap.From))
		}
	}
	if leader != nil {
		r.leader = leader
	}
}

// leading is who leads now, if somebody does.
func (r *run) leading() *demo.Supervisor {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.leaderless); n > 0 && r.leaderless[n-1].To.IsZero() {
		return nil
	}
	return r.leader
}

// awaitLeader returns who leads, once it was seen after the call.
func (r *run) awaitLeader(ctx context.Context) (leader *demo.Supervisor, err error) {
	if err := pause(ctx, 3*probeEvery); err != nil { // what was just done is seen
		return nil, err
	}
	err = r.eventually(ctx, "a controller leads", func() error {
		if leader = r.leading(); leader == nil {
			return errors.New("none does")
		}
		return nil
	})
	return leader, err
}

// well waits until the controllers are as they should be.
func (r *run) well(ctx context.Context) error {
	if _, err := r.awaitLeader(ctx); err != nil {
		return err
	}
	return r.eventually(ctx, "both controllers are ready", func() error {
		for _, s := range r.controllers {
			if !s.Ready(ctx) {
				return errors.New(s.Title() + " is not")
			}
		}
		return nil
	})
}
