package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sluice.dev/sluice/simulations/demo/process"
)

// stateVersion changes when an older demo could misread the state file.
const stateVersion = 1

// recorded is a controller that was started.
type recorded struct {
	process.Identity
	// Digest tells the program, its arguments and the files it reads from others.
	Digest string    `json:"digest"`
	Since  time.Time `json:"since"`
}

// state is what the demo remembers between two runs.
type state struct {
	Version int `json:"version"`
	// Kubeconfig is that of a given cluster; empty is the sandbox.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Ports are kept while they are free: the webhooks' entries name one of them.
	Ports      map[string]int `json:"ports"`
	Controller recorded       `json:"controller"`
	// Standby is the second controller, if there is one.
	Standby recorded `json:"standby"`
	// Fleet plays the machines of the sandbox.
	Fleet recorded `json:"fleet"`

	path string
}

func loadState(path string) (*state, error) {
	s := &state{Version: stateVersion, Ports: make(map[string]int), path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the demo's state: %w", err)
	}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("read the demo's state %s: %w", path, err)
	}
	if s.Version != stateVersion {
		return nil, fmt.Errorf("read the demo's state %s: it has version %d, this demo knows %d", path, s.Version, stateVersion)
	}
	if s.Ports == nil {
		s.Ports = make(map[string]int)
	}
	return s, nil
}

func (s *state) save() error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the demo's state: %w", err)
	}
	return writeWhole(s.path, append(text, '\n'))
}

// writeWhole replaces a file. A reader sees the old or the new text, and
// nothing between.
func writeWhole(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	unfinished := path + ".unfinished"
	if err := os.WriteFile(unfinished, text, 0o600); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}
