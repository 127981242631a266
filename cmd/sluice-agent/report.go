package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/nodeagent"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
	"sluice.dev/sluice/nodeagent/publish"
)

// exitNoCards is the exit status of report where no card could be read.
const exitNoCards = 3

var errNoCards = errors.New("no card could be read")

// Forms of output, by their names.
var forms = map[string]func(w io.Writer, node string, seen publish.Seen, r *v1alpha1.Report) error{
	"text": func(w io.Writer, node string, _ publish.Seen, r *v1alpha1.Report) error {
		_, err := io.WriteString(w, publish.Draw(node, r))
		return err
	},
	"json": func(w io.Writer, node string, _ publish.Seen, r *v1alpha1.Report) error {
		return writeJSON(w, object(node, r))
	},
	"yaml": func(w io.Writer, node string, _ publish.Seen, r *v1alpha1.Report) error {
		text, err := yaml.Marshal(object(node, r))
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	},
	"record": func(w io.Writer, _ string, seen publish.Seen, _ *v1alpha1.Report) error {
		return writeJSON(w, seen.Report)
	},
}

func reportCommand(s *settings, open opener) *cobra.Command {
	form := "text"
	c := &cobra.Command{
		Use:   "report",
		Short: "Read this node once and print its inventory; needs no cluster",
		Long: `Read this node once and print its inventory. No cluster is asked, and nothing is
changed. Run it as root to see which pod holds which device, and where the slices of
cards lie that are cut; what you may not read is said, and the rest is printed.

  text    for people
  json    the SliceInventory that the agent would publish
  yaml    the same
  record  what the driver answered, for bug reports and tests

It holds names of pods and serial numbers of cards: look before you send it to anybody.

The exit status is 0 if cards were read, whatever is wrong with them; 3 if none could be,
for there is no driver, no device or no right to ask, which is printed all the same; and
1 if the command itself failed.`,
		Args: cobra.NoArgs,
	}
	c.Flags().StringVarP(&form, "output", "o", form, "text, json, yaml or record")
	c.RunE = func(c *cobra.Command, _ []string) error {
		write, ok := forms[form]
		if !ok {
			return fmt.Errorf("--output %s: want text, json, yaml or record", form)
		}
		driver := open(s.node, s.library)
		defer driver.Close()
		neighbours := s.neighbourhood()
		seen := publish.Seen{Report: driver.Look(), Neighbours: neighbours.Look(c.Context()), AgentVersion: version()}
		r, _ := publish.NewBook(nil).Enter(seen)
		if err := write(c.OutOrStdout(), s.node, seen, r); err != nil {
			return fmt.Errorf("print the report: %w", err)
		}
		if seen.Report.State != nodeagent.Ready {
			return fmt.Errorf("%w: %s", errNoCards, strings.TrimSpace(string(seen.Report.State)+" "+seen.Report.Message))
		}
		return nil
	}
	return c
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// object is the report as it would be in the cluster.
func object(node string, r *v1alpha1.Report) *v1alpha1.SliceInventory {
	return &v1alpha1.SliceInventory{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "SliceInventory"},
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Report:     *r,
	}
}
