package sandbox

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"sluice.dev/sluice/simulations/sandbox/build"
	"sluice.dev/sluice/simulations/sandbox/lock"
)

//go:embed audit.yaml
var auditPolicy []byte

// DefaultNodes is the nodes file of a new sandbox that was given none.
//
//go:embed nodes.yaml
var DefaultNodes []byte

// Sandbox is one control plane, kept in one folder.
type Sandbox struct {
	// Dir is the absolute path of the folder.
	Dir string
	// Builder finds the programs.
	Builder *build.Builder
	// Out receives progress for a person to read, one whole line a write, from
	// several goroutines.
	Out io.Writer
}

// LogPath is the log of a component, or of "audit".
func (s *Sandbox) LogPath(component string) string {
	return filepath.Join(s.Dir, "logs", component+".log")
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (s *Sandbox) Kubeconfig() string { return filepath.Join(s.Dir, "kubeconfig") }

func (s *Sandbox) statePath() string       { return filepath.Join(s.Dir, "state.json") }
func (s *Sandbox) pkiPath() string         { return filepath.Join(s.Dir, "pki") }
func (s *Sandbox) etcdPath() string        { return filepath.Join(s.Dir, "etcd") }
func (s *Sandbox) auditPolicyPath() string { return filepath.Join(s.Dir, "config", "audit.yaml") }
func (s *Sandbox) kwokConfigPath() string  { return filepath.Join(s.Dir, "config", "kwok.yaml") }

func (s *Sandbox) kubeconfigPath(user string) string {
	if user == adminUser.Name {
		return s.Kubeconfig()
	}
	return filepath.Join(s.Dir, "config", user+".kubeconfig")
}

// contents are the names of all that a sandbox puts into its folder, the state
// file last: while it is there, the folder is a sandbox.
var contents = []string{"kubeconfig", "config", "pki", "etcd", "logs", "state.json"}

// exists reports whether the folder is a sandbox already.
func (s *Sandbox) exists() bool {
	_, err := os.Stat(s.statePath())
	return err == nil
}

// lock keeps other commands off this sandbox.
func (s *Sandbox) lock(ctx context.Context) (*lock.Lock, error) {
	return lock.Acquire(ctx, filepath.Join(s.Dir, "lock"), func(holder string) {
		s.say("waiting for another command on this sandbox (%s)", holder)
	})
}

func (s *Sandbox) say(format string, args ...any) { _, _ = fmt.Fprintf(s.Out, format+"\n", args...) }

// logTail is the end of a component's log from an offset on, for an error
// message.
func (s *Sandbox) logTail(component string, from int64) string {
	const most = 2000
	f, err := os.Open(s.LogPath(component))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil {
		from = max(from, info.Size()-most)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, from, most))
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(text))
}
