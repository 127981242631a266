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
	// Log is the file to which everything that the program prints is appended.
	Log string
}

// Start starts a program in a session of its own: it goes on when the caller
// ends, and a Ctrl-C at the caller's terminal does not reach it.
func Start(s Spec) (Identity, error) {
	if err := os.MkdirAll(filepath.Dir(s.Log), 0o700); err != nil {
		return Identity{}, fmt.Errorf("make the folder of the log: %w", err)
	}
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return Identity{}, fmt.Errorf("open the log: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(s.Program, s.Args...)
	cmd.Dir, cmd.Env = s.Dir, s.Env
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return Identity{}, fmt.Errorf("start %s: %w", filepath.Base(s.Program), err)
	}
	// Until it is waited for, the pid belongs to this process even if it has
	// ended already.
	start, _ := startOf(cmd.Process.Pid)
	go func() { _ = cmd.Wait() }()
	return Identity{PID: cmd.Process.Pid, Start: start}, nil
}
