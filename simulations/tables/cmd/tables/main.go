// Command tables runs the published studies on the engine and writes a page of what
// was expected, what came out, and the difference. See package tables.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/simulations/tables"
	"sluice.dev/sluice/simulations/traces"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() { // what is done is kept, so that ending at once loses one run at most
		<-ctx.Done()
		os.Exit(130)
	}()
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "tables:", err)
		os.Exit(1)
	}
}

// study is one table with the name by which --only asks for it.
type study struct {
	name string
	run  func(tables.Scope, *tables.Store) (tables.Table, error)
}

var studies = []study{
	{"a2", tables.Scope.EASY},
	{"a1", tables.Scope.FGD},
	{"a3", tables.Scope.Heuristics},
	{"philly", tables.Scope.Philly},
}

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("tables", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("traces", "", "the folder of the traces; else SLUICE_TRACES, else shared/traces beside the repository")
	out := flags.String("out", "out/tables", "the folder where results are kept; remove it to run all anew")
	page := flags.String("page", "", "the page into which the tables are written, between its marks")
	only := flags.String("only", "", "these studies only: a1,a2,a3,philly")
	quick := flags.Bool("quick", false, "a tenth of everything")
	ready := flags.Bool("ready", false, "run nothing, write what is kept")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		found, err := traces.Dir()
		if err != nil && *quick {
			fmt.Fprintf(stdout, "%v\nso only what needs no trace is checked: go test ./simulations/tables has the MIG layouts, the fair-share and the dominant-resource examples\n", err)
			return nil
		}
		if err != nil {
			return err
		}
		*dir = found
	}
	begin := time.Now()
	store := &tables.Store{Dir: *out, Revision: revision(), Ready: *ready, Say: func(line string) {
		fmt.Fprintf(stderr, "%8s  %s\n", time.Since(begin).Round(time.Second), line)
	}}
	text, missed, err := write(tables.Scope{Traces: *dir, Quick: *quick}, store, *only)
	if err != nil {
		return err
	}
	head := header(args, store)
	if *page == "" {
		fmt.Fprint(stdout, head+text)
	} else if err := tables.Insert(*page, head+text); err != nil {
		return err
	}
	if missed > 0 {
		return fmt.Errorf("%d values are not as published", missed)
	}
	return nil
}

func write(scope tables.Scope, store *tables.Store, only string) (text string, missed int, err error) {
	var b strings.Builder
	asked := strings.Split(only, ",")
	for _, s := range studies {
		if only != "" && !slices.Contains(asked, s.name) {
			continue
		}
		t, err := s.run(scope, store)
		if err != nil {
			return "", 0, errors.Join(fmt.Errorf("study %s", s.name), err)
		}
		missed += len(t.Misses()) - t.Known
		b.WriteString(t.Markdown())
	}
	return b.String(), missed, nil
}

func header(args []string, store *tables.Store) string {
	revisions := store.Revisions()
	slices.Sort(revisions)
	return fmt.Sprintf("## Published tables\n\n`bin/tables %s`, %d cores, %s, %s/%s, results of %s. Times are of a machine that others use too.\n\n",
		strings.Join(plain(args), " "), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.Join(revisions, ", "))
}

// plain is the arguments without the folders of this machine.
func plain(args []string) []string {
	var out []string
	for _, a := range args {
		if !filepath.IsAbs(a) && !strings.Contains(a, "=/") {
			out = append(out, a)
		}
	}
	return out
}

// revision is of the source that this was built from.
func revision() string {
	info, _ := debug.ReadBuildInfo()
	rev, dirty := "an unknown commit", ""
	if info != nil {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				rev = s.Value[:min(len(s.Value), 10)]
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = " (with changes)"
			}
		}
	}
	return rev + dirty
}
