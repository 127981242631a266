package tables

import (
	"container/heap"
	"strconv"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// pool is a machine of processors without any structure on which the engine runs a
// log: one node, one queue that owns all of it, a gang of one-processor pods a job.
//
// It plays the cluster of an event-driven study: a cycle after every event, and of
// events at one instant submissions first, then ends in the order of the starts.
// Whose limit is over counts as ended from the first event of that instant on.
type pool struct {
	state  *admission.State
	procs  int64
	free   int64
	cycles int

	running ends
	jobs    []pooled // by number
	starts  int64    // so far
}

// pooled is a job on the pool. Times are seconds.
type pooled struct {
	submitted, limit, run, procs int64
	started                      int64 // -1 not yet
	promised                     int64 // the start of its first reservation, -1 if it had none
	ended                        bool
}

// end is when a job that runs will end.
type end struct {
	at    int64 // s
	order int64 // of its start
	job   int
}

type ends []end

func (e ends) Len() int { return len(e) }
func (e ends) Less(i, k int) bool {
	if e[i].at != e[k].at {
		return e[i].at < e[k].at
	}
	return e[i].order < e[k].order
}
func (e ends) Swap(i, k int) { e[i], e[k] = e[k], e[i] }

// Push is part of heap.Interface.
func (e *ends) Push(x any) { *e = append(*e, x.(end)) }

// Pop is part of heap.Interface.
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

const poolQueue = "all"

func newPool(procs int64, cfg admission.Config) *pool {
	p := &pool{state: admission.NewState(cfg), procs: procs, free: procs}
	p.state.Apply(admission.NodeSeen{Node: &gang.Node{Name: "pool", Offer: quota.Resources{procs, 0, procs}}})
	p.state.Apply(admission.QueueSeen{Queue: &queue.Queue{
		Quota:  quota.Queue{Name: poolQueue, Weight: 1, Nominal: map[int]int64{quota.CPU: procs}},
		Within: queue.WithinNever, Reclaim: queue.ReclaimNever,
	}})
	return p
}

// submit lets the job, whose number is the next, wait from now on. A limit is what
// its owner says that it runs at most.
func (p *pool) submit(now, run, procs, limit int64) {
	n := len(p.jobs)
	p.jobs = append(p.jobs, pooled{submitted: now, limit: limit, run: run, procs: procs, started: -1, promised: -1})
	p.state.Apply(admission.WorkloadSeen{Version: 1, Workload: &queue.Workload{
		Key: key(n), UID: key(n), Queue: poolQueue, Queued: time.Unix(now, 0), Limit: time.Duration(limit) * time.Second,
		Spec: gang.Spec{PodSets: []gang.PodSet{{Name: "main", Count: int(procs), Min: int(procs), Request: quota.Resources{1, 0, 1}}}},
	}})
}

// keyWidth makes the order of keys that of submission.
const keyWidth = 8

func key(n int) string {
	s := strconv.Itoa(n)
	return "00000000"[:keyWidth-len(s)] + s
}

func number(key string) int {
	n, err := strconv.Atoi(key)
	if err != nil {
		panic("tables: the engine speaks of " + key + ", which is no job")
	}
	return n
}

// end takes the job off the machine, once.
func (p *pool) end(job int) {
	j := &p.jobs[job]
	if j.ended {
		return
	}
	j.ended = true
	p.state.Apply(admission.WorkloadGone{Key: key(job)})
	p.free += j.procs
}

// cycle lets the engine decide and starts what it admits.
func (p *pool) cycle(now int64) {
	p.cycles++
	d := admission.Cycle(p.state, time.Unix(now, 0))
	p.state.Apply(admission.Assumed{Decision: d})
	for _, r := range d.Reservations {
		if j := &p.jobs[number(r.Key)]; j.promised < 0 && !r.Start.IsZero() {
			j.promised = r.Start.Unix()
		}
	}
	for _, a := range d.Admit {
		p.state.Apply(admission.Outcome{Act: admission.ActAdmit, Key: a.Key, Version: 2, At: time.Unix(now, 0)})
		n := number(a.Key)
		j := &p.jobs[n]
		j.started = now
		p.free -= j.procs
		p.starts++
		heap.Push(&p.running, end{now + j.run, p.starts, n})
	}
}

// until plays every end up to now; those at now itself only if the submissions of
// now are over.
func (p *pool) until(now int64, submitted bool) {
	for len(p.running) > 0 && (p.running[0].at < now || submitted && p.running[0].at == now) {
		at := p.running[0].at
		p.expire(at)
		e := heap.Pop(&p.running).(end)
		p.end(e.job)
		p.cycle(at)
	}
}

// expire takes every job whose limit is over now off the machine, ahead of its end.
func (p *pool) expire(now int64) {
	var seen []end
	for len(p.running) > 0 && p.running[0].at == now {
		e := heap.Pop(&p.running).(end)
		seen = append(seen, e)
		if j := &p.jobs[e.job]; j.started+j.limit <= now {
			p.end(e.job)
		}
	}
	for _, e := range seen {
		heap.Push(&p.running, e)
	}
}
