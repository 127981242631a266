package tables

import (
	"container/heap"
	"fmt"
	"math"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// gpu is the dimension in which whole GPUs are counted.
const gpu = quota.Pods + 1

// fleetNode is how many GPUs a node of a fleet has.
const fleetNode = 8

// fleet is a cluster of alike nodes on which the engine runs jobs of several queues:
// what is taken back runs again from its start.
type fleet struct {
	state   *admission.State
	running ends
	jobs    []fleetJob
	starts  int64
	evicted int
}

type fleetJob struct {
	queue       string
	submit, run float64 // s
	gpus        int64
	ended       float64 // s
	order       int64   // of its start now, 0 while it waits
	version     uint64
	evictions   int
	workload    *queue.Workload
}

func newFleet(nodes int64) *fleet {
	f := &fleet{state: admission.NewState(admission.DefaultConfig())}
	f.state.Space.Index("nvidia.com/gpu")
	for i := range nodes {
		f.state.Apply(admission.NodeSeen{Node: &gang.Node{Name: fmt.Sprintf("n%d", i), Offer: quota.Resources{1, 1, 1 << 20, fleetNode}}})
	}
	return f
}

// queue adds one; a nominal below 0 leaves it without.
func (f *fleet) queue(name string, nominal int64, strict bool) {
	q := &queue.Queue{Quota: quota.Queue{Name: name, Weight: 1}, Strict: strict}
	if nominal >= 0 {
		q.Quota.Nominal = map[int]int64{gpu: nominal}
	}
	f.state.Apply(admission.QueueSeen{Queue: q})
}

// pods is a job of so many GPUs as pods that fit a node.
func pods(gpus int64) (n int, each int64) {
	each = gpus
	for each > fleetNode || gpus%each != 0 {
		each--
	}
	return int(gpus / each), each
}

// at is a time of the study; halves of seconds are kept.
func at(t float64) time.Time { return time.Unix(0, int64(math.Round(t*float64(time.Second)))) }

func (f *fleet) submit(j fleetJob) {
	n, each := pods(j.gpus)
	k := key(len(f.jobs))
	j.workload = &queue.Workload{
		Key: k, UID: k, Queue: j.queue, Queued: at(j.submit),
		Spec: gang.Spec{PodSets: []gang.PodSet{{Name: "main", Count: n, Min: n, Request: quota.Resources{0, 0, 1, each}}}},
	}
	j.version, j.ended = 1, -1
	f.jobs = append(f.jobs, j)
	f.state.Apply(admission.WorkloadSeen{Version: 1, Workload: j.workload})
}

// settle lets the engine act until nothing more follows at this instant.
func (f *fleet) settle(now float64) {
	for {
		d := admission.Cycle(f.state, at(now))
		f.state.Apply(admission.Assumed{Decision: d})
		for _, e := range d.Evict {
			j := &f.jobs[number(e.Key)]
			f.state.Apply(admission.Outcome{Act: admission.ActEvict, Key: e.Key, Version: j.version + 1, At: at(now)})
			j.version += 2
			f.state.Apply(admission.WorkloadSeen{Version: j.version, Workload: j.workload})
			j.order = 0
			j.evictions++
			f.evicted++
		}
		for _, a := range d.Admit {
			n := number(a.Key)
			j := &f.jobs[n]
			j.version++
			f.state.Apply(admission.Outcome{Act: admission.ActAdmit, Key: a.Key, Version: j.version, At: at(now)})
			f.starts++
			j.order = f.starts
			heap.Push(&f.running, end{at(now + j.run).UnixNano(), f.starts, n})
		}
		if !d.Acts() {
			return
		}
	}
}

// until plays every end before t.
func (f *fleet) until(t float64) {
	for len(f.running) > 0 && f.running[0].at <= at(t).UnixNano() {
		e := heap.Pop(&f.running).(end)
		j := &f.jobs[e.job]
		if j.order != e.order {
			continue // it was taken back since
		}
		now := float64(e.at) / float64(time.Second)
		j.ended, j.order = now, 0
		f.state.Apply(admission.WorkloadGone{Key: key(e.job)})
		f.settle(now)
	}
}
