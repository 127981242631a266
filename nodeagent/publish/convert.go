package publish

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/nodeagent"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
	"sluice.dev/sluice/nodeagent/kubelet"
)

const (
	maxLinks, maxShares, maxRegistered, maxHoldings, maxHeld = 496, 32, 64, 512, 64
)

// conversion is one report in the making.
type conversion struct {
	out      v1alpha1.Report
	troubles []trouble
	profiles map[string]string // by MIG UUID, as the kubelet knows it
}

// Convert joins what was seen into a report that the API server accepts. Times at
// which things began are left zero: see Book.
func Convert(s Seen) *v1alpha1.Report {
	from := s.Report
	c := &conversion{profiles: map[string]string{}}
	c.out = v1alpha1.Report{
		State: v1alpha1.State(from.State), Message: from.Message, BootID: clip(from.BootID, 64), AgentVersion: clip(s.AgentVersion, 64),
	}
	if d := from.Driver; d != (nodeagent.Driver{}) {
		c.out.Driver = &v1alpha1.Driver{Version: clip(d.Version, 64), CUDA: clip(d.CUDA, 64), NVML: clip(d.NVML, 64)}
	}
	if l := from.Layout; l.Print != "" {
		c.out.Layout = &v1alpha1.LayoutChange{Generation: max(l.Generation, 0), Print: clip(l.Print, 128)}
	}
	for _, o := range s.Neighbours.Offered {
		for _, d := range o.Devices {
			c.profiles[d.UUID] = profileOf(o.Resource)
		}
	}
	c.sharing(s)
	if from.State == nodeagent.Ready {
		c.cards(from)
	}
	c.links(from.Links)
	c.registered(s.Neighbours, from)
	c.holdings(s.Neighbours)
	c.look(s)
	c.settle()
	return &c.out
}

func (c *conversion) cards(r *nodeagent.Report) {
	names := c.models(r.Cards)
	for i := range r.Cards {
		from := &r.Cards[i]
		switch {
		case len(c.out.Cards) == maxCards:
			c.leftOut("cards", "%d cards, %d are listed", len(r.Cards), maxCards)
			return
		case from.Index < 0 || from.Index > maxCardIndex || slices.ContainsFunc(c.out.Cards, func(o v1alpha1.Card) bool { return o.Index == int32(from.Index) }):
			c.leftOut("cards", "a card with the index %d", from.Index)
		default:
			c.out.Cards = append(c.out.Cards, c.card(from, names[i]))
		}
	}
}

// sharing takes what the neighbours say, or what the report holds already.
func (c *conversion) sharing(s Seen) {
	k := s.Neighbours.Sharing
	if given := s.Report.Sharing; given != nil && k.From == "" {
		k = kubelet.Sharing{MIG: kubelet.MIGStrategy(given.MIGStrategy), From: given.From}
		for _, g := range given.Shares {
			k.Shares = append(k.Shares, kubelet.Share{Resource: g.Resource, Strategy: kubelet.Strategy(g.Strategy), Replicas: g.Replicas, Renamed: g.Renamed, FailAboveOne: g.FailAboveOne})
		}
	}
	c.out.Sharing = v1alpha1.Sharing{From: clip(k.From, 256)}
	switch m := v1alpha1.MIGStrategy(k.MIG); m {
	case v1alpha1.MIGNone, v1alpha1.MIGSingle, v1alpha1.MIGMixed:
		c.out.Sharing.MIGStrategy = m
	}
	for _, from := range k.Shares {
		strategy := v1alpha1.ShareStrategy(from.Strategy)
		switch {
		case len(c.out.Sharing.Shares) == maxShares:
			c.leftOut("sharing", "%d resources are shared, %d are listed", len(k.Shares), maxShares)
			return
		case from.Replicas < 2 || from.Replicas > 1024 || from.Resource == "" || clip(from.Resource, 96) != from.Resource || c.out.Share(from.Resource) != nil,
			strategy != v1alpha1.TimeSlicing && strategy != v1alpha1.MPS:
			c.leftOut("sharing", "%q shared as %q × %d", from.Resource, from.Strategy, from.Replicas)
		default:
			c.out.Sharing.Shares = append(c.out.Sharing.Shares, v1alpha1.Share{
				Resource: from.Resource, Strategy: strategy, Replicas: int32(from.Replicas), Renamed: from.Renamed, FailAboveOne: from.FailAboveOne,
			})
		}
	}
}

func (c *conversion) links(all []nodeagent.Link) {
	for _, l := range all {
		if len(c.out.Links) == maxLinks {
			c.leftOut("links", "%d pairs of cards, %d are listed", len(all), maxLinks)
			return
		}
		out := v1alpha1.Link{A: within(l.A, 0), B: within(l.B, 0), NVLinks: within(l.NVLinks, 0)}
		switch l.Path {
		case nodeagent.PathInternal, nodeagent.PathSingle, nodeagent.PathMultiple, nodeagent.PathHostBridge, nodeagent.PathNode, nodeagent.PathSystem:
			out.Path = string(l.Path)
		}
		if out.NVLinks > 0 || out.Path != "" {
			c.out.Links = append(c.out.Links, out)
		}
	}
}

// registered counts what the plugin told the kubelet, and of that what is not there.
func (c *conversion) registered(n Neighbours, from *nodeagent.Report) {
	if !n.OfferedKnown {
		return
	}
	// With a card lost, or something unread, a device that is not seen may still be there.
	sure := from.State == nodeagent.Ready && !slices.ContainsFunc(from.Cards, func(k nodeagent.Card) bool {
		return k.Lost || k.UUID == "" || k.Cut() && !k.InstancesKnown || slices.ContainsFunc(k.Errors, func(e nodeagent.FieldError) bool {
			return strings.HasPrefix(e.Field, "instances") || strings.HasPrefix(e.Field, "devices")
		})
	})
	for _, o := range n.Offered {
		if len(c.out.Registered) == maxRegistered || clip(o.Resource, 96) != o.Resource {
			c.leftOut("registered", "%d resources are registered, %d are listed", len(n.Offered), len(c.out.Registered))
			return
		}
		r := v1alpha1.Registered{Resource: o.Resource, Devices: within(len(o.Devices)+len(o.Unread), 0)}
		for _, d := range o.Devices {
			if card, _ := c.find(d); sure && card == nil {
				r.Unknown++
			}
		}
		c.out.Registered = append(c.out.Registered, r)
	}
}

func (c *conversion) holdings(n Neighbours) {
	c.out.HoldingsKnown = n.HoldingsKnown
	for _, h := range n.Holdings {
		if len(c.out.Holdings) == maxHoldings {
			c.leftOut("holdings", "%d are held, %d are listed", len(n.Holdings), maxHoldings)
			return
		}
		out := v1alpha1.Holding{Namespace: clip(h.Namespace, 63), Pod: clip(h.Pod, 253), Container: clip(h.Container, 63), Resource: clip(h.Resource, 260)}
		for _, d := range h.Devices {
			held := v1alpha1.HeldDevice{ID: clip(d.ID, 128)}
			held.Card, held.Instance = c.find(d)
			if d.Replica >= 0 {
				replica := within(d.Replica, 0)
				held.Replica = &replica
			}
			out.Devices = append(out.Devices, held)
		}
		for _, id := range h.Unread {
			out.Devices = append(out.Devices, v1alpha1.HeldDevice{ID: clip(id, 128)})
		}
		if len(out.Devices) > maxHeld {
			c.leftOut("holdings", "%s/%s holds %d devices of %s, %d are listed", h.Namespace, h.Pod, len(out.Devices), h.Resource, maxHeld)
			out.Devices = out.Devices[:maxHeld]
		}
		c.out.Holdings = append(c.out.Holdings, out)
	}
}

// find is the card, and the GPU instance if it is a slice, that a device id means.
func (c *conversion) find(d kubelet.Device) (card, instance *int32) {
	for i := range c.out.Cards {
		k := &c.out.Cards[i]
		here := d.UUID != "" && d.UUID == k.UUID || d.Parent != "" && d.Parent == k.UUID || d.Minor >= 0 && k.Minor != nil && int(*k.Minor) == d.Minor
		for j := range k.Instances {
			in := &k.Instances[j]
			byUUID := d.UUID != "" && slices.ContainsFunc(in.Devices, func(m v1alpha1.MIGDevice) bool { return m.UUID == d.UUID })
			byPlace := here && (d.GPUInstance >= 0 && int(in.ID) == d.GPUInstance || d.Start >= 0 && in.Start != nil && int(*in.Start) == d.Start)
			if byUUID || byPlace {
				index, id := k.Index, in.ID
				if id < 0 {
					return &index, nil
				}
				return &index, &id
			}
		}
		if here && d.GPUInstance < 0 && d.Start < 0 {
			index := k.Index
			return &index, nil
		}
	}
	return nil, nil
}

// leftOut notes that something does not fit into a report, or contradicts itself.
func (c *conversion) leftOut(field, format string, args ...any) {
	c.troubles = append(c.troubles, trouble{what: v1alpha1.ProblemLeftOut, field: field, message: fmt.Sprintf(format, args...)})
}

// settle orders and bounds the problems and says the rest in a few words.
func (c *conversion) settle() {
	c.out.Problems = problems(c.troubles)
	grave := slices.ContainsFunc(c.out.Problems, func(p v1alpha1.Problem) bool {
		return v1alpha1.Gravity(p.What) <= v1alpha1.Gravity(v1alpha1.ProblemUnread)
	})
	if c.out.State == v1alpha1.Ready && grave {
		c.out.State = v1alpha1.Degraded
	}
	if c.out.State == v1alpha1.Degraded {
		c.out.Message = cmp.Or(c.out.Message, said(&c.out.Problems[0]))
	}
	c.out.Message = clip(c.out.Message, 1024)
	c.out.Summary = summarize(&c.out)
}
