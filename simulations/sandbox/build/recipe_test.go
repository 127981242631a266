package build

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// modJSON reads a go.mod the way the go command does.
func modJSON(t *testing.T, text []byte) (mod struct {
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
	Tool []struct{ Path string }
},
) {
	t.Helper()
	path := t.TempDir() + "/go.mod"
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "mod", "edit", "-json", path).Output()
	if err != nil {
		t.Fatalf("the go command cannot read\n%s\n%v", text, err)
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	return mod
}

// A version that was changed in recipe.go and not pinned again would build the
// old one under the new name.
func TestPinsAreOfTheRecipesVersions(t *testing.T) {
	for _, r := range recipes {
		text, sum, err := r.pinned()
		if err != nil {
			t.Fatal(err)
		}
		mod := modJSON(t, text)
		required := make(map[string]string)
		for _, m := range mod.Require {
			required[m.Path] = m.Version
		}
		if required[r.Module] != r.Version {
			t.Errorf("%s.mod requires %s %q, the recipe says %s", r.Product, r.Module, required[r.Module], r.Version)
		}
		if want := r.Module + " " + r.Version + " h1:"; !strings.Contains(string(sum), want) {
			t.Errorf("%s.sum has no line %q", r.Product, want)
		}
		tools := make(map[string]bool)
		for _, tool := range mod.Tool {
			tools[tool.Path] = true
		}
		for _, a := range r.Artifacts {
			if a.Package != "" && !tools[a.Package] {
				t.Errorf("%s.mod does not name %s", r.Product, a.Package)
			}
		}
		replaced := make(map[string]string)
		for _, rep := range mod.Replace {
			if rep.Old.Path != rep.New.Path || rep.New.Version != r.Staging {
				t.Errorf("%s.mod replaces %s by %s %s, want itself at %q", r.Product, rep.Old.Path, rep.New.Path, rep.New.Version, r.Staging)
			}
			replaced[rep.Old.Path] = rep.New.Version
		}
		for path, version := range required {
			if version == "v0.0.0" && replaced[path] == "" {
				t.Errorf("%s.mod requires %s at v0.0.0, which is not served, and does not replace it", r.Product, path)
			}
		}
		if r.Staging != "" && len(replaced) == 0 {
			t.Errorf("%s.mod replaces nothing", r.Product)
		}
	}
}

func TestKeyFollowsWhatAProgramIsMadeOf(t *testing.T) {
	r, _, err := lookup("kube-scheduler")
	if err != nil {
		t.Fatal(err)
	}
	key, err := r.key()
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := r.key(); again != key {
		t.Errorf("the same recipe has the keys %s and %s", key, again)
	}
	if !strings.HasPrefix(key, "kubernetes-v1.35.4-") {
		t.Errorf("key %s does not name product and version", key)
	}
	r.LDFlags = append(r.LDFlags, "-X a.b=c")
	if changed, _ := r.key(); changed == key {
		t.Error("other linker flags, same key")
	}
}

func TestModFileReplacesFoldersOnly(t *testing.T) {
	r := Recipe{
		Product: "p", Module: "example.com/m", Version: "v1.2.3", Staging: "v0.2.3",
		Artifacts: []Artifact{{Name: "prog", Package: "example.com/m/cmd/prog"}, {Name: "data.yaml", File: "data.yaml"}},
	}
	upstream := `{"Go": "1.25.0", "Godebug": [{"Key": "default", "Value": "go1.25"}], "Replace": [
		{"Old": {"Path": "example.com/a"}, "New": {"Path": "./staging/src/example.com/a"}},
		{"Old": {"Path": "example.com/fork"}, "New": {"Path": "example.com/forked", "Version": "v9.0.0"}}]}`
	text, err := ModFile(r, []byte(upstream))
	if err != nil {
		t.Fatal(err)
	}
	want := "// Pinned by `go generate ./build`; the versions are in recipe.go.\n" + `
module sluice.dev/sandbox/p

go 1.25.0

godebug default=go1.25

tool (
	example.com/m/cmd/prog
)

require example.com/m v1.2.3

replace (
	example.com/a => example.com/a v0.2.3
)
`
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	modJSON(t, text)
}

func TestModFileNoticesThatStagingIsGone(t *testing.T) {
	r := Recipe{Product: "p", Module: "example.com/m", Version: "v1.2.3", Staging: "v0.2.3"}
	if _, err := ModFile(r, []byte(`{"Go": "1.25.0"}`)); err == nil || !strings.Contains(err.Error(), "example.com/m v1.2.3") {
		t.Fatalf("got %v, want an error that names the module", err)
	}
	if _, err := ModFile(r, []byte(`not JSON`)); err == nil {
		t.Fatal("nonsense was accepted")
	}
}
