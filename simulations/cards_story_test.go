package simulations

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestCardStories draws stories about cards: cut, shared, lost, misreported, refused
// and silent, with and without writes that fail. No promise breaks, and when all is
// mended whoever still waits has asked for what the cards cannot be, or are not cut
// into.
func TestCardStories(t *testing.T) {
	for seed := range uint64(30) {
		text := cardStory(rand.New(rand.NewPCG(seed, 7)))
		s, err := Parse(fmt.Sprintf("cards-%d.yaml", seed), []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		o := Options{Seed: seed}
		if seed%2 == 1 {
			o.Fault = oneInThirty(seed)
		}
		r := Run(s, o)
		lines := r.Lines()
		for name, why := range r.waiting {
			if !strings.HasPrefix(why, "NeverFits:") && !strings.HasPrefix(why, "Layout:") {
				lines = append(lines, fmt.Sprintf("%s still waits: %s", name, why))
			}
		}
		if len(lines) > 0 {
			t.Errorf("seed %d: %v\n%s", seed, lines, text)
		}
	}
}

// oneInThirty lets some of the writes that change something go wrong, in all ways.
func oneInThirty(seed uint64) func() Fault {
	return func() Fault {
		r := rand.New(rand.NewPCG(seed, 8))
		return func(w Write) Fate {
			fate := Fate(r.IntN(4)) + Refused
			if r.IntN(30) > 0 || w.Act == "tell" {
				return Done
			}
			return fate
		}
	}
}

var drawnLayouts = []string{
	"[3g.20gb, 3g.20gb]", `["1g.5gb x7"]`, "[7g.40gb]", "[2g.10gb, 2g.10gb, 2g.10gb]", "[]", "[4g.20gb, 1g.5gb, 1g.5gb]",
}

func cardStory(r *rand.Rand) string {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	var b strings.Builder
	b.WriteString("nodes:\n")
	for _, n := range []string{"m0", "m1"} {
		fmt.Fprintf(&b, "- {name: %s, gpus: 2, product: NVIDIA-A100-SXM4-40GB, mig: %s}\n", n, one(drawnLayouts...))
	}
	fmt.Fprintf(&b, "- {name: t, gpus: 2, product: NVIDIA-A10, timeSlices: %d}\n- {name: h, gpus: 2}\n", 2+r.IntN(3))
	b.WriteString("queues: [{name: q}, {name: p, nominal: {nvidia.com/gpu: 4, nvidia.com/mig-1g.5gb: 5}}]\nevents:\n")
	at := 0
	for i := range 70 {
		at += []int{0, 1, 5, 20, 40}[r.IntN(5)]
		fmt.Fprintf(&b, "- {at: %ds, %s}\n", at, cardEvent(r, i, one))
	}
	at += 100
	for _, n := range []string{"m0", "m1", "t", "h"} {
		for _, verb := range []string{
			"uncordon: %s", "ready: %s", "agentBack: %s", "gpuBack: {node: %s}", "refuses: {node: %s, value: false}",
			"allocatable: {node: %s, resource: nvidia.com/gpu, value: null}",
		} {
			fmt.Fprintf(&b, "- {at: %ds, %s}\n", at, fmt.Sprintf(verb, n))
		}
	}
	fmt.Fprintf(&b, "- {at: %ds, timeSlices: {node: t, value: 2}}\n", at)
	for i, l := range []int{0, 1, 3, 5} {
		fmt.Fprintf(&b, "- {at: %ds, mig: {node: m%d, gpu: %d, layout: %s}}\n", at, i/2, i%2, drawnLayouts[l])
	}
	fmt.Fprintf(&b, "expect: [{at: %ds, quiet: 1s}]\n", at+36000)
	return b.String()
}

func cardEvent(r *rand.Rand, i int, one func(...string) string) string {
	node := one("m0", "m1", "t", "h")
	switch r.IntN(15) {
	case 0:
		return fmt.Sprintf("gpuLost: {node: %s, gpu: %d}", node, r.IntN(2))
	case 1:
		return fmt.Sprintf("gpuBack: {node: %s}", node)
	case 2:
		return fmt.Sprintf("mig: {node: m%d, gpu: %d, layout: %s%s}", r.IntN(2), r.IntN(2), one(drawnLayouts...),
			one("", ", takes: 30s", ", fails: true", ", takes: 20s, fails: true"))
	case 3:
		return fmt.Sprintf("timeSlices: {node: t, value: %d}", 1+r.IntN(4))
	case 4:
		return fmt.Sprintf("allocatable: {node: %s, resource: nvidia.com/gpu, value: %s}", node, one("0", "1", "2", "9", "null", "null"))
	case 5:
		return one("agentSilent: ", "agentBack: ") + node
	case 6:
		return fmt.Sprintf("refuses: {node: %s, value: %s}", node, one("true", "false", "false"))
	case 7:
		return one("cordon: ", "uncordon: ", "notReady: ", "ready: ", "ready: ") + node
	case 8:
		return one(fmt.Sprintf("crash: {after: %d}", r.IntN(4)), fmt.Sprintf("gpuLost: {node: %s}", node))
	}
	asks := one("nvidia.com/gpu: 1", "nvidia.com/gpu: 2", "nvidia.com/gpu: 3", "nvidia.com/mig-1g.5gb: 2", "nvidia.com/mig-3g.20gb: 1",
		"nvidia.com/mig-2g.10gb: 1, nvidia.com/mig-1g.5gb: 1")
	return fmt.Sprintf("submit: [{name: J%d, queue: %s, pods: %d, requests: {%s, cpu: 1}, sharing: %s, priority: %d, runtime: %ds, stops: %ds}]",
		i, one("q", "p"), 1+r.IntN(5), asks, one("whole", "shared", "any"), r.IntN(3), 20+r.IntN(180), r.IntN(2)*15)
}
