package simulations

import (
	"time"

	"go.yaml.in/yaml/v3"
)

var queueKeys = table[Queue]{
	name: "queue", noun: "a queue",
	fields: []field[Queue]{
		{
			key: "name", need: true, form: "NAME", doc: "One name, one queue.",
			read: into((*parser).name, func(q *Queue) *string { return &q.Name }),
		},
		{
			key: "parent", form: "QUEUE", doc: "Default: the root, which owns the cluster.",
			read: into((*parser).queueRef, func(q *Queue) *string { return &q.Parent }),
		},
		{
			key: "weight", form: "NUMBER", doc: "Its part of what is borrowed. Default: 1.",
			read: into((*parser).weight, func(q *Queue) *int64 { return &q.WeightMillis }),
		},
		{
			key: "nominal", form: "{RESOURCE: QUANTITY}", doc: "What its subtree owns. Default: of a parent the sum of its children's, of a leaf its part of its parent's by weight.",
			read: into((*parser).amounts, func(q *Queue) *Amounts { return &q.Nominal }),
		},
		{
			key: "max", form: "{RESOURCE: QUANTITY}", doc: "The bound of owned and borrowed together. Where it is silent there is no bound.",
			read: into((*parser).amounts, func(q *Queue) *Amounts { return &q.Max }),
		},
		{
			key: "lendable", form: "{RESOURCE: QUANTITY}", doc: "What of nominal others may borrow. Default: all.",
			read: into((*parser).amounts, func(q *Queue) *Amounts { return &q.Lendable }),
		},
		{
			key: "priority", form: "N", doc: "The higher is served first and gives last. Default: 0.",
			read: into((*parser).integer, func(q *Queue) *int64 { return &q.Priority }),
		},
		{
			key: "strategy", form: "BestEffortFIFO or StrictFIFO", doc: "Whether later workloads may pass a blocked one. Default: BestEffortFIFO, they may.",
			read: into(oneOf(BestEffortFIFO, StrictFIFO), func(q *Queue) *Strategy { return &q.Strategy }),
		},
		{
			key: "withinQueue", form: "Never, LowerPriority or LowerOrNewerEqualPriority", doc: "Whose work in this queue a workload may take. Default: LowerPriority.",
			read: into(oneOf(PreemptNever, PreemptLowerPriority, PreemptLowerOrNewerEqual), func(q *Queue) *Preemption { return &q.WithinQueue }),
		},
		{
			key: "reclaim", form: "Never, LowerPriority or Any", doc: "What this queue may take back from others. Default: Any.",
			read: into(oneOf(PreemptNever, PreemptLowerPriority, PreemptAny), func(q *Queue) *Preemption { return &q.Reclaim }),
		},
		{
			key: "reclaimable", form: "BOOL", doc: "Whether others may take from it. Default: true.",
			read: into((*parser).boolean, func(q *Queue) *bool { return &q.Reclaimable }),
		},
		{
			key: "closed", form: "BOOL", doc: "It admits nothing. Default: false.",
			read: into((*parser).boolean, func(q *Queue) *bool { return &q.Closed }),
		},
	},
}

func readQueues(p *parser, n *yaml.Node, d *draft) {
	p.refs = &d.queueRefs
	defer func() { p.refs = nil }()
	p.items(n, "a list of queues", func(item *yaml.Node) {
		q, _, _ := p.queue(item)
		if q.Name != "" {
			d.s.Queues = append(d.s.Queues, q)
		}
	})
}

// queue reads one queue with its defaults, and which keys were given.
func (p *parser) queue(n *yaml.Node) (q Queue, given []string, ok bool) {
	q = Queue{
		Line: n.Line, WeightMillis: 1000, Strategy: BestEffortFIFO,
		WithinQueue: PreemptLowerPriority, Reclaim: PreemptAny, Reclaimable: true,
	}
	given, ok = queueKeys.read(p, n, &q)
	return q, given, ok
}

// queueRef is the name of a queue that must be there.
func (p *parser) queueRef(n *yaml.Node) (string, bool) {
	name, ok := p.name(n)
	if ok {
		p.refer(refQueue, n, name, "")
	}
	return name, ok
}

func (p *parser) weight(n *yaml.Node) (int64, bool) {
	text, ok := p.scalar(n, "a weight")
	if !ok {
		return 0, false
	}
	v, err := parseWeight(text)
	if err != nil {
		p.failf(n.Line, "%v", err)
		return 0, false
	}
	return v, true
}

func defaultPolicy() Policy {
	return Policy{
		ReserveAfter: 2 * time.Minute, RecoveryWindow: time.Minute, MinRuntime: 0,
		Placement: "pack", GrowEvery: 30 * time.Second, FairReclaim: true,
	}
}

var policyKeys = table[Policy]{
	name: "policy", noun: "the policy",
	fields: []field[Policy]{
		{
			key: "reserveAfter", form: "DURATION", doc: "A claim that is blocked longer gets a reservation. Default: 2m.",
			read: into((*parser).duration, func(c *Policy) *time.Duration { return &c.ReserveAfter }),
		},
		{
			key: "recoveryWindow", form: "DURATION", doc: "So long may a gang run below its minimum. Default: 60s.",
			read: into((*parser).duration, func(c *Policy) *time.Duration { return &c.RecoveryWindow }),
		},
		{
			key: "minRuntime", form: "DURATION", doc: "Nobody is taken back before. Default: 0s.",
			read: into((*parser).duration, func(c *Policy) *time.Duration { return &c.MinRuntime }),
		},
		{
			key: "placement", form: "pack", doc: "The fullest card, then the fullest node that fits. Default: pack.",
			read: into(oneOf("pack"), func(c *Policy) *string { return &c.Placement }),
		},
		{
			key: "growEvery", form: "DURATION", doc: "How often elastic gangs are offered more. Default: 30s.",
			read: into((*parser).duration, func(c *Policy) *time.Duration { return &c.GrowEvery }),
		},
		{
			key: "fairReclaim", form: "BOOL", doc: "Of two borrowers the one with the larger share gives to the other. Default: true.",
			read: into((*parser).boolean, func(c *Policy) *bool { return &c.FairReclaim }),
		},
		{
			key: "shortestFirst", form: "BOOL", doc: "Of what waits in a queue behind its reservation the shortest limit goes first. Default: false.",
			read: into((*parser).boolean, func(c *Policy) *bool { return &c.ShortestFirst }),
		},
	},
}

func readPolicy(p *parser, n *yaml.Node, d *draft) { policyKeys.read(p, n, &d.s.Policy) }
