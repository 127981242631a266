// Command fleet plays the machines with GPUs of a simulated cluster, or tells those
// that run what happens to them.
//
//	fleet run --kubeconfig FILE --socket PATH FLEET.yaml
//	fleet control --socket PATH NODE COMMAND..
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"sluice.dev/sluice/simulations/fleet"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		stop()
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{Use: "fleet", Short: "Play the machines with GPUs of a simulated cluster", SilenceUsage: true, SilenceErrors: true}
	var kubeconfig, socket string
	root.PersistentFlags().StringVar(&socket, "socket", "fleet.sock", "where control is taken")
	run := &cobra.Command{
		Use: "run FLEET.yaml", Short: "Play the machines until stopped", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			machines, err := fleet.ReadFile(args[0])
			if err != nil {
				return err
			}
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return err
			}
			f, err := fleet.New(machines, config, zap.New(zap.WriteTo(os.Stderr)))
			if err != nil {
				return err
			}
			listener, err := fleet.Listen(cmd.Context(), socket)
			if err != nil {
				return err
			}
			done := make(chan struct{})
			go func() { defer close(done); f.Run(cmd.Context()) }()
			err = f.Serve(cmd.Context(), listener)
			<-done
			return err
		},
	}
	run.Flags().StringVar(&kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "of the cluster")
	control := &cobra.Command{
		Use: "control NODE COMMAND...", Short: "Have something happen to a machine", Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return fleet.Send(cmd.Context(), socket, strings.Join(args, " "))
		},
	}
	root.AddCommand(run, control)
	return root
}
