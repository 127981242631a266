package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Down stops everything and keeps the data.
func (s *Sandbox) Down(ctx context.Context) error {
	if !s.exists() {
		s.say("%s is not a sandbox; nothing to stop", s.Dir)
		return nil
	}
	held, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer held.Release()
	return s.down(ctx)
}

func (s *Sandbox) down(ctx context.Context) error {
	st, err := loadState(s.statePath())
	if err != nil {
		return err
	}
	return s.stopAll(ctx, st, components)
}

// Reset stops everything and removes what the sandbox put into its folder: its
// data, certificates, logs and settings. The folder goes too, unless it holds
// something else. The programs stay in the cache.
func (s *Sandbox) Reset(ctx context.Context) error {
	if !s.exists() {
		s.say("%s is not a sandbox; nothing to reset", s.Dir)
		return nil
	}
	held, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer held.Release()
	if err := s.down(ctx); err != nil {
		return err
	}
	for _, name := range contents {
		if err := os.RemoveAll(filepath.Join(s.Dir, name)); err != nil {
			return fmt.Errorf("remove the sandbox: %w", err)
		}
	}
	if err := held.Remove(); err != nil {
		return fmt.Errorf("remove the sandbox: %w", err)
	}
	_ = os.Remove(s.Dir) // stays if it is not empty
	s.say("removed the sandbox in %s", s.Dir)
	return nil
}

// stopAll stops components against the order of their start, those of one
// stage together.
func (s *Sandbox) stopAll(ctx context.Context, st *State, cs []component) error {
	for _, stage := range slices.Backward(stages(cs)) {
		errs := make([]error, len(stage))
		var wg sync.WaitGroup
		for i, c := range stage {
			if p, recorded := st.Processes[c.name]; recorded {
				wg.Go(func() { errs[i] = s.end(ctx, c, p, false) })
			}
		}
		wg.Wait()
		for i, c := range stage {
			if errs[i] == nil {
				delete(st.Processes, c.name)
			}
		}
		if err := errors.Join(append(errs, st.save(s.statePath()))...); err != nil {
			return err
		}
	}
	return nil
}

// stop stops one component and forgets its process.
func (s *Sandbox) stop(ctx context.Context, st *State, c component, kill bool) error {
	p, recorded := st.Processes[c.name]
	if !recorded {
		return nil
	}
	if err := s.end(ctx, c, p, kill); err != nil {
		return err
	}
	delete(st.Processes, c.name)
	return st.save(s.statePath())
}

// end ends one process, and no other, and says how it went.
func (s *Sandbox) end(ctx context.Context, c component, p Process, kill bool) error {
	killed, err := kill, error(nil)
	wasAlive := p.Alive()
	if kill {
		err = p.Kill(ctx)
	} else {
		killed, err = p.Stop(ctx, c.grace)
	}
	switch {
	case err != nil:
		return fmt.Errorf("stop %s (pid %d): %w", c.name, p.PID, err)
	case !wasAlive:
		s.say("%s: had ended before", c.name)
	case killed && !kill:
		s.say("%s: killed, it did not stop within %v", c.name, c.grace)
	case killed:
		s.say("%s: killed", c.name)
	default:
		s.say("%s: stopped", c.name)
	}
	return nil
}

// Stop ends one component, at once if kill is set, and leaves the others
// running. It is for tests of what happens when a part of a cluster is gone.
func (s *Sandbox) Stop(ctx context.Context, name string, kill bool) error {
	c, err := lookup(name)
	if err != nil {
		return err
	}
	if !s.exists() {
		return fmt.Errorf("%s is not a sandbox", s.Dir)
	}
	held, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer held.Release()
	st, err := loadState(s.statePath())
	if err != nil {
		return err
	}
	if _, recorded := st.Processes[c.name]; !recorded {
		s.say("%s: does not run", c.name)
	}
	return s.stop(ctx, st, c, kill)
}

// Start starts one component as it was, and returns when it is healthy.
func (s *Sandbox) Start(ctx context.Context, name string) error {
	c, err := lookup(name)
	if err != nil {
		return err
	}
	if !s.exists() {
		return fmt.Errorf("%s is not a sandbox; sandbox up makes it one", s.Dir)
	}
	held, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer held.Release()
	st, err := loadState(s.statePath())
	if err != nil {
		return err
	}
	if !c.in(st.Settings.Mode) {
		return fmt.Errorf("%s is not part of mode %q", c.name, st.Settings.Mode)
	}
	r, err := newRunner(ctx, s, st)
	if err != nil {
		return err
	}
	return r.startStage(ctx, []component{c})
}
