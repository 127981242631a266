package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Manager is what is measured.
type Manager struct {
	Name string
	// Module and Command are built; Module is from the root of the repository.
	Module, Command string
	Args            func(kubeconfig, dir string) []string
	// Counts is false for one that does not look at quotas.
	Counts bool
}

// Managers are those that are measured, in the order of a table.
var Managers = []Manager{
	{Name: "null", Module: "simulations/bench", Command: "./cmd/null", Args: kubeconfig},
	{Name: "sluice", Module: ".", Command: "./cmd/sluice-controller", Counts: true, Args: func(config, dir string) []string {
		return []string{
			"--kubeconfig", config, "--metrics-bind-address", "0", "--health-probe-bind-address", "0",
			"--journal", filepath.Join(dir, "journal.db"), "--zap-log-level", "error",
		}
	}},
	{Name: "kueue", Module: "simulations/bench", Command: "./cmd/kueue", Counts: true, Args: kubeconfig},
	{Name: "kueue-unlimited", Module: "simulations/bench", Command: "./cmd/kueue", Counts: true, Args: func(config, dir string) []string {
		return append(kubeconfig(config, dir), "--unlimited")
	}},
}

func kubeconfig(config, _ string) []string { return []string{"--kubeconfig", config} }

// Cost is what a process took.
type Cost struct {
	CPU    time.Duration
	Memory int64 // bytes at its peak
}

// process is a manager that runs.
type process struct {
	cmd *exec.Cmd
	log *os.File
}

func (m Manager) start(program, config, dir string) (*process, error) {
	log, err := os.Create(filepath.Join(dir, m.Name+".log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, m.Args(config, dir)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = []string{"HOME=" + dir, "PATH=/usr/bin:/bin", "TMPDIR=" + os.TempDir()}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", m.Name, err)
	}
	return &process{cmd: cmd, log: log}, nil
}

// stop ends the manager and says what it took.
func (p *process) stop(ctx context.Context) (Cost, error) {
	defer func() { _ = p.log.Close() }()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return Cost{}, fmt.Errorf("it had ended by itself, see %s: %w", p.log.Name(), err)
	}
	stop := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	defer stop()
	_ = p.cmd.Wait() // it ends by a signal
	usage, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return Cost{}, fmt.Errorf("no usage of %s", p.cmd.Path)
	}
	return Cost{CPU: p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(), Memory: usage.Maxrss * 1024}, nil
}
