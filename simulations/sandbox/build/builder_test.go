package build

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// fakeGo puts a go command into PATH that obeys a script: the part of a build
// that is ours is what happens around the go command.
func fakeGo(t *testing.T, onBuild string) {
	t.Helper()
	folder := t.TempDir()
	script := `#!/bin/sh
case "$1" in
list) case "$*" in *-m*) echo "` + folder + `" ;; *) printf 'errors\n%s\n' "$3" ;; esac ;;
mod) ;;
build)
	for a in "$@"; do
		if [ "$last" = -o ]; then target=$a; fi
		last=$a
	done
	echo x >> "` + folder + `/builds"
	` + onBuild + ` ;;
esac
`
	if err := os.WriteFile(filepath.Join(folder, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("BUILDS", filepath.Join(folder, "builds"))
}

func builds(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(os.Getenv("BUILDS"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte{'x'})
}

// lockedBuffer takes what several goroutines print.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func TestProgramIsBuiltOnceHoweverManyAskForIt(t *testing.T) {
	fakeGo(t, `echo program > "$target"; sleep 0.2`)
	cache := t.TempDir()
	var out lockedBuffer
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			b := Builder{Cache: cache, Out: &out}
			paths, err := b.Ensure(t.Context(), "etcd")
			if err != nil {
				t.Error(err)
				return
			}
			if text, err := os.ReadFile(paths["etcd"]); err != nil || string(text) != "program\n" {
				t.Errorf("the program holds %q (%v)", text, err)
			}
		})
	}
	wg.Wait()
	if n := builds(t); n != 1 {
		t.Errorf("built %d times\n%s", n, out.String())
	}
	if !strings.Contains(out.String(), "waiting for another build") {
		t.Errorf("nobody was told to wait:\n%s", out.String())
	}
}

func TestFailedBuildLeavesNoProgramAndSaysWhy(t *testing.T) {
	fakeGo(t, `echo half > "$target"; echo '# example.com/b' >&2; echo 'b.go:3:1: undefined: x' >&2; exit 1`)
	b := Builder{Cache: t.TempDir(), Out: &lockedBuffer{}}
	_, err := b.Ensure(t.Context(), "etcd")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"build etcd", "undefined: x", "etcd.log"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	if path, err := b.Find("etcd"); err == nil {
		t.Errorf("there is a program at %s", path)
	}
	// The next build starts over and succeeds.
	fakeGo(t, `echo program > "$target"`)
	if _, err := b.Ensure(t.Context(), "etcd"); err != nil {
		t.Error(err)
	}
}

func TestGivenProgramsAreUsedAndOthersBuilt(t *testing.T) {
	fakeGo(t, `echo program > "$target"`)
	assets := t.TempDir()
	given := filepath.Join(assets, "etcd")
	if err := os.WriteFile(given, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	var out lockedBuffer
	b := Builder{Cache: t.TempDir(), Assets: assets, Out: &out}
	paths, err := b.Ensure(t.Context(), "etcd", "kwok")
	if err != nil {
		t.Fatal(err)
	}
	if paths["etcd"] != given {
		t.Errorf("etcd is %s, want %s", paths["etcd"], given)
	}
	if !strings.HasPrefix(paths["kwok"], b.Cache) || builds(t) != 1 {
		t.Errorf("kwok is %s after %d builds", paths["kwok"], builds(t))
	}
	if !strings.Contains(out.String(), "etcd: using "+given) {
		t.Errorf("it was not said which etcd is used:\n%s", out.String())
	}

	b.Assets = filepath.Join(assets, "missing")
	if _, err := b.Ensure(t.Context(), "etcd"); err == nil || !strings.Contains(err.Error(), "KUBEBUILDER_ASSETS") {
		t.Errorf("a folder that is not there: %v", err)
	}
	if _, err := b.Ensure(t.Context(), "kubelet"); err == nil {
		t.Error("a program without a recipe was built")
	}
}

func TestBuildIsNotLedAstrayByTheEnvironment(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=vendor")
	t.Setenv("GOOS", "plan9")
	t.Setenv("CGO_ENABLED", "1")
	last := make(map[string]string)
	for _, kv := range goEnv("-mod=readonly") {
		name, value, _ := strings.Cut(kv, "=")
		last[name] = value
	}
	if last["GOFLAGS"] != "-mod=readonly" || last["GOOS"] == "plan9" || last["CGO_ENABLED"] != "0" {
		t.Errorf("GOFLAGS=%s GOOS=%s CGO_ENABLED=%s", last["GOFLAGS"], last["GOOS"], last["CGO_ENABLED"])
	}
	if last["PATH"] == "" {
		t.Error("PATH is lost")
	}
}
