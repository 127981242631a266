package nodes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// draw writes nodes as text, one a line.
func draw(nodes []Node) string {
	var b strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&b, "%s", n.Name)
		for _, key := range slices.Sorted(maps.Keys(n.Resources)) {
			fmt.Fprintf(&b, " %s=%s", key, n.Resources[key])
		}
		for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
			if !strings.HasPrefix(key, "kubernetes.io/") && key != SimulatedLabel {
				fmt.Fprintf(&b, " %s:%s", key, n.Labels[key])
			}
		}
		for _, t := range n.Taints {
			fmt.Fprintf(&b, " !%s=%s:%s", t.Key, t.Value, t.Effect)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestGroupsBecomeNodes(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"count makes numbered names": {
			`- {name: gpu, count: 2, gpus: 8, cpu: 96, memory: 1Ti, pods: 60}`,
			"gpu-0 cpu=96 memory=1Ti nvidia.com/gpu=8 pods=60\ngpu-1 cpu=96 memory=1Ti nvidia.com/gpu=8 pods=60\n",
		},
		"one node has the group's name and the defaults": {
			`- {name: plain}`, "plain cpu=64 memory=256Gi pods=110\n",
		},
		"everything, in block style": {
			`
- name: mig
  count: 1
  cpu: 500m
  resources: {nvidia.com/mig-1g.10gb: 14, example.com/nic: 0}
  labels:
    sluice.dev/rack: a1
    tier: 2
  taints: ["team=ml:NoSchedule", "drain:NoExecute"]`,
			"mig cpu=500m example.com/nic=0 memory=256Gi nvidia.com/mig-1g.10gb=14 pods=110 sluice.dev/rack:a1 tier:2 !team=ml:NoSchedule !drain=:NoExecute\n",
		},
		"nothing": {"# no nodes\n", ""},
		"null":    {"~", ""},
		"empty":   {"[]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			groups, err := Parse("nodes.yaml", []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := draw(Expand(groups)); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestEveryNodeIsSimulatedAndKnowsItsName(t *testing.T) {
	groups, err := Parse("nodes.yaml", []byte(`[{name: a, count: 2}]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range Expand(groups) {
		if n.Labels[SimulatedLabel] != "true" || n.Labels["kubernetes.io/hostname"] != n.Name {
			t.Errorf("%s has labels %v", n.Name, n.Labels)
		}
	}
}

func TestWrongTextIsNamedWithItsLine(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":       {"- name: a\n  gpuz: 8", `f:2: unknown key "gpuz"; known are name, count,`},
		"repeated key":      {"- name: a\n  cpu: 1\n  cpu: 2", `f:3: key "cpu" is already in line 2`},
		"no name":           {"- {count: 2}", "f:1: a node group needs a name"},
		"bad name":          {"- {name: GPU}", `f:1: name: "GPU" is not valid`},
		"empty name":        {`- {name: ""}`, `f:1: name: "" is not valid`},
		"count zero":        {"- {name: a, count: 0}", `f:1: count: "0" is not a whole number from 1 to 10000`},
		"count a size":      {"- {name: a, count: 256Gi}", `count: "256Gi" is not a whole number`},
		"count missing":     {"- {name: a, count: }", "f:1: count: want a value"},
		"negative GPUs":     {"- {name: a, gpus: -1}", `gpus: "-1"`},
		"bad memory":        {"- {name: a, memory: lots}", `f:1: memory: "lots" is not valid; want a quantity such as 256Gi`},
		"list for cpu":      {"- {name: a, cpu: [1]}", "f:1: cpu: want a value"},
		"gpu as resource":   {"- {name: a, resources: {nvidia.com/gpu: 8}}", "nvidia.com/gpu has a key of its own: gpus"},
		"cpu as resource":   {"- {name: a, resources: {cpu: 8}}", "cpu is a key of the group"},
		"native resource":   {"- {name: a, resources: {gpus: 8}}", `"gpus" is not a resource name`},
		"part of resource":  {"- {name: a, resources: {x.io/y: 0.5}}", `resources: x.io/y: "0.5" is not a whole number`},
		"label not ours":    {"- {name: a, labels: {kubernetes.io/hostname: b}}", "kubernetes.io/hostname is set for every node"},
		"label key":         {"- {name: a, labels: {a b: c}}", `"a b" is not a label key`},
		"label value":       {"- {name: a, labels: {k: a b}}", `labels: k: "a b" is not valid`},
		"labels a list":     {"- {name: a, labels: [k]}", "f:1: want a mapping"},
		"taint effect":      {"- name: a\n  taints:\n  - k=v:Never", `f:3: taints: "k=v:Never" does not end in one of`},
		"taint key":         {`- {name: a, taints: ["=v:NoSchedule"]}`, "is not key=value:effect"},
		"taints a mapping":  {"- {name: a, taints: {k: v}}", "f:1: taints: want a list"},
		"same node twice":   {"- {name: a, count: 2}\n- {name: b}\n- {name: a-1}", "f:3: node a-1 is already made by the group in line 1"},
		"too many":          {"- {name: a, count: 9999}\n- {name: b, count: 2}", "f:2: with this group there are 10001 nodes"},
		"not a list":        {"name: a", "f:1: want a list of node groups"},
		"list of words":     {"- a\n- b", "f:2: want a node group"},
		"second document":   {"- {name: a}\n---\n- {name: b}", "f:2: a second document"},
		"not YAML":          {"- {name: a\n- b: [", "f:"},
		"syntax, later doc": {"- {name: a}\n---\n- {name: b", "f:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.text))
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, want %q in it", err, c.want)
			}
		})
	}
}

func TestAllThatIsWrongIsSaidAtOnce(t *testing.T) {
	_, err := Parse("f", []byte("- {name: a, gpuz: 1}\n- {name: B}\n- {name: c, pods: x}"))
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Fatalf("want three lines, got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"- {name: gpu, count: 6, gpus: 8}", "- name: a\n  taints: [\"k=v:NoSchedule\"]\n", "[]", "- &a {name: x}\n- *a", "- {<<: {name: a}}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		groups, err := Parse("f", []byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Fatalf("the error does not name the file: %v", err)
			}
			return
		}
		seen := make(map[string]bool)
		for _, n := range Expand(groups) {
			if !nameForm.MatchString(strings.TrimRight(n.Name, "-0123456789")+"x") || seen[n.Name] {
				t.Fatalf("accepted a node named %q", n.Name)
			}
			seen[n.Name] = true
		}
	})
}
