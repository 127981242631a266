package simulations

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What a node has that does not say otherwise.
const (
	defaultCPU    = 1000 * 1000    // millicores
	defaultMemory = 10 * (1 << 40) // bytes
	defaultPods   = 1000
)

// Bounds that keep a slip of the pen from filling the memory.
const (
	maxNodes      = 100_000 // of a file
	maxCards      = 1024    // of a node
	maxTimeSlices = 10_000
)

// nodeDraft is an entry of the file, before `count` and the layouts are
// written out.
type nodeDraft struct {
	Node
	count int
	cards int
	mig   *yaml.Node
}

var nodeKeys = table[nodeDraft]{
	name: "node", noun: "a node",
	fields: []field[nodeDraft]{
		{
			key: "name", need: true, form: "NAME", doc: "With a count of N above 1 the nodes are NAME-0 to NAME-(N-1).",
			read: into((*parser).name, func(d *nodeDraft) *string { return &d.Name }),
		},
		{
			key: "count", form: "N", doc: "So many alike. Default: 1.",
			read: into(upTo(maxNodes), func(d *nodeDraft) *int { return &d.count }),
		},
		{
			key: "gpus", form: "N", doc: "Its cards. Default: 0.",
			read: into(upTo(maxCards), func(d *nodeDraft) *int { return &d.cards }),
		},
		{
			key: "product", form: "PRODUCT", doc: "The kind of its cards, as in the label nvidia.com/gpu.product. Default: a card without name and MIG.",
			read: into((*parser).labelValue, func(d *nodeDraft) *string { return &d.Product }),
		},
		{
			key: "mig", form: "[PROFILE..] or {GPU: [PROFILE..]}", doc: "The slices of every card, or card by card; `\"1g.5gb x7\"` stands for seven. [] is MIG mode without slices; a card that the map leaves out is whole.",
			read: func(_ *parser, n *yaml.Node, d *nodeDraft) { d.mig = n },
		},
		{
			key: "timeSlices", form: "N", doc: "Replicas of each whole card; below 2 they are not shared. Default: 0.",
			read: into(upTo(maxTimeSlices), func(d *nodeDraft) *int { return &d.TimeSlices }),
		},
		{key: "cpu", form: "QUANTITY", doc: "Default: 1000 cores.", read: readNodeAmount(ResourceCPU, func(d *nodeDraft) *int64 { return &d.CPU })},
		{key: "memory", form: "QUANTITY", doc: "Default: 10Ti.", read: readNodeAmount(ResourceMemory, func(d *nodeDraft) *int64 { return &d.Memory })},
		{key: "pods", form: "QUANTITY", doc: "Default: 1000.", read: readNodeAmount(ResourcePods, func(d *nodeDraft) *int64 { return &d.Pods })},
		{
			key: "labels", form: "{LABEL: VALUE}", doc: "Beside, and instead of, those that feature discovery sets for the cards; null removes one.",
			read: into((*parser).labelOverrides, func(d *nodeDraft) *[]LabelOverride { return &d.Overrides }),
		},
		{
			key: "taints", form: "[\"KEY=VALUE:EFFECT\"..]", doc: "Effects are NoSchedule, PreferNoSchedule and NoExecute; `=VALUE` may be missing.",
			read: into(list("a list of taints", (*parser).taint), func(d *nodeDraft) *[]Taint { return &d.Taints }),
		},
	},
}

func readNodeAmount(name string, at func(*nodeDraft) *int64) func(*parser, *yaml.Node, *nodeDraft) {
	return into(func(p *parser, n *yaml.Node) (int64, bool) { return p.amountOf(name, n) }, at)
}

func readNodes(p *parser, n *yaml.Node, d *draft) {
	p.items(n, "a list of nodes", func(item *yaml.Node) {
		nodes, _ := p.nodes(item)
		if len(d.s.Nodes)+len(nodes) > maxNodes {
			p.failf(item.Line, "more than %d nodes", maxNodes)
			return
		}
		d.s.Nodes = append(d.s.Nodes, nodes...)
	})
}

// nodes reads one entry and writes its `count` out. After errors it still
// returns the nodes by name, so that their users are not reported as well.
func (p *parser) nodes(n *yaml.Node) ([]Node, bool) {
	d := nodeDraft{count: 1, Node: Node{Line: n.Line, CPU: defaultCPU, Memory: defaultMemory, Pods: defaultPods}}
	_, ok := nodeKeys.read(p, n, &d)
	if d.Name == "" {
		return nil, false
	}
	before := p.failed
	d.Layouts = make([]Layout, d.cards)
	if d.mig != nil {
		p.layouts(&d)
	}
	if d.cards == 0 && (d.Product != "" || d.TimeSlices > 0) && ok {
		p.failf(n.Line, "node %s has a product or timeSlices but no gpus", d.Name)
	}
	if d.count == 1 {
		return []Node{d.Node}, ok && p.failed == before
	}
	out := make([]Node, d.count)
	for i := range out {
		out[i] = d.Node
		out[i].Name = fmt.Sprintf("%s-%d", d.Name, i)
	}
	return out, ok && p.failed == before
}

// layouts reads `mig` for all cards or card by card, and checks that each
// layout is possible.
func (p *parser) layouts(d *nodeDraft) {
	card, _ := CardOf(d.Product)
	if d.cards == 0 {
		p.failf(d.mig.Line, "node %s has mig but no gpus", d.Name)
		return
	}
	if d.mig.Kind != yaml.MappingNode {
		if l, ok := p.layout(d.mig); ok && p.possible(d.mig.Line, card, l) {
			for i := range d.Layouts {
				d.Layouts[i] = l
			}
		}
		return
	}
	p.pairs(d.mig, "a layout", func(key, value *yaml.Node) {
		i, ok := p.count(key)
		if ok && i >= int64(d.cards) {
			p.failf(key.Line, "no card %d, node %s has %d", i, d.Name, d.cards)
			return
		}
		if l, good := p.layout(value); ok && good && p.possible(value.Line, card, l) {
			d.Layouts[i] = l
		}
	})
}

// possible reports a layout that the card cannot be cut into.
func (p *parser) possible(line int, card Card, l Layout) bool {
	if _, err := card.Place(l.Slices); err != nil {
		p.failf(line, "%v", err)
		return false
	}
	return true
}

var repeatedProfile = regexp.MustCompile(`^(\S+)\s+x(\d+)$`)

// maxSlices is above what any card holds; more are not written out.
const maxSlices = 64

// layout reads a list of profiles, each with an optional ` xN`.
func (p *parser) layout(n *yaml.Node) (Layout, bool) {
	before := p.failed
	l := Layout{MIG: true}
	p.items(n, "a list of MIG profiles", func(item *yaml.Node) {
		text, ok := p.scalar(item, "a MIG profile")
		if !ok {
			return
		}
		profile, times := text, 1
		if m := repeatedProfile.FindStringSubmatch(text); m != nil {
			profile = m[1]
			n, err := strconv.Atoi(m[2])
			if err != nil {
				n = math.MaxInt32
			}
			times = n
		}
		if profile == "" || strings.ContainsAny(profile, " \t\n") {
			p.failf(item.Line, "%q is no MIG profile, such as 1g.5gb or \"1g.5gb x7\"", text)
			return
		}
		for range min(times, maxSlices+1) {
			l.Slices = append(l.Slices, profile)
		}
	})
	if len(l.Slices) > maxSlices {
		p.failf(n.Line, "impossible layout, no card has more than %d slices", maxSlices)
	}
	return l, p.failed == before
}

func (p *parser) labelOverrides(n *yaml.Node) ([]LabelOverride, bool) {
	before := p.failed
	var out []LabelOverride
	p.pairs(n, "{LABEL: VALUE}", func(key, value *yaml.Node) {
		k, ok := p.labelKey(key)
		v, good := optional((*parser).labelValue)(p, value)
		if ok && good {
			out = append(out, LabelOverride{k, v})
		}
	})
	return out, p.failed == before
}

var taintEffects = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}

// taint reads KEY=VALUE:EFFECT or KEY:EFFECT.
func (p *parser) taint(n *yaml.Node) (Taint, bool) {
	key, value, effect, _, ok := p.taintParts(n)
	return Taint{key, value, effect}, ok
}

// toleration reads the same; without a value it tolerates each of the key.
func (p *parser) toleration(n *yaml.Node) (Toleration, bool) {
	key, value, effect, hasValue, ok := p.taintParts(n)
	return Toleration{Key: key, Value: value, Effect: effect, AnyValue: !hasValue}, ok
}

func (p *parser) taintParts(n *yaml.Node) (key, value, effect string, hasValue, ok bool) {
	const want = "KEY=VALUE:EFFECT"
	text, ok := p.scalar(n, want)
	if !ok {
		return "", "", "", false, false
	}
	pair, effect, found := strings.Cut(text, ":")
	if !found {
		p.failf(n.Line, "want %s, got %q", want, text)
		return "", "", "", false, false
	}
	key, value, hasValue = strings.Cut(pair, "=")
	keyNode, valueNode, effectNode := *n, *n, *n
	keyNode.Value, valueNode.Value, effectNode.Value = key, value, effect
	_, okKey := p.labelKey(&keyNode)
	_, okValue := p.labelValue(&valueNode)
	_, okEffect := oneOf(taintEffects...)(p, &effectNode)
	return key, value, effect, hasValue, okKey && okValue && okEffect
}
