package simulations

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestMistakesHaveLines makes every mistake of some kinds, one at a time, at every kind
// of place in the scenario files: a key that does not exist, a value of another kind, a thing that
// is left out or stands twice. What is found wrong is said with its line.
func TestMistakesHaveLines(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenario files: %v", err)
	}
	made, refused := 0, 0
	tried := make(map[string]bool)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var document yaml.Node
		if err := yaml.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		for _, m := range mistakes(&document, "", tried) {
			undo := m()
			wrong, err := yaml.Marshal(&document)
			undo()
			if err != nil {
				t.Fatal(err)
			}
			made++
			if _, err := Parse("f.yaml", wrong); err != nil {
				refused++
				withLines(t, file, wrong, err)
			}
		}
	}
	if refused*2 < made {
		t.Errorf("%d of %d mistakes were found: these are no mistakes", refused, made)
	}
}

// TestNoYAMLHasALine: what is no YAML at all is told with its line too.
func TestNoYAMLHasALine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "f.yaml:1: the file is empty",
		"# nothing\n":                          "f.yaml:1: the file is empty",
		"null\n":                               "f.yaml:1: the file is empty",
		"name: a\nqueues: *none\n":             "f.yaml:2: not YAML: unknown anchor",
		"name: a\nqueues:\n- {name: \x01}\n":   "f.yaml:3: not YAML: control characters",
		"name: a\nqueues:\n- {name: \xff}\n":   "f.yaml:3: not YAML: ",
		"name: a\nqueues:\n- {name: a\nfoo: b": "f.yaml:",
		"name: 'a\n":                           "f.yaml:",
		"a\n---\nb\n":                          "f.yaml:",
		"- a\n":                                "f.yaml:1: want a scenario, got a list",
	} {
		_, err := Parse("f.yaml", []byte(text))
		if err == nil {
			t.Errorf("%q is read", text)
			continue
		}
		withLines(t, "f.yaml", []byte(text), err)
		if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func withLines(t *testing.T, file string, wrong []byte, err error) {
	t.Helper()
	var all Errors
	if !errors.As(err, &all) {
		t.Fatalf("%s: %T says %v", file, err, err)
	}
	for _, e := range all {
		if e.Line <= 0 {
			t.Errorf("%s: no line in %q, of\n%s", file, e.Error(), wrong)
		}
	}
}

// mistakes are ways to spoil the tree below a node, at places like which nothing was
// tried yet. Each returns how it is undone.
func mistakes(n *yaml.Node, path string, tried map[string]bool) (all []func() func()) {
	spoil := func(at *yaml.Node, to yaml.Node) func() func() {
		return func() func() {
			was := *at
			*at = to
			return func() { *at = was }
		}
	}
	word := yaml.Node{Kind: yaml.ScalarNode, Value: "nonsense"}
	for i, child := range n.Content {
		isKey, at := n.Kind == yaml.MappingNode && i%2 == 0, path
		if n.Kind == yaml.MappingNode {
			at += "." + n.Content[i-i%2].Value
		}
		place := fmt.Sprint(at, isKey, child.Kind)
		if tried[place] {
			all = append(all, mistakes(child, at, tried)...)
			continue
		}
		tried[place] = true
		switch {
		case isKey:
			all = append(all, spoil(child, word))
		case child.Kind == yaml.ScalarNode:
			all = append(all,
				spoil(child, yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "no such thing"}),
				spoil(child, yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: "-7"}),
				spoil(child, yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}),
				spoil(child, yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{&word}}))
		default:
			all = append(all, spoil(child, word), spoil(child, yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{&word, &word}}))
		}
		if n.Kind == yaml.SequenceNode || n.Kind == yaml.MappingNode && isKey {
			all = append(all, leftOut(n, i), doubled(n, i))
		}
		all = append(all, mistakes(child, at, tried)...)
	}
	return all
}

// width is how many nodes of its parent an entry is: a key has its value.
func width(n *yaml.Node) int {
	if n.Kind == yaml.MappingNode {
		return 2
	}
	return 1
}

func leftOut(n *yaml.Node, i int) func() func() {
	return func() func() {
		was := n.Content
		n.Content = append(append([]*yaml.Node(nil), was[:i]...), was[i+width(n):]...)
		return func() { n.Content = was }
	}
}

func doubled(n *yaml.Node, i int) func() func() {
	return func() func() {
		was := n.Content
		n.Content = append(append([]*yaml.Node(nil), was...), was[i:i+width(n)]...)
		return func() { n.Content = was }
	}
}
