package simulations

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/admission"
)

// TestBrokenEnginesAreSeen: whole runs with an engine that does one thing wrong end
// with a breach that says which.
func TestBrokenEnginesAreSeen(t *testing.T) {
	const file = `
nodes: [{name: h, gpus: 2}]
queues: [{name: A}]
events:
- {at: 0s, submit: [{name: J, queue: A, pods: 2, requests: {nvidia.com/gpu: 1}, runtime: 30s}]}
- {at: 20s, submit: [{name: K, queue: A, pods: 2, requests: {nvidia.com/gpu: 1}, runtime: 30s}]}
expect: [{at: 2m, finished: [J, K]}]
`
	for what, c := range map[string]struct {
		hooks
		want string
	}{
		"a core that panics": {hooks{asks: func(*run) { panic("out of its depth") }}, "panic: out of its depth"},
		"one that is never at rest": {hooks{told: func(r *run, _ change) {
			r.clock.At(r.clock.Now(), func() { r.cluster.change("J", func(*workloadObject) {}) })
		}}, "still not settled after 1000 steps"},
		"one that hears no pod go": {hooks{news: func(list []change) []change {
			var left []change
			for _, ch := range list {
				if ch.pod == nil || !ch.gone && ch.pod.phase != podSucceeded {
					left = append(left, ch)
				}
			}
			return left
		}}, "the controller has"},
		"one that drops a charge": {hooks{told: func(r *run, _ change) {
			if used := r.loop.State().Inventory().Used("h"); used.At(r.loop.State().Space.Index(ResourceGPU)) > 0 {
				r.loop.State().Inventory().Give("h", used.Clone())
			}
		}}, "after the event about "},
		"one that lets in what it was not asked": {hooks{asks: func(r *run) {
			w := r.cluster.workloads["K"]
			if w == nil || r.clock.Now() != 20*time.Second {
				return
			}
			r.loop.State().Apply(admission.Assumed{Decision: admission.Decision{Admit: []admission.Admission{
				{Key: "K", UID: w.uid, Queue: "A", Plan: planOn("h", 2), At: r.now(), Based: w.version},
			}}})
		}}, "K plan: the controller has h×2"},
	} {
		s, err := Parse("f.yaml", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		r := runOnce(s, Options{hooks: c.hooks})
		if r.Broken == nil || !strings.Contains(r.Broken.String(), c.want) {
			t.Errorf("%s: %v, want %q", what, r.Broken, c.want)
		}
	}
}
