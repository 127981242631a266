package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/admission/answer"
)

// history tells what was decided about a job or a queue. Only a controller knows: a
// snapshot holds what is, not what was.
func (a *ask) history() *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use: "history JOB|QUEUE", Short: "Tell what was decided about a job or a queue, the latest first, with the numbers as they were", Args: cobra.ExactArgs(1),
		Long: `Tell what was decided about a job or a queue, the latest first, with the numbers as they were.

An eviction is told to both sides: who took it, by which rule, what was lost, and when it may return.
With -n it is a job of the namespace. It is read from the controller's journal, which keeps the latest decisions.`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.check(); err != nil {
				return err
			}
			if a.from != "" {
				return errors.New("a snapshot holds no history: ask the cluster, without --from")
			}
			namespace := a.namespace
			if namespace == "" {
				namespace = "-"
			}
			body, err := a.live.get(background(c.Context()), fmt.Sprintf("/v1/history/%s/%s?limit=%d", url.PathEscape(namespace), url.PathEscape(args[0]), limit))
			if err != nil {
				return err
			}
			var e struct {
				Time  time.Time
				Items []answer.Deed
			}
			if err := json.Unmarshal(body, &e); err != nil {
				return fmt.Errorf("read the controller's answer: %w", err)
			}
			w := answer.New(admission.NewState(admission.DefaultConfig()).Image(), e.Time) // only its time is shown
			return a.print(w, answer.HistoryTable(e.Items), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().IntVar(&limit, "limit", 100, "how many decisions, 500 at most")
	a.outputFlag(c)
	return c
}
