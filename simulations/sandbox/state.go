package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sluice.dev/sluice/simulations/sandbox/process"
)

// stateVersion changes when an older command could misread the state file.
const stateVersion = 1

// Process is a component that was started.
type Process struct {
	process.Identity
	// Digest tells one command line, with the files it reads, from another.
	Digest string    `json:"digest"`
	Since  time.Time `json:"since"`
}

// State is what a sandbox remembers between two commands.
type State struct {
	Version  int      `json:"version"`
	Settings Settings `json:"settings"`
	// Ports are kept while they are free, so that a kubeconfig stays good.
	Ports     map[string]int     `json:"ports"`
	Processes map[string]Process `json:"processes"`
	// NodesGiven says that nodes were applied once. A later Up without nodes
	// leaves them as they are.
	NodesGiven bool `json:"nodesGiven"`
}

// loadState reads a state file, or gives the state of a new sandbox.
func loadState(path string) (*State, error) {
	st := &State{
		Version: stateVersion, Settings: DefaultSettings(),
		Ports: make(map[string]int), Processes: make(map[string]Process),
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	if err := json.Unmarshal(text, st); err != nil {
		return nil, fmt.Errorf("read state %s: %w", path, err)
	}
	if st.Version != stateVersion {
		return nil, fmt.Errorf("read state %s: it has version %d, this command knows %d", path, st.Version, stateVersion)
	}
	if err := st.Settings.Validate(); err != nil {
		return nil, fmt.Errorf("read state %s: %w", path, err)
	}
	return st, nil
}

// save puts the whole state in place at once.
func (st *State) save(path string) error {
	text, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	return writeWhole(path, append(text, '\n'))
}

// writeWhole replaces a file that its owner alone may read, so that a reader sees the old or the new text
// and nothing between.
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
