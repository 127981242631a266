package tables

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"sluice.dev/sluice/simulations/traces"
)

// Scope is how much of the studies is run.
type Scope struct {
	Traces string
	Quick  bool // a tenth
}

// part is where the results of this scope are kept.
func (s Scope) part() string {
	if s.Quick {
		return "quick/"
	}
	return "full/"
}

// FGD is the study of where pods with parts of GPUs go.
func (s Scope) FGD(store *Store) (Table, error) {
	t := Table{
		Title: "A1. FGD: GPUs allocated when 130 % of them have arrived",
		Notes: []string{
			"Weng et al., USENIX ATC 2023: 1,213 nodes with 6,212 GPUs of seven models, 17 workloads, seeds 42 to 51. Policies are scores of the engine's placement (`gang.Preference`). " +
				"Percent of all GPUs, mean of the seeds; in brackets how many of all published values, at 0 to 130 % of arrival, are equal to the last digit: of what is allocated, and of what is fragmented (of all GPUs and of the idle ones). Random draws within its scoring, so the mean of all seeds may be off by half a point. Where fragments alone differ, it is in their last digits: the order in which they are summed up over nodes is not known.",
		},
	}
	seeds := Seeds
	if s.Quick {
		seeds = seeds[:1]
	}
	policies := append(slices.Clone(Placements), Plain, Whole)
	sums, missing, err := s.packings(store, policies, seeds)
	if err != nil {
		return t, err
	}
	var worse []string
	for _, w := range Workloads {
		best := 0.0 // FGD's
		for _, policy := range policies {
			sum := sums[Run{Workload: w, Policy: policy}]
			if sum == nil {
				continue
			}
			c := sum.cell(w, policy)
			if sum.runs < len(seeds) {
				c.What += fmt.Sprintf(", %d seeds", sum.runs)
			}
			t.Cells = append(t.Cells, c)
			switch {
			case policy == "FGD":
				best = c.Got
			case math.IsNaN(c.Expected) && best > 0 && c.Got <= best:
				worse = append(worse, fmt.Sprintf("%s, %s: %.2f against %.2f", w, strings.TrimPrefix(policy, "ours, "), c.Got, best))
			}
		}
	}
	if missing > 0 {
		t.After = append(t.After, fmt.Sprintf("%d of %d runs have not been made; a row is of the seeds that were run, and says how many if not all.", missing, len(Workloads)*len(seeds)*len(policies)))
	}
	if len(worse) > 0 {
		t.After = append(t.After, "The goal is more than FGD on every workload. Not met: "+strings.Join(worse, "; ")+".")
	}
	return t, nil
}

// packings are the runs of the FGD study, summed over seeds; missing is how many have
// not been made.
func (s Scope) packings(store *Store, policies []string, seeds []int64) (sums map[Run]*fgdSum, missing int, err error) {
	want, err := Published(s.Traces)
	if err != nil {
		return nil, 0, err
	}
	lists, nodes := map[string][]traces.Pod{}, []traces.Node(nil)
	for _, w := range Workloads {
		if lists[w], nodes, err = openb(s.Traces, w); err != nil {
			return nil, 0, err
		}
	}
	sums = map[Run]*fgdSum{}
	for _, seed := range seeds { // so that what was broken off has every row
		for _, w := range Workloads {
			for _, policy := range policies {
				r, err := Keep(store, fmt.Sprintf("fgd/%s/%s-%d", w, policy, seed), func() (Packing, error) {
					return Pack(lists[w], nodes, w, policy, seed, true)
				})
				if errors.Is(err, ErrNotRun) {
					missing++
					continue
				}
				if err != nil {
					return nil, 0, err
				}
				row := Run{Workload: w, Policy: policy}
				if sums[row] == nil {
					sums[row] = &fgdSum{}
				}
				sums[row].add(&r, want[Run{w, policy, seed}])
			}
		}
	}
	return sums, missing, nil
}

// fgdSum adds up the seeds of one policy.
type fgdSum struct {
	runs           int
	got, want      float64 // allocated at the end
	values, differ int     // of what is allocated
	parts, off     int     // of what is fragmented
	seconds        float64
}

func (f *fgdSum) add(r *Packing, w Packing) {
	f.runs++
	f.got += r.Allocated[len(r.Allocated)-1]
	f.seconds += r.Seconds
	if len(w.Allocated) == 0 {
		return
	}
	f.want += w.Allocated[len(w.Allocated)-1]
	f.values, f.differ = f.values+len(w.Allocated), f.differ+differing(r.Allocated, w.Allocated)
	f.parts += len(w.Fragmented) + len(w.OfIdle)
	f.off += differing(r.Fragmented, w.Fragmented) + differing(r.OfIdle, w.OfIdle)
}

// differing is how many of the wanted values are not among those got.
func differing(got, want []float64) int {
	n := 0
	for i, x := range want {
		if i >= len(got) || got[i] != x {
			n++
		}
	}
	return n
}

func (f *fgdSum) cell(workload, policy string) Cell {
	n := float64(f.runs)
	if f.values == 0 {
		return Ours(workload+", "+policy, f.got/n, 3)
	}
	c := Cell{What: workload + ", " + policy, Expected: f.want / n, Got: f.got / n, Tolerance: 1e-9, Digits: 3}
	if policy == "Random" {
		c.Tolerance = .5
		return c
	}
	c.What += fmt.Sprintf(" (%d of %d; %d of %d)", f.values-f.differ, f.values, f.parts-f.off, f.parts)
	if f.differ+f.off > 0 {
		c.Tolerance = -1 // not equal, though the mean may be
	}
	return c
}

// EASY is the study of when jobs start on one machine.
func (s Scope) EASY(store *Store) (Table, error) {
	t := Table{
		Title: "A2. EASY backfilling: when every job starts",
		Notes: []string{
			"Gaussier, Glesser, Reis, Trystram, SC 2015; five logs of the Parallel Workloads Archive with the published wait of every job. The whole engine (state, cycle, journal-less) with one queue and one node that is the machine; " +
				"`ReserveAfter: 0, Reservations: 1` is EASY, `ShortestFirst` is SJBF. A start differs if it is a second off. Times are s, slowdowns are bounded at 10 s.",
		},
	}
	for _, ours := range []bool{false, true} { // what can be compared first
		for _, l := range Logs {
			most := 0
			if s.Quick {
				most = l.Jobs / 10
			}
			for _, policy := range Policies() {
				if ours != (policy.Published < 0) {
					continue
				}
				r, err := Keep(store, s.part()+"easy/"+l.Name+"/"+policy.Name, func() (Replay, error) { return l.Run(s.Traces, policy, most, nil) })
				if errors.Is(err, ErrNotRun) {
					t.After = append(t.After, fmt.Sprintf("Not run: %s, %s.", l.Name, policy.Name))
					continue
				}
				if err != nil {
					return t, err
				}
				t.Cells = append(t.Cells, l.cells(&r, policy, s.Quick)...)
			}
		}
	}
	return t, nil
}

func (l *Log) cells(r *Replay, policy Policy, part bool) []Cell {
	name := l.Name + ", " + policy.Name + ": "
	k := policy.Published
	var cells []Cell
	if k >= 0 {
		cells = append(cells, Cell{What: name + fmt.Sprintf("starts that differ, of %d", r.Jobs), Got: float64(r.Differ)})
	}
	if k >= 0 && !part {
		cells = append(cells,
			Cell{What: name + "slowdown", Expected: l.Slowdown[k], Got: r.Slowdown, Tolerance: 1e-6, Digits: 6},
			Cell{What: name + "mean wait", Expected: l.Wait[k], Got: r.Wait, Tolerance: 1e-3, Digits: 3},
			Cell{What: name + "longest wait", Expected: l.Longest[k], Got: r.Longest},
		)
		if k == 0 {
			cells = append(cells, Cell{What: name + "utilisation", Expected: l.Use, Got: r.Use, Tolerance: 5e-5, Digits: 4})
		}
	} else if !part {
		cells = append(cells, Ours(name+"slowdown", r.Slowdown, 6), Ours(name+"mean wait", r.Wait, 3), Ours(name+"longest wait", r.Longest, 0))
	}
	if k < 0 {
		cells = append(cells, Ours(name+"jobs that started after what their first reservation promised", float64(r.Late), 0))
	}
	if r.Seconds == 0 {
		return cells // nobody counted
	}
	return append(cells, Ours(name+fmt.Sprintf("s of one processor, %d cycles", r.Cycles), r.Seconds, 1))
}
