package simulations

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/admission"
)

// causes is what is remembered of the controller's acts since something happened
// that it did not do itself: an event of the scenario, a gang that ended, a fault.
// From these follow the promises about evictions.
type causes struct {
	epoch int // counts outside events
	moves int // admissions and evictions since the last one
	// owed are the claims for which somebody was evicted and that have not started.
	owed map[string]debt
	// took is who was evicted for whom, since the last outside event.
	took map[[2]string]bool
	// entered is when each gang was last admitted, and in which epoch.
	entered map[string]entry
}

type debt struct {
	epoch   int
	victims []*workloadObject
}

type entry struct {
	at    time.Duration
	epoch int
}

// outside notes that something happened that the controller did not do.
func (c *Cluster) outside() {
	k := &c.causes
	k.epoch++
	k.moves = 0
	clear(k.took)
}

// entered notes an admission.
func (c *Cluster) entered(w *workloadObject) {
	k := &c.causes
	if k.entered == nil {
		k.entered = map[string]entry{}
	}
	k.entered[w.key] = entry{c.clock.Now(), k.epoch}
	delete(k.owed, w.key)
	c.moved()
}

// left notes an eviction. That two take each other's place in turn must not be; that a
// gang is let in and sent away at one instant is waste, and is flagged.
func (c *Cluster) left(w *workloadObject, e *admission.Eviction) {
	k := &c.causes
	c.moved()
	if e.For == "" {
		return
	}
	if in, ok := k.entered[w.key]; ok && in == (entry{c.clock.Now(), k.epoch}) && !c.faulty() {
		c.flags = append(c.flags, fmt.Sprintf("at %s: %s is evicted for %s at the instant at which it was admitted", Spoken(c.clock.Now()), w.key, e.For))
	}
	if k.took == nil {
		k.took, k.owed = map[[2]string]bool{}, map[string]debt{}
	}
	if k.took[[2]string{e.For, w.key}] && !c.faulty() {
		c.violate("%s is evicted for %s, and %s was for %s, though nothing else happened", w.key, e.For, e.For, w.key)
	}
	k.took[[2]string{w.key, e.For}] = true
	d := k.owed[e.For]
	d.epoch, d.victims = k.epoch, append(d.victims, w)
	k.owed[e.For] = d
}

// maxMoves bounds how often gangs may be let in and sent away while nothing else
// happens, for each gang there is: once in and out, and as much again for what time
// alone brings about.
const maxMoves = 4

func (c *Cluster) moved() {
	k := &c.causes
	k.moves++
	if n := len(c.workloads); k.moves > maxMoves*n+maxMoves && !c.faulty() {
		c.violate("%d admissions and evictions of %d gangs, though nothing happens", k.moves, n)
	}
}

// faulty says that faults may be what moves gangs.
func (c *Cluster) faulty() bool { return c.fault != nil || c.behind != nil }

// inVain are the claims for which somebody was evicted, that nobody stops for any
// more, and that wait all the same, though nothing else happened.
func (c *Cluster) inVain() []string {
	var bad []string
	for _, key := range slices.Sorted(maps.Keys(c.causes.owed)) {
		d, w := c.causes.owed[key], c.workloads[key]
		switch {
		case w == nil || w.finished || w.admission != nil || d.epoch != c.causes.epoch || c.faulty():
			delete(c.causes.owed, key)
		case !c.stopsAny():
			var names []string
			for _, v := range d.victims {
				names = append(names, v.key)
			}
			bad = append(bad, fmt.Sprintf("%v evicted in vain: %s waits: %s: %s", names, key, w.reason, w.message))
			delete(c.causes.owed, key)
		}
	}
	return bad
}

// stopsAny says that some pod of a gang still stops: victims and surplus take turns.
func (c *Cluster) stopsAny() bool {
	for _, p := range c.pods {
		if p.owner != nil && p.live() && (p.stopping || !p.owner.current(p)) {
			return true
		}
	}
	return false
}

// idleFits are the gangs that are told that there is too little room, though a
// place for the minimum of each can be found by going through the nodes one after
// the other. What plans promise is not free. It may miss a fit; what it finds is one.
func (c *Cluster) idleFits() []string {
	var bad []string
	var taken map[string]map[string]int64
	for _, w := range c.gangs() {
		if w.reason != ReasonCapacity && w.reason != ReasonFragmented || w.admission != nil || w.finished || w.MinTotal != nil {
			continue
		}
		if taken == nil {
			taken, _ = c.claims()
		}
		if at := c.firstFit(w, taken); at != "" {
			bad = append(bad, fmt.Sprintf("%s is told %s (%s), and would fit:%s", w.key, w.reason, w.message, at))
		}
	}
	return bad
}

// firstFit is where the minimum of the gang fits beside what is taken, or "".
func (c *Cluster) firstFit(w *workloadObject, taken map[string]map[string]int64) string {
	more, at := map[string]map[string]int64{}, ""
	for i := range w.PodSets {
		s := &w.PodSets[i]
		if s.Topology.Required || w.Topology.Required {
			return ""
		}
		left := min(s.Min, s.Pods)
		for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
			n := c.nodes[name]
			if !n.open() || n.rejects(s) != "" || n.unlike(w.Sharing, s.Requests) != "" {
				continue
			}
			if more[name] == nil {
				more[name] = map[string]int64{}
			}
			for ; left > 0 && n.holds(s, taken[name], more[name]); left-- {
				for _, a := range needs(s.Requests) {
					more[name][a.Resource] += a.Value
				}
				at += " " + name
			}
		}
		if left > 0 {
			return ""
		}
	}
	return at
}

// open says that nothing keeps all new pods off the node.
func (n *nodeObject) open() bool {
	return !n.cordoned && !n.notReady && !n.refuses && !n.silent && n.TimeSlices < 2
}

// holds says that one more pod of the set has room on the node.
func (n *nodeObject) holds(s *PodSet, taken, more map[string]int64) bool {
	offer := n.offer()
	for _, a := range needs(s.Requests) {
		if has, _ := offer.Of(a.Resource); a.Value > 0 && a.Value > has-taken[a.Resource]-more[a.Resource] {
			return false
		}
	}
	return true
}
