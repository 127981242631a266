package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/admission/answer"
	"sluice.dev/sluice/admission/api"
)

// newServe answers questions of a snapshot over HTTP, for one's own machine.
func newServe() *cobra.Command {
	var from, listen string
	c := &cobra.Command{
		Use: "serve --from FILE", Short: "Serve the answers about a snapshot over HTTP on this machine, to anybody who reaches the address", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a := &ask{from: from}
			if from == "" {
				return fmt.Errorf("which snapshot? say --from FILE")
			}
			s, err := a.snapshot(c.Context())
			if err != nil {
				return err
			}
			im, err := s.Image()
			if err != nil {
				return err
			}
			answer.New(im, s.Time) // what is wrong with it is said now
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			h := api.New(api.Fixed{Image: im, At: s.Time}, api.Everybody{}, time.Now)
			return api.Serve(ctx, listen, h, nil, func(at net.Addr) { fmt.Fprintf(c.ErrOrStderr(), "http://%s\n", at) })
		},
	}
	c.Flags().StringVar(&from, "from", "", "a file that `sluice snapshot` wrote")
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:8444", "the address")
	return c
}
