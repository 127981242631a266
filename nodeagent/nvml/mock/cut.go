package mock

import (
	"fmt"
	"slices"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// instance is a GPU instance.
type instance struct {
	*mock.GpuInstance // panics with the name of what is not written here
	card              *card
	profile           *Profile
	id, start         int
	computes          []*compute
	dead              bool
}

// compute is a compute instance, and the MIG device that it makes.
type compute struct {
	*mock.ComputeInstance
	gi         *instance
	enum       int
	id         int
	start, len int // compute slices
	uuid       string
}

// fits says whether the profile may be placed at start now. The node is locked.
func (c *card) fits(p *Profile, start int) bool {
	computes := p.Compute
	for _, gi := range c.instances {
		if start < gi.start+gi.profile.Size && gi.start < start+p.Size {
			return false
		}
		if p.media() && gi.profile.media() {
			return false
		}
		computes += gi.profile.Compute
	}
	return computes <= c.model.Compute
}

// create cuts a slice out of the card, at start, or where the driver wants it if that is
// below 0. The node is locked.
func (c *card) create(p *Profile, start int) (*instance, gonvml.Return) {
	if c.current != gonvml.DEVICE_MIG_ENABLE {
		return nil, gonvml.ERROR_NOT_SUPPORTED
	}
	starts := c.model.order(p)
	if start >= 0 {
		if !slices.Contains(p.Starts, start) {
			return nil, gonvml.ERROR_INVALID_ARGUMENT
		}
		starts = []int{start}
	}
	for _, s := range starts {
		if !c.fits(p, s) {
			continue
		}
		gi := &instance{GpuInstance: &mock.GpuInstance{}, card: c, profile: p, start: s, id: -1}
		for _, id := range c.model.ids(p, s) {
			if !slices.ContainsFunc(c.instances, func(o *instance) bool { return o.id == id }) {
				gi.id = id
				break
			}
		}
		if gi.id < 0 {
			panic(fmt.Sprintf("mock: no number left for %s at %d", p.Name, s))
		}
		c.instances = append(c.instances, gi)
		return gi, gonvml.SUCCESS
	}
	return nil, gonvml.ERROR_INSUFFICIENT_RESOURCES
}

// split makes a compute instance of so many slices in the GPU instance, in the first
// room that there is. The node is locked.
func (gi *instance) split(slicesWanted int) (*compute, gonvml.Return) {
	if gi.dead {
		return nil, gonvml.ERROR_NOT_FOUND
	}
	enum := -1
	for e, n := range computes(gi.profile.Compute) {
		if n == slicesWanted {
			enum = e
		}
	}
	if enum < 0 {
		return nil, gonvml.ERROR_NOT_SUPPORTED
	}
	start := 0
	for _, o := range gi.computes { // in the order of their starts
		if o.start >= start+slicesWanted {
			break
		}
		start = o.start + o.len
	}
	slot := slices.Index(gi.card.slots, nil)
	if start+slicesWanted > gi.profile.Compute || slot < 0 {
		return nil, gonvml.ERROR_INSUFFICIENT_RESOURCES
	}
	n := gi.card.node
	n.made++
	ci := &compute{
		ComputeInstance: &mock.ComputeInstance{}, gi: gi, enum: enum, start: start, len: slicesWanted,
		uuid: "MIG-" + named(gi.card.uuid, gi.id, n.boot, n.made),
	}
	for slices.ContainsFunc(gi.computes, func(o *compute) bool { return o.id == ci.id }) {
		ci.id++
	}
	gi.computes = append(gi.computes, ci)
	slices.SortFunc(gi.computes, func(a, b *compute) int { return a.start - b.start })
	gi.card.slots[slot] = ci
	return ci, gonvml.SUCCESS
}

// destroy undoes create: not while a compute instance lives in it.
func (gi *instance) destroy() gonvml.Return {
	switch {
	case gi.dead:
		return gonvml.ERROR_NOT_FOUND
	case len(gi.computes) > 0:
		return gonvml.ERROR_IN_USE
	}
	gi.dead = true
	gi.card.instances = slices.DeleteFunc(gi.card.instances, func(o *instance) bool { return o == gi })
	return gonvml.SUCCESS
}

// destroy undoes split, and leaves a hole where its MIG device was.
func (ci *compute) destroy() gonvml.Return {
	i := slices.Index(ci.gi.card.slots, ci)
	if i < 0 {
		return gonvml.ERROR_NOT_FOUND
	}
	ci.gi.card.slots[i] = nil
	ci.gi.computes = slices.DeleteFunc(ci.gi.computes, func(o *compute) bool { return o == ci })
	return gonvml.SUCCESS
}

// clear destroys the whole layout.
func (c *card) clear() {
	for _, gi := range slices.Clone(c.instances) {
		for _, ci := range slices.Clone(gi.computes) {
			_ = ci.destroy()
		}
		_ = gi.destroy()
	}
}

// reset is what a reset of the card does: pending modes come, layouts and errors go.
func (c *card) reset() {
	c.clear()
	c.current = c.pending
	c.recovery = min(c.recovery, 0)
	c.ecc[0], c.ecc[1] = 0, 0
	c.remap[2] = 0
	c.clocks = 0
	c.lost, c.gone = false, false
	c.node.tick++
	c.lostAt = c.node.tick // whoever has it open has to open it anew
}

// reboot boots the node. MIG mode outlives it only on Ampere.
func (n *Node) reboot() {
	n.boot++
	for _, c := range n.cards {
		if c.model.Architecture != "ampere" {
			c.pending = gonvml.DEVICE_MIG_DISABLE
		}
		c.reset()
	}
}
