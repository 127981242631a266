package monitoring

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql/parser"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	_ "sigs.k8s.io/controller-runtime/pkg/webhook" // its metrics of requests

	"sluice.dev/sluice/admission/kube"
)

type rules struct {
	APIVersion, Kind string
	Metadata         struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Spec struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
}

var (
	described = regexp.MustCompile(`^Desc\{fqName: "([^"]+)".* variableLabels: \{([^}]*)\}\}$`)
	suffix    = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// registered are the labels of every metric that the controller has, by name.
func registered(t *testing.T) map[string][]string {
	t.Helper()
	kube.RegisterMetrics()
	descs := make(chan *prometheus.Desc, 4096)
	ctrlmetrics.Registry.(prometheus.Collector).Describe(descs)
	close(descs)
	all := map[string][]string{}
	for d := range descs {
		// The help may have lines of its own.
		m := described.FindStringSubmatch(strings.ReplaceAll(strings.ReplaceAll(d.String(), "\n", " "), `\n`, " "))
		if m == nil {
			t.Fatalf("a description reads otherwise: %s", d)
		}
		all[m[1]] = append(strings.Split(m[2], ","), "le")
	}
	return all
}

// checkExpr holds an expression to the metrics that there are.
func checkExpr(t *testing.T, where, expr string, all map[string][]string) {
	t.Helper()
	root, err := parser.ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %s: %v", where, expr, err)
		return
	}
	var labels []string
	found := 0
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		switch x := n.(type) {
		case *parser.VectorSelector:
			found++
			own, ok := all[x.Name]
			if !ok {
				own, ok = all[suffix.ReplaceAllString(x.Name, "")]
			}
			if !ok {
				t.Errorf("%s: there is no metric %s", where, x.Name)
			}
			for _, m := range x.LabelMatchers {
				if m.Name != "__name__" && !slices.Contains(own, m.Name) {
					t.Errorf("%s: %s has no label %s", where, x.Name, m.Name)
				}
			}
			labels = append(labels, own...)
		}
		return nil
	})
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		if a, ok := n.(*parser.AggregateExpr); ok && !a.Without {
			for _, l := range a.Grouping {
				if !slices.Contains(labels, l) {
					t.Errorf("%s: no metric in %s has a label %s", where, expr, l)
				}
			}
		}
		return nil
	})
	if found == 0 {
		t.Errorf("%s: %s names no metric", where, expr)
	}
}

func TestRules(t *testing.T) {
	text, err := os.ReadFile("rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var r rules
	if err := yaml.UnmarshalStrict(text, &r); err != nil {
		t.Fatal(err)
	}
	if r.Kind != "PrometheusRule" || r.APIVersion != "monitoring.coreos.com/v1" {
		t.Errorf("%s of %s", r.Kind, r.APIVersion)
	}
	docs, err := os.ReadFile("../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	all := registered(t)
	alerts := map[string]bool{}
	for _, g := range r.Spec.Groups {
		for _, x := range g.Rules {
			if alerts[x.Alert] {
				t.Errorf("%s is there twice", x.Alert)
			}
			alerts[x.Alert] = true
			checkExpr(t, x.Alert, x.Expr, all)
			if !slices.Contains([]string{"info", "warning", "critical"}, x.Labels["severity"]) {
				t.Errorf("%s is of severity %q", x.Alert, x.Labels["severity"])
			}
			if x.Annotations["summary"] == "" {
				t.Errorf("%s says nothing", x.Alert)
			}
			if want := "deploy/docs/alerts.md#" + strings.ToLower(x.Alert); x.Annotations["runbook"] != want {
				t.Errorf("%s leads to %q, want %s", x.Alert, x.Annotations["runbook"], want)
			}
			if !strings.Contains(string(docs), "\n## "+x.Alert+"\n") {
				t.Errorf("../docs/alerts.md has no section %s", x.Alert)
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(string(docs), -1) {
		if !alerts[m[1]] {
			t.Errorf("../docs/alerts.md speaks of %s, which is no alert", m[1])
		}
	}
	if len(alerts) < 12 {
		t.Errorf("%d alerts", len(alerts))
	}
}

func TestBoard(t *testing.T) {
	text, err := os.ReadFile("board.json")
	if err != nil {
		t.Fatal(err)
	}
	var b struct {
		Title  string
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	all := registered(t)
	ids := map[int]bool{}
	for _, p := range b.Panels {
		if ids[p.ID] || p.Title == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d %q has %d targets, or is there twice", p.ID, p.Title, len(p.Targets))
		}
		ids[p.ID] = true
		for _, x := range p.Targets {
			checkExpr(t, p.Title, x.Expr, all)
		}
	}
	if len(ids) < 10 {
		t.Errorf("%d panels", len(ids))
	}
}
