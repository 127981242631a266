package simulations

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme compares the tables of README.md with the tables that the parser
// reads by: every key, verb and expectation is in both, with its form and
// meaning, and each table has its place. With -rewrite it renews README.md.
func TestReadme(t *testing.T) {
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	text, sections := string(data), map[string]section{}
	for _, s := range grammar() {
		if _, twice := sections[s.name]; twice {
			t.Errorf("two tables are named %q", s.name)
		}
		sections[s.name] = s
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "<!-- keys:")
		out.WriteString(before)
		if !found {
			break
		}
		name, rest, ok := strings.Cut(rest, " -->\n")
		old, after, closed := strings.Cut(rest, "<!-- end -->")
		if !ok || !closed {
			t.Fatalf("a table of README.md does not end: %.40q", rest)
		}
		s, known := sections[name]
		if !known {
			t.Errorf("README.md has a table %q, the grammar has none or README.md has it twice", name)
		}
		delete(sections, name)
		want := markdown(s)
		if old != want && !rewriting() {
			t.Errorf("table %q of README.md differs from the grammar; run with -rewrite and read the diff\ngot:\n%swant:\n%s", name, old, want)
		}
		fmt.Fprintf(&out, "<!-- keys:%s -->\n%s<!-- end -->", name, want)
		text = after
	}
	for name := range sections {
		t.Errorf("README.md lacks <!-- keys:%s --> with a table", name)
	}
	if rewriting() && !t.Failed() {
		if err := os.WriteFile("README.md", []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// markdown is a table as README.md has it.
func markdown(s section) string {
	var b strings.Builder
	b.WriteString("| key | value | meaning |\n|---|---|---|\n")
	for _, r := range s.rows {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", r.key, strings.ReplaceAll(r.form, "|", "\\|"), r.doc)
	}
	return b.String()
}

// TestRulesAreShown: every scenario file stands in the table of rules, and all that the
// table names exists.
func TestRulesAreShown(t *testing.T) {
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(data), "<!-- rules -->")
	table, _, ends := strings.Cut(rest, "<!-- end rules -->")
	if !found || !ends {
		t.Fatal("README.md has no table of rules")
	}
	named := make(map[string]bool)
	for _, m := range regexp.MustCompile("`([a-z0-9-]+)`").FindAllStringSubmatch(table, -1) {
		named[m[1]] = true
		if _, err := os.Stat(filepath.Join("testdata", "scenarios", m[1]+".yaml")); err != nil {
			t.Error(err)
		}
	}
	for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(table, -1) {
		if _, err := os.Stat(m[1]); err != nil {
			t.Error(err)
		}
	}
	files, err := filepath.Glob("testdata/scenarios/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenario files: %v", err)
	}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".yaml"); !named[name] {
			t.Errorf("scenario %s shows no rule of the table in README.md", name)
		}
	}
}
