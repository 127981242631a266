package admission

import (
	"cmp"
	"container/heap"

	"sluice.dev/sluice/queue"
)

// lineup is the groups of one queue with the next member of each, as far as a pass
// has come: a heap, so that who is next is found without asking every group again.
// Members only ever move on and groups only ever fail, so a group that changed is
// mended when it comes to the front.
type lineup struct {
	groups     []*queue.Group
	next       []*queue.Workload
	shortFirst bool // see Config.ShortestFirst
}

func (l *lineup) Len() int           { return len(l.groups) }
func (l *lineup) Less(i, j int) bool { return compareLimits(l.shortFirst, l.next[i], l.next[j]) < 0 }

func (l *lineup) Swap(i, j int) {
	l.groups[i], l.groups[j] = l.groups[j], l.groups[i]
	l.next[i], l.next[j] = l.next[j], l.next[i]
}

// Push is needed by heap.Interface; groups are only ever taken off.
func (l *lineup) Push(any) { panic("admission: a group joined a line while it is served") }

// Pop takes the last one off.
func (l *lineup) Pop() any {
	n := len(l.groups) - 1
	l.groups, l.next = l.groups[:n], l.next[:n]
	return nil
}

// compareLimits is the order of two workloads of one queue that does not look at
// users. Members of one group have one limit, so it is the order of groups as well.
func compareLimits(shortFirst bool, a, b *queue.Workload) int {
	if !shortFirst || a.Priority != b.Priority || a.Limit == b.Limit {
		return queue.Compare(a, b)
	}
	return cmp.Or(queue.CompareBool(a.Limit == 0, b.Limit == 0), cmp.Compare(a.Limit, b.Limit))
}

// first is the next workload of the queue that may be tried, or nil.
func (p *pass) first(leaf int, name string) *queue.Workload {
	l := p.lines[leaf]
	if l == nil || p.s.plain {
		l = &lineup{}
		for _, g := range p.s.waiting.Groups(name) {
			if w := p.member(g); w != nil {
				l.groups, l.next = append(l.groups, g), append(l.next, w)
			}
		}
		heap.Init(l)
		p.lines[leaf] = l
	}
	if l.shortFirst != p.shortFirst[leaf] {
		l.shortFirst = p.shortFirst[leaf]
		heap.Init(l)
	}
	for len(l.groups) > 0 {
		g := l.groups[0]
		w := p.member(g)
		if _, failed := p.failed[g]; failed || w == nil {
			heap.Pop(l)
			continue
		}
		if w == l.next[0] {
			return w
		}
		l.next[0] = w
		heap.Fix(l, 0)
	}
	return nil
}

// firstByTurns is first where users take turns: who is next then changes with what
// each of them is charged.
func (p *pass) firstByTurns(leaf int, q *queue.Queue) *queue.Workload {
	var best *queue.Workload
	for _, g := range p.s.waiting.Groups(q.Quota.Name) {
		w := p.member(g)
		if w == nil || best != nil && p.compare(q, leaf, best, w) < 0 {
			continue
		}
		if _, bad := p.failed[g]; !bad {
			best = w
		}
	}
	return best
}
