//go:build linux || darwin

package journal

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// lock takes the file for this process, as bbolt itself does a moment later with
// the same open file: flock belongs to that, so the second call changes nothing.
func lock(f *os.File, deadline time.Time) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		case !time.Now().Before(deadline):
			return errInUse
		}
		time.Sleep(20 * time.Millisecond)
	}
}
