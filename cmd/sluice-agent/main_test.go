package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/nodeagent"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
	"sluice.dev/sluice/nodeagent/nvml"
	"sluice.dev/sluice/nodeagent/nvml/mock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// say runs the command line on a node of mock cards.
func say(t *testing.T, commands []string, args ...string) (string, error) {
	t.Helper()
	n, err := mock.New("n", "A100-40GB", "A100-40GB")
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	n.Must(commands...)
	open := func(node, _ string) looker { return nvml.New(n.Library(), nvml.Options{Node: node, Root: n.Files()}) }
	c := command(open)
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&out)
	c.SetArgs(append(args, "--podresources-socket", filepath.Join(t.TempDir(), "none")))
	err = c.ExecuteContext(t.Context())
	return out.String(), err
}

var cut = []string{"strategy mixed", "mig 0 on", "cut 0 3g.20gb@4 2g.10gb@0 1g.5gb@2", "lose 1"}

func TestReport(t *testing.T) {
	text, err := say(t, cut, "report", "--node", "n7")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"n7", "3g.20gb", "2g.10gb", "lost", "holdings"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report for people says nothing of %s:\n%s", want, text)
		}
	}
	for form, read := range map[string]func([]byte, any) error{"json": json.Unmarshal, "yaml": func(b []byte, v any) error { return yaml.Unmarshal(b, v) }} {
		text, err := say(t, cut, "report", "--node", "n7", "-o", form)
		if err != nil {
			t.Fatal(err)
		}
		var inv v1alpha1.SliceInventory
		if err := read([]byte(text), &inv); err != nil || inv.Name != "n7" || inv.Kind != "SliceInventory" || len(inv.Report.Cards) != 2 || len(inv.Report.Cards[0].Instances) != 3 {
			t.Errorf("%s: %v, %d cards", form, err, len(inv.Report.Cards))
		}
	}
	text, err = say(t, cut, "report", "-o", "record")
	var r nodeagent.Report
	if err != nil || json.Unmarshal([]byte(text), &r) != nil || len(r.Cards) != 2 {
		t.Errorf("record: %v, %d cards", err, len(r.Cards))
	}
}

// Where no card can be read the report says why, and so does the exit status.
func TestReportWithoutCards(t *testing.T) {
	for driver, want := range map[string]string{"missing": "NoDriver", "unloaded": "NoDriver", "forbidden": "NoPermission", "mismatch": "DriverChanged"} {
		text, err := say(t, []string{"driver " + driver}, "report")
		if !errors.Is(err, errNoCards) || !strings.Contains(text, want) {
			t.Errorf("%s: %v\n%s", driver, err, text)
		}
	}
}

func TestRefusals(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(broken, []byte("sharing: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an unknown form": {[]string{"report", "-o", "xml"}, "want text, json, yaml or record"},
		"an argument":     {[]string{"report", "now"}, "unknown command"},
		"no node":         {[]string{"run", "--node", ""}, "which node is this"},
	} {
		if _, err := say(t, nil, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	// A configuration of the plugin that cannot be read is said, and the cards are read.
	text, err := say(t, nil, "report", "--device-plugin-config", broken)
	if err != nil || !strings.Contains(text, "config.yaml") {
		t.Errorf("%v\n%s", err, text)
	}
}

// The driver is let go while others cut its cards.
func TestYields(t *testing.T) {
	for labels, want := range map[string]bool{
		"": false, v1alpha1.LabelMIGState + "=success": false, v1alpha1.LabelMIGState + "=pending": true,
		v1alpha1.LabelMIGState + "=rebooting": true, v1alpha1.LabelPluginPaused + "=" + v1alpha1.PausedForMIG: true,
	} {
		key, value, _ := strings.Cut(labels, "=")
		if got := yields(map[string]string{key: value}); (got != "") != want {
			t.Errorf("%s: %q", labels, got)
		}
	}
}
