package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"sluice.dev/sluice/simulations"
)

// simulateBench prints what three ways to place slices let in, card by card.
func simulateBench(f simulateFlags, stdout io.Writer) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PRODUCT\tREQUESTS\tSLUICE\tFIRST FIT\tBEST\tOF BEST")
	for _, product := range simulations.BenchProducts {
		a, err := simulations.BenchMIG(product, f.seed, int(min(f.seeds, 1_000_000)))
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%.1f %%\n", a.Product, a.Requests, a.Ours, a.FirstFit, a.Best, 100*float64(a.Ours)/float64(max(a.Best, 1)))
	}
	return w.Flush()
}
