package build

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// upstreamMod is what a recipe takes over from its module's own go.mod, in
// the form that `go mod edit -json` prints.
type upstreamMod struct {
	Go      string
	Godebug []struct{ Key, Value string }
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

// ModFile writes the go.mod from which the recipe's programs are built. The
// module's language version and godebug settings are kept, so that the
// programs behave as their makers built them. A `replace` binds only in the
// main module and points at folders that a module download lacks, so each of
// those is replaced by the version at which it is served.
func ModFile(r Recipe, upstreamJSON []byte) ([]byte, error) {
	var up upstreamMod
	if err := json.Unmarshal(upstreamJSON, &up); err != nil {
		return nil, fmt.Errorf("read go.mod of %s: %w", r.Module, err)
	}
	var b bytes.Buffer
	_, _ = fmt.Fprintf(&b, "// Pinned by `go generate ./build`; the versions are in recipe.go.\n\n")
	_, _ = fmt.Fprintf(&b, "module sluice.dev/sandbox/%s\n\ngo %s\n\n", r.Product, up.Go)
	for _, g := range up.Godebug {
		_, _ = fmt.Fprintf(&b, "godebug %s=%s\n\n", g.Key, g.Value)
	}
	b.WriteString("tool (\n")
	for _, a := range r.Artifacts {
		if a.Package != "" {
			_, _ = fmt.Fprintf(&b, "\t%s\n", a.Package)
		}
	}
	_, _ = fmt.Fprintf(&b, ")\n\nrequire %s %s\n", r.Module, r.Version)

	if r.Staging == "" {
		return b.Bytes(), nil
	}
	staged := 0
	b.WriteString("\nreplace (\n")
	for _, rep := range up.Replace {
		if rep.New.Version == "" && strings.HasPrefix(rep.New.Path, "./") {
			_, _ = fmt.Fprintf(&b, "\t%s => %s %s\n", rep.Old.Path, rep.Old.Path, r.Staging)
			staged++
		}
	}
	b.WriteString(")\n")
	if staged == 0 {
		return nil, fmt.Errorf("go.mod of %s %s replaces no module by a folder, but its recipe has a staging version", r.Module, r.Version)
	}
	return b.Bytes(), nil
}
