package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/simulations/tables"
)

const replayHelp = `Run a log of another cluster on the decision core, as if it were here.

The log is in the Standard Workload Format (.swf), or a joined log (.csv, see
simulations/traces/README.md), packed with gzip or not. All of it runs on one pool of
processors and through one queue: what is seen is order, backfill and reservations.

text is a summary; html is the same with pictures, in one file that needs nothing
else; csv is a line a job, which sluice simulate compare reads.`

// replayPolicies are the settings of the engine that a replay can have.
var replayPolicies = map[string]func(*admission.Config){
	"default":  func(*admission.Config) {},
	"shortest": func(c *admission.Config) { c.ShortestFirst = true },
	"easy":     func(c *admission.Config) { c.ReserveAfter, c.Reservations = 0, 1 },
}

func newReplay() *cobra.Command {
	var output, policy string
	var procs int64
	cmd := &cobra.Command{
		Use:     "replay LOG",
		Short:   "Run a log of another cluster",
		Long:    replayHelp,
		Args:    cobra.ExactArgs(1),
		Example: "  sluice simulate replay --processors 100 -o html kth-sp2.csv.gz > before.html",
		RunE: func(cmd *cobra.Command, args []string) error {
			set, ok := replayPolicies[policy]
			if !ok {
				return fmt.Errorf("--policy is default, shortest or easy, not %q", policy)
			}
			if err := checkReport(output, "csv"); err != nil {
				return err
			}
			if procs < 0 {
				return errors.New("--processors is at least 1, or 0 for what the largest job asks for")
			}
			cfg := admission.DefaultConfig()
			set(&cfg)
			rows, err := tables.ReplayLog(args[0], procs, cfg, progressTo(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			if output == "csv" {
				return tables.WriteRows(cmd.OutOrStdout(), rows)
			}
			return writeReports(cmd.OutOrStdout(), output, tables.Sum(filepath.Base(args[0])+", "+policy, rows))
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, csv or html")
	cmd.Flags().StringVar(&policy, "policy", "default", "default, shortest (the shortest limit first behind a blocked claim) or easy (one reservation, at once)")
	cmd.Flags().Int64Var(&procs, "processors", 0, "how many the pool has; 0 is as many as the largest job asks for")
	return cmd
}

func newCompare() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "compare A.csv B.csv",
		Short:   "Show two replays side by side",
		Long:    "Show two replays side by side: tables that sluice simulate replay -o csv wrote.",
		Args:    cobra.ExactArgs(2),
		Example: "  sluice simulate compare -o html before.csv after.csv > both.html",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReport(output); err != nil {
				return err
			}
			var reports []tables.Report
			for _, path := range args {
				rows, err := tables.ReadRows(path)
				if err != nil {
					return err
				}
				reports = append(reports, tables.Sum(filepath.Base(path), rows))
			}
			return writeReports(cmd.OutOrStdout(), output, reports...)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or html")
	return cmd
}

func checkReport(output string, more ...string) error {
	for _, known := range append([]string{"text", "html"}, more...) {
		if output == known {
			return nil
		}
	}
	return fmt.Errorf("--output does not know %q", output)
}

func writeReports(w io.Writer, output string, reports ...tables.Report) error {
	if output == "html" {
		return tables.WritePage(w, reports...)
	}
	return tables.WriteReports(w, reports...)
}

// progressTo tells, every few seconds, how much is done and how long the rest takes
// at that pace.
func progressTo(w io.Writer) func(part float64) {
	const every = 3 * time.Second
	begin := time.Now()
	last := begin
	return func(part float64) {
		now := time.Now()
		if part <= 0 || now.Sub(last) < every {
			return
		}
		last = now
		left := time.Duration(float64(now.Sub(begin)) * (1 - part) / part)
		fmt.Fprintf(w, "%3.0f %%, about %s left\n", 100*part, left.Round(time.Second))
	}
}
