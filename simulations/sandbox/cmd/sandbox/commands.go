package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"sluice.dev/sluice/simulations/sandbox"
)

// errUnhealthy ends a status that was asked and is not good.
var errUnhealthy = errors.New("not all components are well")

// bringUp is up without its last line.
func (c *call) bringUp(ctx context.Context) (*sandbox.Sandbox, error) {
	s, err := c.box()
	if err != nil {
		return nil, err
	}
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := s.Up(ctx, o); err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(c.stderr, "sandbox is up after %v: %s\n", time.Since(begin).Round(10*time.Millisecond), s.Dir)
	return s, nil
}

func (c *call) up(ctx context.Context) error {
	if err := c.noArgs(); err != nil {
		return err
	}
	s, err := c.bringUp(ctx)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(c.stdout, s.Kubeconfig())
	return nil
}

func (c *call) run(ctx context.Context) error {
	if len(c.args) == 0 {
		return usagef("run: which command? sandbox run -- CMD ARG...")
	}
	s, err := c.bringUp(ctx)
	if err != nil {
		return err
	}
	// A Ctrl-C at the terminal reaches the command as well, and how it takes
	// that is its own affair.
	cmd := exec.Command(c.args[0], c.args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, c.stdout, c.stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig())
	return cmd.Run()
}

func (c *call) status(ctx context.Context) error {
	if err := c.noArgs(); err != nil {
		return err
	}
	s, err := c.box()
	if err != nil {
		return err
	}
	st, err := s.Status(ctx)
	if err != nil {
		return err
	}
	if c.asJSON {
		err = writeJSON(c.stdout, s, st)
	} else {
		err = writeTable(c.stdout, s, st)
	}
	if err == nil && !st.Healthy() {
		err = errUnhealthy
	}
	return err
}

func (c *call) down(ctx context.Context) error {
	if err := c.noArgs(); err != nil {
		return err
	}
	s, err := c.box()
	if err != nil {
		return err
	}
	return s.Down(ctx)
}

func (c *call) reset(ctx context.Context) error {
	if err := c.noArgs(); err != nil {
		return err
	}
	s, err := c.box()
	if err != nil {
		return err
	}
	return s.Reset(ctx)
}

// component is the one that stop, start and restart name.
func (c *call) component() (*sandbox.Sandbox, string, error) {
	if len(c.args) != 1 {
		return nil, "", usagef("%s: which component? one of %s", c.flags.Name(), strings.Join(sandbox.ComponentNames(), ", "))
	}
	s, err := c.box()
	return s, c.args[0], err
}

func (c *call) stop(ctx context.Context) error {
	s, name, err := c.component()
	if err != nil {
		return err
	}
	return s.Stop(ctx, name, c.kill)
}

func (c *call) start(ctx context.Context) error {
	s, name, err := c.component()
	if err != nil {
		return err
	}
	return s.Start(ctx, name)
}

func (c *call) restart(ctx context.Context) error {
	if err := c.stop(ctx); err != nil {
		return err
	}
	return c.start(ctx)
}

func (c *call) build(ctx context.Context) error {
	if err := c.noArgs(); err != nil {
		return err
	}
	b, err := c.builder()
	if err != nil {
		return err
	}
	names, err := sandbox.Artifacts(sandbox.Mode(c.only))
	if err != nil {
		return usageError{err}
	}
	paths, err := b.Ensure(ctx, names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		_, _ = fmt.Fprintf(c.stdout, "%s %s\n", name, paths[name])
	}
	return nil
}
