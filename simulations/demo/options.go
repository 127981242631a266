package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// DefaultTimeout bounds Play. The gangs of the first example need half a minute.
const DefaultTimeout = 5 * time.Minute

// Options say where and how the demo runs. The zero value, with Out set, is
// what `make demo` does.
type Options struct {
	// Root is the folder of the repository; RootAbove finds it.
	Root string
	// Dir holds all that the demo keeps. Empty means the folder demo in the
	// cache, and the sandbox of that name.
	Dir string
	// Kubeconfig names a cluster, and a user who may install sluice there. Empty
	// means the sandbox.
	Kubeconfig string
	// WebhookHost is the name under which the API server of a given cluster
	// reaches this machine. Empty means localhost.
	WebhookHost string
	// NoController leaves the controller out: sluice runs in the given cluster
	// already, and nothing is installed.
	NoController bool
	// Standby runs a second controller beside the first; they elect a leader.
	Standby bool
	// FrontPort is where the API server calls the webhooks, for someone who listens
	// there and hands on to a controller that is ready. 0 is the first controller.
	FrontPort int
	// Started, if set, is told of each controller once it is ready.
	Started func(*Supervisor)
	// Gangs is the folder with the manifests. Empty means the first example.
	Gangs string
	// Timeout bounds Play; 0 means DefaultTimeout.
	Timeout time.Duration
	// Out receives progress and the table. If it is a terminal, the table is
	// drawn in place.
	Out io.Writer
}

var moduleLine = regexp.MustCompile(`(?m)^module sluice\.dev/sluice\s*$`)

// RootAbove finds the repository that a folder is in.
func RootAbove(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		text, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && moduleLine.Match(text) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("find the repository: neither %s nor a folder above it is the module sluice.dev/sluice", dir)
		}
	}
}

// CacheDir is the folder in which built programs and sandboxes are kept.
func CacheDir() (string, error) {
	if given := os.Getenv("SLUICE_CACHE"); given != "" {
		return filepath.Abs(given)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w; set SLUICE_CACHE", err)
	}
	return filepath.Join(base, "sluice"), nil
}

// complete checks the options and fills in what was left out.
func (o Options) complete() (Options, error) {
	if o.Root == "" || o.Out == nil {
		return o, errors.New("demo options: want Root and Out")
	}
	if o.NoController && o.Kubeconfig == "" {
		return o, errors.New("without a controller of its own the demo needs a given cluster: set the kubeconfig")
	}
	if o.Timeout < 0 {
		return o, fmt.Errorf("negative timeout %v", o.Timeout)
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.WebhookHost == "" {
		o.WebhookHost = "localhost"
	}
	if o.Gangs == "" {
		o.Gangs = filepath.Join(o.Root, "deploy", "examples", "first-gangs")
	}
	for _, path := range []*string{&o.Root, &o.Dir, &o.Kubeconfig, &o.Gangs} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return o, err
		}
		*path = absolute
	}
	return o, nil
}
