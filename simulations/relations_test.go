package simulations

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// related runs a drawn story and another that has to come out as it does.
func related(t *testing.T, what string, seed uint64, a, b string, o Options, rename func(string) string) {
	t.Helper()
	if at := unlike(t, what, seed, a, b, Options{}, o, rename); at != "" {
		t.Errorf("%s, seed %d: %s", what, seed, at)
	}
}

// unlike says where the moves of two stories differ first; empty is nowhere.
func unlike(t *testing.T, what string, seed uint64, a, b string, p, q Options, rename func(string) string) string {
	t.Helper()
	run := func(text string, o Options) *Report {
		s, err := Parse("f.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%s, seed %d: %v", what, seed, err)
		}
		return runOnce(s, o)
	}
	x, y := run(a, p), run(b, q)
	if x.Broken != nil || y.Broken != nil {
		t.Fatalf("%s, seed %d: %v, %v", what, seed, x.Broken, y.Broken)
	}
	return firstDifference(rename(moves(x.Trace)), moves(y.Trace))
}

func same(s string) string { return s }

// TestRelationsCanFail: stories that are not alike are told apart, by one of the seeds.
func TestRelationsCanFail(t *testing.T) {
	for what, change := range map[string]func(string) string{
		"other weights": func(s string) string { return weight.ReplaceAllString(s, "weight: 7") },
		"another name":  func(s string) string { return aName.ReplaceAllString(s, "${1}x${2}") },
		"no policy":     func(s string) string { return regexp.MustCompile(`(?m)^policy: .*\n`).ReplaceAllString(s, "") },
	} {
		told := false
		for seed := uint64(0); seed < 6 && !told; seed++ {
			text := drawStory(seed, 80, nil).whole()
			told = unlike(t, what, seed, text, change(text), Options{}, Options{}, same) != ""
		}
		if !told {
			t.Errorf("%s make no difference", what)
		}
	}
}

var told = regexp.MustCompile(`(?m)^  (event|tell|submit) .*\n`)

// moves is what happened in a run, without what was said.
func moves(trace string) string { return told.ReplaceAllString(trace, "") }

var (
	aName  = regexp.MustCompile(`\b([ngqf]|org)([0-9]+)\b`)
	weight = regexp.MustCompile(`weight: ([0-9.]+)`)
)

// TestRenamed: with other names in the same order the same story happens to those.
// The order of names is the last tie rule, so it is kept.
func TestRenamed(t *testing.T) {
	other := func(text string) string { return aName.ReplaceAllString(text, "${1}x${2}") }
	for seed := range uint64(6) {
		text := drawStory(seed, 80, nil).whole()
		related(t, "renamed", seed, text, other(text), Options{}, other)
	}
}

// TestWeightsScaled: only how weights are to one another counts.
func TestWeightsScaled(t *testing.T) {
	for seed := range uint64(6) {
		text := drawStory(seed, 80, nil).whole()
		scaled := weight.ReplaceAllStringFunc(text, func(m string) string {
			var w float64
			if _, err := fmt.Sscanf(m, "weight: %g", &w); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("weight: %g", 4*w)
		})
		scaled = strings.ReplaceAll(scaled, "{name: org", "{weight: 4, name: org")
		scaled = regexp.MustCompile(`\{weight: 4, (name: org[^}]*weight: )`).ReplaceAllString(scaled, "{$1")
		related(t, "scaled", seed, text, scaled, Options{}, func(s string) string { return s })
	}
}

// TestServiceByWeight: queues that always want more than there is have at every
// moment of a busy hour their part by weight, but for less than one gang.
func TestServiceByWeight(t *testing.T) {
	for _, weights := range [][]int64{{1, 1}, {1, 2}, {3, 1, 4}, {1, 2, 3, 6}} {
		var b strings.Builder
		b.WriteString("nodes: [{name: h, count: 3, gpus: 8}]\nqueues:\n")
		sum := int64(0)
		for i, w := range weights {
			fmt.Fprintf(&b, "- {name: q%d, weight: %d}\n", i, w)
			sum += w
		}
		b.WriteString("events:\n")
		for n := range 300 {
			for i := range weights {
				fmt.Fprintf(&b, "- {at: 0s, submit: [{name: j%d-%d, queue: q%d, pods: 1, requests: {nvidia.com/gpu: 1}, runtime: %ds}]}\n", i, n, i, 60+(n*7+i*13)%120)
			}
		}
		s, err := Parse("f.yaml", []byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		for at := time.Minute; at < 20*time.Minute; at += 97 * time.Second {
			state, _, err := StateAt(s, Options{}, at)
			if err != nil {
				t.Fatal(err)
			}
			for i, w := range weights {
				got := state.Usage(fmt.Sprintf("q%d", i)).At(state.Space.Index(ResourceGPU))
				if due := 24 * w; got*sum < due-sum || got*sum > due+sum {
					t.Errorf("weights %v at %s: q%d has %d of 24", weights, at, i, got)
				}
			}
		}
	}
}
