package fleet

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"sluice.dev/sluice/nodeagent/nvml"
	"sluice.dev/sluice/nodeagent/publish"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func read(t *testing.T, text string) ([]Machine, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return ReadFile(path)
}

func TestReadFile(t *testing.T) {
	list, err := read(t, "- {node: a, count: 2, cards: 1, model: A100-40GB}\n- {node: b, cards: 2, model: A30-24GB, control: [strategy mixed]}\n")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range list {
		names = append(names, m.Node)
	}
	if got := strings.Join(names, " "); got != "a-0 a-1 b" {
		t.Errorf("machines %s", got)
	}
	for text, want := range map[string]string{
		"- {node: a, cards: 1, model: A100-40GB, cpu: 3}\n":                                  "cpu",
		"- {node: a, model: A100-40GB}\n":                                                    "entry 1",
		"- {node: a, cards: 1, model: GTX-970}\n":                                            "GTX-970",
		"- {node: a, cards: 1, model: A100-40GB}\n- {node: a, cards: 1, model: A100-40GB}\n": "twice",
		"nodes: 3\n": "fleet.yaml",
	} {
		if _, err := read(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// What the plugin and feature discovery make of a machine's cards.
func TestClaims(t *testing.T) {
	for name, c := range map[string]struct {
		control []string
		before  map[string]int64
		offers  map[string]int64
		labels  string // one that is set
	}{
		"whole cards": {nil, nil, map[string]int64{"nvidia.com/gpu": 2}, "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB"},
		"slices": {
			[]string{"strategy mixed", "mig all on", "cut 0 3g.20gb@4 1g.5gb"},
			nil,
			map[string]int64{"nvidia.com/mig-3g.20gb": 1, "nvidia.com/mig-1g.5gb": 1},
			"nvidia.com/mig-3g.20gb.count=1",
		},
		"single": {
			[]string{"strategy single", "mig all on", "cut all 1g.5gb 1g.5gb"},
			nil,
			map[string]int64{"nvidia.com/gpu": 4},
			"nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
		},
		"single, not alike": {
			[]string{"strategy single", "mig all on", "cut 0 1g.5gb", "cut 1 2g.10gb"},
			map[string]int64{"nvidia.com/gpu": 2},
			map[string]int64{"nvidia.com/gpu": 0},
			"nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-INVALID",
		},
		"shares":         {[]string{"share nvidia.com/gpu 4"}, nil, map[string]int64{"nvidia.com/gpu": 8}, "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB-SHARED"},
		"renamed shares": {[]string{"share nvidia.com/gpu 4 renamed"}, nil, map[string]int64{"nvidia.com/gpu.shared": 8}, "nvidia.com/gpu.replicas=4"},
		"a lost card":    {[]string{"lose 1"}, nil, map[string]int64{"nvidia.com/gpu": 1}, "nvidia.com/gpu.count=2"},
		"cut since": {
			[]string{"strategy mixed", "mig 0 on", "cut 0 7g.40gb"},
			map[string]int64{"nvidia.com/gpu": 2},
			map[string]int64{"nvidia.com/gpu": 1, "nvidia.com/mig-7g.40gb": 1},
			"nvidia.com/gpu.count=2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := newHost(Machine{Node: "n", Cards: 2, Model: "A100-40GB", Control: c.control}, nil, logr.Discard())
			if err != nil {
				t.Fatal(err)
			}
			defer h.cards.Close()
			probe := nvml.New(h.cards.Library(), nvml.Options{Node: "n", Root: h.cards.Files()})
			defer probe.Close()
			r := publish.Convert(h.seen(probe.Look()))
			if got := offered(r, c.before); !maps.Equal(got, c.offers) {
				t.Errorf("offers %v, want %v", got, c.offers)
			}
			key, value, _ := strings.Cut(c.labels, "=")
			if got := labelled(r); got[key] != value || got["nvidia.com/gpu.present"] != "true" {
				t.Errorf("labels %v, want %s", got, c.labels)
			}
		})
	}
}

// Control answers over its socket, with the error of what is refused.
func TestControl(t *testing.T) {
	f, err := New([]Machine{{Node: "n", Cards: 1, Model: "A100-40GB"}}, &rest.Config{Host: "https://127.0.0.1:1"}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Host("n").cards.Close()
	path := filepath.Join(t.TempDir(), "s")
	served := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	listener, err := Listen(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	go func() { served <- f.Serve(ctx, listener) }()
	for line, want := range map[string]string{
		"n mig 0 on": "", "n xid 0 79": "", "n plugin freeze": "", "n discovery follow": "", "n agent silence": "",
		"m lose 0": `no machine "m"`, "n lose 7": `no card "7"`, "n explode": "no such command", "n agent speak": "does not run yet", "": "no machine",
	} {
		err := Send(ctx, path, line)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
