package main

import (
	"strings"
	"testing"
)

func TestGrowthIsAPowerOfTheSize(t *testing.T) {
	in := `goos: linux
BenchmarkX/cold/nodes=1000/gangs=1000-2    10  100 ns/op  1 cpu-ms/op  8 B/op  3 allocs/op
BenchmarkX/cold/nodes=1000/gangs=10000-2   10  1000 ns/op  100 cpu-ms/op  8 B/op  3 allocs/op
BenchmarkX/cold/nodes=1000/gangs=100000-2  10  1000 ns/op  100 cpu-ms/op  8 B/op  3 allocs/op
BenchmarkX/event/nodes=1000/gangs=10000-2  10  7 ns/op
PASS
`
	var out strings.Builder
	if err := run(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), in) {
		t.Errorf("what was read is not passed on: %s", out.String())
	}
	want := `
exponent of         benchmark
    2.00 cpu-ms/op  BenchmarkX/cold/nodes=1000/gangs=1000..10000
    0.00 cpu-ms/op  BenchmarkX/cold/nodes=1000/gangs=10000..100000
    1.00 ns/op      BenchmarkX/cold/nodes=1000/gangs=1000..10000
    0.00 ns/op      BenchmarkX/cold/nodes=1000/gangs=10000..100000
    0.00 B/op       BenchmarkX/cold/nodes=1000/gangs=1000..10000
    0.00 B/op       BenchmarkX/cold/nodes=1000/gangs=10000..100000
    0.00 allocs/op  BenchmarkX/cold/nodes=1000/gangs=1000..10000
    0.00 allocs/op  BenchmarkX/cold/nodes=1000/gangs=10000..100000
`
	if got := strings.TrimPrefix(out.String(), in); got != want {
		t.Errorf("got %swant %s", got, want)
	}
}

func TestNothingToCompare(t *testing.T) {
	var out strings.Builder
	if err := run(strings.NewReader("ok  \tx\t1s\nBenchmarkY-2 1 5 ns/op\nBenchmarkZ/n=0-2 1 5 ns/op\n"), &out); err != nil || strings.Contains(out.String(), "exponent") {
		t.Errorf("%v, %s", err, out.String())
	}
}
