package simulations

import (
	"errors"
	"strings"
	"time"

	"sluice.dev/sluice/admission"
)

// StateAt runs the scenario until the time at, without its expectations, and returns
// what its controller then knows, with the time on the wall of the virtual cluster:
// for questions about the middle of a story. The state is the caller's.
func StateAt(s *Scenario, o Options, at time.Duration) (*admission.State, time.Time, error) {
	c := *s
	c.Events = nil
	for _, e := range s.Events {
		if e.At <= at {
			c.Events = append(c.Events, e)
		}
	}
	c.Expect = []Expectation{{At: at}}
	o.blind = true
	r := newRun(&c, o)
	r.all()
	if r.breach != nil {
		return nil, time.Time{}, errors.New(strings.Join(r.breach.What, "; "))
	}
	return r.loop.State(), r.clock.Time(), nil
}

// Story is the scenario that is drawn by lot with the seed, of so many events: that
// of RunStory, but no card is lost and no agent falls silent.
func Story(seed uint64, events int) (*Scenario, error) {
	return Parse(storyFile(seed), []byte(drawStory(seed, events, nil).whole()))
}
