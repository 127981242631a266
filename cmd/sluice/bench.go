package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"sluice.dev/sluice/simulations"
)

// simulateBench prints what ways to place slices let in, card by card: of endless
// streams, and of streams drawn by lot for cards as they are cut and for cards that are
// cut on demand.
func simulateBench(f simulateFlags, stdout io.Writer) error {
	fmt.Fprintln(stdout, "One slice at a time, cut on demand: the part of requests let in. BEST is the best of all rules that")
	fmt.Fprintln(stdout, "turn nobody away whom they have room for and do not know what is to come, found by trying them all.")
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PRODUCT\tCARDS\tSLUICE\tFIRST FIT\tBEST\tOF BEST")
	for _, product := range simulations.BenchProducts {
		e, err := simulations.BenchExact(product)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%d\t%.2f %%\t%.2f %%\t%.2f %%\t%.2f %%\n", e.Product, e.Cards, 100*e.Ours, 100*e.FirstFit, 100*e.Best, 100*e.Ours/e.Best)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, table := range []struct {
		title string
		bench func(product string, seed uint64, streams int) (simulations.Acceptance, error)
	}{
		{"One to three slices at a time on three cards as they are cut, by lot: requests let in.", simulations.BenchMIG},
		{"One slice at a time on two cards that are cut on demand, by lot: requests let in.", simulations.BenchCuts},
	} {
		fmt.Fprintf(stdout, "\n%s ACCEPTING knows what is\nto come and turns nobody away whom it has room for; CLAIRVOYANT may.\n", table.title)
		fmt.Fprintln(w, "PRODUCT\tREQUESTS\tSLUICE\tFIRST FIT\tACCEPTING\tCLAIRVOYANT\tOF ACCEPTING")
		for _, product := range simulations.BenchProducts {
			a, err := table.bench(product, f.seed, int(min(f.seeds, 1_000_000)))
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%.1f %%\n", a.Product, a.Requests, a.Ours, a.FirstFit, a.Accepting, a.Best, 100*float64(a.Ours)/float64(max(a.Accepting, 1)))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}
