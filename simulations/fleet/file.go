package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/nodeagent/nvml/mock"
)

// Machine is one entry of a fleet file.
type Machine struct {
	// Node is the name of its node; with Count, NAME-0 to NAME-(Count-1).
	Node  string `yaml:"node"`
	Count int    `yaml:"count"`
	// Cards is how many cards of Model it has.
	Cards int    `yaml:"cards"`
	Model string `yaml:"model"`
	// Control are what is done to the cards at the start, as in Host.Control.
	Control []string `yaml:"control"`
}

// ReadFile reads a fleet file.
func ReadFile(path string) ([]Machine, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read fleet: %w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	var list []Machine
	if err := decoder.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return expand(path, list)
}

// expand is one Machine for each node, each valid.
func expand(path string, list []Machine) ([]Machine, error) {
	var out []Machine
	seen := map[string]bool{}
	for i, m := range list {
		if m.Node == "" || m.Cards < 1 || m.Count < 0 {
			return nil, fmt.Errorf("%s: entry %d: node, cards and model are needed, and count is not negative", path, i+1)
		}
		if _, err := mock.New(m.Node, mock.Alike(m.Cards, m.Model)...); err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w", path, i+1, err)
		}
		for k := range max(1, m.Count) {
			one := m
			if m.Count > 0 {
				one.Node, one.Count = fmt.Sprintf("%s-%d", m.Node, k), 0
			}
			if seen[one.Node] {
				return nil, fmt.Errorf("%s: entry %d: node %s is there twice", path, i+1, one.Node)
			}
			seen[one.Node] = true
			out = append(out, one)
		}
	}
	return out, nil
}
