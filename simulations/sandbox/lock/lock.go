//go:build unix

package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// retryEvery is how often a held lock is tried again.
const retryEvery = 200 * time.Millisecond

// Lock is a held lock. Release gives it up; so does the end of the process.
type Lock struct {
	file *os.File
}

// Acquire takes the lock at path and creates its folder when needed. While
// somebody else holds it, Acquire calls waiting once with what the holder wrote
// about itself, and goes on trying until ctx ends.
func Acquire(ctx context.Context, path string, waiting func(holder string)) (*Lock, error) {
	told := false
	for {
		l, err := try(path)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if l != nil {
			return l, nil
		}
		if !told && waiting != nil {
			told = true
			waiting(holder(path))
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock %s: %w", path, ctx.Err())
		case <-time.After(retryEvery):
		}
	}
}

// try takes the lock, or returns nil if somebody else has it.
func try(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil && isAt(f, path) {
		if err := f.Truncate(0); err == nil {
			_, _ = f.WriteAt(fmt.Appendf(nil, "pid %d\n", os.Getpid()), 0)
		}
		return &Lock{file: f}, nil
	}
	_ = f.Close()
	if err == nil || errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return nil, nil
	}
	return nil, err
}

// isAt reports whether path still leads to the file. A holder may have removed
// it, and then the lock on it keeps nobody off.
func isAt(f *os.File, path string) bool {
	here, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(here, there)
}

// Release gives the lock up and leaves its file.
func (l *Lock) Release() { _ = l.file.Close() }

// Remove removes the lock's file while it is held. Whoever waits for it takes
// a new one.
func (l *Lock) Remove() error { return os.Remove(l.file.Name()) }

func holder(path string) string {
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		return "another command"
	}
	return strings.TrimSpace(string(text))
}
