// Command demo shows sluice at work on a control plane on this machine. See
// package demo, or `demo --help`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"sluice.dev/sluice/simulations/demo"
)

// Exit codes.
const (
	exitFailure     = 1 // something failed, or a gang did not come out as expected
	exitUsage       = 2
	exitInterrupted = 130
)

const usage = `Runs the gangs of deploy/examples/first-gangs, then those of deploy/examples/slices,
through sluice on a real control plane.

  demo         bring up what does not run, submit the gangs, show them until they are over;
               exit 0 if each came out as its manifest expects. What was started goes on.
  demo down    stop everything and remove all data

  --dir DIR          keep everything in DIR (default: demo in the cache, and the sandbox "demo")
  --keep=false       when the gangs are over, do what down does
  --timeout D        how long the gangs may take (default 5m)
  --gangs DIR        submit the manifests in DIR instead
  --kubeconfig FILE  run on that cluster instead of the sandbox
  --webhook-host H   the name under which that cluster's API server reaches this machine
  --no-controller    sluice runs in that cluster already; install nothing
  --kill-every D     kill the controller at random, about that often; --seed N repeats the instants

CACHE is $SLUICE_CACHE, else the folder sluice in the user's cache.
`

func main() {
	// Clients log through these; here only what a person can use is shown.
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// call is a command line, taken apart.
type call struct {
	options demo.Options
	kills   demo.Kills
	keep    bool
	down    bool
}

func parse(args []string) (call, error) {
	c := call{keep: true}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&c.options.Dir, "dir", "", "")
	flags.BoolVar(&c.keep, "keep", true, "")
	flags.DurationVar(&c.options.Timeout, "timeout", demo.DefaultTimeout, "")
	flags.StringVar(&c.options.Gangs, "gangs", "", "")
	flags.StringVar(&c.options.Kubeconfig, "kubeconfig", "", "")
	flags.StringVar(&c.options.WebhookHost, "webhook-host", "", "")
	flags.BoolVar(&c.options.NoController, "no-controller", false, "")
	flags.DurationVar(&c.kills.Every, "kill-every", 0, "")
	flags.Uint64Var(&c.kills.Seed, "seed", rand.Uint64(), "")
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return c, err
		}
		args = flags.Args()
		if len(args) == 0 {
			break
		}
		if args[0] != "down" || c.down {
			return c, fmt.Errorf("unexpected argument %q", args[0])
		}
		c.down, args = true, args[1:]
	}
	return c, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "demo: %v; try: demo --help\n", err)
		return exitUsage
	}
	c.options.Out = stdout
	if c.options.Root, err = demo.RootAbove("."); err != nil {
		fmt.Fprintf(stderr, "demo: %v\n", err)
		return exitFailure
	}
	d, err := demo.Open(c.options)
	if err != nil {
		fmt.Fprintf(stderr, "demo: %v\n", err)
		return exitFailure
	}
	defer d.Close()
	err = c.do(ctx, d, stdout)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintf(stderr, "demo: interrupted; %s\n", d.Left())
		return exitInterrupted
	default:
		fmt.Fprintf(stderr, "demo: %v\n", err)
		return exitFailure
	}
}

func (c call) do(ctx context.Context, d *demo.Demo, out io.Writer) error {
	if c.down {
		return d.Down(ctx)
	}
	begin := time.Now()
	if c.kills.Every > 0 {
		fmt.Fprintf(out, "seed %d\n", c.kills.Seed)
	}
	if err := d.Up(ctx); err != nil {
		return err
	}
	result, err := d.Play(ctx, c.kills)
	if err != nil {
		return err
	}
	surprised := verdict(result)
	if surprised == nil && c.options.Gangs == "" && c.options.Kubeconfig == "" {
		fmt.Fprintln(out, "\nthe same on slices and shares:")
		second, err := d.Slices(ctx)
		if err != nil {
			return err
		}
		surprised = verdict(second)
		result.Took += second.Took
	}
	for _, line := range d.Places() {
		fmt.Fprintln(out, line)
	}
	fmt.Fprintf(out, "the gangs took %v, all together %v\n", result.Took.Round(100*time.Millisecond), time.Since(begin).Round(100*time.Millisecond))
	if result.Kills > 0 {
		fmt.Fprintf(out, "the controller was killed %d times\n", result.Kills)
	}
	if !c.keep {
		err = d.Down(ctx)
	} else {
		fmt.Fprintln(out, "everything goes on running: run the demo again, or `make demo-down` to remove all")
	}
	return errors.Join(err, surprised)
}

// verdict is nil if every gang came out as its manifest expects.
func verdict(r demo.Result) error {
	surprises := r.Surprises()
	if len(surprises) == 0 {
		return nil
	}
	text := "not as expected"
	if r.TimedOut {
		text += " within the timeout"
	}
	for _, s := range surprises {
		text += "\n  " + s
	}
	return errors.New(text)
}
