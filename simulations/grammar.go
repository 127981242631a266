package simulations

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// field is a key of a map in the file: how it is written, what it means, and
// how it is read into a T.
type field[T any] struct {
	key  string
	need bool // the map is not valid without it
	form string
	doc  string
	read func(p *parser, n *yaml.Node, into *T)
}

// table is all keys of one kind of map, in the order of the documentation.
type table[T any] struct {
	name   string // of a section of README.md, and of the gate in supported.go
	noun   string // "a node", for messages
	fields []field[T]
}

// read fills a T from a map and returns the keys that were given. What the map
// leaves out stays as it is. ok is false after errors; the fields that were
// readable are filled all the same.
func (t *table[T]) read(p *parser, n *yaml.Node, into *T) (given []string, ok bool) {
	before := p.failed
	p.pairs(n, t.want(), func(key, value *yaml.Node) {
		f := t.find(key.Value)
		if f == nil {
			p.failf(key.Line, "unknown key %q of %s%s", key.Value, t.noun, closest(key.Value, t.keys()))
			return
		}
		given = append(given, key.Value)
		p.used(key.Line, t.name+"."+key.Value)
		if value.Kind == yaml.ScalarNode {
			p.used(key.Line, t.name+"."+key.Value+"="+value.Value)
		}
		f.read(p, value, into)
	})
	if n.Kind == yaml.MappingNode {
		t.needs(p, n, given)
	}
	return given, p.failed == before
}

// want is what stands here, for messages.
func (t *table[T]) want() string {
	if t.noun == t.name { // a verb's own keys, which are few
		return "{" + strings.Join(t.keys(), ", ") + "}"
	}
	return t.noun
}

// needs reports the keys that are missing.
func (t *table[T]) needs(p *parser, n *yaml.Node, given []string) {
	has := make(map[string]bool, len(given))
	for _, key := range given {
		has[key] = true
	}
	for _, f := range t.fields {
		if f.need && !has[f.key] {
			p.failf(n.Line, "%s needs %q", t.noun, f.key)
		}
	}
}

func (t *table[T]) find(key string) *field[T] {
	for i := range t.fields {
		if t.fields[i].key == key {
			return &t.fields[i]
		}
	}
	return nil
}

func (t *table[T]) keys() []string {
	keys := make([]string, len(t.fields))
	for i, f := range t.fields {
		keys[i] = f.key
	}
	return keys
}

// into lifts a reader of a value to a reader of a field.
func into[T, V any](read func(*parser, *yaml.Node) (V, bool), at func(*T) *V) func(*parser, *yaml.Node, *T) {
	return func(p *parser, n *yaml.Node, t *T) {
		if v, ok := read(p, n); ok {
			*at(t) = v
		}
	}
}

// intoRef is into for a value that the file may leave out: a pointer.
func intoRef[T, V any](read func(*parser, *yaml.Node) (V, bool), at func(*T) **V) func(*parser, *yaml.Node, *T) {
	return func(p *parser, n *yaml.Node, t *T) {
		if v, ok := read(p, n); ok {
			*at(t) = &v
		}
	}
}

// section is one table as README.md shows it.
type section struct {
	name string
	rows []row
}

// row is one key, verb or expectation of the documentation.
type row struct{ key, form, doc string }

func (t *table[T]) section() section {
	s := section{name: t.name}
	for _, f := range t.fields {
		doc := f.doc
		if f.need {
			doc += " Needed."
		}
		s.rows = append(s.rows, row{f.key, f.form, doc})
	}
	return s
}

// grammar is everything that a file may contain, in the order of README.md.
func grammar() []section {
	sections := []section{
		scenarioKeys.section(), nodeKeys.section(), queueKeys.section(), policyKeys.section(),
		workloadKeys.section(), podSetKeys.section(), topologyKeys.section(), repeatKeys.section(),
	}
	verbSection := section{name: "verb"}
	for _, v := range verbs {
		verbSection.rows = append(verbSection.rows, row{v.name, v.form, v.doc})
	}
	sections = append(sections, verbSection)
	for _, v := range verbs {
		if v.payload != nil {
			sections = append(sections, *v.payload)
		}
	}
	checkSection := section{name: "expect"}
	for _, c := range expectKeys {
		checkSection.rows = append(checkSection.rows, row{c.key, c.form, c.doc})
	}
	return append(sections, checkSection, countKeys.section())
}
