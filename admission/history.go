package admission

import (
	"time"

	"sluice.dev/sluice/quota"
)

// history is what queues used of late, for shares that remember.
type history struct {
	at   time.Time                  // as of when
	used map[string]quota.Resources // running averages, by queue
	now  map[string]quota.Resources // what is used since then, by queue
}

// join lets the ledger's standings remember.
func (h *history) join(l *quota.Ledger) {
	if h.used != nil {
		l.SetPast(h.used)
	}
}

// upTo is the history at now. What queues use since h.at has not changed in between,
// since every change is followed by a cycle.
func (h *history) upTo(now time.Time, halfLife time.Duration) map[string]quota.Resources {
	out := map[string]quota.Resources{}
	dt := now.Sub(h.at)
	for name, r := range h.used {
		out[name] = quota.Average(r, h.now[name], dt, halfLife)
	}
	for name, r := range h.now {
		if _, known := out[name]; !known && !h.at.IsZero() {
			out[name] = quota.Average(nil, r, dt, halfLife)
		}
	}
	return out
}

// remember works the past up to the pass's time into the standings of its ledger.
func (p *pass) remember() {
	if p.s.cfg.HalfLife <= 0 {
		return
	}
	used := p.s.past.upTo(p.now, p.s.cfg.HalfLife)
	p.today.SetPast(used)
	past := &Past{At: p.now, Used: map[string]map[string]int64{}}
	for name, r := range used {
		named := map[string]int64{}
		for i, v := range r {
			if v > 0 {
				named[p.s.Space.Name(i)] = v
			}
		}
		past.Used[name] = named
	}
	p.d.Past = past
}

// pastSeen takes over a history, as a cycle or the journal tells it, and notes what
// is used from then on.
func (s *State) pastSeen(past *Past) {
	h := history{at: past.At, used: map[string]quota.Resources{}, now: map[string]quota.Resources{}}
	for name, amounts := range past.Used {
		h.used[name] = s.Space.Vector(amounts)
	}
	for id := 1; id < s.tree.Len(); id++ {
		if own := s.ledger.Own(id); !own.IsZero() {
			h.now[s.tree.Name(id)] = own.Clone()
		}
	}
	s.past = h
	h.join(s.ledger)
}
