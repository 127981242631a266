package answer

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fleet is a state of 10,000 nodes of 8 cards, almost full, with a tenth as many gangs
// waiting. The last to wait is ml/big.
func fleet() *admission.State {
	const nodes = 10_000
	s := admission.NewState(admission.DefaultConfig())
	gpu := s.Space.Index("nvidia.com/gpu")
	offer := s.Space.Vector(map[string]int64{"cpu": 64000, "memory": 1 << 40, "pods": 110, "nvidia.com/gpu": 8})
	for i := range nodes {
		s.Apply(admission.NodeSeen{Node: &gang.Node{Name: fmt.Sprintf("n-%d", i), Labels: map[string]string{"zone": fmt.Sprint(i % 4), "kubernetes.io/hostname": fmt.Sprintf("n-%d", i)}, Offer: offer}})
	}
	for i := range 10 {
		s.Apply(admission.QueueSeen{Queue: &queue.Queue{Quota: quota.Queue{Name: fmt.Sprintf("team-%d", i), Weight: 1000, Nominal: map[int]int64{gpu: int64(nodes * 8 / 10)}}}})
	}
	ask := func(cards int64) quota.Resources {
		return s.Space.Vector(map[string]int64{"cpu": 1000, "pods": 1, "nvidia.com/gpu": cards})
	}
	seen := func(key, q string, pods int, cards int64, age time.Duration) *queue.Workload {
		return &queue.Workload{Key: key, UID: key, Queue: q, Queued: noon.Add(-age), Limit: 4 * time.Hour, Spec: gang.Spec{PodSets: []gang.PodSet{{Name: "main", Count: pods, Min: pods, Request: ask(cards)}}}}
	}
	for i := range nodes / 4 { // 28 of 32 cards of every four nodes
		key, q := fmt.Sprintf("ml/run-%d", i), fmt.Sprintf("team-%d", i%10)
		w := seen(key, q, 4, 7, time.Hour)
		plan := gang.Empty(&w.Spec)
		for k := range 4 {
			plan.Add(0, fmt.Sprintf("n-%d", 4*i+k), 1)
		}
		a := &admission.Admission{Key: key, UID: key, Queue: q, Plan: plan, At: noon.Add(-time.Duration(i%180) * time.Minute)}
		s.Apply(admission.WorkloadSeen{Workload: w, Version: 1, Admission: a})
		for k := range 4 {
			s.Apply(admission.PodSeen{Pod: admission.Pod{UID: fmt.Sprintf("%s-%d", key, k), Key: fmt.Sprintf("%s-%d", key, k), Version: 1, Workload: key, Set: "main", Node: fmt.Sprintf("n-%d", 4*i+k), Phase: admission.PodPlaced, Stamp: a.Stamp(), Accepted: true}})
		}
	}
	for i := range nodes / 10 {
		s.Apply(admission.WorkloadSeen{Workload: seen(fmt.Sprintf("ml/wait-%d", i), fmt.Sprintf("team-%d", i%10), 4+i%7, 2, time.Minute), Version: 1})
	}
	s.Apply(admission.WorkloadSeen{Workload: seen("ml/big", "team-3", 4, 8, time.Second), Version: 1})
	return s
}

func BenchmarkCopy(b *testing.B) {
	s := fleet()
	for b.Loop() {
		admission.NewStateOf(s.Image())
	}
}

func BenchmarkCycle(b *testing.B) {
	s := fleet()
	for b.Loop() {
		admission.Cycle(s, noon)
	}
}

func BenchmarkNew(b *testing.B) {
	im := fleet().Image()
	for b.Loop() {
		New(im, noon)
	}
}

func BenchmarkWhy(b *testing.B) {
	w := New(fleet().Image(), noon)
	var a *Why
	for b.Loop() {
		var err error
		if a, err = w.Why("ml/big"); err != nil {
			b.Fatal(err)
		}
	}
	a.Write(benchLog{b}, noon, 80)
}

type benchLog struct{ b *testing.B }

func (l benchLog) Write(p []byte) (int, error) { l.b.Log(string(p)); return len(p), nil }
