package simulations

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
)

// parser reads the nodes of one file, and collects what is wrong and what is
// used. Its readers answer ok = false after they have reported an error.
type parser struct {
	file   string
	errs   Errors
	failed int    // errors so far, also those beyond maxErrors
	refs   *[]ref // where the names that are used go now; nil: nowhere
	uses   []use
	repeat bool    // reads the second or a later time: uses are known
	checks []check // the expectation keys, which may nest
}

// use is a key, verb or choice that the file uses, as "table.key" or
// "table.key=value".
type use struct {
	line int
	what string
}

func (p *parser) failf(line int, format string, args ...any) {
	p.failed++
	if len(p.errs) < maxErrors {
		p.errs = append(p.errs, &Error{File: p.file, Line: line, Msg: fmt.Sprintf(format, args...)})
	}
}

func (p *parser) used(line int, what string) {
	if !p.repeat {
		p.uses = append(p.uses, use{line, what})
	}
}

// refer notes that a name is used here, to be checked when all are known.
func (p *parser) refer(kind refKind, n *yaml.Node, name, of string) {
	if p.refs != nil {
		*p.refs = append(*p.refs, ref{kind: kind, name: name, of: of, line: n.Line})
	}
}

// pairs visits the entries of a mapping; want says what was expected.
func (p *parser) pairs(n *yaml.Node, want string, visit func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.failf(n.Line, "want %s, got %s", want, shown(n))
		return
	}
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			p.failf(key.Line, "a key is a word, not %s", shown(key))
		case seen[key.Value]:
			p.failf(key.Line, "key %q stands here twice", key.Value)
		default:
			seen[key.Value] = true
			visit(key, value)
		}
	}
}

// items visits the entries of a list.
func (p *parser) items(n *yaml.Node, want string, visit func(item *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		p.failf(n.Line, "want %s, got %s", want, shown(n))
		return
	}
	for _, item := range n.Content {
		visit(item)
	}
}

// scalar is the text of a value that is neither a list, a map nor null.
func (p *parser) scalar(n *yaml.Node, want string) (string, bool) {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		p.failf(n.Line, "want %s, got %s", want, shown(n))
		return "", false
	}
	return n.Value, true
}

// name is an identifier. Words that some YAML readers take for a boolean must
// be quoted, so that the file means the same to all of them.
func (p *parser) name(n *yaml.Node) (string, bool) {
	text, ok := p.scalar(n, "a name")
	if !ok || !p.unambiguous(n) {
		return "", false
	}
	switch {
	case isPlain(n) && n.ShortTag() == "!!bool":
		p.failf(n.Line, "quote %q: unquoted, YAML reads it as a boolean", text)
	case text == "":
		p.failf(n.Line, "a name is empty")
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		p.failf(n.Line, "name %q contains white space", text)
	case len(text) > maxName:
		p.failf(n.Line, "a name of %d bytes, more than %d", len(text), maxName)
	default:
		return text, true
	}
	return "", false
}

const maxName = 253

// unambiguous reports an unquoted word that YAML 1.1 takes for a boolean and
// YAML 1.2 for a text.
func (p *parser) unambiguous(n *yaml.Node) bool {
	if !isPlain(n) {
		return true
	}
	switch strings.ToLower(n.Value) {
	case "y", "n", "yes", "no", "on", "off":
		p.failf(n.Line, "quote %q: unquoted, YAML 1.1 reads it as a boolean", n.Value)
		return false
	}
	return true
}

// text is any scalar as it stands.
func (p *parser) text(n *yaml.Node) (string, bool) { return p.scalar(n, "a text") }

// integer is a whole number.
func (p *parser) integer(n *yaml.Node) (int64, bool) {
	text, ok := p.scalar(n, "a whole number")
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(text, 10, 64)
	digits := strings.TrimLeft(text, "+-")
	if err != nil || len(digits) > 1 && digits[0] == '0' {
		p.failf(n.Line, "want a whole number of 64 bits, got %q", text)
		return 0, false
	}
	return v, true
}

// count is a whole number that is not negative.
func (p *parser) count(n *yaml.Node) (int64, bool) {
	v, ok := p.integer(n)
	if ok && v < 0 {
		p.failf(n.Line, "%d is negative", v)
		return 0, false
	}
	return v, ok
}

// upTo is a count with a bound, which keeps a slip of the pen from filling the
// memory.
func upTo(limit int64) func(*parser, *yaml.Node) (int, bool) {
	return func(p *parser, n *yaml.Node) (int, bool) {
		v, ok := p.count(n)
		if ok && v > limit {
			p.failf(n.Line, "%d is more than a scenario can have, %d", v, limit)
			return 0, false
		}
		return int(v), ok
	}
}

func (p *parser) boolean(n *yaml.Node) (bool, bool) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" && isPlain(n) {
		switch strings.ToLower(n.Value) {
		case "true":
			return true, true
		case "false":
			return false, true
		}
	}
	p.failf(n.Line, "want true or false, got %s", shown(n))
	return false, false
}

func (p *parser) duration(n *yaml.Node) (time.Duration, bool) {
	text, ok := p.scalar(n, "a duration")
	if !ok {
		return 0, false
	}
	d, err := parseDuration(text)
	if err != nil {
		p.failf(n.Line, "%v", err)
		return 0, false
	}
	return d, true
}

// amountOf is an amount of one resource.
func (p *parser) amountOf(name string, n *yaml.Node) (int64, bool) {
	text, ok := p.scalar(n, "a quantity")
	if !ok {
		return 0, false
	}
	v, err := parseAmount(name, text)
	if err != nil {
		p.failf(n.Line, "%v", err)
		return 0, false
	}
	return v, true
}

// amounts is {RESOURCE: quantity}; never nil.
func (p *parser) amounts(n *yaml.Node) (Amounts, bool) {
	before := p.failed
	out := Amounts{}
	p.pairs(n, "{RESOURCE: quantity}", func(key, value *yaml.Node) {
		name, ok := p.resource(key)
		if !ok {
			return
		}
		if v, ok := p.amountOf(name, value); ok {
			out = append(out, Amount{name, v})
		}
	})
	return out, p.failed == before
}

// resource is the name of a resource.
func (p *parser) resource(n *yaml.Node) (string, bool) {
	name, ok := p.name(n)
	if !ok {
		return "", false
	}
	if strings.Contains(name, "+") {
		p.failf(n.Line, "no resource name has a +, did you mean %q?", strings.ReplaceAll(name, "+", "."))
		return "", false
	}
	return name, p.qualified(n, "resource name", name)
}

// labelKey is the key of a node label.
func (p *parser) labelKey(n *yaml.Node) (string, bool) {
	key, ok := p.name(n)
	return key, ok && p.qualified(n, "label key", key)
}

func (p *parser) qualified(n *yaml.Node, what, name string) bool {
	if msgs := validation.IsQualifiedName(name); len(msgs) > 0 {
		p.failf(n.Line, "%q is no %s: %s", name, what, short(msgs[0]))
		return false
	}
	return true
}

// short is a message without its examples and expressions.
func short(msg string) string {
	msg, _, _ = strings.Cut(msg, " (")
	return msg
}

// labelValue is the value of a label.
func (p *parser) labelValue(n *yaml.Node) (string, bool) {
	value, ok := p.scalar(n, "a label value")
	if !ok || !p.unambiguous(n) {
		return "", false
	}
	if msgs := validation.IsValidLabelValue(value); len(msgs) > 0 {
		p.failf(n.Line, "%q is no label value: %s", value, short(msgs[0]))
		return "", false
	}
	return value, true
}

// optional reads null as nil and anything else as the reader does.
func optional[V any](read func(*parser, *yaml.Node) (V, bool)) func(*parser, *yaml.Node) (*V, bool) {
	return func(p *parser, n *yaml.Node) (*V, bool) {
		if isNull(n) {
			return nil, true
		}
		v, ok := read(p, n)
		return &v, ok
	}
}

// list reads a list of values, none of them twice.
func list[V comparable](want string, read func(*parser, *yaml.Node) (V, bool)) func(*parser, *yaml.Node) ([]V, bool) {
	return func(p *parser, n *yaml.Node) ([]V, bool) {
		before := p.failed
		var out []V
		seen := map[V]bool{}
		p.items(n, want, func(item *yaml.Node) {
			v, ok := read(p, item)
			switch {
			case !ok:
			case seen[v]:
				p.failf(item.Line, "%v stands here twice", v)
			default:
				seen[v] = true
				out = append(out, v)
			}
		})
		return out, p.failed == before
	}
}

// oneOf reads one of a closed list of words.
func oneOf[V ~string](known ...V) func(*parser, *yaml.Node) (V, bool) {
	return func(p *parser, n *yaml.Node) (V, bool) {
		text, ok := p.scalar(n, orList(known))
		if !ok {
			return "", false
		}
		if !slices.Contains(known, V(text)) {
			p.failf(n.Line, "want %s, got %q", orList(known), text)
			return "", false
		}
		return V(text), true
	}
}

func orList[V ~string](words []V) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	last := len(texts) - 1
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// isPlain says that a scalar stands without quotes or tag.
func isPlain(n *yaml.Node) bool {
	const marked = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle
	return n.Style&marked == 0
}

// shown is a value as messages show it.
func shown(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a map"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	case len(n.Value) > 60:
		return strconv.Quote(n.Value[:60] + "…")
	}
	return strconv.Quote(n.Value)
}
