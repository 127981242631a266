package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ReadFile reads, completes and validates the file at path.
func ReadFile(path string) (Configuration, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Configuration{}, fmt.Errorf("read configuration: %w", err)
	}
	return Read(path, text)
}

// Read is ReadFile for a text in hand; name stands for the file in messages.
func Read(name string, text []byte) (Configuration, error) {
	c := Default()
	c.APIVersion, c.Kind = "", "" // These two must be said.

	root, err := parse(name, text)
	if err != nil {
		return Configuration{}, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		return Configuration{}, located(name, root, err)
	}
	if err := c.validate(name, root); err != nil {
		return Configuration{}, err
	}
	return c, nil
}

// parse returns the one document of the text, which must be a mapping.
func parse(name string, text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s:1: the file is empty, want apiVersion: %s and kind: %s", name, APIVersion, Kind)
	case err != nil:
		return nil, located(name, nil, err)
	}
	var next yaml.Node
	switch err := decoder.Decode(&next); {
	case err == nil:
		return nil, fmt.Errorf("%s:%d: a second document, want one", name, next.Line)
	case !errors.Is(err, io.EOF):
		return nil, located(name, nil, err)
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: not a mapping, want keys and values", name, root.Line)
	}
	return root, nil
}

var (
	yamlLine     = regexp.MustCompile(`^(?:yaml: )?(?:unmarshal errors:\s*)?line (\d+): (.*)$`)
	unknownField = regexp.MustCompile(`^field (\S+) not found in type .*$`)
	wrongType    = regexp.MustCompile("^cannot unmarshal !!(\\S+) (?:`(.*)` )?into (\\S+)$")
)

// located turns the decoder's messages, one a line, into FILE:LINE: MESSAGE in
// the words of the file rather than those of the Go types.
func located(name string, root *yaml.Node, err error) error {
	var typed *yaml.TypeError
	lines := []string{err.Error()}
	if errors.As(err, &typed) {
		lines = typed.Errors
	}
	var all []error
	for _, line := range lines {
		match := yamlLine.FindStringSubmatch(line)
		if match == nil {
			all = append(all, fmt.Errorf("%s: %s", name, strings.TrimPrefix(line, "yaml: ")))
			continue
		}
		all = append(all, fmt.Errorf("%s:%s: %s", name, match[1], reworded(root, match[1], match[2])))
	}
	return errors.Join(all...)
}

func reworded(root *yaml.Node, line, message string) string {
	if match := unknownField.FindStringSubmatch(message); match != nil {
		return fmt.Sprintf("unknown key %q", match[1])
	}
	if match := wrongType.FindStringSubmatch(message); match != nil {
		want := wanted(match[3])
		got, kind := match[2], yaml.ScalarNode
		switch match[1] {
		case "map":
			got, kind = "a mapping", yaml.MappingNode
		case "seq":
			got, kind = "a list", yaml.SequenceNode
		}
		number, _ := strconv.Atoi(line)
		// A long value is cut short in the decoder's message.
		if keys := keysAt(root, number, kind, strings.TrimSuffix(match[2], "...")); len(keys) == 1 {
			return fmt.Sprintf("%s is %s, want %s", keys[0], got, want)
		}
		return fmt.Sprintf("%s, want %s", got, want)
	}
	return message
}

// wanted names a Go type in the words of the file.
func wanted(goType string) string {
	switch {
	case goType == "time.Duration":
		return "a duration of at most 292 years with its unit, as 2m or 30s"
	case strings.HasPrefix(goType, "config."):
		return "a mapping"
	case strings.HasPrefix(goType, "float"):
		return "a number"
	case strings.HasPrefix(goType, "int"), strings.HasPrefix(goType, "uint"):
		return "a whole number"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case goType == "bool":
		return "true or false"
	default:
		return "a " + goType
	}
}

// keysAt lists the dotted paths of the values of that kind that stand on the
// line; for a scalar, of those that begin as text does.
func keysAt(node *yaml.Node, line int, kind yaml.Kind, text string) []string {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	var found []string
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i].Value, node.Content[i+1]
		if value.Line == line && value.Kind == kind && strings.HasPrefix(value.Value, text) {
			found = append(found, key)
		}
		for _, below := range keysAt(value, line, kind, text) {
			found = append(found, key+"."+below)
		}
	}
	return found
}

// lineOf is the line of the value at a dotted path, or of the nearest part of
// the path that the file has.
func lineOf(root *yaml.Node, path string) int {
	line, node := root.Line, root
	for _, part := range strings.Split(path, ".") {
		next := (*yaml.Node)(nil)
		for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == part {
				line, next = node.Content[i].Line, node.Content[i+1]
			}
		}
		if n, err := strconv.Atoi(part); err == nil && node.Kind == yaml.SequenceNode && n < len(node.Content) {
			line, next = node.Content[n].Line, node.Content[n]
		}
		if next == nil {
			return line
		}
		node = next
	}
	return line
}
