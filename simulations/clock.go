package simulations

import (
	"container/heap"
	"strings"
	"time"
)

// Clock is the virtual time of a run, and what is due when. It never looks at
// wall time. What is due at one instant happens in the order in which it was
// put down.
type Clock struct {
	now   time.Duration
	next  timers
	count uint64
}

// epoch is the instant that scenarios call 0s. It is not the zero time, which
// means "never" to the core.
var epoch = time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)

type timer struct {
	at  time.Duration
	seq uint64
	do  func()
}

// Now is the time since the start.
func (c *Clock) Now() time.Duration { return c.now }

// Time is the time as the core sees it.
func (c *Clock) Time() time.Time { return epoch.Add(c.now) }

// At puts something down that is due at an instant; what is due in the past is
// due now.
func (c *Clock) At(at time.Duration, do func()) {
	c.count++
	heap.Push(&c.next, timer{at: max(at, c.now), seq: c.count, do: do})
}

// Fire does what is due now, and whatever becomes due meanwhile. It returns
// how many things it did.
func (c *Clock) Fire() int {
	n := 0
	for len(c.next) > 0 && c.next[0].at <= c.now {
		heap.Pop(&c.next).(timer).do()
		n++
	}
	return n
}

// Next is the instant at which something is due next, and whether anything is.
func (c *Clock) Next() (time.Duration, bool) {
	if len(c.next) == 0 {
		return 0, false
	}
	return c.next[0].at, true
}

// timers is a heap by time, then by order.
type timers []timer

func (t timers) Len() int      { return len(t) }
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t timers) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].seq < t[j].seq
}
func (t *timers) Push(x any) { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	*t = old[:len(old)-1]
	return last
}

// Spoken writes a time as scenario files do: 10s, 4m, 1h30m.
func Spoken(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
