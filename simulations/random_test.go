package simulations

import (
	"strings"
	"testing"
)

// TestRandomStories runs a few stories that were drawn by lot, every other one
// with writes that fail. More of them: sluice simulate --random.
func TestRandomStories(t *testing.T) {
	for seed := range uint64(24) {
		d := RunStory(seed, 150, FaultsOf(seed))
		for _, l := range d.Wrong {
			t.Errorf("seed %d: %s", seed, l)
		}
		if d.Events < 150 || d.Writes == 0 {
			t.Errorf("seed %d: %d events, %d writes", seed, d.Events, d.Writes)
		}
	}
}

// TestStarvedIsSeen: who waits for ever without a reason that says so is told.
func TestStarvedIsSeen(t *testing.T) {
	r := &Report{File: "f", waiting: map[string]string{
		"never":  "NeverFits: too large",
		"behind": "Behind: never is first",
		"chain":  "Behind: behind is first",
		"lost":   "Behind: nobody is first",
		"idle":   "Capacity: asks 1",
		"circle": "Behind: circle is first",
	}}
	got := strings.Join(starved(r, atRest(&Scenario{})), "\n")
	want := "f: at the end circle still waits: Behind: circle is first\n" +
		"f: at the end idle still waits: Capacity: asks 1\n" +
		"f: at the end lost still waits: Behind nobody, which does not wait"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestShrink looks for the shortest story in which a gang waits for ever, in one
// that has many others, and finds it without them.
func TestShrink(t *testing.T) {
	s := drawStory(5, 30, nil)
	s.queues = append(s.queues, "small")
	s.head = []string{"nodes: [{name: h, gpus: 2}]", "queues: [{name: small}]", "events:"}
	s.events = []string{
		"- {at: 1s, submit: [{name: a, queue: small, pods: 1, requests: {nvidia.com/gpu: 1}, runtime: 5s}]}",
		"- {at: 2s, priority: {workload: a, value: 3}}",
		"- {at: 3s, submit: [{name: b, queue: small, pods: 2, requests: {nvidia.com/gpu: 1}, runtime: 5s}]}",
		"- {at: 4s, submit: [{name: ever, queue: small, pods: 1, requests: {nvidia.com/gpu: 1}}]}",
		"- {at: 20s, submit: [{name: c, queue: small, pods: 2, requests: {nvidia.com/gpu: 1}, runtime: 5s}]}",
		"- {at: 21s, submit: [{name: d, queue: small, pods: 1, requests: {nvidia.com/gpu: 1}, runtime: 5s}]}",
	}
	s.mends, s.expect = nil, "expect: [{at: 1h, quiet: 1s}]"
	d := &Drawn{Seed: 5, story: s, Wrong: []string{"story-5.yaml: at the end c still waits: Quota: asks 2"}}
	steps := 0
	text := d.Shrink(func(int) { steps++ })
	if n := strings.Count(text, "- {at:"); n != 2 || !strings.Contains(text, "name: ever,") || !strings.Contains(text, "name: c,") || steps == 0 {
		t.Errorf("%d events, %d steps\n%s", n, steps, text)
	}
	if !strings.HasPrefix(text, "# sluice simulate --seed 5 FILE\n# story-5.yaml: at the end c") {
		t.Errorf("it does not say how to run it:\n%s", text)
	}
	if _, err := Parse("f.yaml", []byte(text)); err != nil {
		t.Error(err)
	}
}
