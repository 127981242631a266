package pages

import (
	"sync"
	"time"

	"sluice.dev/sluice/admission/answer"
)

// SampleEvery is how far apart the samples of shares are, if the controller is not
// too large for that.
const SampleEvery = 15 * time.Second

const (
	samplesMost = 960   // four hours of samples
	queuesMost  = 2_000 // of one sample; those that come first in the tree
)

// Shares remembers what queues used and what was fair, for a few hours, in memory: who
// leads next begins anew.
type Shares struct {
	mu      sync.Mutex
	samples []sample
}

type sample struct {
	at       time.Time
	resource string
	of       map[string]point
}

// point is parts of the whole cluster, in percent.
type point struct{ used, fair float32 }

// Add takes a sample: the queues as of a time.
func (s *Shares) Add(at time.Time, queues []answer.QueueState) {
	x := sample{at: at, of: map[string]point{}}
	for i, q := range queues {
		if i == queuesMost {
			break
		}
		x.resource = q.Resource
		x.of[q.Name] = point{float32(q.Share), float32(q.Fair)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.samples); n > 0 && !at.After(s.samples[n-1].at) {
		return // a copy that was counted already
	}
	if len(s.samples) == samplesMost {
		s.samples = append(s.samples[:0], s.samples[1:]...)
	}
	s.samples = append(s.samples, x)
}

// moment is one sample of one queue.
type moment struct {
	at         time.Time
	used, fair float64
}

// of is the samples of a queue that count the resource, the oldest first.
func (s *Shares) of(queue, resource string) []moment {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []moment
	for _, x := range s.samples {
		if p, ok := x.of[queue]; ok && x.resource == resource {
			out = append(out, moment{x.at, float64(p.used), float64(p.fair)})
		}
	}
	return out
}
