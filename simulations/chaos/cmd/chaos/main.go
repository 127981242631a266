// Command chaos breaks sluice on a control plane on this machine and says whether a
// promise was broken meanwhile. See package chaos.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"sluice.dev/sluice/simulations/chaos"
	"sluice.dev/sluice/simulations/demo"
)

func main() {
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // broken connections are expected here
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns 0 if nothing was broken, 1 if a promise was, or the run could not be
// made, and 2 for a call that makes no sense.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(stderr)
	length := flags.Duration("for", 10*time.Minute, "how long faults go on")
	seed := flags.Uint64("seed", rand.Uint64N(1_000_000), "which faults and gangs, and in which order")
	earlier := flags.String("earlier", "", "an earlier build of sluice-controller, to go back to and forth again")
	keep := flags.Bool("keep", false, "leave everything running and its logs in place")
	if flags.Parse(args) != nil || flags.NArg() > 0 || *length < 0 {
		flags.Usage()
		return 2
	}
	say := func(format string, args ...any) {
		fmt.Fprintf(stderr, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
	}
	say("chaos --for %v --seed %d", *length, *seed)
	o, err := options(stderr)
	if err != nil {
		say("%v", err)
		return 1
	}
	if err := clear(ctx, o); err != nil {
		say("remove what an earlier run left: %v", err)
		return 1
	}
	report, err := chaos.Run(ctx, chaos.Options{Demo: o, For: *length, Seed: *seed, Earlier: *earlier, Say: say})
	show(stdout, report)
	if err != nil || len(report.Violations) > 0 {
		say("logs and data are kept in %s (%v)", o.Dir, err)
		return 1
	}
	if !*keep {
		if err := clear(ctx, o); err != nil {
			say("%v", err)
			return 1
		}
	}
	return 0
}

func options(out io.Writer) (demo.Options, error) {
	root, err := demo.RootAbove(".")
	if err != nil {
		return demo.Options{}, err
	}
	cache, err := demo.CacheDir()
	return demo.Options{Root: root, Dir: filepath.Join(cache, "chaos"), Out: out}, err
}

// clear stops and removes a run of before.
func clear(ctx context.Context, o demo.Options) error {
	d, err := demo.Open(o)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Down(ctx)
}

func show(out io.Writer, r chaos.Report) {
	fmt.Fprintf(out, "seed %d: %v, %d rounds, %d Jobs came to their end, %d pods released, longest half release not excused %v\n",
		r.Seed, r.Took.Round(time.Second), r.Rounds, r.Jobs, r.Released, r.LongestHalf.Round(time.Millisecond))
	for _, name := range slices.Sorted(maps.Keys(r.Faults)) {
		fmt.Fprintf(out, "  %3d times  %s\n", r.Faults[name], name)
	}
	if n := len(r.FailOvers); n > 0 {
		slices.Sort(r.FailOvers)
		fmt.Fprintf(out, "the lead changed hands %d times, without a leader for %v (median), %v at most\n",
			n, r.FailOvers[n/2].Round(100*time.Millisecond), r.FailOvers[n-1].Round(100*time.Millisecond))
	}
	fmt.Fprintf(out, "%d violations\n", len(r.Violations))
	for _, v := range r.Violations {
		fmt.Fprintln(out, "  "+v)
	}
}
