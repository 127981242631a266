package answer

import (
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/admission"
)

// ETA is when a gang is expected to start: not before Early, and by Late if what it
// assumes holds. Unknown says why nothing can be said.
type ETA struct {
	Early   *time.Time `json:"early,omitempty"`
	Late    *time.Time `json:"late,omitempty"`
	Assumes string     `json:"assumes,omitempty"`
	Unknown string     `json:"unknown,omitempty"`
}

// horizon is how far ahead a start is looked for.
const horizon = 14 * 24 * time.Hour

// playNodes and playInstants bound what letting time pass may cost: on a larger
// cluster a start is taken from reservations.
const (
	playNodes    = 1000
	playInstants = 500
)

// soonest is the part of their time limits after which jobs end at the soonest, for
// Early: one in so many. Who uses less than that makes it too late.
const soonest = 4

// comers is how much of the wait until all limits have run out is added to Late for
// jobs that come meanwhile and go first, in percent. On six busy days, on which jobs keep
// coming to two teams that reclaim, 93 % of the ranges hold with it, and as many on six
// days that it was not chosen by; 90.6 % would with 100, 83 % with 50.
const comers = 125

// eta lets time pass on copies: in one everybody runs to its own limit, in the other
// to a quarter of it. On a cluster too large for that it takes the reservation.
func (w *World) eta(m *admission.Remembered, why admission.Reason) *ETA {
	switch why.Code {
	case admission.Held:
		return &ETA{Unknown: "it is held"}
	case admission.NeverFits, admission.Invalid, admission.Labels, admission.Layout, admission.Hardware, admission.QueueClosed, admission.QueueMissing:
		return &ETA{Unknown: "it does not start however long it waits: " + string(why.Code)}
	default: // it waits for others, or for room
	}
	if len(w.im.Nodes) > playNodes {
		start, ok := w.reserved(m.Name)
		switch {
		case !ok:
			return &ETA{Unknown: "no room is reserved for it yet"}
		case start.IsZero():
			return &ETA{Unknown: "it waits for work without a time limit"}
		}
		return w.between(w.now, start, w.endingBy(start))
	}
	late, ends, ok := w.starts(m.Name, 1)
	if !ok {
		return &ETA{Unknown: "it waits for work without a time limit"}
	}
	early, _, ok := w.starts(m.Name, soonest)
	if !ok || early.After(late) {
		early = w.now // who ends sooner may bring another before it
	}
	return w.between(early, late, ends)
}

// starts is when the gang starts if everybody uses one part in so many of its limit,
// and how many have ended by then.
func (w *World) starts(key string, part time.Duration) (at time.Time, ends int, ok bool) {
	p := newPlay(w.im, w.now, part)
	ok = p.run(w.now.Add(horizon), playInstants, func() bool { _, in := p.admitted[key]; return in })
	return p.now, len(p.ended), ok
}

// between is the range from early to late, with room for those who come later.
func (w *World) between(early, late time.Time, ends int) *ETA {
	assumes := "those that stop for it are gone at once"
	switch {
	case ends == 1:
		assumes = "1 job ends within its own time limit"
	case ends > 1:
		assumes = fmt.Sprintf("%d jobs end within their own time limits", ends)
	}
	late = late.Add(late.Sub(w.now) * comers / 100)
	return &ETA{Early: &early, Late: &late, Assumes: assumes}
}

// reserved is when room for the gang is kept from, if it is; zero depends on work
// without a limit.
func (w *World) reserved(key string) (time.Time, bool) {
	i := slices.IndexFunc(w.d.Reservations, func(r admission.Reservation) bool { return r.Key == key })
	if i < 0 {
		return time.Time{}, false
	}
	return w.d.Reservations[i].Start, true
}

// endingBy counts the gangs that end by their own limit until then.
func (w *World) endingBy(at time.Time) int {
	n := 0
	for i := range w.im.Workloads {
		if end := w.ends(&w.im.Workloads[i]); !end.IsZero() && !end.After(at) {
			n++
		}
	}
	return n
}
