package queue

import (
	"fmt"
	"slices"
)

// Set holds the waiting workloads of all queues.
type Set struct {
	lines map[string]*line
	byKey map[string]*Workload
}

// line is what waits in one queue.
type line struct {
	groups  []*Group // by their first member
	byShape map[string]*Group
}

// Group is the waiting workloads of one shape in one queue.
type Group struct {
	Shape   string
	Members []*Workload // never empty, in the order of Compare
}

// Head is the first member.
func (g *Group) Head() *Workload { return g.Members[0] }

// NewSet returns a Set in which nothing waits.
func NewSet() *Set { return &Set{lines: map[string]*line{}, byKey: map[string]*Workload{}} }

// Put adds w, or replaces the workload of the same key.
func (s *Set) Put(w *Workload) {
	s.Remove(w.Key)
	l := s.lines[w.Queue]
	if l == nil {
		l = &line{byShape: map[string]*Group{}}
		s.lines[w.Queue] = l
	}
	g := l.byShape[w.Shape()]
	if g == nil {
		g = &Group{Shape: w.Shape()}
		l.byShape[w.Shape()] = g
	} else {
		l.unlist(g)
	}
	i, _ := slices.BinarySearchFunc(g.Members, w, Compare)
	g.Members = slices.Insert(g.Members, i, w)
	l.list(g)
	s.byKey[w.Key] = w
}

// Remove takes the workload called key out, if it is in.
func (s *Set) Remove(key string) {
	w, ok := s.byKey[key]
	if !ok {
		return
	}
	delete(s.byKey, key)
	l := s.lines[w.Queue]
	g := l.byShape[w.Shape()]
	l.unlist(g)
	i, found := slices.BinarySearchFunc(g.Members, w, Compare)
	if !found {
		panic(fmt.Sprintf("queue: %s is not where its order puts it", key))
	}
	g.Members = slices.Delete(g.Members, i, i+1)
	if len(g.Members) == 0 {
		delete(l.byShape, g.Shape)
	} else {
		l.list(g)
	}
	if len(l.groups) == 0 {
		delete(s.lines, w.Queue)
	}
}

func compareHeads(a, b *Group) int { return Compare(a.Head(), b.Head()) }

func (l *line) list(g *Group) {
	i, _ := slices.BinarySearchFunc(l.groups, g, compareHeads)
	l.groups = slices.Insert(l.groups, i, g)
}

func (l *line) unlist(g *Group) {
	i, found := slices.BinarySearchFunc(l.groups, g, compareHeads)
	if !found {
		panic(fmt.Sprintf("queue: shape %s is not where its first member puts it", g.Shape))
	}
	l.groups = slices.Delete(l.groups, i, i+1)
}

// Has says whether the workload called key waits.
func (s *Set) Has(key string) bool { _, ok := s.byKey[key]; return ok }

// Len returns how many workloads wait.
func (s *Set) Len() int { return len(s.byKey) }

// Groups returns what waits in the queue, by first member. Not to be changed.
func (s *Set) Groups(queue string) []*Group {
	if l := s.lines[queue]; l != nil {
		return l.groups
	}
	return nil
}

// Group returns the group that w is in, or nil.
func (s *Set) Group(w *Workload) *Group {
	if l := s.lines[w.Queue]; l != nil {
		return l.byShape[w.Shape()]
	}
	return nil
}

// Queues returns the names of queues in which something waits, sorted.
func (s *Set) Queues() []string {
	names := make([]string, 0, len(s.lines))
	for name := range s.lines {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Order returns everything that waits in the queue, in order.
func (s *Set) Order(queue string) []*Workload {
	var all []*Workload
	for _, g := range s.Groups(queue) {
		all = append(all, g.Members...)
	}
	slices.SortFunc(all, Compare)
	return all
}

// Check returns what does not hold of the Set's invariants.
func (s *Set) Check() []string {
	var bad []string
	n := 0
	for name, l := range s.lines {
		if !slices.IsSortedFunc(l.groups, compareHeads) {
			bad = append(bad, fmt.Sprintf("queue %s: its groups are out of order", name))
		}
		for _, g := range l.groups {
			n += len(g.Members)
			if !slices.IsSortedFunc(g.Members, Compare) {
				bad = append(bad, fmt.Sprintf("queue %s: a group is out of order", name))
			}
		}
	}
	if n != len(s.byKey) {
		bad = append(bad, fmt.Sprintf("%d workloads wait, groups hold %d", len(s.byKey), n))
	}
	return bad
}
