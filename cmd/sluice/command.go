package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes. A command may give them a narrower meaning, in its help.
const (
	exitOK          = 0
	exitFailed      = 1 // what was asked does not hold, or could not be answered
	exitInvalid     = 2 // of simulate: the files are not valid; of plan: it would not be admitted
	exitUnsupported = 3 // the question is valid, the answer is not built yet
)

// exitError ends the program with a code after everything was said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// execute runs the command line and returns the exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	return executeAs("sluice", args, stdout, stderr)
}

// executeAs is execute of a program that was started under the name called.
func executeAs(called string, args []string, stdout, stderr io.Writer) int {
	root := newRoot(called)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	var code exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	default:
		fmt.Fprintln(stderr, "sluice:", err)
		if cmd != nil && cmd.Annotations[answers] != "" {
			return exitFailed
		}
		return exitInvalid
	}
}

// answers marks the commands that answer a question about a cluster.
const answers = "answers"

const rootHelp = `Ask the batch queue manager for gangs on GPU clusters.

  my job is Pending          sluice why JOB
  when, where, at whose cost sluice plan -f job.yaml
  what would a weight do     sluice what-if queue TEAM --weight 3

Questions are asked of the controller that your kubeconfig leads to, or with --from
of a file that sluice snapshot wrote. Tables go to stdout, notes to stderr.

Exit codes of questions: 0 fine, 1 error, 2 of plan: it would not be admitted now.`

func newRoot(called string) *cobra.Command {
	root := &cobra.Command{
		Use:           "sluice",
		Short:         "Ask the batch queue manager for gangs on GPU clusters",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	// kubectl starts a plugin under the name kubectl-NAME and shows its help as its own.
	if name := filepath.Base(called); strings.HasPrefix(name, "kubectl-") || strings.HasPrefix(name, "kubectl_") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl sluice"}
	}
	root.AddCommand(newSimulate())
	root.AddCommand(newServe(), newAdvise(), newImport())
	root.AddCommand(newUI())
	a := &ask{}
	for _, c := range a.commands() {
		root.AddCommand(c)
		for _, q := range append(c.Commands(), c) {
			q.Annotations = map[string]string{answers: "yes"}
			if q.Runnable() {
				a.flags(q.Flags())
			}
		}
	}
	return root
}
