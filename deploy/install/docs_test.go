package install

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// anchors are the places within a page that a link may name.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		name := strings.ToLower(regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(match[1], ""))
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}

// Every link leads to a file of the repository, and its anchor to a heading there.
// None leads out: the pages are read where there is no way out.
func TestLinks(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"../docs/*.md", "../images/*.md", "../*.md", "../examples/*/README.md", "../../README.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	links := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			links++
			path, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			to := page
			if path != "" {
				to = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: link %s: %v", page, match[1], err)
				continue
			}
			if anchor == "" {
				continue
			}
			there, err := os.ReadFile(to)
			if err != nil || !anchors(string(there))[anchor] {
				t.Errorf("%s: link %s: %s has no such heading", page, match[1], to)
			}
		}
	}
	if links < 20 {
		t.Errorf("%d links in %d pages: the pages were not read", links, len(pages))
	}
}

// Every page is in the index.
func TestIndex(t *testing.T) {
	index, err := os.ReadFile("../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) < 2 {
		t.Fatal(pages, err)
	}
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(string(index), "]("+name+")") {
			t.Errorf("%s is not in the index", name)
		}
	}
}

// Every reason code has its row, in the order in which they are tested, and no other.
func TestReasonCodes(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "admission", "reason.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); ok && of.Name == "Code" && len(spec.Values) == 1 {
			if value, ok := spec.Values[0].(*ast.BasicLit); ok {
				code, _ := strconv.Unquote(value.Value)
				codes = append(codes, code)
			}
		}
		return true
	})
	text, err := os.ReadFile("../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, match := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(string(text), -1) {
		rows = append(rows, match[1])
	}
	if len(codes) == 0 || strings.Join(codes, " ") != strings.Join(rows, " ") {
		t.Errorf("the code has %v\nthe page has %v", codes, rows)
	}
}

// The agent's manifest and images.txt speak of the same images as the chart.
func TestImageList(t *testing.T) {
	text, err := os.ReadFile("../images/images.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range template(t, `agent.enabled=true`) {
		for _, match := range regexp.MustCompile(`"image":"([^"]+)"`).FindAllStringSubmatch(encode(t, o.Object), -1) {
			if !strings.Contains(string(text), "\n"+match[1]+"\n") {
				t.Errorf("%s uses %s, which is not in the list", name(o), match[1])
			}
		}
	}
	for _, file := range []string{"controller", "agent"} {
		recipe, err := os.ReadFile("../images/" + file + ".Containerfile")
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^ARG \w+=(\S+)$`).FindAllStringSubmatch(string(recipe), -1) {
			if !strings.Contains(string(text), "\n"+match[1]+"\n") {
				t.Errorf("%s.Containerfile starts from %s, which is not in the list", file, match[1])
			}
		}
	}
}
