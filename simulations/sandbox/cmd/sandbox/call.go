package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sluice.dev/sluice/simulations/sandbox"
	"sluice.dev/sluice/simulations/sandbox/build"
	"sluice.dev/sluice/simulations/sandbox/nodes"
)

// call is one command line, taken apart.
type call struct {
	flags          *flag.FlagSet
	args           []string // what is not a flag
	stdout, stderr io.Writer

	dir, name                 string
	only                      string
	audit                     bool
	controllerQPS, schedulerQ int
	nodes                     string
	kill, asJSON              bool
}

func newCall(command string, stdout, stderr io.Writer) *call {
	return &call{stdout: stdout, stderr: stderr, flags: flag.NewFlagSet(command, flag.ContinueOnError)}
}

func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return usagef("which command? up, status, down, reset, run, stop, start, restart, build or help")
	}
	c := newCall(args[0], stdout, stderr)
	commands := map[string]struct {
		flags []func()
		do    func(context.Context) error
	}{
		"up":      {[]func(){c.placeFlags, c.upFlags}, c.up},
		"run":     {[]func(){c.placeFlags, c.upFlags}, c.run},
		"status":  {[]func(){c.placeFlags, c.jsonFlag}, c.status},
		"down":    {[]func(){c.placeFlags}, c.down},
		"reset":   {[]func(){c.placeFlags}, c.reset},
		"stop":    {[]func(){c.placeFlags, c.killFlag}, c.stop},
		"start":   {[]func(){c.placeFlags}, c.start},
		"restart": {[]func(){c.placeFlags, c.killFlag}, c.restart},
		"build":   {[]func(){c.onlyFlag}, c.build},
	}
	command, known := commands[args[0]]
	switch {
	case args[0] == "help" || args[0] == "-h" || args[0] == "--help":
		return help(stdout)
	case !known:
		return usagef("unknown command %q; try: sandbox help", args[0])
	}
	for _, define := range command.flags {
		define()
	}
	switch err := c.parse(args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return help(stdout)
	case err != nil:
		return err
	}
	return command.do(ctx)
}

func help(out io.Writer) error {
	_, err := fmt.Fprintf(out, usage, strings.Join(sandbox.ComponentNames(), ", "))
	return err
}

func (c *call) placeFlags() {
	c.flags.StringVar(&c.dir, "dir", "", "")
	c.flags.StringVar(&c.name, "name", "default", "")
}

func (c *call) onlyFlag() { c.flags.StringVar(&c.only, "only", string(sandbox.All), "") }
func (c *call) killFlag() { c.flags.BoolVar(&c.kill, "kill", false, "") }
func (c *call) jsonFlag() { c.flags.BoolVar(&c.asJSON, "json", false, "") }

func (c *call) upFlags() {
	c.onlyFlag()
	c.flags.BoolVar(&c.audit, "audit", false, "")
	c.flags.IntVar(&c.controllerQPS, "kcm-qps", 0, "")
	c.flags.IntVar(&c.schedulerQ, "scheduler-qps", 0, "")
	c.flags.StringVar(&c.nodes, "nodes", "", "")
}

// parse reads flags before, between and after the other arguments. What
// follows a lone -- is not looked at.
func (c *call) parse(args []string) error {
	c.flags.SetOutput(io.Discard)
	for {
		if err := c.flags.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return err
			}
			return usagef("%s: %v; try: sandbox help", c.flags.Name(), err)
		}
		rest := c.flags.Args()
		if read := len(args) - len(rest); len(rest) == 0 || read > 0 && args[read-1] == "--" {
			c.args = append(c.args, rest...)
			return nil
		}
		c.args = append(c.args, rest[0])
		args = rest[1:]
	}
}

// noArgs refuses arguments that a command would ignore.
func (c *call) noArgs() error {
	if len(c.args) > 0 {
		return usagef("%s: unexpected argument %q", c.flags.Name(), c.args[0])
	}
	return nil
}

func (c *call) builder() (*build.Builder, error) {
	cache, err := build.DefaultCache()
	if err != nil {
		return nil, err
	}
	return &build.Builder{Cache: cache, Assets: os.Getenv("KUBEBUILDER_ASSETS"), Out: c.stderr}, nil
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// box finds the sandbox that the command is about.
func (c *call) box() (*sandbox.Sandbox, error) {
	b, err := c.builder()
	if err != nil {
		return nil, err
	}
	dir := c.dir
	if dir == "" {
		dir = os.Getenv("SLUICE_SANDBOX_DIR")
	}
	if dir == "" {
		if !nameForm.MatchString(c.name) {
			return nil, usagef("--name %q: want letters, digits, '.', '_' and '-'", c.name)
		}
		dir = filepath.Join(b.Cache, "sandbox", c.name)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	return &sandbox.Sandbox{Dir: dir, Builder: b, Out: c.stderr}, nil
}

// options reads the flags of up. Only a flag that was given changes a setting.
func (c *call) options() (sandbox.UpOptions, error) {
	given := make(map[string]bool)
	c.flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	o := sandbox.UpOptions{Adjust: func(s *sandbox.Settings) {
		if given["only"] {
			s.Mode = sandbox.Mode(c.only)
		}
		if given["audit"] {
			s.Audit = c.audit
		}
		if given["kcm-qps"] {
			s.ControllerQPS = c.controllerQPS
		}
		if given["scheduler-qps"] {
			s.SchedulerQPS = c.schedulerQ
		}
	}}
	trial := sandbox.DefaultSettings()
	if o.Adjust(&trial); trial.Validate() != nil {
		return o, usageError{trial.Validate()}
	}
	switch c.nodes {
	case "":
	case "none":
		o.Nodes = &[]nodes.Group{}
	default:
		groups, err := nodes.ReadFile(c.nodes)
		if err != nil {
			return o, err
		}
		o.Nodes = &groups
	}
	return o, nil
}
