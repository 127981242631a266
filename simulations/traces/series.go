package traces

import (
	"iter"
	"strconv"
)

// Series is a line of the result tables that the FGD study published: one value
// for every percent of the cluster's GPUs that has arrived.
type Series struct {
	Workload, Policy string
	Seed             int64
	At               []float64 // index: percent arrived
}

// Series reads such a table.
func (f *File) Series() iter.Seq2[Series, error] {
	return each(f, []string{"workload", "sc_policy", "seed", "0"}, func(r *row) Series {
		s := Series{Workload: r.text("workload"), Policy: r.text("sc_policy"), Seed: r.whole("seed")}
		for {
			column := strconv.Itoa(len(s.At))
			if _, ok := r.at[column]; !ok {
				return s
			}
			s.At = append(s.At, r.number(column))
		}
	})
}
