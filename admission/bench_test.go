package admission

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// BenchmarkCycle measures a cycle over nodes × waiting gangs: cold, with everything
// to be looked at, and after one event, with a backlog that does not fit.
func BenchmarkCycle(b *testing.B) {
	for _, size := range []struct{ nodes, gangs int }{{1000, 1000}, {1000, 10000}, {10000, 10000}, {10000, 100000}} {
		b.Run(fmt.Sprintf("cold/nodes=%d/gangs=%d", size.nodes, size.gangs), func(b *testing.B) {
			s := crowd(size.nodes, size.gangs)
			now := time.Unix(1000, 0)
			for b.Loop() {
				s.reshape()
				d := Cycle(s, now)
				b.ReportMetric(float64(len(d.Admit)), "admitted")
			}
		})
		b.Run(fmt.Sprintf("event/nodes=%d/gangs=%d", size.nodes, size.gangs), func(b *testing.B) {
			s := crowd(size.nodes, size.gangs)
			now := time.Unix(1000, 0)
			for range 3 {
				d := Cycle(s, now)
				s.Apply(Assumed{d})
				for _, a := range d.Admit {
					s.Apply(Outcome{Act: ActAdmit, Key: a.Key, Version: 2})
				}
			}
			i := 0
			for b.Loop() {
				i++
				w := gangOf(s, 1000000+i, i%1000, i%500)
				s.Apply(WorkloadSeen{Workload: w, Version: 1})
				d := Cycle(s, now)
				s.Apply(Assumed{d})
			}
		})
	}
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
