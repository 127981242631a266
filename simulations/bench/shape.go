package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Class is a kind of Workload in a queue.
type Class struct {
	Name     string
	Count    int           // in each queue
	Every    time.Duration // from one to the next; 0 is all at once
	Runtime  time.Duration // after it was admitted
	Priority int32
	Request  int64 // cpus
}

// Shape is a load.
type Shape struct {
	Name            string
	Cohorts, Queues int   // queues in each cohort
	Nominal, Borrow int64 // cpus of each queue
	Classes         []Class
	// Preempt lets owners take back and the urgent go before.
	Preempt bool
}

// Shapes are the loads there are. The first two have the numbers of Kueue's own
// performance tests (test/performance/scheduler of v0.17.0).
var Shapes = map[string]Shape{
	"baseline": {
		Name: "baseline", Cohorts: 5, Queues: 6, Nominal: 20, Borrow: 100, Preempt: true,
		Classes: []Class{
			{"small", 350, 100 * time.Millisecond, 200 * time.Millisecond, 50, 1},
			{"medium", 100, 500 * time.Millisecond, 500 * time.Millisecond, 100, 5},
			{"large", 50, 1200 * time.Millisecond, time.Second, 200, 20},
		},
	},
	"large": {
		Name: "large", Cohorts: 10, Queues: 100, Nominal: 20, Borrow: 100, Preempt: true,
		Classes: []Class{
			{"small", 35, 100 * time.Millisecond, 200 * time.Millisecond, 50, 1},
			{"medium", 10, 500 * time.Millisecond, 500 * time.Millisecond, 100, 5},
			{"large", 5, 1200 * time.Millisecond, time.Second, 200, 20},
		},
	},
	"backlog": {
		Name: "backlog", Cohorts: 1, Queues: 10, Nominal: 500, Borrow: 0,
		Classes: []Class{{"all", 500, 0, time.Hour, 0, 1}},
	},
}

// ByName returns a shape, with one nth of its Workloads in each class, but one at
// least.
func ByName(name string, nth int) (Shape, error) {
	s, ok := Shapes[name]
	if !ok {
		return s, fmt.Errorf("there is no shape %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(Shapes)), ", "))
	}
	if nth < 1 {
		return s, fmt.Errorf("one %dth of a shape: want a positive number", nth)
	}
	s.Classes = slices.Clone(s.Classes)
	for i := range s.Classes {
		s.Classes[i].Count = max(s.Classes[i].Count/nth, 1)
	}
	return s, nil
}

// Workloads is how many there are in all.
func (s Shape) Workloads() int {
	n := 0
	for _, c := range s.Classes {
		n += c.Count
	}
	return n * s.Cohorts * s.Queues
}

// Lasts reports whether the Workloads stay once they are admitted.
func (s Shape) Lasts() bool { return s.Classes[0].Runtime >= time.Hour }

func queueName(cohort, queue int) string { return fmt.Sprintf("cq-%d-%d", cohort, queue) }

func cohortName(cohort int) string { return fmt.Sprintf("cohort-%d", cohort) }
