//go:build unix

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Identity names one process, and no other before or after it.
type Identity struct {
	PID int `json:"pid"`
	// Start tells this process from others that had or will have the pid. It is
	// opaque text, equal for the same process.
	Start string `json:"start"`
}

// Alive reports whether the process still runs. One that has ended and waits
// for its parent to take notice does not.
func (i Identity) Alive() bool {
	if i.PID <= 0 {
		return false
	}
	start, running := startOf(i.PID)
	return running && start == i.Start
}

// signal sends a signal to the process, unless it is gone.
func (i Identity) signal(s syscall.Signal) error {
	if i.PID <= 0 {
		return nil
	}
	// The handle comes first: where the system has handles for processes, it
	// goes on meaning this one even if it ends after the check.
	p, err := os.FindProcess(i.PID)
	if err != nil {
		return nil
	}
	defer func() { _ = p.Release() }()
	if !i.Alive() {
		return nil
	}
	err = p.Signal(s)
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// Kill ends the process at once and returns when it is gone.
func (i Identity) Kill(ctx context.Context) error {
	if err := i.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill pid %d: %w", i.PID, err)
	}
	return i.wait(ctx)
}

// Stop asks the process to end, kills it if it still runs after grace, and
// returns when it is gone.
func (i Identity) Stop(ctx context.Context, grace time.Duration) error {
	if err := i.signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop pid %d: %w", i.PID, err)
	}
	patience, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if i.wait(patience) == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return i.Kill(ctx)
}

// Pause holds the process where it stands until Resume: as a machine does that
// swaps, or a virtual one that is moved.
func (i Identity) Pause() error {
	if err := i.signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("pause pid %d: %w", i.PID, err)
	}
	return nil
}

// Resume lets a paused process go on.
func (i Identity) Resume() error {
	if err := i.signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("resume pid %d: %w", i.PID, err)
	}
	return nil
}

func (i Identity) wait(ctx context.Context) error {
	for i.Alive() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the end of pid %d: %w", i.PID, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}
