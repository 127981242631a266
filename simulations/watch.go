package simulations

import (
	"math/rand/v2"
	"slices"
	"time"
)

// watchKind is one of the streams in which an API server tells of changes: one
// for each kind of object. Within a stream order is kept; between two it is not.
type watchKind int

const (
	watchNodes watchKind = iota
	watchQueues
	watchWorkloads
	watchPods
	watchKinds
)

func (ch *change) kind() watchKind {
	switch {
	case ch.node != nil:
		return watchNodes
	case ch.queue != nil:
		return watchQueues
	case ch.workload != nil:
		return watchWorkloads
	default:
		return watchPods
	}
}

// watch stands between the API server and the controller and does by lot what a
// real one may do: a stream hangs for some seconds, then delivers what it held, or
// is opened again and lists what there is, without what was in between; a state is
// told twice. What is told of one object never goes back. A read that the controller
// makes itself, after a write without an answer, does not wait for a stream.
type watch struct {
	rnd   *rand.Rand
	clock *Clock
	calm  time.Duration // from then on it only delivers; 0: never
	hung  [watchKinds]bool
	held  [watchKinds][]change
	due   [watchKinds]bool // it hangs no more and has not delivered yet
}

// The lots of a watch: a stream that has something to tell hangs once in hangs
// times, for up to maxHang; every relists-th time it then lists; a change is told
// twice once in repeats times.
const (
	hangs   = 25
	maxHang = 12 * time.Second
	relists = 3
	repeats = 15
)

func newWatch(seed uint64, clock *Clock, calm time.Duration) *watch {
	return &watch{rnd: stream(seed, "watch"), clock: clock, calm: calm}
}

// empty says that the controller has been told everything.
func (w *watch) empty() bool {
	for k := range w.held {
		if len(w.held[k]) > 0 || w.due[k] {
			return false
		}
	}
	return true
}

// late says that the controller may not know what is on the nodes: how they are,
// or which pods.
func (w *watch) late() bool { return len(w.held[watchNodes]) > 0 || len(w.held[watchPods]) > 0 }

// forget drops what was held, for a controller that lists everything anew.
func (w *watch) forget() {
	for k := range w.held {
		w.held[k] = nil
	}
}

// deliver takes what changed and returns what the controller is told now.
func (w *watch) deliver(c *Cluster, news []change) []change {
	var out []change
	for _, ch := range news {
		k := ch.kind()
		if ch.fresh {
			name := ch.name()
			w.held[k] = slices.DeleteFunc(w.held[k], func(x change) bool { return x.name() == name })
			out = append(out, ch)
			continue
		}
		w.held[k] = append(w.held[k], ch)
	}
	for k := range watchKinds {
		switch {
		case w.hung[k]:
			continue
		case w.due[k]:
			w.due[k] = false
			if w.rnd.IntN(relists) == 0 {
				w.held[k] = c.list(k, w.held[k])
			}
		case len(w.held[k]) > 0 && (w.calm == 0 || w.clock.Now() < w.calm) && w.rnd.IntN(hangs) == 0:
			w.hang(k, c.trace)
			continue
		}
		for _, ch := range w.held[k] {
			out = append(out, ch)
			if w.rnd.IntN(repeats) == 0 {
				out = append(out, ch)
			}
		}
		w.held[k] = nil
	}
	return out
}

func (w *watch) hang(k watchKind, t *trace) {
	w.hung[k] = true
	until := w.clock.Now() + time.Duration(1+w.rnd.Int64N(int64(maxHang)))
	t.add("the watch of %s hangs until %s", [...]string{"nodes", "queues", "workloads", "pods"}[k], Spoken(until))
	w.clock.At(until, func() { w.hung[k], w.due[k] = false, true })
}

// list is what a stream that is opened again tells: what is there, as it is now,
// and what is gone of that which the controller may have known.
func (c *Cluster) list(k watchKind, missed []change) []change {
	var out []change
	there := map[string]bool{}
	for _, ch := range c.Snapshot(nil) {
		if ch.kind() == k {
			out = append(out, ch)
			there[ch.name()] = true
		}
	}
	for _, ch := range missed {
		if name := ch.name(); ch.gone && !there[name] {
			there[name] = true
			out = append(out, ch)
		}
	}
	c.trace.add("the watch of %s lists %d", [...]string{"nodes", "queues", "workloads", "pods"}[k], len(out))
	return out
}

// skew is how far the controller's clock is from that of everybody else.
type skew struct {
	rnd  *rand.Rand
	off  time.Duration
	next time.Duration // when it is stepped again
	calm time.Duration // from then on it is right; 0: never
}

// maxSkew bounds how far the clock is stepped, forward or back.
const maxSkew = 5 * time.Minute

func newSkew(seed uint64, calm time.Duration) *skew {
	s := &skew{rnd: stream(seed, "clock"), calm: calm}
	s.next = s.pause()
	return s
}

func (s *skew) pause() time.Duration { return time.Duration(s.rnd.Int64N(int64(10 * time.Minute))) }

// at is the offset at an instant. Now and then the clock is set right in between.
func (s *skew) at(now time.Duration, t *trace) time.Duration {
	was := s.off
	for s.next <= now {
		s.off, s.next = 0, s.next+s.pause()
		if s.rnd.IntN(3) > 0 {
			s.off = (time.Duration(s.rnd.Int64N(int64(2*maxSkew))) - maxSkew).Truncate(time.Second)
		}
	}
	if s.calm > 0 && now >= s.calm {
		s.off = 0
	}
	if s.off != was {
		t.add("the controller's clock is off by %s", Spoken(s.off))
	}
	return s.off
}
