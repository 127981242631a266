package simulations

import (
	"time"

	"go.yaml.in/yaml/v3"
)

// check is one key of an expectation.
type check struct {
	key, form, doc string
	read           func(p *parser, n *yaml.Node) []Check
}

// expectKeys is all keys of an expectation beside `at`, in the order of
// README.md.
var expectKeys = []check{
	ofEach("admitted", "These are admitted and have not ended.", func(w string) Check { return Admitted{w} }),
	ofEach("notAdmitted", "These are not.", func(w string) Check { return NotAdmitted{w} }),
	{key: "pending", form: "[WORKLOAD..] or {WORKLOAD: REASON}", doc: "These wait, and why.", read: readPending},
	ofEach("finished", "These have ended well.", func(w string) Check { return Finished{w} }),
	ofEach("whole", "These have 0 pods or at least their minimum.", func(w string) Check { return Whole{w} }),
	perWorkload("evicted", "N", "How often each was evicted so far.", (*parser).count, func(w string, n int64) Check { return Evicted{w, n} }),
	{
		key: "evictions", form: "N", doc: "How many gangs were evicted so far, without shrinking.",
		read: single((*parser).count, func(n int64) Check { return Evictions{n} }),
	},
	perWorkload("pods", "N", "Pods that are released and have not ended.", (*parser).count, func(w string, n int64) Check { return Pods{w, n} }),
	{key: "podSets", form: "{WORKLOAD: {PODSET: N}}", doc: "The same by pod set.", read: readPodSetPods},
	perWorkload("nodes", "{NODE: N}", "Pods on each of these nodes.", (*parser).nodePodsSeen, func(w string, on []NodePods) Check { return OnNodes{w, on} }),
	perWorkload("notNodes", "[NODE..]", "No pod is on these.", list("a list of nodes", (*parser).nodeSeen), func(w string, nodes []string) Check { return NotOnNodes{w, nodes} }),
	perWorkload("sameLevel", "LEVEL", "All pods share one value of this level.", (*parser).levelRef, func(w, level string) Check { return SameLevel{w, level} }),
	perKey("usage", "{QUEUE: {RESOURCE: QUANTITY}}", "What the subtree is charged, of the resources listed.", (*parser).queueSeen, (*parser).amounts, func(q string, a Amounts) Check { return Usage{q, a} }),
	perKey("free", "{NODE: {RESOURCE: QUANTITY}}", "What no pod uses, of the resources listed.", (*parser).nodeSeen, (*parser).amounts, func(n string, a Amounts) Check { return Free{n, a} }),
	perWorkload("admittedBy", "DURATION", "First admitted no later than this instant.", (*parser).duration, func(w string, by time.Duration) Check { return AdmittedBy{w, by} }),
	perWorkload("says", "TEXT", "Its pending message contains this.", (*parser).text, func(w, text string) Check { return Says{w, text} }),
	perKey("drift", "{NODE: [DRIFT..]}", "Exactly these of allocatable, labels, layout, replicas, lost, silent.", (*parser).nodeSeen, list("a list of drifts", oneOf(drifts...)), func(n string, what []Drift) Check { return Drifts{n, what} }),
	{
		key: "quiet", form: "DURATION", doc: "From this instant on for so long no admission, eviction, shrink or growth.",
		read: single((*parser).duration, func(d time.Duration) Check { return Quiet{d} }),
	},
	ofEach("never", "These were not admitted at any instant so far.", func(w string) Check { return Never{w} }),
	{
		key: "count", form: "{admitted: N, among: [WORKLOAD..]}", doc: "How many of these are admitted.",
		read: single((*parser).countAdmitted, func(c CountAdmitted) Check { return c }),
	},
	{key: "anyOf", form: "[{expectation..}..]", doc: "One of these holds; they have no `at` of their own.", read: readAnyOf},
}

func readExpectations(p *parser, n *yaml.Node, d *draft) {
	defer func() { p.refs = nil }()
	p.items(n, "a list of expectations", func(item *yaml.Node) {
		e := Expectation{Line: item.Line}
		p.refs = &e.refs
		hasAt := false
		e.Checks = p.readChecks(item, func(key, value *yaml.Node) bool {
			if key.Value != "at" {
				return false
			}
			hasAt = true
			e.At, _ = p.duration(value)
			return true
		})
		if !hasAt && item.Kind == yaml.MappingNode {
			p.failf(item.Line, "an expectation needs \"at\"")
		}
		d.s.Expect = append(d.s.Expect, e)
	})
}

// readChecks reads the keys of an expectation; other takes those that are no
// checks, and says so.
func (p *parser) readChecks(n *yaml.Node, other func(key, value *yaml.Node) bool) []Check {
	var out []Check
	keys := 0
	p.pairs(n, "an expectation", func(key, value *yaml.Node) {
		if other(key, value) {
			return
		}
		keys++
		for _, c := range p.checks {
			if c.key == key.Value {
				p.used(key.Line, "expect."+c.key)
				out = append(out, c.read(p, value)...)
				return
			}
		}
		p.failf(key.Line, "unknown key %q of an expectation%s", key.Value, closest(key.Value, p.checkNames()))
	})
	if keys == 0 && n.Kind == yaml.MappingNode {
		p.failf(n.Line, "the expectation expects nothing")
	}
	return out
}

func (p *parser) checkNames() []string {
	names := []string{"at"}
	for _, c := range p.checks {
		names = append(names, c.key)
	}
	return names
}

// ofEach is a key with a list of workloads.
func ofEach(key, doc string, of func(workload string) Check) check {
	names := list("a list of workloads", (*parser).workloadRef)
	return check{key: key, form: "[WORKLOAD..]", doc: doc, read: func(p *parser, n *yaml.Node) []Check {
		var out []Check
		ws, _ := names(p, n)
		for _, w := range ws {
			out = append(out, of(w))
		}
		return out
	}}
}

// perWorkload is a key with a map from workloads.
func perWorkload[V any](key, form, doc string, read func(*parser, *yaml.Node) (V, bool), of func(string, V) Check) check {
	return perKey(key, "{WORKLOAD: "+form+"}", doc, (*parser).workloadRef, read, of)
}

// perKey is a key with a map from names to values.
func perKey[V any](key, form, doc string, name func(*parser, *yaml.Node) (string, bool),
	read func(*parser, *yaml.Node) (V, bool), of func(string, V) Check,
) check {
	return check{key: key, form: form, doc: doc, read: func(p *parser, n *yaml.Node) []Check {
		var out []Check
		p.pairs(n, form, func(k, v *yaml.Node) {
			who, ok := name(p, k)
			what, good := read(p, v)
			if ok && good {
				out = append(out, of(who, what))
			}
		})
		return out
	}}
}

// single reads one value as one check.
func single[V any](read func(*parser, *yaml.Node) (V, bool), of func(V) Check) func(*parser, *yaml.Node) []Check {
	return func(p *parser, n *yaml.Node) []Check {
		if v, ok := read(p, n); ok {
			return []Check{of(v)}
		}
		return nil
	}
}

// readPending reads a list of workloads, or a map to their reasons.
func readPending(p *parser, n *yaml.Node) []Check {
	var out []Check
	if n.Kind == yaml.SequenceNode {
		ws, _ := list("a list of workloads", (*parser).workloadRef)(p, n)
		for _, w := range ws {
			out = append(out, Pending{Workload: w})
		}
		return out
	}
	p.pairs(n, "[WORKLOAD..] or {WORKLOAD: REASON}", func(key, value *yaml.Node) {
		w, ok := p.workloadRef(key)
		r, good := oneOf(reasons...)(p, value)
		if good {
			p.used(value.Line, "reason."+string(r))
		}
		if ok && good {
			out = append(out, Pending{w, r})
		}
	})
	return out
}

func readPodSetPods(p *parser, n *yaml.Node) []Check {
	var out []Check
	p.pairs(n, "{WORKLOAD: {PODSET: N}}", func(key, value *yaml.Node) {
		w, ok := p.workloadRef(key)
		if !ok {
			return
		}
		p.pairs(value, "{PODSET: N}", func(key, value *yaml.Node) {
			set, ok := p.name(key)
			pods, good := p.count(value)
			if ok {
				p.refer(refPodSet, key, set, w)
			}
			if ok && good {
				out = append(out, PodSetPods{w, set, pods})
			}
		})
	})
	return out
}

func (p *parser) nodePodsSeen(n *yaml.Node) ([]NodePods, bool) {
	return p.nodePods(n, (*parser).nodeSeen)
}

// queueSeen is the name of a queue that is or was there.
func (p *parser) queueSeen(n *yaml.Node) (string, bool) { return p.reference(n, refQueueSeen) }

var countKeys = table[CountAdmitted]{name: "count", noun: "count", fields: []field[CountAdmitted]{
	{key: "admitted", need: true, form: "N", doc: "So many are admitted.", read: into((*parser).count, func(c *CountAdmitted) *int64 { return &c.N })},
	{
		key: "among", need: true, form: "[WORKLOAD..]", doc: "Of these.",
		read: into(list("a list of workloads", (*parser).workloadRef), func(c *CountAdmitted) *[]string { return &c.Among }),
	},
}}

func (p *parser) countAdmitted(n *yaml.Node) (CountAdmitted, bool) {
	var c CountAdmitted
	_, ok := countKeys.read(p, n, &c)
	return c, ok
}

func readAnyOf(p *parser, n *yaml.Node) []Check {
	before := p.failed
	var either AnyOf
	p.items(n, "a list of expectations", func(item *yaml.Node) {
		either.Alternatives = append(either.Alternatives, p.readChecks(item, func(key, _ *yaml.Node) bool {
			if key.Value != "at" {
				return false
			}
			p.failf(key.Line, "at stands beside anyOf, not in it")
			return true
		}))
	})
	if p.failed == before && len(either.Alternatives) == 0 {
		p.failf(n.Line, "anyOf is empty: no expectation of it can hold")
	}
	return []Check{either}
}
