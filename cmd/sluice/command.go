package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Exit codes. A command may give them a narrower meaning, in its help.
const (
	exitOK          = 0
	exitFailed      = 1 // what was asked does not hold
	exitInvalid     = 2 // the question is not valid: flags, arguments, files
	exitUnsupported = 3 // the question is valid, the answer is not built yet
)

// exitError ends the program with a code after everything was said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// execute runs the command line and returns the exit code. What cobra finds wrong
// with a command line is not valid.
func execute(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	var code exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	default:
		fmt.Fprintln(stderr, "sluice:", err)
		return exitInvalid
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "sluice",
		Short:         "Ask the batch queue manager for gangs on GPU clusters",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newSimulate())
	return root
}
