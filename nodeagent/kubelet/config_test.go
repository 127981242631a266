package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
)

func TestParseConfig(t *testing.T) {
	gpu := func(replicas int, fail bool) Share {
		return Share{Resource: "nvidia.com/gpu", Strategy: TimeSlicing, Replicas: replicas, FailAboveOne: ptr.To(fail)}
	}
	for _, c := range []struct {
		name, text string
		mig        MIGStrategy
		shares     []Share
		warnings   []string // parts of each
	}{
		{name: "empty"},
		{name: "says nothing of this", text: "version: v1\nflags: {failOnInitError: false, plugin: {passDeviceSpecs: true}}\n"},
		{name: "MIG only", text: "version: v1\nflags:\n  migStrategy: mixed\n", mig: MIGMixed},
		{name: "time slices", text: `
version: v1
flags: {migStrategy: none}
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: 10
`, mig: MIGNone, shares: []Share{gpu(10, false)}},
		{
			name: "JSON, prefix left out, two resources out of order",
			text: `{"sharing": {"timeSlicing": {"failRequestsGreaterThanOne": true, "resources": [{"name": "mig-1g.5gb", "replicas": 3}, {"name": "gpu", "replicas": 4, "devices": "all"}]}}}`,
			shares: []Share{
				gpu(4, true),
				{Resource: "nvidia.com/mig-1g.5gb", Strategy: TimeSlicing, Replicas: 3, FailAboveOne: ptr.To(true)},
			},
		},
		{name: "renamed", text: `
sharing:
  timeSlicing:
    renameByDefault: true
    resources:
    - {name: nvidia.com/gpu, replicas: 2, rename: nvidia.com/gpu.shared}
`, shares: []Share{{Resource: "nvidia.com/gpu", Strategy: TimeSlicing, Replicas: 2, Renamed: true, FailAboveOne: ptr.To(false)}}},
		{
			name: "MPS refuses more than one unless told otherwise", text: `
sharing:
  mps:
    resources:
    - {name: nvidia.com/gpu, replicas: 8}
    - {name: nvidia.com/mig-1g.5gb, replicas: 2}
`, shares: []Share{{Resource: "nvidia.com/gpu", Strategy: MPS, Replicas: 8, FailAboveOne: ptr.To(true)}},
			warnings: []string{"line 6: nvidia.com/mig-1g.5gb: MPS shares whole cards only"},
		},
		{name: "both", text: `
sharing:
  timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}
  mps: {resources: [{name: nvidia.com/gpu, replicas: 2}]}
`, warnings: []string{"exclude each other"}},
		{name: "renameByDefault in the wrong place", text: `
sharing:
  renameByDefault: true
  timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}
`, shares: []Share{gpu(4, false)}, warnings: []string{"belong under timeSlicing"}},
		{name: "what the plugin refuses or ignores", text: `
flags: {migStrategy: double}
sharing:
  timeSlicing:
    resources:
    - {name: nvidia.com/gpu, replicas: 1}
    - {replicas: 3}
    - {name: nvidia.com/gpu}
    - {name: nvidia.com/gpu, replicas: 4, rename: nvidia.com/slice, devices: [0, 1]}
    - {name: gpu, replicas: 5}
`, shares: []Share{gpu(4, false)}, warnings: []string{
			`"double"`, "line 6: nvidia.com/gpu with 1 replicas is refused", "line 7: a shared resource without a name", "line 8: nvidia.com/gpu has no replicas",
			"line 9: rename: nvidia.com/slice is ignored", "line 9: devices is ignored", "line 10: nvidia.com/gpu is shared twice",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseConfig("f.yaml", []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if got.MIG != c.mig || !reflect.DeepEqual(got.Shares, c.shares) {
				t.Errorf("got  %s %+v\nwant %s %+v", got.MIG, got.Shares, c.mig, c.shares)
			}
			compareParts(t, got.Warnings, c.warnings)
			for _, w := range got.Warnings {
				if !strings.HasPrefix(w, "f.yaml: ") {
					t.Errorf("%q does not name the file", w)
				}
			}
		})
	}
}

// compareParts says which texts do not hold the part that they should.
func compareParts(t *testing.T, got, parts []string) {
	t.Helper()
	if len(got) != len(parts) {
		t.Fatalf("got %d texts, want %d:\n%s", len(got), len(parts), strings.Join(got, "\n"))
	}
	for i := range got {
		if !strings.Contains(got[i], parts[i]) {
			t.Errorf("%q does not say %q", got[i], parts[i])
		}
	}
}

func TestBrokenConfig(t *testing.T) {
	for text, want := range map[string]string{
		"version: v2":     `version "v2"`,
		"sharing: [":      "line 1",
		"a:\n  b\nc: {":   "yaml",
		"sharing: banana": "line 1",
		"sharing: {timeSlicing: {resources: [{name: a, replicas: many}]}}": "line 1",
		"\x00\x01": "yaml",
	} {
		if got, err := ParseConfig("f.yaml", []byte(text)); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		} else if !strings.HasPrefix(err.Error(), "f.yaml: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not name the file and %q", text, err, want)
		}
	}
}

func TestConfigSource(t *testing.T) {
	dir := t.TempDir()
	for name, replicas := range map[string]int{"small": 2, "large": 20} {
		text := fmt.Sprintf("sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: %d}]}}", replicas)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// As the kubelet mounts a ConfigMap.
	if err := os.Mkdir(filepath.Join(dir, "..data"), 0o700); err != nil {
		t.Fatal(err)
	}
	lone := t.TempDir()
	if err := os.WriteFile(filepath.Join(lone, "only"), []byte("flags: {migStrategy: single}"), 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(t.TempDir(), "long")
	if err := os.WriteFile(long, make([]byte, maxConfig+1), 0o600); err != nil {
		t.Fatal(err)
	}
	label := func(v string) map[string]string { return map[string]string{ConfigLabel: v} }
	for _, c := range []struct {
		name     string
		source   ConfigSource
		labels   map[string]string
		replicas int         // of the only share
		mig      MIGStrategy // or this
		wrong    string      // or this in the error; else there is no configuration
	}{
		{name: "nowhere"},
		{name: "by label", source: ConfigSource{Path: dir, Default: "small"}, labels: label("large"), replicas: 20},
		{name: "by default", source: ConfigSource{Path: dir, Default: "small"}, replicas: 2},
		{name: "a file", source: ConfigSource{Path: filepath.Join(dir, "large")}, labels: label("small"), replicas: 20},
		{name: "the only one", source: ConfigSource{Path: lone}, mig: MIGSingle},
		{name: "none in the folder", source: ConfigSource{Path: t.TempDir()}},
		{name: "not chosen", source: ConfigSource{Path: dir}, wrong: "large, small: no label"},
		{name: "a label of nothing", source: ConfigSource{Path: dir, Default: "small"}, labels: label("huge"), wrong: "names no configuration"},
		{name: "a default of nothing", source: ConfigSource{Path: dir, Default: "huge"}, wrong: "the default configuration huge"},
		{name: "not there", source: ConfigSource{Path: filepath.Join(dir, "no")}, wrong: "no such file"},
		{name: "too long", source: ConfigSource{Path: long}, wrong: "longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.source.Read(c.labels)
			switch {
			case c.wrong != "":
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("got %+v, %v, want an error with %q", got, err, c.wrong)
				}
			case err != nil:
				t.Error(err)
			case c.replicas == 0 && c.mig == "":
				if got != nil {
					t.Errorf("got %+v, want none", got)
				}
			case got == nil || got.MIG != c.mig:
				t.Errorf("got %+v, want the strategy %q", got, c.mig)
			case c.replicas > 0 && (len(got.Shares) != 1 || got.Shares[0].Replicas != c.replicas):
				t.Errorf("got %+v, want %d replicas", got.Shares, c.replicas)
			}
		})
	}
}

// A configuration that is read has shares that a plugin can make, whatever it says.
func FuzzParseConfig(f *testing.F) {
	f.Add("version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 10}]}}")
	f.Add("sharing: {mps: {renameByDefault: true, resources: [{name: gpu, replicas: 8}, {name: gpu, replicas: 0}]}}")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseConfig("f", []byte(text))
		if err != nil {
			return
		}
		for i, s := range c.Shares {
			if s.Replicas < 2 || !strings.HasPrefix(s.Resource, vendor) || s.FailAboveOne == nil {
				t.Fatalf("share %+v", s)
			}
			if i > 0 && c.Shares[i-1].Resource >= s.Resource {
				t.Fatalf("%s before %s", c.Shares[i-1].Resource, s.Resource)
			}
		}
	})
}
