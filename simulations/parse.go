package simulations

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Load reads a scenario file; see Parse.
func Load(path string) (*Scenario, error) {
	data, err := readBounded(path)
	if err != nil {
		if cause := errors.Unwrap(err); cause != nil {
			err = cause
		}
		return nil, Errors{{File: path, Msg: fmt.Sprintf("cannot read the file: %v", err)}}
	}
	return Parse(path, data)
}

// mostBytes bounds a scenario file. A device would never end.
const mostBytes = 64 << 20

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err == nil && len(data) > mostBytes {
		err = fmt.Errorf("it is larger than %d MiB", mostBytes>>20)
	}
	return data, err
}

// Parse reads a scenario. file is its name in messages. An error is of type
// Errors and holds everything that is wrong with the file, as far as one
// mistake does not hide another.
func Parse(file string, data []byte) (*Scenario, error) {
	p := &parser{file: file, checks: expectKeys}
	s := &Scenario{File: file, Levels: []string{LabelHostname}, Policy: defaultPolicy()}
	if root := p.tree(data); root != nil {
		d := draft{s: s}
		scenarioKeys.read(p, root, &d)
		d.finish(p)
		p.validate(&d)
	}
	if len(p.errs) > 0 {
		return nil, p.errs.sorted()
	}
	s.uses = p.uses
	return s, nil
}

// draft is a scenario while it is read: with the names that are used beside
// what uses them.
type draft struct {
	s         *Scenario
	queueRefs []ref // parents of the queues that are there from the start
	lines     []int // of the levels
}

// finish puts what was read into the order in which it is due.
func (d *draft) finish(p *parser) {
	s := d.s
	slices.SortStableFunc(s.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(s.Expect, func(a, b Expectation) int { return cmp.Compare(a.At, b.At) })
	if i := slices.Index(s.Levels, LabelHostname); i < 0 {
		s.Levels = append(s.Levels, LabelHostname)
	} else if i < len(s.Levels)-1 && i < len(d.lines) {
		p.failf(d.lines[i], "%s is the narrowest level, it stands last", LabelHostname)
	}
}

var scenarioKeys = table[draft]{
	name: "scenario", noun: "a scenario",
	fields: []field[draft]{
		{
			key: "name", form: "TEXT", doc: "What the story shows, in a line.",
			read: into((*parser).text, func(d *draft) *string { return &d.s.Name }),
		},
		{key: "nodes", form: "[node..]", doc: "The machines at the start.", read: readNodes},
		{
			key: "levels", form: "[LABEL..]", doc: "Topology levels, widest first. Default: kubernetes.io/hostname only, which is always the last.",
			read: readLevels,
		},
		{key: "queues", form: "[queue..]", doc: "The queues at the start, a tree in any order.", read: readQueues},
		{key: "policy", form: "{policy..}", doc: "The controller's configuration, any part of it.", read: readPolicy},
		{key: "events", form: "[event..]", doc: "What happens.", read: readEvents},
		{key: "expect", form: "[expectation..]", doc: "What must be true.", read: readExpectations},
	},
}

func readLevels(p *parser, n *yaml.Node, d *draft) {
	levels, ok := list("a list of label keys", (*parser).labelKey)(p, n)
	if !ok {
		return
	}
	d.s.Levels = levels
	for _, item := range n.Content {
		d.lines = append(d.lines, item.Line)
	}
}

// tree reads the YAML of the file. It returns nil after it has reported an
// error.
func (p *parser) tree(data []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			p.failf(1, "the file is empty")
		} else {
			p.notYAML(data, err)
		}
		return nil
	}
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case err == nil:
		p.failf(second.Line, "a second document: a file holds one scenario")
	case !errors.Is(err, io.EOF):
		p.notYAML(data, err)
		return nil
	}
	root := document.Content[0]
	if !p.inline(root) {
		return nil
	}
	if isNull(root) {
		p.failf(1, "the file is empty")
		return nil
	}
	return root
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

var unknownAnchor = regexp.MustCompile(`unknown anchor '(.*)' referenced`)

// notYAML reports a syntax error, at its line. Where the YAML reader tells none it
// is looked for, and in doubt the first.
func (p *parser) notYAML(data []byte, err error) {
	text, line := err.Error(), 0
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	if line == 0 {
		at := bytes.IndexFunc(data, func(r rune) bool {
			return r == utf8.RuneError || r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f
		})
		if m := unknownAnchor.FindStringSubmatch(text); m != nil {
			at = bytes.Index(data, []byte("*"+m[1]))
		}
		line = 1 + bytes.Count(data[:max(at, 0)], []byte("\n"))
	}
	p.failf(line, "not YAML: %s", strings.TrimPrefix(text, "yaml: "))
}

// maxTree bounds the size of a file after its anchors are written out.
const maxTree = 5_000_000

// inline replaces every alias by what it stands for, unless that contains
// itself or is too large.
func (p *parser) inline(root *yaml.Node) bool {
	const open = -1
	size := map[*yaml.Node]int{}
	before := p.failed
	var visit func(n *yaml.Node) int
	visit = func(n *yaml.Node) int {
		if known := size[n]; known != 0 {
			return known
		}
		size[n] = open
		total := 1
		for i, child := range n.Content {
			if child.Kind == yaml.AliasNode {
				child = child.Alias
				n.Content[i] = child
			}
			part := visit(child)
			if part == open {
				p.failf(n.Line, "anchor %q contains itself", child.Anchor)
				part = 1
			}
			total = min(total+part, maxTree+1)
		}
		size[n] = total
		return total
	}
	if visit(root) > maxTree {
		p.failf(root.Line, "more than %d values", maxTree)
	}
	return p.failed == before
}
