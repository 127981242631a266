// Command growth reads the output of go test -bench, passes it on, and says by which
// power of a size each cost grows: 0 does not grow, 1 grows as the size does. A cost
// that grows with what exists, where only what changed should count, is seen at once.
//
// Benchmarks are compared whose names differ in one size: cold/nodes=1000/gangs=1000
// with cold/nodes=1000/gangs=10000.
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

// result is a line of a benchmark.
type result struct {
	name  string
	parts []string           // of the name, between slashes
	costs map[string]float64 // by unit
}

// costs are the units that are compared, the best one first: what the process used
// of the processors says more than the time that passed on a shared machine.
var costs = []string{"cpu-ms/op", "ns/op", "B/op", "allocs/op"}

func run(in io.Reader, out io.Writer) error {
	var all []result
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fmt.Fprintln(out, lines.Text())
		if r, ok := parse(lines.Text()); ok {
			all = append(all, r)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read benchmarks: %w", err)
	}
	grown := growths(all)
	if len(grown) == 0 {
		return nil
	}
	fmt.Fprintf(out, "\n%-8s %-10s %s\n", "exponent", "of", "benchmark")
	for _, g := range grown {
		fmt.Fprintf(out, "%8.2f %-10s %s\n", g.exponent, g.unit, g.what)
	}
	return nil
}

// parse reads a line like BenchmarkX/a=1-2  100  12 ns/op  3 B/op.
func parse(line string) (result, bool) {
	f := strings.Fields(line)
	if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
		return result{}, false
	}
	name := f[0]
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		if _, err := strconv.Atoi(name[i+1:]); err == nil { // of processors
			name = name[:i]
		}
	}
	r := result{name: name, parts: strings.Split(name, "/"), costs: map[string]float64{}}
	for i := 2; i+1 < len(f); i += 2 {
		v, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			return result{}, false
		}
		r.costs[f[i+1]] = v
	}
	return r, true
}

// growth is by which power of a size a cost grows.
type growth struct {
	what     string
	unit     string
	exponent float64
}

// growths compares every two benchmarks that differ in one size and have no third
// between them.
func growths(all []result) []growth {
	var out []growth
	for i := range all {
		next, at := -1, 0
		for k := range all {
			d, small, large := differ(all[i].parts, all[k].parts)
			if d < 0 || large <= small {
				continue
			}
			if next >= 0 {
				if _, _, best := differ(all[i].parts, all[next].parts); d == at && large >= best {
					continue
				}
			}
			next, at = k, d
		}
		if next < 0 {
			continue
		}
		_, small, large := differ(all[i].parts, all[next].parts)
		for _, unit := range costs {
			a, b := all[i].costs[unit], all[next].costs[unit]
			if a > 0 && b > 0 {
				size, _, _ := strings.Cut(all[i].parts[at], "=")
				what := slices.Clone(all[i].parts)
				what[at] = fmt.Sprintf("%s=%g..%g", size, small, large)
				out = append(out, growth{strings.Join(what, "/"), unit, math.Log(b/a) / math.Log(large/small)})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b growth) int {
		return cmp.Or(cmp.Compare(slices.Index(costs, a.unit), slices.Index(costs, b.unit)), -cmp.Compare(a.exponent, b.exponent))
	})
	return out
}

// differ is the one part in which the names differ, if that is a size in both; -1 if
// it is not so.
func differ(a, b []string) (at int, x, y float64) {
	at = -1
	if len(a) != len(b) {
		return -1, 0, 0
	}
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		ka, va, _ := strings.Cut(a[i], "=")
		kb, vb, _ := strings.Cut(b[i], "=")
		var err1, err2 error
		x, err1 = strconv.ParseFloat(va, 64)
		y, err2 = strconv.ParseFloat(vb, 64)
		if at >= 0 || ka != kb || err1 != nil || err2 != nil || x <= 0 || y <= 0 {
			return -1, 0, 0
		}
		at = i
	}
	return at, x, y
}
