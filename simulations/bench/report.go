package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report writes a table of results, with ratios to the manager of the name given.
func Report(out io.Writer, s Shape, results []Result, to string) error {
	fmt.Fprintf(out, "%s: %d cohorts of %d queues, %d Workloads\n", s.Name, s.Cohorts, s.Queues, s.Workloads())
	var base float64
	for _, r := range results {
		if r.Manager == to {
			base = r.Rate()
		}
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "manager\tseconds\tadmissions/s\tx %s\tevicted\tCPU s\tpeak MiB\twrites/admission\t", to)
	for _, c := range s.Classes {
		fmt.Fprintf(t, "%s: mean s to admission\t", c.Name)
	}
	fmt.Fprintln(t)
	for _, r := range results {
		ratio := "-"
		if base > 0 {
			ratio = fmt.Sprintf("%.2f", r.Rate()/base)
		}
		total := 0
		for _, n := range r.Writes {
			total += n
		}
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%s\t%d\t%.1f\t%d\t%.2f\t", r.Manager, r.Took.Seconds(), r.Rate(), ratio, r.Evicted,
			r.Cost.CPU.Seconds(), r.Cost.Memory>>20, float64(total)/float64(max(r.Admitted, 1)))
		for _, c := range s.Classes {
			fmt.Fprintf(t, "%.2f\t", mean(r.Waited[c.Name]).Seconds())
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(r.Writes)) {
			parts = append(parts, fmt.Sprintf("%s %d", name, r.Writes[name]))
		}
		fmt.Fprintf(out, "writes of %s: %s\n", r.Manager, strings.Join(parts, ", "))
		if len(r.Over) > 0 {
			fmt.Fprintf(out, "%s went over %d quotas, as %s\n", r.Manager, len(r.Over), r.Over[0])
		}
	}
	return nil
}

func mean(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(len(all))
}
