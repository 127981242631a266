package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/simulations"
)

const simulateHelp = `Run scenario files on the decision core with a virtual cluster and clock.

A scenario says what hardware and queues there are, what happens when, and what
must be true. No cluster is needed and no time passes: a run is the same each time.
With --random stories are drawn by lot instead, and must break no promise. Of the
first that does, a shorter one with the same fault is printed.

Exit codes:
  0  every expectation of every file holds
  1  some do not; one line each
  2  a file is not valid; FILE:LINE: message, and nothing of any file ran
  3  a file asks for something that is not built yet; the others ran and hold`

// simulateFlags is what the command line says.
type simulateFlags struct {
	output string
	seed   uint64
	trace  bool
	faults string
	kinds  simulations.Faults // of faults, read
	calm   time.Duration
	bench  string

	random bool
	seeds  uint64
	events int
}

func (f *simulateFlags) check(files []string) error {
	var err error
	if f.kinds, err = simulations.ParseFaults(f.faults); err != nil {
		return fmt.Errorf("--faults: %w", err)
	}
	switch {
	case f.output != "text" && f.output != "json":
		return fmt.Errorf("--output is text or json, not %q", f.output)
	case f.random && len(files) > 0:
		return errors.New("--random draws its own stories, it takes no files")
	case f.random && (f.trace || f.calm != 0 || f.output != "text"):
		return errors.New("--random goes with --seed, --seeds, --events and --faults only")
	case f.random && (f.events < 1 || f.seeds < 1):
		return errors.New("--seeds and --events are at least 1")
	case f.bench != "" && (f.bench != "mig" || f.random || len(files) > 0):
		return errors.New("--bench is mig, and goes with --seed and --seeds only")
	case f.bench == "mig":
		return nil
	case !f.random && len(files) == 0:
		return errors.New("which file? see sluice simulate --help")
	}
	return nil
}

func newSimulate() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:     "simulate FILE... | simulate --random",
		Short:   "Run scenario files",
		Long:    simulateHelp,
		Example: "  sluice simulate --trace simulations/testdata/scenarios/strict-order.yaml\n  sluice simulate --random --seeds 200 --events 500",
		RunE: func(cmd *cobra.Command, files []string) error {
			if err := f.check(files); err != nil {
				return err
			}
			if f.bench != "" {
				return simulateBench(f, cmd.OutOrStdout())
			}
			if f.random {
				return simulateRandom(f, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return simulate(files, f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.AddCommand(newReplay(), newCompare())
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text or json")
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "order what a real cluster does in parallel by this seed; 0 leaves it as it comes")
	cmd.Flags().BoolVar(&f.trace, "trace", false, "tell what happens")
	cmd.Flags().StringVar(&f.faults, "faults", "", "let things go wrong by lot, with the seed: writes, watch, clock, or all")
	cmd.Flags().Lookup("faults").NoOptDefVal = "all"
	cmd.Flags().DurationVar(&f.calm, "calm", 0, "of --faults: from this time on watches and clock are right")
	cmd.Flags().StringVar(&f.bench, "bench", "", "mig: how many requests for slices are let in, by our placement, first fit, and the best of all choices; --seeds streams a card")
	cmd.Flags().BoolVar(&f.random, "random", false, "draw stories by lot, with faults as the seed has it, instead of reading files")
	cmd.Flags().Uint64Var(&f.seeds, "seeds", 20, "of --random: how many stories, from --seed on")
	cmd.Flags().IntVar(&f.events, "events", 200, "of --random: how many events each has")
	return cmd
}

// notBuiltIn is what a file asks for and the engine cannot do yet. Tests close a
// gate of their own here, since there may be none.
var notBuiltIn = simulations.Unsupported

// simulate parses all files before any of them runs.
func simulate(files []string, f simulateFlags, stdout, stderr io.Writer) error {
	scenarios := make([]*simulations.Scenario, 0, len(files))
	for _, file := range files {
		s, err := simulations.Load(file)
		if err != nil {
			fmt.Fprintln(stderr, err)
			continue
		}
		scenarios = append(scenarios, s)
	}
	if len(scenarios) < len(files) {
		return exitError(exitInvalid)
	}
	code := exitOK
	out := results{}
	for _, s := range scenarios {
		if uses := notBuiltIn(s); len(uses) > 0 {
			for _, u := range uses {
				fmt.Fprintf(stderr, "%s:%d: not supported yet: %s\n", s.File, u.Line, u.What)
			}
			out = append(out, unsupported(s, uses))
			if code == exitOK {
				code = exitUnsupported
			}
			continue
		}
		o := f.kinds.Options(f.seed)
		o.Calm = f.calm
		r := simulations.Run(s, o)
		out = append(out, ran(r, f.trace))
		if !r.OK() {
			code = exitFailed
		}
		if f.output == "text" {
			writeText(stdout, r, f.trace)
		}
	}
	closing(stderr, out)
	if f.output == "json" {
		if err := out.write(stdout); err != nil {
			return errors.Join(exitError(exitFailed), err)
		}
	}
	if code != exitOK {
		return exitError(code)
	}
	return nil
}

// closing tells in a line that all is well, so that silence is no answer.
func closing(stderr io.Writer, out results) {
	checks := 0
	for _, r := range out {
		if r.Result != "ok" {
			return
		}
		checks += r.Checks
	}
	fmt.Fprintf(stderr, "all holds: %d files, %d expectations\n", len(out), checks)
}

func writeText(w io.Writer, r *simulations.Report, trace bool) {
	if trace {
		fmt.Fprintf(w, "# %s: %s\n%s", r.File, r.Name, r.Trace)
	}
	for _, l := range r.Lines() {
		fmt.Fprintln(w, l)
	}
}

// results is what -o json writes, one entry a file. Fields are added, never
// changed or removed.
type results []result

type result struct {
	File   string   `json:"file"`
	Name   string   `json:"name"`
	Result string   `json:"result"` // ok, failed or unsupported
	Seed   uint64   `json:"seed"`
	Checks int      `json:"checks"`
	Failed []failed `json:"failed"`
	// Broken is a promise that was broken, or a panic; it ended the run.
	Broken []string `json:"broken,omitempty"`
	// Unsupported is what the file asks for and is not built yet.
	Unsupported []use  `json:"unsupported,omitempty"`
	Trace       string `json:"trace,omitempty"`
}

type failed struct {
	At          string  `json:"at"`
	AtSeconds   float64 `json:"atSeconds"`
	Expectation string  `json:"expectation"`
	Want        string  `json:"want"`
	Got         string  `json:"got"`
}

type use struct {
	Line int    `json:"line"`
	What string `json:"what"`
}

func unsupported(s *simulations.Scenario, uses []simulations.Use) result {
	r := result{File: s.File, Name: s.Name, Result: "unsupported", Failed: []failed{}}
	for _, u := range uses {
		r.Unsupported = append(r.Unsupported, use{u.Line, u.What})
	}
	return r
}

func ran(r *simulations.Report, trace bool) result {
	out := result{File: r.File, Name: r.Name, Result: "ok", Seed: r.Seed, Checks: r.Checks, Failed: []failed{}}
	if !r.OK() {
		out.Result = "failed"
	}
	for _, m := range r.Misses {
		out.Failed = append(out.Failed, failed{
			At: simulations.Spoken(m.At), AtSeconds: float64(m.At) / float64(time.Second),
			Expectation: m.Subject, Want: m.Want, Got: m.Got,
		})
	}
	if r.Broken != nil {
		out.Broken = r.Broken.What
	}
	if trace {
		out.Trace = r.Trace
	}
	return out
}

func (r results) write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
