package deploy

import (
	_ "embed"
	"regexp"
	"strings"
)

//go:embed COMPATIBILITY.md
var compatibility string

// Row is what becomes of one field, as COMPATIBILITY.md says.
type Row struct {
	Family, Kind string // Kueue or Volcano, and a kind of theirs
	Field        string // a path with dots; those of a list's elements follow the list
	Verdict      string // works, differs or ignored
	How          string
	Line         int
}

var compatibilityRow = regexp.MustCompile("^\\| `([^`]+)` \\| (\\w+) \\| (.*)\\|$")

// Compatibility is every row of COMPATIBILITY.md, which is the one place where they are.
func Compatibility() []Row {
	var rows []Row
	family, kind := "", ""
	for i, line := range strings.Split(compatibility, "\n") {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			family, kind, _ = strings.Cut(heading, " ")
			continue
		}
		if m := compatibilityRow.FindStringSubmatch(line); m != nil {
			rows = append(rows, Row{family, kind, m[1], m[2], strings.TrimSpace(m[3]), i + 1})
		}
	}
	return rows
}
