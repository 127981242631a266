package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Pin draws the pins of every recipe anew and writes them to folder. It asks
// the module registry for each module, so a version that is not served fails
// here and not on the machine of whoever builds next.
func Pin(ctx context.Context, folder string) error {
	for _, r := range recipes {
		if err := pinOne(ctx, r, folder); err != nil {
			return fmt.Errorf("pin %s %s: %w", r.Product, r.Version, err)
		}
	}
	return nil
}

func pinOne(ctx context.Context, r Recipe, folder string) error {
	work, err := os.MkdirTemp("", "pin-"+r.Product+"-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()

	var module struct{ GoMod string }
	text, err := output(ctx, work, "mod", "download", "-json", r.Module+"@"+r.Version)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &module); err != nil {
		return fmt.Errorf("read what was downloaded: %w", err)
	}
	upstream, err := output(ctx, work, "mod", "edit", "-json", module.GoMod)
	if err != nil {
		return err
	}
	mod, err := ModFile(r, upstream)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "go.mod"), mod, 0o600); err != nil {
		return err
	}
	// Listing what the programs import makes the go command complete go.mod
	// and go.sum with that and no more; `go mod tidy` would add the tests of
	// every dependency. Imports differ between the systems people work on.
	args := []string{"list", "-mod=mod", "-deps"}
	for _, a := range r.Artifacts {
		if a.Package != "" {
			args = append(args, a.Package)
		}
	}
	for _, system := range []string{"linux", "darwin"} {
		if _, err := outputFor(ctx, system, work, args...); err != nil {
			return err
		}
	}
	for from, to := range map[string]string{"go.mod": r.Product + ".mod", "go.sum": r.Product + ".sum"} {
		text, err := os.ReadFile(filepath.Join(work, from))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, to), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// output runs the go command in folder and returns what it prints; its
// complaints go to the error.
func output(ctx context.Context, folder string, args ...string) ([]byte, error) {
	return outputFor(ctx, runtime.GOOS, folder, args...)
}

// outputFor is output as if it ran on another operating system.
func outputFor(ctx context.Context, system, folder string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = folder
	cmd.Env = append(goEnv(""), "GOOS="+system)
	out, err := cmd.Output()
	if err != nil {
		var complaint string
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			complaint = "\n" + string(exit.Stderr)
		}
		return nil, fmt.Errorf("go %s: %w%s", args[0], err, complaint)
	}
	return out, nil
}
