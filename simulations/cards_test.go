package simulations

import (
	"strings"
	"testing"
)

// TestTriesCostNothing: a node that refuses is tried again and again, and only the
// first refusal, which met a gang whose other pods ran, counts as an eviction. Each
// try costs one pod: at 1, and again at 2, 4, 8, 16, 31, 46 and 61 minutes.
func TestTriesCostNothing(t *testing.T) {
	s, err := Parse("f.yaml", []byte(`
nodes: [{name: h, count: 2, gpus: 2}]
queues: [{name: A}]
events:
- {at: 0s, submit: [{name: J, queue: A, pods: 4, requests: {nvidia.com/gpu: 1}}]}
- {at: 1m, refuses: {node: h-0, value: true}}
- {at: 1m, failPod: {workload: J, node: h-0}}
- {at: 62m, refuses: {node: h-0, value: false}}
expect:
- {at: 61m30s, pending: {J: Hardware}, evictions: 1, pods: {J: 0}}
- {at: 75m, pending: {J: Hardware}, evictions: 1}
- {at: 76m, admitted: [J], pods: {J: 4}, evictions: 1}
- {at: 76m, quiet: 1h}
`))
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(seeds) {
		r := Run(s, Options{Seed: seed})
		if !r.OK() {
			t.Errorf("seed %d: %v\n%s", seed, r.Lines(), r.Trace)
		}
		if n := strings.Count(r.Trace, "the kubelet of h-0 refuses pod"); n != 8 {
			t.Errorf("seed %d: %d pods were refused, want 8", seed, n)
		}
	}
}

// TestDealing: replicas of one pod are on different cards, also where cards dealt in
// order leave only one with room: then all are dealt anew.
func TestDealing(t *testing.T) {
	n := &nodeObject{Node: Node{Name: "t", Layouts: make([]Layout, 3), TimeSlices: 2}, state: make([]cardState, 3), pods: map[string]*podObject{}}
	for i, want := range []int64{1, 1, 2, 2} { // the first two share card 0
		p := &podObject{uid: string(rune('a' + i)), phase: podBound, requests: Amounts{{ResourceGPU, want}}}
		n.run(p)
	}
	for _, p := range n.podsOn() {
		seen := map[int]bool{}
		for _, d := range p.cards {
			if seen[d.card] {
				t.Errorf("pod %s has card %d twice", p.uid, d.card)
			}
			seen[d.card] = true
		}
		if int64(len(seen)) != p.cardsWanted() {
			t.Errorf("pod %s has %v, wants %d", p.uid, p.cards, p.cardsWanted())
		}
	}
	if n.room(ResourceGPU) != 0 {
		t.Errorf("%d are free, want 0", n.room(ResourceGPU))
	}
}
