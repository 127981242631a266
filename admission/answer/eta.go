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

// eta lets time pass on a copy, in which everybody runs to its own limit. On a
// cluster too large for that it takes the reservation.
func (w *World) eta(m *admission.Remembered, why admission.Reason) *ETA {
	switch why.Code {
	case admission.Held:
		return &ETA{Unknown: "it is held"}
	case admission.NeverFits, admission.Invalid, admission.Labels, admission.Layout, admission.Hardware, admission.QueueClosed, admission.QueueMissing:
		return &ETA{Unknown: "it does not start however long it waits: " + string(why.Code)}
	default: // it waits for others, or for room
	}
	if len(w.im.Nodes) <= playNodes {
		p := newPlay(w.im, w.now)
		if p.run(w.now.Add(horizon), playInstants, func() bool { _, in := p.admitted[m.Name]; return in }) {
			return w.by(p.now, len(p.ended))
		}
		return &ETA{Unknown: "it waits for work without a time limit"}
	}
	start, ok := w.reserved(m.Name)
	switch {
	case !ok:
		return &ETA{Unknown: "no room is reserved for it yet"}
	case start.IsZero():
		return &ETA{Unknown: "it waits for work without a time limit"}
	}
	return w.by(start, w.endingBy(start))
}

func (w *World) by(at time.Time, ends int) *ETA {
	assumes := "those that stop for it are gone at once"
	switch {
	case ends == 1:
		assumes = "1 job ends by its own time limit"
	case ends > 1:
		assumes = fmt.Sprintf("%d jobs end by their own time limit", ends)
	}
	return &ETA{Early: optional(w.now), Late: &at, Assumes: assumes}
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
