package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/admission/jobs/notice"
	"sluice.dev/sluice/admission/kube"
	"sluice.dev/sluice/admission/takeover"
)

const importHelp = `Take over what runs under another scheduler.

Stop that scheduler, look with --dry-run at what will be otherwise, import, and start
sluice. Every step may be repeated. No pod is restarted: pods that run are marked, and
the admission of their workload names the nodes where they are.

Exit codes: 0 done, or nothing would be otherwise; 1 error; 2 with --dry-run something
would be otherwise or is left as it is, without it something was left as it is.`

// importer is `sluice import`.
type importer struct {
	live   live
	dryRun bool
	client client.Client // nil is that of the kubeconfig
	now    func() time.Time
}

func newImport() *cobra.Command {
	c := &cobra.Command{Use: "import", Short: "Take over what runs under Kueue or Volcano", Long: importHelp}
	for _, f := range []takeover.Family{takeover.Kueue, takeover.Volcano} {
		im := &importer{now: time.Now}
		sub := &cobra.Command{
			Use: strings.ToLower(string(f)), Short: fmt.Sprintf("Take over what runs under %s", f), Long: importHelp, Args: cobra.NoArgs,
			Annotations: map[string]string{answers: "yes"},
			RunE: func(c *cobra.Command, _ []string) error {
				return im.run(c.Context(), f, c.OutOrStdout(), c.ErrOrStderr())
			},
		}
		sub.Flags().BoolVar(&im.dryRun, "dry-run", false, "change nothing, and say what would be otherwise")
		sub.Flags().StringVar(&im.live.kubeconfig, "kubeconfig", "", "the kubeconfig file; default: as of kubectl")
		sub.Flags().StringVar(&im.live.context, "context", "", "the context of the kubeconfig")
		sub.Flags().StringVar(&im.live.as, "as", "", "do it as this user, if you may impersonate it")
		c.AddCommand(sub)
	}
	return c
}

// connect makes the client.
func (im *importer) connect() error {
	if im.client != nil {
		return nil
	}
	ctrl.SetLogger(logr.Discard()) // what the client's library would log is said by errors
	config, err := im.live.config()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 100, 200
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kube.AddToScheme} {
		if err := add(s); err != nil {
			return err
		}
	}
	im.client, err = client.New(config, client.Options{Scheme: s})
	if err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	return nil
}

func (im *importer) run(ctx context.Context, f takeover.Family, stdout, stderr io.Writer) error {
	if err := im.connect(); err != nil {
		return err
	}
	if err := im.alone(ctx, f, stderr); err != nil {
		return err
	}
	otherwise := false
	if im.dryRun {
		changes, err := takeover.Changes(ctx, im.client, f)
		if err != nil {
			return err
		}
		writeChanges(stdout, stderr, changes)
		otherwise = len(changes) > 0
	}
	found, err := takeover.Find(ctx, im.client, f)
	if err != nil {
		return err
	}
	left, err := im.adopt(ctx, found)
	if err != nil {
		return err
	}
	if otherwise && len(found) > 0 {
		fmt.Fprintln(stdout)
	}
	im.writeAdoptions(stdout, stderr, found)
	if otherwise || left {
		return exitError(exitInvalid)
	}
	return nil
}

// alone refuses to change what another scheduler may change at the same time.
func (im *importer) alone(ctx context.Context, f takeover.Family, stderr io.Writer) error {
	rivals, err := notice.Rivals(ctx, im.client, im.now(), time.Time{})
	if err != nil {
		return err
	}
	for _, r := range rivals {
		if r.Scheduler != string(f) {
			continue
		}
		if !im.dryRun {
			return fmt.Errorf("%s: stop it first", r)
		}
		fmt.Fprintf(stderr, "%s: stop it before you import.\n", r)
	}
	return nil
}

// adopt takes over what can be, and says whether something is left.
func (im *importer) adopt(ctx context.Context, found []takeover.Adoption) (left bool, err error) {
	for i := range found {
		a := &found[i]
		left = left || a.Problem != ""
		if im.dryRun || a.Problem != "" || a.Done {
			continue
		}
		if err := takeover.Adopt(ctx, im.client, a, im.now()); err != nil {
			return left, err
		}
	}
	return left, nil
}

func writeChanges(stdout, stderr io.Writer, changes []takeover.Change) {
	if len(changes) == 0 {
		fmt.Fprintln(stderr, "No field that is set means anything else in sluice.")
		return
	}
	t := tabwriter.NewWriter(stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "KIND\tFIELD\tOBJECTS\tIN SLUICE")
	for _, c := range changes {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", c.Kind, c.Field, someOf(c.Objects), c.Verdict+": "+c.Text())
	}
	_ = t.Flush()
}

// someOf names objects, the first few of many.
func someOf(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ",")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ","), len(names)-most)
}

func (im *importer) writeAdoptions(stdout, stderr io.Writer, found []takeover.Adoption) {
	if len(found) == 0 {
		fmt.Fprintln(stderr, "Nothing runs that would have to be taken over.")
		return
	}
	t := tabwriter.NewWriter(stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "KIND\tNAME\tPODS\tNODES\tIMPORT")
	for i := range found {
		a := &found[i]
		what := "adopted"
		switch {
		case a.Problem != "":
			what = "left as it is"
			fmt.Fprintf(stderr, "%s %s/%s: %s.\n", a.Kind, a.Namespace, a.Name, a.Problem)
		case a.Done:
			what = "adopted before"
		case im.dryRun:
			what = "to adopt"
		}
		fmt.Fprintf(t, "%s\t%s/%s\t%d\t%s\t%s\n", a.Kind, a.Namespace, a.Name, len(a.Pods), someOf(a.Nodes()), what)
	}
	_ = t.Flush()
}
