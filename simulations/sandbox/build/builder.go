package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"sluice.dev/sluice/simulations/sandbox/lock"
)

// reportEvery is the time between two lines about a build that goes on.
const reportEvery = 5 * time.Second

// Builder finds artifacts and builds those that are missing.
type Builder struct {
	// Cache is the folder of all that is built.
	Cache string
	// Assets is a folder whose programs are used as they are, or empty. It is
	// what the variable KUBEBUILDER_ASSETS names for other Kubernetes tools.
	Assets string
	// Out receives progress for a person to read.
	Out io.Writer
}

// DefaultCache is the cache folder of whoever names none: $SLUICE_CACHE, else
// the folder sluice in the user's cache.
func DefaultCache() (string, error) {
	if given := os.Getenv("SLUICE_CACHE"); given != "" {
		return filepath.Abs(given)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w; set SLUICE_CACHE", err)
	}
	return filepath.Join(base, "sluice"), nil
}

// Ensure returns the path of each named artifact and builds what is missing.
func (b *Builder) Ensure(ctx context.Context, names ...string) (map[string]string, error) {
	if b.Assets != "" {
		if info, err := os.Stat(b.Assets); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("KUBEBUILDER_ASSETS=%s is not a folder", b.Assets)
		}
	}
	paths := make(map[string]string, len(names))
	for _, name := range names {
		path, err := b.Find(name)
		if errors.Is(err, fs.ErrNotExist) {
			path, err = b.produce(ctx, name)
		} else if err == nil && b.Assets != "" && filepath.Dir(path) == filepath.Clean(b.Assets) {
			_, _ = fmt.Fprintf(b.Out, "%s: using %s from KUBEBUILDER_ASSETS\n", name, path)
		}
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", name, err)
		}
		paths[name] = path
	}
	return paths, nil
}

// Find returns the path of an artifact that is there, or fs.ErrNotExist. The
// folder of ready programs goes before the cache.
func (b *Builder) Find(name string) (string, error) {
	if b.Assets != "" {
		given := filepath.Join(b.Assets, name)
		if info, err := os.Stat(given); err == nil && info.Mode().IsRegular() {
			return given, nil
		}
	}
	recipe, _, err := lookup(name)
	if err != nil {
		return "", err
	}
	key, err := recipe.key()
	if err != nil {
		return "", err
	}
	path := filepath.Join(b.Cache, "bin", key, name)
	if _, err := os.Stat(path); err != nil {
		return "", err
	}
	return path, nil
}

// produce builds one artifact, unless another builder did while this one waited
// for the lock.
func (b *Builder) produce(ctx context.Context, name string) (string, error) {
	held, err := lock.Acquire(ctx, filepath.Join(b.Cache, "build.lock"), func(holder string) {
		_, _ = fmt.Fprintf(b.Out, "%s: waiting for another build (%s)\n", name, holder)
	})
	if err != nil {
		return "", err
	}
	defer held.Release()
	if path, err := b.Find(name); err == nil {
		return path, nil
	}

	recipe, artifact, err := lookup(name)
	if err != nil {
		return "", err
	}
	key, err := recipe.key()
	if err != nil {
		return "", err
	}
	source, err := b.writeSource(recipe)
	if err != nil {
		return "", err
	}
	target := filepath.Join(b.Cache, "bin", key, name)
	unfinished := filepath.Join(source, name+".unfinished")
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return "", err
	}
	if artifact.Package != "" {
		err = b.compile(ctx, recipe, artifact, source, unfinished)
	} else {
		err = copyFromModule(ctx, recipe, artifact, source, unfinished)
	}
	if err != nil {
		return "", err
	}
	if err := os.Rename(unfinished, target); err != nil {
		return "", err
	}
	return target, nil
}

// writeSource lays the recipe's pins out as a module.
func (b *Builder) writeSource(r Recipe) (string, error) {
	mod, sum, err := r.pinned()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(b.Cache, "src", r.Product)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	for name, text := range map[string][]byte{"go.mod": mod, "go.sum": sum} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// compile builds a program into the file at target.
func (b *Builder) compile(ctx context.Context, r Recipe, a Artifact, source, target string) error {
	m := &meter{what: a.Name + " " + r.Version, main: a.Package, started: time.Now()}
	_, _ = fmt.Fprintf(b.Out, "%s: building from %s\n", m.what, r.Module)
	defer m.report(b.Out, reportEvery)()

	logPath := filepath.Join(source, a.Name+".log")
	logFile, err := os.Create(logPath)
	if err != nil {
		return err
	}
	defer func() { _ = logFile.Close() }()
	complaints := io.MultiWriter(m, logFile)

	var imports bytes.Buffer
	if err := b.run(ctx, source, &imports, complaints, "list", "-deps", a.Package); err != nil {
		return fmt.Errorf("%w\n%s\nall of it is in %s", err, m.complaints(), logPath)
	}
	m.setTotal(bytes.Count(imports.Bytes(), []byte{'\n'}))
	err = b.run(ctx, source, complaints, complaints,
		"build", "-v", "-trimpath", "-buildvcs=false", "-ldflags="+r.ldflags(), "-o", target, a.Package)
	if err != nil {
		return fmt.Errorf("%w\n%s\nall of it is in %s", err, m.complaints(), logPath)
	}
	_, _ = fmt.Fprintf(b.Out, "%s: built in %v\n", m.what, time.Since(m.started).Truncate(time.Second))
	return nil
}

func (b *Builder) run(ctx context.Context, folder string, out, complaints io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = folder
	cmd.Env = goEnv("-mod=readonly")
	cmd.Stdout, cmd.Stderr = out, complaints
	// An interrupted go command first ends the compilers it started.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w", args[0], err)
	}
	return nil
}

// copyFromModule copies a file of the recipe's module to target. The module
// is fetched when only its programs came from elsewhere.
func copyFromModule(ctx context.Context, r Recipe, a Artifact, source, target string) error {
	if _, err := output(ctx, source, "mod", "download", r.Module); err != nil {
		return err
	}
	folder, err := output(ctx, source, "list", "-m", "-f", "{{.Dir}}", r.Module)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), filepath.FromSlash(a.File)))
	if err != nil {
		return err
	}
	return os.WriteFile(target, text, 0o644)
}

// goEnv is the environment of the go command: the user's, without what would
// change the result or lead it out of its folder. The programs run here, so
// they are built for here, and without cgo they need no C compiler.
func goEnv(flags string) []string {
	overridden := map[string]bool{
		"GOFLAGS": true, "GOOS": true, "GOARCH": true, "GOWORK": true,
		"GO111MODULE": true, "CGO_ENABLED": true, "GOEXPERIMENT": true,
	}
	var env []string
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); !overridden[name] {
			env = append(env, kv)
		}
	}
	return append(env, "GOFLAGS="+flags, "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH,
		"GOWORK=off", "GO111MODULE=on", "CGO_ENABLED=0")
}
