// Command sluice-controller is the central controller: it watches queues,
// workloads and nodes, admits gangs, and releases their pods.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"sluice.dev/sluice/cmd/sluice-controller/config"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "sluice-controller:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var file string
	overrides := config.Default() // Only the fields that have a flag are used.
	logging := zap.Options{}

	c := &cobra.Command{
		Use:           "sluice-controller",
		Short:         "Admits gangs of pods from weighted team queues and releases them onto planned nodes",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := c.Flags()
	flags.StringVar(&file, "config", "", "configuration file; without it every setting has its default")
	flags.StringVar(&overrides.Metrics.BindAddress, "metrics-bind-address", overrides.Metrics.BindAddress, `where metrics are served, "0" for nowhere; overrides metrics.bindAddress`)
	flags.StringVar(&overrides.Health.BindAddress, "health-probe-bind-address", overrides.Health.BindAddress, `where /healthz and /readyz are served, "0" for nowhere; overrides health.bindAddress`)
	flags.StringVar(&overrides.API.BindAddress, "api-bind-address", overrides.API.BindAddress, `where questions are answered over TLS, "0" for nowhere; overrides api.bindAddress`)
	flags.BoolVar(&overrides.LeaderElection.Enabled, "leader-elect", overrides.LeaderElection.Enabled, "let one of several replicas decide; overrides leaderElection.enabled")
	flags.StringVar(&overrides.Journal.Path, "journal", overrides.Journal.Path, "file that holds unsettled decisions; overrides journal.path")
	// controller-runtime reads --kubeconfig through the standard flag set.
	flags.AddGoFlag(flag.Lookup("kubeconfig"))
	zapFlags := flag.NewFlagSet("zap", flag.ContinueOnError)
	logging.BindFlags(zapFlags)
	flags.AddGoFlagSet(zapFlags)

	c.RunE = func(c *cobra.Command, _ []string) error {
		logger := zap.New(zap.UseFlagOptions(&logging))
		ctrl.SetLogger(logger)
		klog.SetLogger(logger)

		settings := config.Default()
		if file != "" {
			var err error
			if settings, err = config.ReadFile(file); err != nil {
				return err
			}
		}
		for name, set := range map[string]func(){
			"metrics-bind-address":      func() { settings.Metrics = overrides.Metrics },
			"health-probe-bind-address": func() { settings.Health = overrides.Health },
			"api-bind-address":          func() { settings.API = overrides.API },
			"leader-elect":              func() { settings.LeaderElection.Enabled = overrides.LeaderElection.Enabled },
			"journal":                   func() { settings.Journal = overrides.Journal },
		} {
			if c.Flags().Changed(name) {
				set()
			}
		}
		if err := settings.Validate(); err != nil {
			return err
		}
		rest, err := ctrl.GetConfig()
		if err != nil {
			return fmt.Errorf("find the API server: %w", err)
		}
		return run(ctrl.SetupSignalHandler(), rest, settings)
	}
	return c
}
