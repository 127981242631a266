// Package cmd_test holds the map of the repository: what lies at its top, who may
// import whom, and what the core may not do.
package cmd_test

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "sluice.dev/sluice"

// core is the packages that decide, from left to right: each imports the standard
// library and packages to its left, and nothing else.
var core = []string{"quota", "gang", "queue", "admission"}

func TestTopLevel(t *testing.T) {
	allowed := []string{
		"cmd", "queue", "admission", "gang", "quota", "nodeagent", "deploy", "simulations",
		"go.mod", "go.sum", "Makefile", "README.md", "LICENSE",
	}
	ignored, err := os.ReadFile("../.gitignore")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		made := strings.Contains("\n"+string(ignored), "\n/"+name+"/\n") // by a build
		if !slices.Contains(allowed, name) && !strings.HasPrefix(name, ".") && !made {
			t.Errorf("%s is new at the top of the repository: the map in README.md has no place for it", name)
		}
	}
}

func TestImports(t *testing.T) {
	for i, name := range core {
		path := module + "/" + name
		for _, imported := range imports(t, path) {
			if why := forbiddenImport(imported, core[:i]); why != "" {
				t.Errorf("%s imports %s: %s", path, imported, why)
			}
		}
	}
}

// What keeps decisions knows decisions and its file, not the cluster.
func TestJournalImports(t *testing.T) {
	for _, imported := range imports(t, module+"/admission/journal") {
		if !standard(imported) && imported != module+"/admission" && !within(imported, "go.etcd.io/bbolt") {
			t.Errorf("admission/journal imports %s", imported)
		}
	}
}

// Pages show answers, and know neither the cluster nor how a request came to them.
func TestPagesImports(t *testing.T) {
	for _, imported := range imports(t, module+"/admission/api/pages") {
		if !standard(imported) && imported != module+"/admission" && imported != module+"/admission/answer" {
			t.Errorf("admission/api/pages imports %s", imported)
		}
	}
}

// forbiddenImport says why a core package with the given packages to its left may
// not import path, or "".
func forbiddenImport(path string, left []string) string {
	switch {
	case within(path, "log"):
		return "the core says why in values; the edge logs"
	case within(path, "math/rand", "crypto/rand"):
		return "the same state and time give the same decision"
	case within(path, "os", "io/fs", "net", "syscall", "sync"):
		return "files, sockets and goroutines are the edge's"
	case standard(path):
		return ""
	case slices.Contains(left, strings.TrimPrefix(path, module+"/")):
		return ""
	default:
		return fmt.Sprintf("imports point one way, %s; besides these the core sees only the standard library", strings.Join(core, " ← "))
	}
}

// within says whether path is one of parents or below one.
func within(path string, parents ...string) bool {
	return slices.ContainsFunc(parents, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") })
}

func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// imports returns what the package imports outside its tests, on any platform that
// go list sees.
func imports(t *testing.T, path string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, path)
	cmd.Dir = ".."
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, &complaint)
	}
	var all []string
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		all = append(all, lines.Text())
	}
	return all
}

func TestCoreIsPure(t *testing.T) {
	for _, name := range core {
		files, err := filepath.Glob(filepath.Join("..", name, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", name, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range sins(set, parsed) {
				t.Error(s)
			}
		}
	}
}

// clocks are the functions of package time that read a clock or wait for one.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "Tick", "Sleep", "NewTimer", "NewTicker"}

// sins returns what the file does that the core may not: read a clock, start a
// goroutine, use a channel, print.
func sins(set *token.FileSet, file *ast.File) []string {
	var found []string
	sin := func(n ast.Node, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s: %s", set.Position(n.Pos()), fmt.Sprintf(format, args...)))
	}
	names := map[string]string{} // of a package in this file ▶ its path
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			sin(spec, "import %s: %v", spec.Path.Value, err)
			continue
		}
		name := filepath.Base(path)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." {
			sin(spec, "a dot import hides what is used of %s", path)
		}
		names[name] = path
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			sin(n, "a goroutine: the core does one thing after the other")
		case *ast.ChanType:
			sin(n, "a channel: the core does one thing after the other")
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "print" || f.Name == "println") {
				sin(n, "%s: the core does not print", f.Name)
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if !ok {
				break
			}
			switch path := names[x.Name]; {
			case path == "time" && slices.Contains(clocks, n.Sel.Name):
				sin(n, "time.%s: the core is told the time; take now as an argument", n.Sel.Name)
			case path == "fmt" && strings.HasPrefix(n.Sel.Name, "Print"):
				sin(n, "fmt.%s: the core does not print", n.Sel.Name)
			}
		}
		return true
	})
	return found
}

// The rules above see what they are for.
func TestRulesSeeSins(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{`import "time"; var x = time.Now()`, "time.Now"},
		{`import clock "time"; func f() { x := clock.Since; _ = x }`, "time.Since"},
		{`func f() { go f() }`, "a goroutine"},
		{`var c chan int`, "a channel"},
		{`import "fmt"; func f() { fmt.Println() }`, "fmt.Println"},
		{`func f() { println() }`, "does not print"},
		{`import . "time"`, "a dot import"},
	} {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "x.go", "package x; "+c.source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := sins(set, file); len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("%s: found %q, want %q", c.source, got, c.want)
		}
	}
	for _, c := range []struct {
		path string
		left []string
		ok   bool
	}{
		{"slices", nil, true},
		{"time", nil, true},
		{module + "/quota", core[:1], true},
		{module + "/queue", core[:1], false},
		{module + "/admission/kube", core[:3], false},
		{"k8s.io/api/core/v1", core[:3], false},
		{"log", nil, false},
		{"log/slog", nil, false},
		{"math/rand/v2", nil, false},
		{"os", nil, false},
		{"os/exec", nil, false},
		{"net/http", nil, false},
		{"sync/atomic", nil, false},
	} {
		if got := forbiddenImport(c.path, c.left); (got == "") != c.ok {
			t.Errorf("import of %s with %v to the left: %q, want allowed %t", c.path, c.left, got, c.ok)
		}
	}
}
