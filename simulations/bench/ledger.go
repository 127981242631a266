package bench

import (
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// ledger counts from outside what is admitted, version by version.
type ledger struct {
	shape    Shape
	requests map[string]int64 // of a class
	cohortOf map[string]string
	held     map[types.UID]string // the queue that a Workload is charged to
	queues   map[string]int64
	cohorts  map[string]int64
	over     []string // each quota that was broken, once
	told     map[string]bool
}

func newLedger(s Shape) *ledger {
	l := &ledger{
		shape: s, requests: make(map[string]int64), cohortOf: make(map[string]string), held: make(map[types.UID]string),
		queues: make(map[string]int64), cohorts: make(map[string]int64), told: make(map[string]bool),
	}
	for _, c := range s.Classes {
		l.requests[c.Name] = c.Request
	}
	for cohort := range s.Cohorts {
		for queue := range s.Queues {
			l.cohortOf[queueName(cohort, queue)] = cohortName(cohort)
		}
	}
	return l
}

// see takes one version of a Workload.
func (l *ledger) see(wl *kueue.Workload) {
	queue := ""
	if wl.Status.Admission != nil && !apimeta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished) {
		queue = string(wl.Status.Admission.ClusterQueue)
	}
	before := l.held[wl.UID]
	if queue == before {
		return
	}
	request := l.requests[wl.Labels[classLabel]]
	if before != "" {
		l.queues[before] -= request
		l.cohorts[l.cohortOf[before]] -= request
	}
	if queue != "" {
		cohort := l.cohortOf[queue]
		l.queues[queue] += request
		l.cohorts[cohort] += request
		l.within(queue, l.queues[queue], l.shape.Nominal+l.shape.Borrow, wl)
		l.within(cohort, l.cohorts[cohort], l.shape.Nominal*int64(l.shape.Queues), wl)
	}
	l.held[wl.UID] = queue
}

func (l *ledger) within(name string, used, most int64, wl *kueue.Workload) {
	if used > most && !l.told[name] {
		l.told[name] = true
		l.over = append(l.over, fmt.Sprintf("%s: %d of %d with %s at version %s", name, used, most, wl.Name, wl.ResourceVersion))
	}
}
