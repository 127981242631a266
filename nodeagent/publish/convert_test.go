package publish_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/nodeagent"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
	"sluice.dev/sluice/nodeagent/kubelet"
	"sluice.dev/sluice/nodeagent/publish"
)

// look is what a test file says that was seen.
type look struct {
	After    string            `json:"after"` // since noon
	Report   nodeagent.Report  `json:"report"`
	Config   string            `json:"config"` // of the device plugin
	Labels   map[string]string `json:"labels"`
	Holdings []struct {
		Pod      string   `json:"pod"` // namespace/name/container
		Resource string   `json:"resource"`
		IDs      []string `json:"ids"`
	} `json:"holdings"`
	Offered  map[string][]string `json:"offered"`
	Troubles []publish.Trouble   `json:"troubles"`
}

var (
	noon     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	shortID  = regexp.MustCompile(`\b(GPU|MIG):([0-9a-f]+)`)
	longID   = regexp.MustCompile(`\b(GPU|MIG)-00000000-0000-0000-0000-0*([0-9a-f]+)`)
	gridBook = map[string]*nodeagent.Grid{"NVIDIA A100-SXM4-40GB": a100(), "NVIDIA A30": {Units: 4, Compute: 4, Profiles: []nodeagent.Profile{
		{Name: "1g.6gb", ID: 14, Compute: 1, Size: 1, Starts: []int{0, 1, 2, 3}},
		{Name: "2g.12gb", Enum: 1, ID: 5, Compute: 2, Size: 2, Starts: []int{0, 2}},
		{Name: "4g.24gb", Enum: 3, ID: 0, Compute: 4, Size: 4, Starts: []int{0}},
	}}}
)

func a100() *nodeagent.Grid {
	return &nodeagent.Grid{Units: 8, Compute: 7, Profiles: []nodeagent.Profile{
		{Name: "1g.5gb", ID: 19, Compute: 1, Multiprocessors: 14, MemoryMiB: 4864, Size: 1, Starts: []int{0, 1, 2, 3, 4, 5, 6}},
		{Name: "2g.10gb", Enum: 1, ID: 14, Compute: 2, Multiprocessors: 28, MemoryMiB: 9984, Size: 2, Starts: []int{0, 2, 4}},
		{Name: "3g.20gb", Enum: 2, ID: 9, Compute: 3, Multiprocessors: 42, MemoryMiB: 20096, Size: 4, Starts: []int{0, 4}},
		{Name: "4g.20gb", Enum: 3, ID: 5, Compute: 4, Multiprocessors: 56, MemoryMiB: 20096, Size: 4, Starts: []int{0}},
		{Name: "7g.40gb", Enum: 4, ID: 0, Compute: 7, Multiprocessors: 98, MemoryMiB: 40320, Size: 8, Starts: []int{0}},
		{Name: "1g.5gb+me", Enum: 7, ID: 20, Compute: 1, Multiprocessors: 14, MemoryMiB: 4864, Size: 1, Starts: []int{0, 1, 2, 3, 4, 5, 6}, Sole: nodeagent.MediaEngines},
	}}
}

// long writes GPU:a as the UUID it stands for, short the reverse.
func long(s string) string {
	return shortID.ReplaceAllStringFunc(s, func(id string) string {
		kind, digits, _ := strings.Cut(id, ":")
		return fmt.Sprintf("%s-00000000-0000-0000-0000-%012s", kind, digits)
	})
}

func short(s string) string { return longID.ReplaceAllString(s, "$1:$2") }

// seen is what the test file says.
func (l *look) seen(t *testing.T) publish.Seen {
	t.Helper()
	if l.After != "" {
		after, err := time.ParseDuration(l.After)
		if err != nil {
			t.Fatal(err)
		}
		l.Report.Time = noon.Add(after)
	} else {
		l.Report.Time = noon
	}
	for i := range l.Report.Cards {
		if c := &l.Report.Cards[i]; c.Grid == nil && c.MIG != nil {
			c.Grid = gridBook[c.Product]
		}
	}
	n := publish.Neighbours{HoldingsKnown: l.Holdings != nil, OfferedKnown: l.Offered != nil, Troubles: l.Troubles}
	var config *kubelet.Config
	if l.Config != "" {
		var err error
		if config, err = kubelet.ParseConfig("plugin.yaml", []byte(l.Config)); err != nil {
			t.Fatal(err)
		}
	}
	n.Sharing = kubelet.Join(config, kubelet.FromLabels(l.Labels))
	devices := func(ids []string) (all []kubelet.Device) {
		for _, id := range ids {
			d, err := kubelet.ParseDevice(id)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, d)
		}
		return all
	}
	for _, h := range l.Holdings {
		at := strings.Split(h.Pod, "/")
		n.Holdings = append(n.Holdings, kubelet.Holding{Namespace: at[0], Pod: at[1], Container: at[2], Resource: h.Resource, Devices: devices(h.IDs)})
	}
	for _, resource := range sortedKeys(l.Offered) {
		n.Offered = append(n.Offered, kubelet.Offered{Resource: resource, Devices: devices(l.Offered[resource])})
	}
	return publish.Seen{Report: &l.Report, Neighbours: n}
}

// What agents see, and what they make of it: one file, one node's life.
func TestInventories(t *testing.T) {
	datadriven.Walk(t, "testdata/inventories", func(t *testing.T, path string) {
		book := publish.NewBook(nil)
		last := (*v1alpha1.Report)(nil)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "see":
			case "restart": // the agent
				book = publish.NewBook(last.DeepCopy())
				return ""
			default:
				d.Fatalf(t, "unknown command")
			}
			l := look{}
			if err := yaml.UnmarshalStrict([]byte(long(d.Input)), &l); err != nil {
				d.Fatalf(t, "%v", err)
			}
			r, changed := book.Enter(l.seen(t))
			last = r
			text := fmt.Sprintf("layout   %s\nproblems %s\n", r.Summary.Layout, r.Summary.Problems) + publish.Draw("n1", r)
			if !changed {
				text = "unchanged since " + r.Changed.UTC().Format(time.TimeOnly) + "\n"
			}
			if d.HasArg("brief") {
				text = fmt.Sprintf("%s, changed at %s: %s\n", r.State, r.Changed.UTC().Format(time.TimeOnly), r.Summary.Problems)
				if !changed {
					text = "unchanged: " + text
				}
				for _, p := range r.Problems {
					text += fmt.Sprintf("  %s since %s: %s\n", p.What, p.Since.UTC().Format(time.TimeOnly), p.Message)
				}
				if r.Layout != nil {
					text += fmt.Sprintf("  layout %d since %s\n", r.Layout.Generation, r.Layout.Since.UTC().Format(time.TimeOnly))
				}
			}
			return short(text)
		})
	})
}
