package demo

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed nodes.yaml
var nodesFile []byte

// interruptGrace is how long a program may take to end in order once it is
// asked to, before it is killed.
const interruptGrace = 30 * time.Second

// run runs a program to its end. If ctx ends first, the program is interrupted
// as by Ctrl-C.
func run(ctx context.Context, dir string, stdout, stderr io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, stdout, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptGrace
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// goBuild builds a command of a module into path. Nothing is done if it is
// there already, made from the same sources.
func goBuild(ctx context.Context, out io.Writer, module, command, path string) error {
	// Stamped with the commit, a program would differ after each.
	if err := run(ctx, module, out, out, "go", "build", "-buildvcs=false", "-o", path, command); err != nil {
		return fmt.Errorf("build %s: %w", filepath.Base(path), err)
	}
	return nil
}

// box is the sandbox of a demo, reached through its command line.
type box struct {
	program string
	flags   []string // which sandbox
	out     io.Writer
	// kubeconfig is that of whoever runs the demo, once the sandbox is up.
	kubeconfig string
}

// newBox builds the sandbox's command line.
func newBox(ctx context.Context, root string, p place, out io.Writer) (*box, error) {
	b := &box{program: p.program("sandbox"), flags: p.sandbox, out: out}
	return b, goBuild(ctx, out, filepath.Join(root, "simulations", "sandbox"), "./cmd/sandbox", b.program)
}

func (b *box) run(ctx context.Context, args ...string) (string, error) {
	var printed bytes.Buffer
	if err := run(ctx, "", &printed, b.out, b.program, append(args, b.flags...)...); err != nil {
		return "", fmt.Errorf("sandbox %s: %w", args[0], err)
	}
	return strings.TrimSpace(printed.String()), nil
}

// up makes the sandbox run, with its nodes, and returns its kubeconfig.
func (b *box) up(ctx context.Context, nodes string) (string, error) {
	if err := writeWhole(nodes, nodesFile); err != nil {
		return "", err
	}
	path, err := b.run(ctx, "up", "--nodes", nodes)
	b.kubeconfig = path
	return path, err
}

func (b *box) reset(ctx context.Context) error {
	_, err := b.run(ctx, "reset")
	return err
}
