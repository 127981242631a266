// Command sluice-agent says what the GPUs of the node that it runs on are. It reads
// and changes nothing: not a device, not a process, not a pod.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"sluice.dev/sluice/nodeagent/kubelet"
	"sluice.dev/sluice/nodeagent/publish"
)

func main() {
	err := command(openDriver).Execute()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "sluice-agent:", err)
	if errors.Is(err, errNoCards) {
		os.Exit(exitNoCards)
	}
	os.Exit(1)
}

// settings are the flags that both commands have.
type settings struct {
	node, library string
	socket        string
	config        kubelet.ConfigSource
}

// neighbourhood is whom to ask beside the driver.
func (s *settings) neighbourhood() publish.Neighbourhood {
	return publish.Neighbourhood{PodResources: kubelet.PodResources{Socket: s.socket}, Config: s.config}
}

// opener opens a driver; path is that of the library, "" where it usually is.
type opener func(node, path string) looker

func command(open opener) *cobra.Command {
	s := &settings{}
	root := &cobra.Command{
		Use:           "sluice-agent",
		Short:         "Says what the GPUs of this node are: to the cluster (run) or to you (report)",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	shared := root.PersistentFlags()
	shared.StringVar(&s.node, "node", os.Getenv("NODE_NAME"), "name of this node in the cluster; from NODE_NAME if that is set")
	shared.StringVar(&s.library, "nvml-library", "", "path of libnvidia-ml.so.1; without it where the dynamic linker finds it")
	shared.StringVar(&s.socket, "podresources-socket", kubelet.DefaultSocket, "the kubelet's socket that says which pod holds which device")
	shared.StringVar(&s.config.Path, "device-plugin-config", "", "configuration of NVIDIA's device plugin: a file, or a folder with one for each value of the label "+kubelet.ConfigLabel)
	shared.StringVar(&s.config.Default, "device-plugin-config-default", "", `which file of that folder serves a node without the label; without it the one called "default", or the only one`)
	run := runCommand(s, open)
	root.AddCommand(run, reportCommand(s, open))
	// Without a command it runs.
	root.RunE = run.RunE
	root.Flags().AddFlagSet(run.Flags())
	return root
}

func runCommand(s *settings, open opener) *cobra.Command {
	logging := zap.Options{}
	c := &cobra.Command{
		Use:   "run",
		Short: "Keep the node's SliceInventory and heartbeat in the cluster up to date",
		Args:  cobra.NoArgs,
	}
	flags := c.Flags()
	if kubeconfig := flag.Lookup("kubeconfig"); kubeconfig != nil {
		flags.AddGoFlag(kubeconfig) // which controller-runtime reads
	}
	zapFlags := flag.NewFlagSet("zap", flag.ContinueOnError)
	logging.BindFlags(zapFlags)
	flags.AddGoFlagSet(zapFlags)
	c.RunE = func(*cobra.Command, []string) error {
		log := zap.New(zap.UseFlagOptions(&logging))
		ctrl.SetLogger(log)
		klog.SetLogger(log)
		if s.node == "" {
			return errors.New("which node is this? give --node or NODE_NAME")
		}
		cluster, err := connect(s.node)
		if err != nil {
			return err
		}
		a := agent{driver: open(s.node, s.library), neighbours: s.neighbourhood(), cluster: cluster, version: version(), log: log}
		return a.run(ctrl.SetupSignalHandler())
	}
	return c
}

// version is that of the module this was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && info.Main.Version == "(devel)" {
			return s.Value[:min(len(s.Value), 12)]
		}
	}
	return info.Main.Version
}
