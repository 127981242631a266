package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sluice.dev/sluice/admission/answer"
)

// ask is what all questions have in common: of whom they are asked, and how the
// answer is shown.
type ask struct {
	from      string
	namespace string
	all       bool
	output    string
	selector  string
	sortBy    string
	narrow    bool
	noHeaders bool
	watch     bool
	live      live
}

func (a *ask) flags(f *pflag.FlagSet) {
	f.StringVar(&a.from, "from", "", "ask a file that `sluice snapshot` wrote instead of the cluster; - is stdin")
	f.StringVarP(&a.namespace, "namespace", "n", "", "the namespace of jobs")
	f.BoolVarP(&a.all, "all-namespaces", "A", false, "jobs of all namespaces")
	f.StringVarP(&a.selector, "selector", "l", "", "keep rows by their labels: queue, state, reason, namespace, user of jobs; the labels of nodes")
	f.StringVar(&a.sortBy, "sort-by", "", "order rows by a column, with - before it backwards")
	f.BoolVar(&a.narrow, "narrow", false, "at most 80 columns")
	f.BoolVar(&a.noHeaders, "no-headers", false, "tables without their first line")
	f.BoolVarP(&a.watch, "watch", "w", false, "ask again every two seconds and show what changed")
	a.live.flags(f)
}

// formats are the ways in which an answer may be shown.
var formats = []string{"", "wide", "json", "yaml", "name", "csv"}

// outputFlag is by command, since simulate has one of its own.
func (a *ask) outputFlag(c *cobra.Command) {
	c.Flags().StringVarP(&a.output, "output", "o", "", "wide, json, yaml, name or csv")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats[1:], cobra.ShellCompDirectiveNoFileComp))
}

func (a *ask) check() error {
	for _, f := range formats {
		if a.output == f {
			if a.watch && a.output != "" && a.output != "wide" {
				return errors.New("--watch goes with tables only")
			}
			return nil
		}
	}
	return fmt.Errorf("-o is wide, json, yaml, name or csv, not %q", a.output)
}

// snapshot is the state that is asked.
func (a *ask) snapshot(ctx context.Context) (*answer.Snapshot, error) {
	switch a.from {
	case "":
		return a.live.snapshot(ctx)
	case "-":
		return answer.Decode(os.Stdin)
	}
	f, err := os.Open(a.from)
	if err != nil {
		return nil, fmt.Errorf("read the snapshot: %w", err)
	}
	defer f.Close()
	s, err := answer.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.from, err)
	}
	return s, nil
}

func (a *ask) world(ctx context.Context) (*answer.World, error) {
	s, err := a.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return answer.Open(s)
}

// question is one answer, written to stdout.
type question func(ctx context.Context, w *answer.World, stdout, stderr io.Writer) error

// watchEvery is how often a watched question is asked again.
const watchEvery = 2 * time.Second

// run asks once, or again and again until it is interrupted.
func (a *ask) run(c *cobra.Command, q question) error {
	if err := a.check(); err != nil {
		return err
	}
	if c.Flags().Changed("namespace") && a.all {
		return errors.New("-n and -A contradict each other")
	}
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	last := ""
	for {
		w, err := a.world(ctx)
		if err != nil {
			return err
		}
		if !a.watch {
			return q(ctx, w, c.OutOrStdout(), c.ErrOrStderr())
		}
		var b strings.Builder
		if err := q(ctx, w, &b, io.Discard); err != nil {
			return err
		}
		if b.String() != last {
			last = b.String()
			fmt.Fprintf(c.OutOrStdout(), "# %s\n%s", w.Now().UTC().Format(time.RFC3339), last)
		}
		if a.from != "" {
			return nil // a file does not change
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

// width is how wide running text may be.
func (a *ask) width() int {
	if a.narrow {
		return narrowWidth
	}
	return textWidth
}

// textWidth is how wide running text is otherwise.
const textWidth = 110
