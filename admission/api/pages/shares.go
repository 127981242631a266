package pages

import (
	"slices"
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
	// resourcesMost bounds the resources that are sampled.
	resourcesMost = 4
)

// Shares remembers what queues used and what was fair, for a few hours, in memory: who
// leads next begins anew.
type Shares struct {
	mu        sync.Mutex
	samples   []sample
	resources []string
}

type sample struct {
	at time.Time
	of map[counted]point
}

// counted is a queue, and the resource that is counted of it.
type counted struct{ queue, resource string }

// point is parts of the whole cluster, in percent.
type point struct{ used, fair float32 }

// Add takes a sample: the queues as of a time, in one resource. Several of one time
// are of several resources.
func (s *Shares) Add(at time.Time, queues []answer.QueueState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.samples)
	if n > 0 && at.Before(s.samples[n-1].at) {
		return // what is later was counted already
	}
	if n == 0 || at.After(s.samples[n-1].at) {
		if n == samplesMost {
			s.samples = append(s.samples[:0], s.samples[1:]...)
		}
		s.samples = append(s.samples, sample{at, map[counted]point{}})
	}
	of := s.samples[len(s.samples)-1].of
	for i, q := range queues {
		if i == queuesMost {
			break
		}
		of[counted{q.Name, q.Resource}] = point{float32(q.Share), float32(q.Fair)}
	}
	if len(queues) > 0 && len(s.resources) < resourcesMost && !slices.Contains(s.resources, queues[0].Resource) {
		s.resources = append(s.resources, queues[0].Resource)
	}
}

// Resources are those that were sampled so far. What is scarce changes with the day:
// whoever samples goes on with what once was, so that lines do not break off.
func (s *Shares) Resources() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.resources)
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
		if p, ok := x.of[counted{queue, resource}]; ok {
			out = append(out, moment{x.at, float64(p.used), float64(p.fair)})
		}
	}
	return out
}
