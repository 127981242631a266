package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"sluice.dev/sluice/quota"
)

// Pods mind other pods by selectors. The core knows groups instead: dimensions in which
// pods are counted on their nodes. A selector needs one only if pods of somebody else
// than the gang that minds them are selected, which few do: most gangs mind their own.

// groupsMost bounds how many dimensions serve as groups at a time.
const groupsMost = 64

// chosen is pods of some namespaces whose labels are as a selector asks.
type chosen struct {
	key    string
	spaces []string        // namespaces by name
	among  labels.Selector // and those with such labels; nil is none
	pods   labels.Selector
}

func newChosen(spaces []string, among, pods labels.Selector) chosen {
	slices.Sort(spaces)
	c := chosen{spaces: slices.Compact(spaces), among: among, pods: pods}
	c.key = strings.Join(c.spaces, ",") + "|"
	if among != nil {
		c.key += "*" + among.String()
	}
	c.key += "|" + pods.String()
	return c
}

func (c *chosen) text() string {
	if c.pods.Empty() {
		return "any pods"
	}
	return "pods with " + c.pods.String()
}

// minded is chosen pods that somebody minds.
type minded struct {
	chosen
	gangs, pods map[string]bool // the workloads and the pods of others that are chosen
	askers      map[string]bool // workloads that mind them
	hungry      map[string]bool // those of askers that want them though nobody else is chosen
	shy         map[string]*shy // by topology key
	dim         int             // the group; 0 is none, less if there is none left
}

// shy is who must not share a domain with chosen pods, which holds for these as well.
type shy struct {
	who map[string]bool
	dim int
}

// social is a workload, or a pod of nobody's, with what matters of it to others.
type social struct {
	id, space string
	gang      bool
	sets      []labels.Set
	bonds     []bond
	in        []*minded // who choose it, by key
}

// bond is that pods of one set mind chosen ones.
type bond struct {
	chosen
	set    int
	shy    string // the topology key, if they must not share a domain
	hungry bool
}

// groups is who minds whom.
type groups struct {
	space    *quota.Space
	labelsOf func(namespace string) labels.Set
	all      map[string]*social
	minded   map[string]*minded
	byLabel  map[string][]*minded       // by key=value, of which one is part of the selector
	loose    []*minded                  // selectors without such
	keys     map[string]bool            // label keys of which
	have     map[string]map[string]bool // the socials are known, by key=value
	dirty    map[*minded]bool
	told     map[string]bool // socials that others have to be told of anew
	used     []bool          // dimensions, by number
}

func newGroups(space *quota.Space, labelsOf func(string) labels.Set) *groups {
	return &groups{
		space: space, labelsOf: labelsOf, all: map[string]*social{}, minded: map[string]*minded{}, byLabel: map[string][]*minded{},
		keys: map[string]bool{}, have: map[string]map[string]bool{}, dirty: map[*minded]bool{}, told: map[string]bool{},
	}
}

// anchors are the key=value pairs of which chosen pods have one, and their label key;
// none if the selector asks for no value.
func (c *chosen) anchors() (key string, pairs []string) {
	requirements, _ := c.pods.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			for v := range r.Values() {
				pairs = append(pairs, r.Key()+"="+v)
			}
			return r.Key(), pairs
		}
	}
	return "", nil
}

func (g *groups) chooses(c *chosen, o *social, set labels.Set) bool {
	return c.pods.Matches(set) && (slices.Contains(c.spaces, o.space) || c.among != nil && c.among.Matches(g.labelsOf(o.space)))
}

func (g *groups) choosesAny(c *chosen, o *social) bool {
	return slices.ContainsFunc(o.sets, func(set labels.Set) bool { return g.chooses(c, o, set) })
}

// put takes in o, in place of what had its id.
func (g *groups) put(o *social) {
	if old := g.all[o.id]; old != nil {
		if sameSocial(old, o) {
			return
		}
		g.drop(o.id)
	}
	g.all[o.id] = o
	for _, set := range o.sets {
		for k, v := range set {
			if g.keys[k] {
				g.know(k+"="+v, o.id)
			}
		}
	}
	for i := range o.bonds {
		b := &o.bonds[i]
		m := g.mind(&b.chosen)
		if o.gang {
			m.askers[o.id] = true
		}
		if b.hungry {
			m.hungry[o.id] = true
		}
		if b.shy != "" {
			if m.shy[b.shy] == nil {
				m.shy[b.shy] = &shy{who: map[string]bool{}}
			}
			m.shy[b.shy].who[o.id] = true
		}
		g.dirty[m] = true
	}
	found := map[*minded]bool{}
	for _, set := range o.sets {
		for k, v := range set {
			for _, m := range g.byLabel[k+"="+v] {
				found[m] = true
			}
		}
	}
	for _, m := range g.loose {
		found[m] = true
	}
	for m := range found {
		if g.choosesAny(&m.chosen, o) {
			g.choose(m, o)
		}
	}
}

func sameSocial(a, b *social) bool {
	return a.space == b.space && slices.EqualFunc(a.sets, b.sets, func(x, y labels.Set) bool { return maps.Equal(x, y) }) &&
		slices.EqualFunc(a.bonds, b.bonds, func(x, y bond) bool {
			return x.key == y.key && x.set == y.set && x.shy == y.shy && x.hungry == y.hungry
		})
}

func (g *groups) know(pair, id string) {
	if g.have[pair] == nil {
		g.have[pair] = map[string]bool{}
	}
	g.have[pair][id] = true
}

// choose notes that o is chosen.
func (g *groups) choose(m *minded, o *social) {
	to := m.pods
	if o.gang {
		to = m.gangs
	}
	if to[o.id] {
		return
	}
	to[o.id] = true
	i, _ := slices.BinarySearchFunc(o.in, m, func(a, b *minded) int { return strings.Compare(a.key, b.key) })
	o.in = slices.Insert(o.in, i, m)
	g.dirty[m] = true
}

// mind is the entry of chosen pods, made with all that are chosen if it is new.
func (g *groups) mind(c *chosen) *minded {
	if m := g.minded[c.key]; m != nil {
		return m
	}
	m := &minded{chosen: *c, gangs: map[string]bool{}, pods: map[string]bool{}, askers: map[string]bool{}, hungry: map[string]bool{}, shy: map[string]*shy{}}
	g.minded[c.key] = m
	key, pairs := c.anchors()
	if key == "" {
		g.loose = append(g.loose, m)
		for _, o := range g.all {
			if g.choosesAny(&m.chosen, o) {
				g.choose(m, o)
			}
		}
		return m
	}
	if !g.keys[key] {
		g.keys[key] = true
		for id, o := range g.all {
			for _, set := range o.sets {
				if v, ok := set[key]; ok {
					g.know(key+"="+v, id)
				}
			}
		}
	}
	for _, pair := range pairs {
		g.byLabel[pair] = append(g.byLabel[pair], m)
		for id := range g.have[pair] {
			if o := g.all[id]; g.choosesAny(&m.chosen, o) {
				g.choose(m, o)
			}
		}
	}
	return m
}

// drop forgets what has the id.
func (g *groups) drop(id string) {
	o := g.all[id]
	if o == nil {
		return
	}
	delete(g.all, id)
	for _, set := range o.sets {
		for k, v := range set {
			if pair := k + "=" + v; g.keys[k] {
				delete(g.have[pair], id)
				if len(g.have[pair]) == 0 {
					delete(g.have, pair)
				}
			}
		}
	}
	for _, m := range o.in {
		delete(m.gangs, id)
		delete(m.pods, id)
		g.dirty[m] = true
	}
	for i := range o.bonds {
		m := g.minded[o.bonds[i].key]
		delete(m.askers, id)
		delete(m.hungry, id)
		for _, s := range m.shy {
			delete(s.who, id)
		}
		g.dirty[m] = true
	}
}

// settle gives groups to those that need one, takes them from those that do not, and
// returns whom the core knows otherwise since.
func (g *groups) settle() map[string]bool {
	list := slices.SortedFunc(maps.Keys(g.dirty), func(a, b *minded) int { return strings.Compare(a.key, b.key) })
	for _, m := range list {
		if m.dim != 0 && !m.needed() {
			g.free(m.dim)
			m.dim = 0
			g.tell(m.gangs, m.pods, m.askers)
		}
		for key, s := range m.shy {
			if s.dim != 0 && !m.minds(s) {
				g.free(s.dim)
				s.dim = 0
				g.tell(s.who, m.gangs)
			}
			if len(s.who) == 0 {
				delete(m.shy, key)
			}
		}
	}
	for _, m := range list {
		if m.dim <= 0 && m.needed() && g.take(&m.dim) {
			g.tell(m.gangs, m.pods, m.askers)
		}
		for _, key := range slices.Sorted(maps.Keys(m.shy)) {
			if s := m.shy[key]; s.dim <= 0 && m.minds(s) && g.take(&s.dim) {
				g.tell(s.who, m.gangs)
			}
		}
		if m.dim >= 0 { // one that found no group left is looked at again
			delete(g.dirty, m)
		}
		if len(m.askers)+len(m.shy) == 0 {
			g.forget(m)
		}
	}
	told := g.told
	g.told = map[string]bool{}
	return told
}

// needed says whether pods are chosen of others than the one gang that minds them.
func (m *minded) needed() bool {
	return len(m.hungry) > 0 || pairs(m.askers, m.gangs) || len(m.askers) > 0 && len(m.pods) > 0
}

// minds says whether a gang is chosen by others who must not share a domain with it.
func (m *minded) minds(s *shy) bool { return pairs(s.who, m.gangs) }

// pairs says whether there is one of a and another one of b.
func pairs(a, b map[string]bool) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	if len(a) > 1 || len(b) > 1 {
		return true
	}
	for id := range a {
		return !b[id]
	}
	return false
}

// take gives a dimension, and says whether that is other than before.
func (g *groups) take(dim *int) bool {
	for n := range groupsMost {
		if n == len(g.used) {
			g.used = append(g.used, false)
		}
		if !g.used[n] {
			g.used[n] = true
			*dim = g.space.Index(groupName(n))
			return true
		}
	}
	was := *dim
	*dim = -1
	return was != -1
}

func (g *groups) free(dim int) {
	for n := range g.used {
		if dim > 0 && g.space.Index(groupName(n)) == dim {
			g.used[n] = false
		}
	}
}

// groupName is the dimension of a group: no flavor and no resource is called so.
func groupName(n int) string { return fmt.Sprintf("(group):%d", n) }

func (g *groups) tell(who ...map[string]bool) {
	for _, ids := range who {
		maps.Copy(g.told, ids)
	}
}

func (g *groups) forget(m *minded) {
	for id := range maps.Keys(m.gangs) {
		g.unchoose(id, m)
	}
	for id := range maps.Keys(m.pods) {
		g.unchoose(id, m)
	}
	delete(g.minded, m.key)
	delete(g.dirty, m)
	g.loose = slices.DeleteFunc(g.loose, func(o *minded) bool { return o == m })
	_, pairs := m.anchors()
	for _, pair := range pairs {
		if g.byLabel[pair] = slices.DeleteFunc(g.byLabel[pair], func(o *minded) bool { return o == m }); len(g.byLabel[pair]) == 0 {
			delete(g.byLabel, pair)
		}
	}
}

func (g *groups) unchoose(id string, m *minded) {
	o := g.all[id]
	o.in = slices.DeleteFunc(o.in, func(x *minded) bool { return x == m })
}

// dims are the groups that pods of the set are counted in.
func (g *groups) dims(o *social, set int) []int {
	var dims []int
	for _, m := range o.in {
		if m.dim > 0 && g.chooses(&m.chosen, o, o.sets[set]) {
			dims = append(dims, m.dim)
		}
	}
	for i := range o.bonds {
		b := &o.bonds[i]
		if b.set != set || b.shy == "" {
			continue
		}
		if s := g.minded[b.key].shy[b.shy]; s.dim > 0 && !slices.Contains(dims, s.dim) {
			dims = append(dims, s.dim)
		}
	}
	slices.Sort(dims)
	return dims
}
