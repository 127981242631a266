package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Server is an API server with its etcd and nothing else, made for one manager.
type Server struct {
	program, dir string
	say          io.Writer
	Kubeconfig   string
}

// StartServer starts one in dir. The sandbox's command line is built into programs.
func StartServer(ctx context.Context, root, programs, dir string, say io.Writer) (*Server, error) {
	s := &Server{program: filepath.Join(programs, "sandbox"), dir: dir, say: say}
	if err := Build(ctx, filepath.Join(root, "simulations", "sandbox"), "./cmd/sandbox", s.program, say); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "state.json")); !errors.Is(err, fs.ErrNotExist) {
		if err := s.Reset(ctx); err != nil { // of a run that was cut off
			return nil, err
		}
	}
	var out bytes.Buffer
	if err := s.run(ctx, &out, "up", "--only", "api", "--audit"); err != nil {
		return nil, err
	}
	s.Kubeconfig = strings.TrimSpace(out.String())
	return s, nil
}

// Reset stops the server and removes all that it kept.
func (s *Server) Reset(ctx context.Context) error { return s.run(ctx, io.Discard, "reset") }

func (s *Server) run(ctx context.Context, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, s.program, append(args, "--dir", s.dir)...)
	cmd.Stdout, cmd.Stderr = out, s.say
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("sandbox %s: %w", args[0], err)
	}
	return nil
}

// Build builds a command of a module.
func Build(ctx context.Context, module, command, path string, say io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", path, command)
	cmd.Dir, cmd.Stdout, cmd.Stderr = module, say, say
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w", filepath.Base(path), err)
	}
	return nil
}

// Writes counts what the audit log says that a user agent wrote, by resource; the
// agent is named by the start of its name.
func (s *Server) Writes(agent string) (map[string]int, error) {
	files, err := filepath.Glob(filepath.Join(s.dir, "logs", "audit*.log"))
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int)
	for _, path := range files {
		if err := countWrites(path, agent, counts); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	return counts, nil
}

func countWrites(path, agent string, counts map[string]int) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			var e struct {
				UserAgent string
				ObjectRef struct{ Resource, Subresource string }
			}
			if err := json.Unmarshal(line, &e); err != nil {
				return err
			}
			if strings.HasPrefix(e.UserAgent, agent+"/") {
				name := e.ObjectRef.Resource
				if e.ObjectRef.Subresource != "" {
					name += "/" + e.ObjectRef.Subresource
				}
				counts[name]++
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
