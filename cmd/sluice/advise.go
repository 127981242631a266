package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/admission/sense"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

const adviseHelp = `Say what to ask for on each kind of card in the cluster.

  pods that talk to each other over NCCL  whole cards
  isolated from others                    the smallest MIG slice with the memory
  else                                    a share of a time-sliced card, where there are any

It needs the reports of the node agents, and a kubeconfig that may list nodes and
sliceinventories.`

// newAdvise is the command about devices. It asks the API server itself: what nodes
// offer is no secret of the controller's.
func newAdvise() *cobra.Command {
	var memory, kubeconfig string
	var need sense.Need
	cmd := &cobra.Command{
		Use: "advise --memory 18Gi [--isolated] [--nccl]", Short: "Say which devices to ask for", Long: adviseHelp, Args: cobra.NoArgs,
		Annotations: map[string]string{answers: "yes"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := resource.ParseQuantity(memory)
			if err != nil || q.Sign() <= 0 {
				return fmt.Errorf("--memory is %q, want an amount as 18Gi", memory)
			}
			need.MemoryMiB = (q.Value() + 1<<20 - 1) >> 20
			facts, err := factsOf(cmd.Context(), kubeconfig)
			if err != nil {
				return err
			}
			return writeAdvice(cmd.OutOrStdout(), cmd.ErrOrStderr(), facts.Advise(need))
		},
	}
	cmd.Flags().StringVar(&memory, "memory", "", "GPU memory that one pod needs, as 18Gi")
	cmd.Flags().BoolVar(&need.Isolated, "isolated", false, "memory and errors of others must not reach it")
	cmd.Flags().BoolVar(&need.Talks, "nccl", false, "its pods talk to each other over NCCL")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "of the cluster; else as kubectl finds it")
	return cmd
}

func factsOf(ctx context.Context, kubeconfig string) (sense.Facts, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return sense.Facts{}, fmt.Errorf("which cluster? %w", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return sense.Facts{}, err
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return sense.Facts{}, fmt.Errorf("reach the cluster: %w", err)
	}
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		return sense.Facts{}, fmt.Errorf("list nodes: %w", err)
	}
	var reports v1alpha1.SliceInventoryList
	if err := c.List(ctx, &reports); err != nil {
		if apimeta.IsNoMatchError(err) {
			return sense.Facts{}, errors.New("the cluster has no SliceInventory: install deploy/crd and the node agents")
		}
		return sense.Facts{}, fmt.Errorf("list sliceinventories: %w", err)
	}
	return sense.Of(nodes.Items, reports.Items), nil
}

func writeAdvice(stdout, stderr io.Writer, list []sense.Advice) error {
	if len(list) == 0 {
		fmt.Fprintln(stderr, "no node agent reports a card")
		return exitError(exitFailed)
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CARD\tASK FOR\tOFFERED\tWHY")
	for _, a := range list {
		offered := "yes"
		if !a.Offered {
			offered = "no: no card is cut or shared so"
		}
		what := fmt.Sprintf("%s: %d", a.Resource, a.Count)
		if a.Sharing != "" {
			what += ", annotation sluice.dev/sharing: " + a.Sharing
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", a.Product, what, offered, a.Why)
	}
	return w.Flush()
}
