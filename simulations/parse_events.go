package simulations

import (
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxEvents bounds what `every` and `times` write out, of a file.
const maxEvents = 1_000_000

// timing is what an event has beside its verb.
type timing struct {
	at    time.Duration
	every *time.Duration
	times *int64
}

var repeatKeys = table[timing]{
	name: "event", noun: "an event",
	fields: []field[timing]{
		{
			key: "at", need: true, form: "DURATION", doc: "From the start. Events of one instant happen in file order.",
			read: into((*parser).duration, func(t *timing) *time.Duration { return &t.at }),
		},
		{
			key: "every", form: "DURATION", doc: "It repeats; goes with times.",
			read: intoRef((*parser).duration, func(t *timing) **time.Duration { return &t.every }),
		},
		{
			key: "times", form: "N", doc: "So often, the first included. `{i}` in its texts counts from 0; where YAML takes { for a map, in quotes.",
			read: intoRef((*parser).count, func(t *timing) **int64 { return &t.times }),
		},
	},
}

// verb is one kind of event.
type verb struct {
	name, form, doc string
	payload         *section // the keys of its map; nil if it is a name or a list, or a map of another section
	read            func(p *parser, n *yaml.Node) (Action, bool)
}

func readEvents(p *parser, n *yaml.Node, d *draft) {
	p.items(n, "a list of events", func(item *yaml.Node) { p.event(item, d.s) })
}

// event reads one entry of the list and writes it out as often as it repeats.
func (p *parser) event(n *yaml.Node, s *Scenario) {
	before := p.failed
	when, verb, value := p.eventParts(n)
	if verb == nil {
		return
	}
	defer func() { p.refs, p.repeat = nil, false }()
	line, times := valueLine(n, verb.name), int64(1)
	if when.times != nil {
		times = *when.times
	}
	for i := range times {
		if len(s.Events) >= maxEvents {
			p.failf(line, "more than %d events", maxEvents)
			return
		}
		e := Event{At: when.at, Line: line, Repeat: int(i)}
		if when.every != nil && i > 0 {
			if e.At = add(when.at, *when.every, i); e.At < 0 {
				p.failf(line, "repetition %d is more than %v away", i, time.Duration(math.MaxInt64))
				return
			}
		}
		p.refs, p.repeat = &e.refs, i > 0
		e.Action, _ = verb.read(p, counted(value, i))
		s.Events = append(s.Events, e)
		if p.failed > before {
			return // the next repetition has the same mistake
		}
	}
}

// add is at + every×i, or negative if that is beyond what a Duration holds.
func add(at, every time.Duration, i int64) time.Duration {
	if every > 0 && i > (math.MaxInt64-int64(at))/int64(every) {
		return -1
	}
	return at + every*time.Duration(i)
}

// eventParts splits an event into its timing and its one verb; verb is nil
// after an error that leaves nothing to read.
func (p *parser) eventParts(n *yaml.Node) (when timing, v *verb, value *yaml.Node) {
	rest := yaml.Node{Kind: yaml.MappingNode, Line: n.Line}
	p.pairs(n, "an event", func(key, val *yaml.Node) {
		if repeatKeys.find(key.Value) != nil {
			rest.Content = append(rest.Content, key, val)
			return
		}
		found := findVerb(key.Value)
		switch {
		case found == nil:
			known := append(repeatKeys.keys(), verbNames()...)
			p.failf(key.Line, "unknown verb %q%s", key.Value, closest(key.Value, known))
		case v != nil:
			p.failf(key.Line, "%q and %q: an event has one verb", v.name, found.name)
		default:
			p.used(key.Line, "event."+found.name)
			v, value = found, val
		}
	})
	if n.Kind != yaml.MappingNode {
		return when, nil, nil
	}
	before := p.failed
	repeatKeys.read(p, &rest, &when)
	switch {
	case v == nil && len(rest.Content) == len(n.Content):
		p.failf(n.Line, "an event needs a verb, such as submit")
	case p.failed > before:
	case when.every != nil && when.times == nil:
		p.failf(n.Line, "every needs times")
	case when.times != nil && when.every == nil:
		p.failf(n.Line, "times needs every")
	}
	return when, v, value
}

// valueLine is the line on which a key of a map stands.
func valueLine(n *yaml.Node, key string) int {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i].Line
		}
	}
	return n.Line
}

func findVerb(name string) *verb {
	for i := range verbs {
		if verbs[i].name == name {
			return &verbs[i]
		}
	}
	return nil
}

func verbNames() []string {
	names := make([]string, len(verbs))
	for i, v := range verbs {
		names[i] = v.name
	}
	return names
}

// counted is the tree with `{i}` replaced by i in all texts. What has none is
// shared with the original.
func counted(n *yaml.Node, i int64) *yaml.Node {
	const mark = "{i}"
	if n.Kind == yaml.ScalarNode {
		if !strings.Contains(n.Value, mark) {
			return n
		}
		out := *n
		out.Value = strings.ReplaceAll(n.Value, mark, strconv.FormatInt(i, 10))
		return &out
	}
	out := n
	for k, child := range n.Content {
		if c := counted(child, i); c != child {
			if out == n {
				dup := *n
				dup.Content = append([]*yaml.Node(nil), n.Content...)
				out = &dup
			}
			out.Content[k] = c
		}
	}
	return out
}
