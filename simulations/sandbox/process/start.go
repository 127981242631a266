//go:build unix

package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Spec says what to start.
type Spec struct {
	Program string
	Args    []string
	Dir     string
	Env     []string
	// Log is the file to which all that the program prints is appended.
	Log string
}

// rotateAt is the size from which a log is put aside before the next start.
// One older log is kept.
const rotateAt = 64 << 20

// Start starts a program in a session of its own: it goes on when the caller
// ends, and a Ctrl-C at the caller's terminal does not reach it. The channel is
// closed when the program ends while the caller still runs.
func Start(s Spec) (Identity, <-chan struct{}, error) {
	log, err := openLog(s.Log)
	if err != nil {
		return Identity{}, nil, fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = log.Close() }()

	cmd := exec.Command(s.Program, s.Args...)
	cmd.Dir, cmd.Env = s.Dir, s.Env
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return Identity{}, nil, fmt.Errorf("start %s: %w", filepath.Base(s.Program), err)
	}
	// Nobody has reaped the process yet, so its pid is still its own, even if
	// it has ended already.
	start, _, err := startOf(cmd.Process.Pid)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return Identity{}, nil, fmt.Errorf("identify %s: %w", filepath.Base(s.Program), err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	return Identity{PID: cmd.Process.Pid, Start: start}, ended, nil
}

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() >= rotateAt {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}
