// Command sandbox runs a real Kubernetes control plane on this machine. See
// the README beside its module, or `sandbox help`.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// Exit codes besides 0 and those of a command that `run` ran.
const (
	exitFailure = 1
	exitUsage   = 2
)

const usage = `A real Kubernetes control plane on this machine, with nodes played by KWOK.

  sandbox up       build what is missing, start what does not run, print the kubeconfig's path
  sandbox status   how each component is; exit 1 unless all are well
  sandbox down     stop everything, keep the data
  sandbox reset    stop everything, remove the data
  sandbox run -- CMD ARG...   up, then CMD with KUBECONFIG set; the sandbox goes on
  sandbox stop|start|restart COMPONENT   one of: %s
  sandbox build    only build, print each program's path

Flags of every command but build:
  --dir DIR        the sandbox's folder; else $SLUICE_SANDBOX_DIR, else CACHE/sandbox/NAME
  --name NAME      its name there (default "default")
Flags of up and run, remembered until reset:
  --only api|all   api: etcd and kube-apiserver alone (default all)
  --audit          log writes to workloads, jobs and pods in DIR/logs/audit.log
  --kcm-qps N      requests a second of kube-controller-manager (default 2000)
  --scheduler-qps N   and of kube-scheduler (default 2000)
Flags of up and run:
  --nodes FILE     the nodes that there should be, or "none"; else they stay as they are
Flags of others:
  build: --only api|all     status: --json     stop, restart: --kill

CACHE is $SLUICE_CACHE, else the folder sluice in the user's cache. Programs in
$KUBEBUILDER_ASSETS are used instead of built ones.
`

// usageError is a call that makes no sense, as opposed to one that failed.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := dispatch(ctx, args, stdout, stderr)
	var exit *exec.ExitError
	var misuse usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	case errors.As(err, &misuse):
		_, _ = fmt.Fprintf(stderr, "sandbox: %v\n", err)
		return exitUsage
	case errors.Is(err, errUnhealthy): // status has said so
		return exitFailure
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(stderr, "sandbox: interrupted; the same command goes on from here")
		return exitFailure
	default:
		_, _ = fmt.Fprintf(stderr, "sandbox: %v\n", err)
		return exitFailure
	}
}
