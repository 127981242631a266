package tables

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Store keeps what runs gave in a folder, a file each, so that a table that was
// broken off goes on where it was.
type Store struct {
	Dir string
	// Revision is of the source that runs now; it is kept with every result.
	Revision string
	// Say tells what is going on; nil for nobody.
	Say func(line string)
	// Ready says that only what is kept is used, and nothing runs.
	Ready bool
	seen  map[string]bool
}

// ErrNotRun says that a result is not kept and was not to be worked out.
var ErrNotRun = errors.New("not run")

type kept[T any] struct {
	Revision string
	Result   T
}

// Keep returns the result called name, kept or worked out by run.
func Keep[T any](s *Store, name string, run func() (T, error)) (T, error) {
	path := filepath.Join(s.Dir, strings.NewReplacer(" ", "-", ":", "", ",", "").Replace(name)+".json")
	var k kept[T]
	data, err := os.ReadFile(path)
	switch {
	case err == nil:
		if err := json.Unmarshal(data, &k); err != nil {
			return k.Result, fmt.Errorf("read %s: %w; remove it to run it again", path, err)
		}
		s.note(k.Revision)
		return k.Result, nil
	case !errors.Is(err, fs.ErrNotExist):
		return k.Result, fmt.Errorf("read a kept result: %w", err)
	case s.Ready:
		return k.Result, fmt.Errorf("%s: %w", name, ErrNotRun)
	}
	if s.Say != nil {
		s.Say(name)
	}
	if k.Result, err = run(); err != nil {
		return k.Result, fmt.Errorf("%s: %w", name, err)
	}
	k.Revision = s.Revision
	s.note(k.Revision)
	if data, err = json.Marshal(k); err != nil {
		return k.Result, fmt.Errorf("keep %s: %w", name, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return k.Result, fmt.Errorf("keep %s: %w", name, err)
	}
	part := path + ".part"
	if err := os.WriteFile(part, data, 0o644); err != nil {
		return k.Result, fmt.Errorf("keep %s: %w", name, err)
	}
	if err := os.Rename(part, path); err != nil {
		return k.Result, fmt.Errorf("keep %s: %w", name, err)
	}
	return k.Result, nil
}

func (s *Store) note(revision string) {
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[revision] = true
}

// Revisions are those with which the results used were worked out.
func (s *Store) Revisions() []string {
	var out []string
	for r := range s.seen {
		out = append(out, r)
	}
	return out
}
