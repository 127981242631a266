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
	// Start is when the process was started, as the system tells it: opaque
	// text that is equal for the same process and differs for another one.
	Start string `json:"start"`
}

// ErrGone says that the process has ended, or was never there.
var ErrGone = errors.New("process is gone")

// Of returns the identity of the process that has pid now.
func Of(pid int) (Identity, error) {
	start, running, err := startOf(pid)
	if err != nil {
		return Identity{}, err
	}
	if !running {
		return Identity{}, fmt.Errorf("pid %d: %w", pid, ErrGone)
	}
	return Identity{PID: pid, Start: start}, nil
}

// Alive reports whether the process still runs. One that has ended but was
// not yet reaped by its parent does not.
func (i Identity) Alive() bool {
	if i.PID <= 0 {
		return false
	}
	start, running, err := startOf(i.PID)
	return err == nil && running && start == i.Start
}

// Signal sends a signal to the process, or returns ErrGone.
func (i Identity) Signal(signal syscall.Signal) error {
	if i.PID <= 0 {
		return ErrGone
	}
	// The handle is taken before the identity is checked. Where the system has
	// handles for processes, it keeps meaning this one even if it ends now.
	p, err := os.FindProcess(i.PID)
	if err != nil {
		return ErrGone
	}
	defer func() { _ = p.Release() }()
	if !i.Alive() {
		return ErrGone
	}
	switch err := p.Signal(signal); {
	case errors.Is(err, os.ErrProcessDone), errors.Is(err, syscall.ESRCH):
		return ErrGone
	default:
		return err
	}
}

// pollEvery is how often the end of a process is looked for.
const pollEvery = 20 * time.Millisecond

// Stop asks the process to end and, if it still runs after grace, kills it.
// It returns once the process is gone, and says whether it had to be killed.
func (i Identity) Stop(ctx context.Context, grace time.Duration) (killed bool, err error) {
	if err := i.Signal(syscall.SIGTERM); err != nil {
		return false, ignoreGone(err)
	}
	patience, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if i.wait(patience) == nil {
		return false, nil
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return true, i.Kill(ctx)
}

// Kill ends the process at once and returns when it is gone.
func (i Identity) Kill(ctx context.Context) error {
	if err := i.Signal(syscall.SIGKILL); err != nil {
		return ignoreGone(err)
	}
	return i.wait(ctx)
}

// wait returns nil once the process is gone, or the end of ctx.
func (i Identity) wait(ctx context.Context) error {
	for i.Alive() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the end of pid %d: %w", i.PID, ctx.Err())
		case <-time.After(pollEvery):
		}
	}
	return nil
}

func ignoreGone(err error) error {
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}
