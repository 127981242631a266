package install

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/cmd/sluice-controller/config"
)

var rewrite = flag.Bool("rewrite", false, "write the generated files anew")

// root is the repository.
var root = filepath.Join("..", "..")

// isWritten holds a generated file to its text.
func isWritten(t *testing.T, path, want string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is out of date: go test ./deploy/install -rewrite", path)
	}
}

// key is one key of the configuration file.
type key struct {
	path, meaning string
	value         reflect.Value // the default
}

// section is a key that holds keys, or the top of the file.
type section struct {
	path, meaning string
	keys          []key
}

// TestConfigurationPage: the page of the keys is made of the comments and the
// defaults in the code.
func TestConfigurationPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Configuration\n\n<!-- Generated from cmd/sluice-controller/config: go test ./deploy/install -rewrite -->\n\n" +
		"The controller reads one file, `--config`. It must say `apiVersion: " + config.APIVersion + "` and `kind: " + config.Kind + "`; every other\n" +
		"key may be left out and then has the default below. What the reader does not know it refuses, with file and line: an unknown\n" +
		"key, a key given twice, a number without its unit. [deploy/config.yaml](../config.yaml) is the whole file to copy from. In the chart the same keys are\n" +
		"the value `config`, and `namespace` is the release's.\n")
	for _, s := range sections(t) {
		title := s.path
		if title == "" {
			title = "at the top"
		}
		fmt.Fprintf(&b, "\n## %s\n\n", title)
		if s.meaning != "" {
			b.WriteString(s.meaning + "\n\n")
		}
		b.WriteString("| key | default | meaning |\n|---|---|---|\n")
		for _, k := range s.keys {
			fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", k.path, shown(k.value), k.meaning)
		}
	}
	isWritten(t, filepath.Join("..", "docs", "configuration.md"), b.String())
}

// TestConfigInSchema: the chart refuses an unknown key of the configuration before the
// controller does.
func TestConfigInSchema(t *testing.T) {
	path := filepath.Join("..", "chart", "values.schema.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	of := schemaOf(reflect.ValueOf(config.Default()))
	for _, fixed := range []string{"apiVersion", "kind", "namespace"} { // the chart's to say
		delete(of["properties"].(map[string]any), fixed)
	}
	schema["properties"].(map[string]any)["config"] = of
	want, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	isWritten(t, path, string(want)+"\n")
}

func schemaOf(v reflect.Value) map[string]any {
	switch v.Kind() {
	case reflect.Struct:
		properties := map[string]any{}
		for i := range v.NumField() {
			properties[v.Type().Field(i).Tag.Get("yaml")] = schemaOf(v.Field(i))
		}
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Int64:
		if v.Type() == reflect.TypeFor[time.Duration]() {
			return map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
		}
		return map[string]any{"type": "integer"}
	case reflect.Int:
		return map[string]any{"type": "integer"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	default:
		panic("no schema for " + v.Type().String())
	}
}

func shown(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		text := x.String()
		if strings.HasSuffix(text, "m0s") {
			text = strings.TrimSuffix(text, "0s")
		}
		return text
	case []string:
		return "[" + strings.Join(x, ", ") + "]"
	}
	if v.Kind() == reflect.String {
		return fmt.Sprintf("%q", v.String())
	}
	return fmt.Sprint(v.Interface())
}

// sections reads the comments of the configuration's types, and those behind the keys
// in deploy/config.yaml where a field has none.
func sections(t *testing.T) []section {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "cmd", "sluice-controller", "config", "configuration.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	c := comments{types: map[string]string{}, fields: map[string]string{}, names: map[string]string{}}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range g.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok {
				c.read(s, g.Doc.Text())
			}
		}
	}
	sample, err := os.ReadFile(filepath.Join("..", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []section
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		s := section{path: path}
		if path != "" {
			s.meaning = c.plain(c.types[v.Type().Name()])
		}
		at := len(all)
		all = append(all, s)
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name := f.Tag.Get("yaml")
			below := name
			if path != "" {
				below = path + "." + name
			}
			if f.Type.Kind() == reflect.Struct {
				walk(below, v.Field(i))
				continue
			}
			meaning := c.plain(c.fields[v.Type().Name()+"."+f.Name])
			if match := regexp.MustCompile(`(?m)^ +` + name + `: .*# (.*)$`).FindSubmatch(sample); meaning == "" && match != nil {
				meaning = string(match[1])
			}
			all[at].keys = append(all[at].keys, key{below, strings.ReplaceAll(meaning, "|", `\|`), v.Field(i)})
		}
	}
	walk("", reflect.ValueOf(config.Default()))
	return all
}

// comments are those of types and of their fields, and the keys by the fields' names.
type comments struct{ types, fields, names map[string]string }

func (c comments) read(s *ast.TypeSpec, doc string) {
	c.types[s.Name.Name] = doc
	of, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range of.Fields.List {
		for _, name := range f.Names {
			c.fields[s.Name.Name+"."+name.Name] = f.Doc.Text()
			c.names[name.Name] = strings.Trim(regexp.MustCompile(`yaml:"[^"]*"`).FindString(f.Tag.Value), "`")
			c.names[name.Name] = strings.TrimSuffix(strings.TrimPrefix(c.names[name.Name], `yaml:"`), `"`)
		}
	}
}

var identifier = regexp.MustCompile(`\b(Configuration\.)?[A-Z][A-Za-z]+\b`)

// plain is a comment in the words of the file: a field's name becomes its key where it
// begins the comment or cannot be a word of English.
func (c comments) plain(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return identifier.ReplaceAllStringFunc(text, func(word string) string {
		key, ok := c.names[strings.TrimPrefix(word, "Configuration.")]
		inner := strings.IndexFunc(word[1:], func(r rune) bool { return r >= 'A' && r <= 'Z' }) >= 0
		if !ok || !inner && !strings.HasPrefix(text, word) {
			return word
		}
		return "`" + key + "`"
	})
}
