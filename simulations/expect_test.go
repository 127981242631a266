package simulations

import (
	"slices"
	"strings"
	"testing"
)

// world is what the expectations below are asked about: a gang that runs, one
// that waits, one that ended, one that was taken back.
const stage = `
nodes:
- {name: h, count: 2, gpus: 4, labels: {rack: r1}}
- {name: lone, gpus: 1}
levels: [rack]
queues:
- {name: A, nominal: {nvidia.com/gpu: 9, cpu: 100}, max: {nvidia.com/gpu: 9}}
events:
- {at: 0s, submit: [{name: run, queue: A, pods: 8, requests: {nvidia.com/gpu: 1, cpu: 500m}, selector: {rack: r1}}]}
- {at: 0s, submit: [{name: done, queue: A, pods: 1, requests: {nvidia.com/gpu: 1}, runtime: 5s, selector: {kubernetes.io/hostname: lone}}]}
- {at: 1s, submit: [{name: wait, queue: A, pods: 2, requests: {nvidia.com/gpu: 1}}]}
- {at: 10s, submit: [{name: back, queue: A, pods: 1, requests: {nvidia.com/gpu: 1}}]}
- {at: 20s, submit: [{name: top, queue: A, pods: 1, requests: {nvidia.com/gpu: 1}, priority: 1, selector: {kubernetes.io/hostname: lone}}]}
- {at: 40s, finish: top}
- {at: 50s, submit: [{name: two, queue: A, podSets: [{name: l, pods: 1, requests: {cpu: 1}, selector: {rack: r1}}, {name: r, pods: 1, requests: {cpu: 1}, selector: {kubernetes.io/hostname: lone}}]}]}
`

// TestExpectations asks for what is and for what is not, key by key. The
// messages are part of the promise of the command.
func TestExpectations(t *testing.T) {
	for _, c := range []struct{ ask, miss string }{
		{"{at: 30s, admitted: [run, top]}", ""},
		{"{at: 30s, admitted: [run, wait]}", "at 30s: admitted[wait]: want admitted, got Quota"},
		{"{at: 30s, admitted: [done]}", "at 30s: admitted[done]: want admitted, got finished"},
		{"{at: 30s, notAdmitted: [wait, done, back]}", ""},
		{"{at: 30s, notAdmitted: [run]}", "at 30s: notAdmitted[run]: want not admitted, got admitted"},
		{"{at: 30s, pending: [wait, back]}", ""},
		{"{at: 30s, pending: {wait: Quota}}", ""},
		{"{at: 30s, pending: [run]}", "at 30s: pending[run]: want pending, got admitted"},
		{"{at: 10s, pending: {wait: Capacity}}", "at 10s: pending[wait]: want Capacity, got Quota"},
		{"{at: 30s, pending: {done: Quota}}", "at 30s: pending[done]: want Quota, got finished"},
		{"{at: 5s, finished: [done]}", ""},
		{"{at: 4s, finished: [done]}", "at 4s: finished[done]: want finished, got admitted"},
		{"{at: 30s, whole: [run, wait, done]}", ""},
		{"{at: 30s, evicted: {back: 1, run: 0}}", ""},
		{"{at: 30s, evicted: {back: 2}}", "at 30s: evicted[back]: want 2, got 1"},
		{"{at: 30s, evictions: 1}", ""},
		{"{at: 19s, evictions: 1}", "at 19s: evictions: want 1, got 0"},
		{"{at: 30s, pods: {run: 8, wait: 0, done: 0}}", ""},
		{"{at: 30s, pods: {run: 7}}", "at 30s: pods[run]: want 7, got 8"},
		{"{at: 60s, podSets: {two: {l: 1, r: 1}}}", ""},
		{"{at: 60s, podSets: {two: {l: 2}}}", "at 1m: podSets[two.l]: want 2, got 1"},
		{"{at: 30s, nodes: {run: {h-0: 4, h-1: 4, lone: 0}}}", ""},
		{"{at: 30s, nodes: {run: {h-0: 3}}}", "at 30s: nodes[run]: want 3 on h-0, got 4, all are [h-0:4 h-1:4]"},
		{"{at: 30s, notNodes: {run: [lone]}}", ""},
		{"{at: 30s, notNodes: {run: [lone, h-1]}}", "at 30s: notNodes[run]: want none on h-1, got 4"},
		{"{at: 30s, sameLevel: {run: rack}}", ""},
		{"{at: 30s, sameLevel: {run: kubernetes.io/hostname}}", "at 30s: sameLevel[run]: want one kubernetes.io/hostname, got h-0, h-1"},
		{"{at: 60s, sameLevel: {two: rack}}", "at 1m: sameLevel[two]: want one rack, got none on lone"},
		{"{at: 30s, usage: {A: {nvidia.com/gpu: 9, cpu: 4}}}", ""},
		{"{at: 30s, usage: {A: {nvidia.com/gpu: 9, cpu: 3500m}}}", "at 30s: usage[A]: want cpu 3500m, got cpu 4"},
		{"{at: 30s, usage: {A: {memory: 2Gi}}}", "at 30s: usage[A]: want memory 2Gi, got memory 0"},
		{"{at: 30s, free: {h-0: {nvidia.com/gpu: 0, cpu: 998}, lone: {memory: 10Ti}}}", ""},
		{"{at: 30s, free: {lone: {nvidia.com/gpu: 1}}}", "at 30s: free[lone]: want nvidia.com/gpu 1, got nvidia.com/gpu 0"},
		{"{at: 30s, admittedBy: {run: 0s, back: 10s}}", ""},
		{"{at: 30s, admittedBy: {back: 9s}}", "at 30s: admittedBy[back]: want 9s, got 10s"},
		{"{at: 30s, admittedBy: {wait: 30s}}", "at 30s: admittedBy[wait]: want 30s, got not admitted so far"},
		{"{at: 30s, says: {wait: \"2 nvidia.com/gpu\"}}", ""},
		{"{at: 30s, says: {run: moon}}", "at 30s: says[run]: want \"moon\", got \"\""},
		{"{at: 20s, quiet: 20s}", ""},
		{"{at: 20s, quiet: 21s}", "at 20s: quiet: want 21s without change, got a change at 40s"},
		{"{at: 30s, never: [wait]}", ""},
		{"{at: 30s, never: [back]}", "at 30s: never[back]: want never admitted, got admitted at 10s"},
		{"{at: 30s, count: {admitted: 2, among: [run, wait, top]}}", ""},
		{"{at: 30s, count: {admitted: 1, among: [run, wait, top]}}", "at 30s: count: want 1, got 2"},
		{"{at: 30s, anyOf: [{admitted: [wait]}, {admitted: [run]}]}", ""},
		{"{at: 30s, anyOf: [{admitted: [wait]}, {quiet: 5s}]}", ""},
		{"{at: 30s, anyOf: [{admitted: [wait]}, {quiet: 15s, admitted: [run]}]}", "at 30s: anyOf: want one of them, got admitted[wait] admitted is Quota; 15s without change is a change at 40s"},
	} {
		t.Run(c.ask, func(t *testing.T) {
			s, err := Parse("f.yaml", []byte(stage+"expect:\n- "+c.ask+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			r := Run(s, Options{})
			var want []string
			if c.miss != "" {
				want = []string{"f.yaml: " + c.miss}
			}
			if got := r.Lines(); !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q\n%s", got, want, r.Trace)
			}
		})
	}
}

// TestWholeMisses: the one expectation that no correct core lets miss.
func TestWholeMisses(t *testing.T) {
	const file = `
nodes: [{name: h, gpus: 2}]
queues: [{name: A}]
events:
- {at: 0s, submit: [{name: J, queue: A, pods: 2, requests: {nvidia.com/gpu: 1}, running: {h: 1}}]}
- {at: 0s, cordon: h}
expect:
- {at: 0s, whole: [J]}
`
	s, err := Parse("f.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"f.yaml: at 0s: whole[J]: want 0 pods or the minimum, got 1 pods"}
	if got := Run(s, Options{}).Lines(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestEveryKeyIsExecuted: what the grammar knows and supported.go does not list
// as missing has an answer, so that no run can end in a panic about it.
func TestEveryKeyIsExecuted(t *testing.T) {
	for _, k := range expectKeys {
		if slices.Contains(notYet, "expect."+k.key) {
			continue
		}
		asked := false
		for _, file := range append(scenarioFiles(t), "expect_test.go") {
			asked = asked || strings.Contains(read(t, file), k.key+":")
		}
		if !asked {
			t.Errorf("no scenario of this folder asks for %q", k.key)
		}
	}
	for _, v := range verbs {
		if slices.Contains(notYet, "event."+v.name) {
			continue
		}
		used := false
		for _, file := range scenarioFiles(t) {
			used = used || strings.Contains(read(t, file), v.name+":")
		}
		if !used {
			t.Errorf("no scenario of this folder uses the verb %q", v.name)
		}
	}
}
