package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/admission/answer"
)

// commands are the questions.
func (a *ask) commands() []*cobra.Command {
	return []*cobra.Command{
		a.jobs(), a.queues(), a.nodes(), a.why(), a.order(), a.priority(), a.plan(), a.whatIf(),
		a.cards(), a.drift(), a.lint(), a.checkState(), a.takeSnapshot(), a.history(),
	}
}

func (a *ask) listing(use, short string, args cobra.PositionalArgs, table func(w *answer.World, args []string) (answer.Table, error)) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(c *cobra.Command, args []string) error {
			return a.run(c, func(_ context.Context, w *answer.World, stdout, stderr io.Writer) error {
				t, err := table(w, args)
				if err != nil {
					return err
				}
				return a.print(w, t, stdout, stderr)
			})
		},
	}
	a.outputFlag(c)
	return c
}

func (a *ask) jobs() *cobra.Command {
	c := a.listing("jobs", "List gangs with the reason why they wait, their position and when room is kept for them", cobra.NoArgs,
		func(w *answer.World, _ []string) (answer.Table, error) {
			t := w.JobsTable()
			if a.namespace != "" {
				keepNamespace(&t, a.namespace)
			}
			return t, nil
		})
	c.Aliases = []string{"job"}
	return c
}

// keepNamespace drops the jobs of other namespaces.
func keepNamespace(t *answer.Table, namespace string) {
	jobs, _ := t.Items.([]answer.Job)
	items, rows := []answer.Job{}, []answer.Row{}
	for i, j := range jobs {
		if answer.Namespace(j.Name) == namespace {
			items, rows = append(items, j), append(rows, t.Rows[i])
		}
	}
	t.Items, t.Rows = items, rows
}

func (a *ask) queues() *cobra.Command {
	var resource string
	c := a.listing("queues", "Draw the tree of queues: what each owns, uses and may have by its weight", cobra.NoArgs,
		func(w *answer.World, _ []string) (answer.Table, error) { return w.QueuesTable(resource) })
	c.Flags().StringVar(&resource, "resource", "", "count this one; default: the device that is used most")
	c.Aliases = []string{"queue"}
	return c
}

func (a *ask) nodes() *cobra.Command {
	c := a.listing("nodes", "List nodes: their cards, what is used and free, and whether their labels are right", cobra.NoArgs,
		func(w *answer.World, _ []string) (answer.Table, error) { return w.NodesTable(), nil })
	c.Aliases = []string{"node"}
	return c
}

func (a *ask) order() *cobra.Command {
	c := a.listing("order QUEUE", "List what waits in a queue in the order in which it is tried, with who is in the way", cobra.ExactArgs(1),
		func(w *answer.World, args []string) (answer.Table, error) { return w.OrderTable(args[0]) })
	c.ValidArgsFunction = a.complete(queueNames)
	return c
}

func (a *ask) priority() *cobra.Command {
	c := a.listing("priority JOB", "Tell by which rules a job stands where it stands, beside the next ahead of it", cobra.ExactArgs(1),
		func(w *answer.World, args []string) (answer.Table, error) {
			key, err := w.Find(a.namespace, args[0])
			if err != nil {
				return answer.Table{}, err
			}
			return w.PriorityTable(key)
		})
	c.ValidArgsFunction = a.complete(jobNames)
	return c
}

func (a *ask) cards() *cobra.Command {
	c := a.listing("map [NODE...]", "Draw each card as its units, with holes, owners and the largest slice that could be cut", cobra.ArbitraryArgs,
		func(w *answer.World, args []string) (answer.Table, error) { return w.MapTable(args...) })
	c.ValidArgsFunction = a.complete(nodeNames)
	return c
}

func (a *ask) drift() *cobra.Command {
	return a.listing("drift", "List where labels and claims of nodes differ from their cards, with the command that mends it", cobra.NoArgs,
		func(w *answer.World, _ []string) (answer.Table, error) { return w.DriftTable(), nil })
}

func (a *ask) lint() *cobra.Command {
	c := a.listing("lint", "List what cannot work, or surprises, in queues, flavors and selectors", cobra.NoArgs,
		func(w *answer.World, _ []string) (answer.Table, error) { return w.LintTable(), nil })
	return c
}

func (a *ask) why() *cobra.Command {
	c := &cobra.Command{
		Use: "why JOB", Short: "Tell why a job waits, when it will start, and what would admit it now", Args: cobra.ExactArgs(1),
		Long: `Tell why a job waits, when it will start, and what would admit it now.

The first word is the verdict: NEVER, NOT NOW, HELD, NOW, RUNNING, STOPPING or FINISHED. Then come quota, priority,
capacity with the nodes by what excludes them, and gates. Each change that is told was tried on a copy of the state.`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.run(c, func(_ context.Context, w *answer.World, stdout, _ io.Writer) error {
				key, err := w.Find(a.namespace, args[0])
				if err != nil {
					return err
				}
				y, err := w.Why(key)
				if err != nil {
					return err
				}
				switch a.output {
				case "json", "yaml":
					return a.object(w, "Why", y, stdout)
				case "":
					y.Write(stdout, w.Now(), a.width())
					return nil
				}
				return fmt.Errorf("why is shown as text, json or yaml, not %s", a.output)
			})
		},
		ValidArgsFunction: a.complete(jobNames),
	}
	a.outputFlag(c)
	return c
}

func (a *ask) plan() *cobra.Command {
	var file, queue string
	var priority int64
	c := &cobra.Command{
		Use: "plan -f FILE", Short: "Say what would become of a job if it were submitted now; nothing is submitted", Args: cobra.NoArgs,
		Long: `Say what would become of a job if it were submitted now; nothing is submitted.

FILE is a manifest of a batch/v1 Job or a Kueue Workload. Its queue is that of its label kueue.x-k8s.io/queue-name;
without a cluster to look a LocalQueue up in, name the queue behind it with --queue.

Exit codes: 0 it would be admitted, 2 it would not be admitted now, 1 error.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if file == "" {
				return errors.New("which file? say -f FILE, or -f - for stdin")
			}
			return a.run(c, func(ctx context.Context, w *answer.World, stdout, stderr io.Writer) error {
				x, err := readManifest(file, c.InOrStdin())
				if err != nil {
					return err
				}
				if a.namespace != "" {
					x.namespace = a.namespace
				}
				if c.Flags().Changed("priority") {
					x.priority = priority
				}
				if x.queue, err = a.queueFor(ctx, x, queue); err != nil {
					return err
				}
				for _, n := range x.notes {
					fmt.Fprintln(stderr, n)
				}
				p, err := w.Plan(x.workload())
				if err != nil {
					return err
				}
				if a.output == "json" || a.output == "yaml" {
					err = a.object(w, "Plan", p, stdout)
				} else {
					p.Write(stdout, w.Now(), a.width())
				}
				if err == nil && !p.Admitted {
					return exitError(exitInvalid)
				}
				return err
			})
		},
	}
	c.Flags().StringVarP(&file, "filename", "f", "", "the manifest; - is stdin")
	c.Flags().StringVarP(&queue, "queue", "q", "", "the queue, instead of that of the manifest")
	c.Flags().Int64Var(&priority, "priority", 0, "the priority, instead of that of the manifest")
	_ = c.RegisterFlagCompletionFunc("queue", a.complete(queueNames))
	a.outputFlag(c)
	return c
}

// queueFor is the queue of the core that a manifest leads to.
func (a *ask) queueFor(ctx context.Context, x *manifest, said string) (string, error) {
	switch {
	case said != "":
		return said, nil
	case x.queue == "":
		return "", errors.New("the manifest has no label kueue.x-k8s.io/queue-name; say --queue")
	case a.from != "":
		return x.queue, nil
	}
	return a.live.clusterQueue(ctx, x.namespace, x.queue)
}

func (a *ask) whatIf() *cobra.Command {
	c := &cobra.Command{Use: "what-if", Short: "Say what a change would do to shares and jobs; nothing is changed"}
	var weight float64
	var nominal, most []string
	q := &cobra.Command{
		Use: "queue QUEUE [--weight N] [--nominal RESOURCE=N] [--max RESOURCE=N]", Short: "Change a queue", Args: cobra.ExactArgs(1),
		Long: `Say what a change of a queue would do to shares and jobs over the next four hours, with the jobs that are there now.
Work runs to its own time limit, and work without one for ever. Nothing is changed.`,
		RunE: func(c *cobra.Command, args []string) error {
			e := answer.Edit{Queue: args[0]}
			if c.Flags().Changed("weight") {
				e.Weight = &weight
			}
			var err error
			if e.Nominal, err = amounts(nominal); err != nil {
				return fmt.Errorf("--nominal %w", err)
			}
			if e.Max, err = amounts(most); err != nil {
				return fmt.Errorf("--max %w", err)
			}
			if e.Weight == nil && e.Nominal == nil && e.Max == nil {
				return errors.New("change what? say --weight, --nominal or --max")
			}
			return a.run(c, func(_ context.Context, w *answer.World, stdout, stderr io.Writer) error {
				x, err := w.WhatIf(e)
				if err != nil {
					return err
				}
				if x.Partial {
					fmt.Fprintln(stderr, "the cluster is large: only the next moments were looked at")
				}
				if a.output == "json" || a.output == "yaml" {
					return a.object(w, "WhatIf", x, stdout)
				}
				x.Write(stdout, w.Now(), a.width())
				return nil
			})
		},
		ValidArgsFunction: a.complete(queueNames),
	}
	q.Flags().Float64Var(&weight, "weight", 0, "its weight beside its siblings")
	q.Flags().StringArrayVar(&nominal, "nominal", nil, "what it owns, as nvidia.com/gpu=16")
	q.Flags().StringArrayVar(&most, "max", nil, "what it may use in all, as nvidia.com/gpu=24")
	a.outputFlag(q)
	c.AddCommand(q)
	return c
}

func (a *ask) checkState() *cobra.Command {
	c := &cobra.Command{
		Use: "check", Short: "Recount everything from plans and pods, and list what does not add up", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.run(c, func(_ context.Context, w *answer.World, stdout, stderr io.Writer) error {
				bad := w.Check()
				for _, b := range bad {
					fmt.Fprintln(stdout, b)
				}
				if len(bad) > 0 {
					return exitError(exitFailed)
				}
				fmt.Fprintln(stderr, "everything adds up")
				return nil
			})
		},
	}
	a.outputFlag(c)
	return c
}

func (a *ask) takeSnapshot() *cobra.Command {
	c := &cobra.Command{
		Use: "snapshot", Short: "Write the controller's state down, for --from and for support; it holds no secrets", Args: cobra.NoArgs,
		Example: "  sluice snapshot > now.json\n  sluice why train-llm --from now.json",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.run(c, func(_ context.Context, w *answer.World, stdout, stderr io.Writer) error {
				s := w.Snapshot()
				fmt.Fprintf(stderr, "as of %s: %d nodes, %d queues, %d jobs\n", s.Time.UTC().Format(time.RFC3339), len(s.Nodes), len(s.Queues), len(s.Workloads))
				return s.Encode(stdout)
			})
		},
	}
	a.outputFlag(c)
	return c
}

// complete offers names of the world that is asked.
func (a *ask) complete(names func(w *answer.World) []string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), watchEvery)
		defer cancel()
		w, err := a.world(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var out []string
		for _, n := range names(w) {
			if a.namespace != "" {
				n = strings.TrimPrefix(n, a.namespace+"/")
			}
			if strings.HasPrefix(n, prefix) {
				out = append(out, n)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

func queueNames(w *answer.World) []string { return rowNames(w.QueuesTable("")) }
func nodeNames(w *answer.World) []string  { return rowNames(w.NodesTable(), nil) }
func jobNames(w *answer.World) []string   { return rowNames(w.JobsTable(), nil) }

func rowNames(t answer.Table, err error) []string {
	if err != nil {
		return nil
	}
	var out []string
	for _, r := range t.Rows {
		out = append(out, r.Name)
	}
	return out
}
