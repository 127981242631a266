// Command bench puts one load on several managers of Workloads, one after the other,
// and prints a table. See package bench.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"sluice.dev/sluice/simulations/bench"
)

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns 0 if every manager was measured, 1 if one was not, or broke a quota, and
// 2 for a call that makes no sense.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	name := flags.String("shape", "baseline", "the load: baseline, large or backlog")
	nth := flags.Int("nth", 1, "make one nth of its Workloads")
	of := flags.String("managers", "null,sluice,kueue,kueue-unlimited", "which, with commas between")
	within := flags.Duration("within", 20*time.Minute, "the bound for each")
	if flags.Parse(args) != nil || flags.NArg() > 0 {
		return 2
	}
	shape, err := bench.ByName(*name, *nth)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 2
	}
	o := bench.Options{Out: stderr, Within: *within}
	if o.Root, err = root(); err == nil {
		o.Dir, err = folder()
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	code := 0
	var results []bench.Result
	for each := range strings.SplitSeq(*of, ",") {
		i := slices.IndexFunc(bench.Managers, func(m bench.Manager) bool { return m.Name == each })
		if i < 0 {
			fmt.Fprintf(stderr, "bench: there is no manager %q\n", each)
			return 2
		}
		result, err := bench.Measure(ctx, o, shape, bench.Managers[i])
		if err != nil {
			fmt.Fprintf(stderr, "bench: %s: %v\n", each, err)
			code = 1
			continue
		}
		results = append(results, result)
	}
	if err := bench.Report(stdout, shape, results, "kueue-unlimited"); err != nil {
		return 1
	}
	return code
}

// root is the repository that the command is called in.
func root() (string, error) {
	dir, err := os.Getwd()
	for at := dir; err == nil; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "simulations", "bench", "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in the repository", dir)
		}
	}
	return "", err
}

func folder() (string, error) {
	base := os.Getenv("SLUICE_CACHE")
	if base == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		base = filepath.Join(cache, "sluice")
	}
	return filepath.Join(base, "bench"), nil
}
