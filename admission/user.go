package admission

import (
	"cmp"

	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// charged adds up what the workloads of a queue for which ok holds are charged on
// the books of this pass: with what it admits and keeps for nominees, without what it
// has taken off for the moment. The claim r itself does not count.
func (p *pass) charged(r *record, ok func(*queue.Workload) bool) quota.Resources {
	var used quota.Resources
	name := r.w.Queue
	var running []*record
	if q := p.crewed().byName[name]; q != nil {
		running = q.all
	}
	for _, x := range running {
		if ok(x.w) && !p.replaced[x] && (x.w != r.w || x.phase == Admitted) {
			used.Add(x.charge)
		}
	}
	for _, o := range p.off {
		if o.r.queue == name && ok(o.r.w) && o.sign < 0 {
			used.Sub(o.charge)
		} else if o.r.queue == name && ok(o.r.w) {
			used.Add(o.charge)
		}
	}
	for _, a := range p.d.Admit {
		if x := p.s.records[a.Key]; a.Queue == name && ok(x.w) {
			used.Add(p.s.queues[name].Flavor(a.Flavor).Charge(x.w.Spec.Request(a.Plan.Sizes())))
		}
	}
	for _, k := range p.promised {
		if x := p.s.records[k.key]; x != r && x.w.Queue == name && ok(x.w) {
			used.Add(k.charge)
		}
	}
	return used
}

// pinnedFits keeps the work of a queue that nobody may take back within what the
// queue owns.
func (p *pass) pinnedFits(r *record, leaf int, charge quota.Resources) (quota.Lack, bool) {
	if !r.w.Pinned {
		return quota.Lack{}, true
	}
	own := p.s.tree.Nominal(leaf)
	bound := func(i int) int64 {
		if !p.s.tree.Counts(i) {
			return quota.Unbounded
		}
		return own.At(i)
	}
	return bounded(r.w.Queue, p.charged(r, func(w *queue.Workload) bool { return w.Pinned }), charge, bound)
}

// userFits keeps what a user uses of a queue within the queue's bound for one user.
func (p *pass) userFits(r *record, charge quota.Resources) (quota.Lack, bool) {
	q := p.s.queues[r.w.Queue]
	if q == nil || len(q.UserMax) == 0 || r.w.User == "" {
		return quota.Lack{}, true
	}
	bound := func(i int) int64 {
		if v, ok := q.UserMax[i]; ok {
			return v
		}
		return quota.Unbounded
	}
	return bounded(r.w.Queue, p.chargedTo(r), charge, bound)
}

func (p *pass) chargedTo(r *record) quota.Resources {
	return p.charged(r, func(x *queue.Workload) bool { return x.User == r.w.User })
}

// ownFits asks both: bounds that are not the queue's but of the work in it.
func (p *pass) ownFits(r *record, leaf int, charge quota.Resources) bool {
	_, pinned := p.pinnedFits(r, leaf, charge)
	_, user := p.userFits(r, charge)
	return pinned && user
}

func bounded(name string, used, charge quota.Resources, bound func(i int) int64) (quota.Lack, bool) {
	for i, v := range charge {
		if most := bound(i); v > 0 && most != quota.Unbounded && quota.Sum(used.At(i), v) > most {
			return quota.Lack{Queue: name, Resource: i, Bound: most, Used: used.At(i), Asked: v}, false
		}
	}
	return quota.Lack{}, true
}

// compare orders two workloads of q, by turns of their users if the queue has them.
func (p *pass) compare(q *queue.Queue, leaf int, a, b *queue.Workload) int {
	rest := compareLimits(p.shortFirst[leaf], a, b)
	if !q.Turns || a.User == b.User || a.Priority != b.Priority {
		return rest
	}
	ra, rb := p.s.records[a.Key], p.s.records[b.Key]
	return cmp.Or(p.partOf(p.chargedTo(ra)).compare(p.partOf(p.chargedTo(rb))), rest)
}
