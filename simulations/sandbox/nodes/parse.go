package nodes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds that catch slips of the hand, such as a memory size in count.
const (
	maxCount   = 10_000
	maxPerNode = 1_000_000
)

var (
	nameForm     = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,55}[a-z0-9])?$`)
	keyForm      = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	valueForm    = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$`)
	quantityForm = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$`)
)

var (
	groupKeys = []string{"name", "count", "cpu", "memory", "pods", "gpus", "resources", "labels", "taints"}
	effects   = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}
)

// ReadFile reads a nodes file.
func ReadFile(path string) ([]Group, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read nodes: %w", err)
	}
	return Parse(path, text)
}

// Parse reads the text of a nodes file; file is its name in messages. All
// that is wrong with it is reported at once.
func Parse(file string, text []byte) ([]Group, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	if err := decoder.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, syntaxError(file, err)
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return nil, fmt.Errorf("%s:%d: a second document; a nodes file is one list", file, second.Line)
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(file, err)
	}
	p := parser{file: file}
	groups := p.groups(doc.Content[0])
	p.noNameTwice(groups)
	return groups, errors.Join(p.errs...)
}

var syntaxLine = regexp.MustCompile(`^yaml: line ([0-9]+): `)

// syntaxError gives what the YAML parser says the form of all other messages.
func syntaxError(file string, err error) error {
	text := err.Error()
	if m := syntaxLine.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("%s:%s: %s", file, m[1], text[len(m[0]):])
	}
	return fmt.Errorf("%s: %w", file, err)
}

// parser collects what is wrong, with its place.
type parser struct {
	file string
	errs []error
}

func (p *parser) wrong(n *yaml.Node, format string, args ...any) {
	p.wrongAt(n.Line, format, args...)
}

func (p *parser) wrongAt(line int, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s:%d: %s", p.file, line, fmt.Sprintf(format, args...)))
}

func (p *parser) groups(n *yaml.Node) []Group {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		p.wrong(n, "want a list of node groups")
		return nil
	}
	var groups []Group
	for _, item := range n.Content {
		groups = append(groups, p.group(item))
	}
	return groups
}

func (p *parser) group(n *yaml.Node) Group {
	g := Group{Count: 1, CPU: defaultCPU, Memory: defaultMemory, Pods: defaultPods, line: n.Line}
	if n.Kind != yaml.MappingNode {
		p.wrong(n, "want a node group such as {name: gpu, count: 6, gpus: 8}")
		return g
	}
	p.each(n, func(key string, k, v *yaml.Node) {
		switch key {
		case "name":
			g.Name = p.matching(v, "name", nameForm, "lower case letters, digits, '-' and '.', 57 at most")
		case "count":
			g.Count = p.number(v, key, 1, maxCount)
		case "cpu":
			g.CPU = p.matching(v, key, quantityForm, "a quantity such as 64 or 500m")
		case "memory":
			g.Memory = p.matching(v, key, quantityForm, "a quantity such as 256Gi")
		case "pods":
			g.Pods = p.number(v, key, 0, maxPerNode)
		case "gpus":
			g.GPUs = p.number(v, key, 0, maxPerNode)
		case "resources":
			g.Resources = p.resources(v)
		case "labels":
			g.Labels = p.labels(v)
		case "taints":
			g.Taints = p.taints(v)
		default:
			p.wrong(k, "unknown key %q; known are %s", key, strings.Join(groupKeys, ", "))
		}
	})
	if g.Name == "" && !slices.ContainsFunc(n.Content, func(k *yaml.Node) bool { return k.Value == "name" }) {
		p.wrong(n, "a node group needs a name")
	}
	return g
}

// each walks a mapping and refuses keys that come twice.
func (p *parser) each(n *yaml.Node, visit func(key string, k, v *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.wrong(n, "want a mapping such as {key: value}")
		return
	}
	seen := make(map[string]int)
	for i := 0; i < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if line, twice := seen[k.Value]; twice {
			p.wrong(k, "key %q is already in line %d", k.Value, line)
			continue
		}
		seen[k.Value] = k.Line
		visit(k.Value, k, v)
	}
}

func (p *parser) scalar(n *yaml.Node, what string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		p.wrong(n, "%s: want a value", what)
		return "", false
	}
	return n.Value, true
}

func (p *parser) matching(n *yaml.Node, what string, form *regexp.Regexp, want string) string {
	text, isScalar := p.scalar(n, what)
	if isScalar && !form.MatchString(text) {
		p.wrong(n, "%s: %q is not valid; want %s", what, text, want)
	}
	return text
}

func (p *parser) number(n *yaml.Node, what string, least, most int) int {
	text, isScalar := p.scalar(n, what)
	if !isScalar {
		return least
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < least || number > most {
		p.wrong(n, "%s: %q is not a whole number from %d to %d", what, text, least, most)
		return least
	}
	return number
}

func (p *parser) resources(n *yaml.Node) map[string]int {
	resources := make(map[string]int)
	p.each(n, func(key string, k, v *yaml.Node) {
		switch {
		case key == gpuResource:
			p.wrong(k, "resources: %s has a key of its own: gpus", key)
		case slices.Contains([]string{"cpu", "memory", "pods"}, key):
			p.wrong(k, "resources: %s is a key of the group", key)
		case !keyForm.MatchString(key) || !strings.Contains(key, "/"):
			p.wrong(k, "resources: %q is not a resource name such as nvidia.com/mig-1g.10gb", key)
		default:
			resources[key] = p.number(v, "resources: "+key, 0, maxPerNode)
		}
	})
	return resources
}

func (p *parser) labels(n *yaml.Node) map[string]string {
	labels := make(map[string]string)
	p.each(n, func(key string, k, v *yaml.Node) {
		switch {
		case key == hostnameLabel || key == SimulatedLabel:
			p.wrong(k, "labels: %s is set for every node", key)
		case !keyForm.MatchString(key):
			p.wrong(k, "labels: %q is not a label key", key)
		default:
			labels[key] = p.matching(v, "labels: "+key, valueForm, "letters, digits, '-', '_' and '.', 63 at most")
		}
	})
	return labels
}

func (p *parser) taints(n *yaml.Node) []Taint {
	if n.Kind != yaml.SequenceNode {
		p.wrong(n, `taints: want a list such as ["team=ml:NoSchedule"]`)
		return nil
	}
	var taints []Taint
	for _, item := range n.Content {
		text, isScalar := p.scalar(item, "taints")
		if !isScalar {
			continue
		}
		taint, err := parseTaint(text)
		if err != nil {
			p.wrong(item, "taints: %v", err)
			continue
		}
		taints = append(taints, taint)
	}
	return taints
}

func parseTaint(text string) (Taint, error) {
	pair, effect, hasEffect := strings.Cut(text, ":")
	key, value, _ := strings.Cut(pair, "=")
	switch {
	case !hasEffect || !slices.Contains(effects, effect):
		return Taint{}, fmt.Errorf("%q does not end in one of :%s", text, strings.Join(effects, ", :"))
	case !keyForm.MatchString(key) || !valueForm.MatchString(value):
		return Taint{}, fmt.Errorf("%q is not key=value:effect", text)
	}
	return Taint{Key: key, Value: value, Effect: effect}, nil
}

// noNameTwice refuses a node that two groups would make.
func (p *parser) noNameTwice(groups []Group) {
	lines, total := make(map[string]int), 0
	for _, g := range groups {
		if total += g.Count; total > maxCount {
			p.wrongAt(g.line, "with this group there are %d nodes; %d at most", total, maxCount)
			return
		}
		for _, name := range g.names() {
			if line, twice := lines[name]; twice && g.Name != "" {
				p.wrongAt(g.line, "node %s is already made by the group in line %d", name, line)
				break
			}
			lines[name] = g.line
		}
	}
}
