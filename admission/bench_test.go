package admission

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// All benchmarks report cpu-ms/op beside the time that passed, which on a machine
// that is shared says little, and are run at several sizes, so that a cost that grows
// with what exists, not with what changed, is seen.

// BenchmarkCycle measures a cycle over nodes × waiting gangs: cold, with everything
// to be looked at; the same as a trial, which tells nobody why; and after one event,
// with a backlog that does not fit.
func BenchmarkCycle(b *testing.B) {
	for _, size := range []struct{ nodes, gangs int }{{1000, 1000}, {1000, 10000}, {10000, 10000}, {10000, 100000}} {
		b.Run(fmt.Sprintf("cold/nodes=%d/gangs=%d", size.nodes, size.gangs), func(b *testing.B) {
			s := crowd(size.nodes, size.gangs)
			now := time.Unix(1000, 0)
			done := usedCPU(b)
			for b.Loop() {
				s.reshape()
				d := Cycle(s, now)
				b.ReportMetric(float64(len(d.Admit)), "admitted")
			}
			done()
		})
		b.Run(fmt.Sprintf("trial/nodes=%d/gangs=%d", size.nodes, size.gangs), func(b *testing.B) {
			s := crowd(size.nodes, size.gangs)
			now := time.Unix(1000, 0)
			done := usedCPU(b)
			for b.Loop() {
				s.reshape()
				Trial(s, now)
			}
			done()
		})
		b.Run(fmt.Sprintf("event/nodes=%d/gangs=%d", size.nodes, size.gangs), func(b *testing.B) {
			s := crowd(size.nodes, size.gangs)
			now := time.Unix(1000, 0)
			fill(s, now)
			i := 0
			done := usedCPU(b)
			for b.Loop() {
				i++
				w := gangOf(s, 1000000+i, i%1000, i%500)
				s.Apply(WorkloadSeen{Workload: w, Version: 1})
				step(s, now)
			}
			done()
		})
	}
}

// BenchmarkTurnover measures one gang that ends on a full cluster, and the pass that
// admits the next in its place.
func BenchmarkTurnover(b *testing.B) {
	for _, size := range []struct{ nodes, gangs int }{{1000, 10000}, {10000, 10000}, {10000, 100000}} {
		b.Run(fmt.Sprintf("nodes=%d/gangs=%d", size.nodes, size.gangs), func(b *testing.B) {
			s := crowd(size.nodes, size.gangs)
			now := time.Unix(1000, 0)
			fill(s, now)
			admitted := 0
			done := usedCPU(b)
			for b.Loop() {
				now = now.Add(time.Second)
				end(s, s.running[len(s.running)/2])
				admitted += step(s, now)
			}
			done()
			b.ReportMetric(float64(admitted)/float64(b.N), "admitted")
		})
	}
}

// BenchmarkUnfit measures one more gang for a backlog of which none can ever run.
func BenchmarkUnfit(b *testing.B) {
	for _, gangs := range []int{1000, 10000, 100000} {
		b.Run(fmt.Sprintf("nodes=10000/gangs=%d", gangs), func(b *testing.B) {
			s := crowd(10000, 0)
			unfit := func(i int) {
				w := gangOf(s, i, i%1000, i%500)
				w.Spec.PodSets[0].Request.Set(3, 9)
				s.Apply(WorkloadSeen{Workload: w, Version: 1})
			}
			for i := range gangs {
				unfit(i)
			}
			now := time.Unix(1000, 0)
			fill(s, now)
			i := gangs
			done := usedCPU(b)
			for b.Loop() {
				i++
				unfit(i)
				step(s, now)
			}
			done()
		})
	}
}

// BenchmarkOneQueue measures a cold pass over one queue in which no two gangs ask for
// the same.
func BenchmarkOneQueue(b *testing.B) {
	for _, gangs := range []int{1500, 15000} {
		b.Run(fmt.Sprintf("nodes=1000/gangs=%d", gangs), func(b *testing.B) {
			s := crowd(1000, 0)
			for i := range gangs {
				w := gangOf(s, i, 0, i%500)
				w.Spec.PodSets[0].Request[quota.Memory] += int64(i)
				s.Apply(WorkloadSeen{Workload: w, Version: 1})
			}
			now := time.Unix(1000, 0)
			done := usedCPU(b)
			for b.Loop() {
				s.reshape()
				Cycle(s, now)
			}
			done()
		})
	}
}

// BenchmarkMassRelease measures all running gangs ending at once, with the pass that
// follows, for each gang that ended.
func BenchmarkMassRelease(b *testing.B) {
	for _, gangs := range []int{3000, 30000} {
		b.Run(fmt.Sprintf("gangs=%d", gangs), func(b *testing.B) {
			now := time.Unix(1000, 0)
			for b.Loop() {
				b.StopTimer()
				s := crowd(gangs/8, 0)
				for i := range gangs {
					s.Apply(WorkloadSeen{Workload: gangOf(s, i, i%1000, 0), Version: 1})
				}
				fill(s, now)
				running := append([]*record(nil), s.running...)
				done := usedCPU(b)
				b.StartTimer()
				for _, r := range running {
					end(s, r)
				}
				step(s, now)
				done()
				b.ReportMetric(float64(len(running)), "ended")
			}
		})
	}
}

// usedCPU reports, when the returned function is called, what the process has used
// of the processors since, by iteration.
func usedCPU(b *testing.B) (done func()) {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	start := used()
	return func() {
		b.ReportMetric(float64((used()-start).Microseconds())/1000/float64(max(b.N, 1)), "cpu-ms/op")
	}
}

// step runs a cycle and lets all of it succeed. It returns how many were admitted.
func step(s *State, now time.Time) int {
	d := Cycle(s, now)
	s.Apply(Assumed{d})
	for _, a := range d.Admit {
		s.Apply(Outcome{Act: ActAdmit, Key: a.Key, Version: 2})
	}
	for _, e := range d.Evict {
		s.Apply(Outcome{Act: ActEvict, Key: e.Key, Version: 3})
		if r := s.records[e.Key]; r != nil {
			s.Apply(WorkloadSeen{Workload: r.w, Version: 4})
		}
	}
	return len(d.Admit)
}

// fill runs cycles until nothing more is admitted.
func fill(s *State, now time.Time) {
	for range 20 {
		if step(s, now) == 0 {
			return
		}
	}
}

func end(s *State, r *record) {
	s.Apply(WorkloadSeen{Workload: r.w, Version: r.version + 1, Finished: true})
	s.Apply(WorkloadGone{r.key})
}

// crowd is a cluster of nodes with 8 GPUs and gangs of 500 shapes in 1,000 queues.
func crowd(nodes, gangs int) *State {
	s := NewState(DefaultConfig())
	gpu := s.Space.Index("nvidia.com/gpu")
	for i := range nodes {
		offer := quota.Resources{64000, 1 << 40, 110}
		offer.Set(gpu, 8)
		s.Apply(NodeSeen{&gang.Node{Name: fmt.Sprintf("n-%d", i), Offer: offer, Labels: map[string]string{"zone": fmt.Sprint(i % 4)}}})
	}
	share := int64(nodes*8) / 1000
	for i := range 1000 {
		s.queues[fmt.Sprintf("q-%d", i)] = &queue.Queue{Quota: quota.Queue{Name: fmt.Sprintf("q-%d", i), Weight: 1, Nominal: map[int]int64{gpu: share}}}
	}
	s.Apply(QueueGone{"none"})
	for i := range gangs {
		s.Apply(WorkloadSeen{Workload: gangOf(s, i, i%1000, i%500), Version: 1})
	}
	return s
}

func gangOf(s *State, i, q, shape int) *queue.Workload {
	gpu, _ := s.Space.Lookup("nvidia.com/gpu")
	req := quota.Resources{1000, 1 << 30, 1}
	req.Set(gpu, int64(1+shape%8))
	return &queue.Workload{
		Key: fmt.Sprintf("w-%d", i), UID: fmt.Sprintf("%08d", i), Queue: fmt.Sprintf("q-%d", q),
		Queued: time.Unix(int64(i), 0), Spec: gang.Spec{PodSets: []gang.PodSet{{Name: "main", Count: 1 + shape/8, Min: 1 + shape/8, Request: req}}},
	}
}
