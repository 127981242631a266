package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lock keeps other demos off a folder. The system gives it up when the process
// ends, however it ends.
type lock struct{ file *os.File }

func acquire(path string) (*lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := os.ReadFile(path)
		_ = file.Close()
		return nil, fmt.Errorf("another demo works in %s (pid %s); end it, or use another --dir", filepath.Dir(path), strings.TrimSpace(string(holder)))
	}
	if err == nil {
		err = errors.Join(file.Truncate(0), second(fmt.Fprintln(file, os.Getpid())))
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &lock{file}, nil
}

func second[T any](_ T, err error) error { return err }

func (l *lock) release() { _ = l.file.Close() }

// remove gives the lock up and takes its file away.
func (l *lock) remove() {
	_ = os.Remove(l.file.Name())
	l.release()
}
