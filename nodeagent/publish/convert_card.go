package publish

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/nodeagent"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

const (
	maxCards, maxCardIndex, maxInstances, maxDevices = 32, 1024, 16, 8
	maxXids, maxSlowdowns                            = 32, 8
)

// card is one card. Its instances follow from what the driver says, or, where it may
// not, from the MIG devices and what the kubelet calls them.
func (c *conversion) card(from *nodeagent.Card, model string) v1alpha1.Card {
	out := v1alpha1.Card{
		Index: int32(from.Index), UUID: clip(from.UUID, 64), Model: model, Serial: clip(from.Serial, 64), Minor: optional(from.Minor),
		PCI: clip(from.PCI, 32), NUMANode: optional(from.NUMANode), MemoryMiB: max(from.MemoryMiB, 0), Health: health(&from.Health),
	}
	outage, _ := from.Outage()
	out.Out = v1alpha1.Outage(outage)
	if from.MIG != nil {
		out.MIG = &v1alpha1.MIGMode{Current: from.MIG.Current, Pending: from.MIG.Pending}
	}
	if f := from.Fabric; f != nil && f.State == "completed" {
		out.Fabric = &v1alpha1.Fabric{ClusterUUID: clip(f.ClusterUUID, 64), Clique: int64(f.Clique)}
	}
	if !from.Cut() {
		return out
	}
	out.InstancesKnown = from.InstancesKnown
	if from.InstancesKnown {
		out.Instances = c.instances(from)
	} else {
		out.Instances = c.fromDevices(from)
	}
	if len(out.Instances) > maxInstances {
		c.leftOut("instances", "card %d has %d GPU instances, %d are listed", from.Index, len(out.Instances), maxInstances)
		out.Instances = out.Instances[:maxInstances]
	}
	return out
}

// instances are the GPU instances as the driver lists them.
func (c *conversion) instances(from *nodeagent.Card) []v1alpha1.Instance {
	var all []v1alpha1.Instance
	units := uint64(0)
	for i := range from.Instances {
		g := &from.Instances[i]
		out := v1alpha1.Instance{ID: within(g.ID, -1), Profile: clip(g.Profile, 48), Devices: devicesOf(from, g)}
		if len(out.Devices) > maxDevices {
			c.leftOut("instances", "GPU instance %d of card %d has %d devices", g.ID, from.Index, len(out.Devices))
			out.Devices = out.Devices[:maxDevices]
		}
		if g.Size < 1 || g.Start < 0 || g.Start+g.Size > maxUnits {
			c.leftOut("instances", "GPU instance %d of card %d is %d units from %d", g.ID, from.Index, g.Size, g.Start)
		} else if span := (uint64(1)<<g.Size - 1) << g.Start; units&span != 0 {
			c.leftOut("instances", "GPU instance %d of card %d overlaps another: %d units from %d", g.ID, from.Index, g.Size, g.Start)
		} else {
			units |= span
			start := int32(g.Start)
			out.Start, out.Size = &start, int32(g.Size)
		}
		all = append(all, out)
	}
	return all
}

// devicesOf are the MIG devices of a GPU instance, by compute instance. The driver
// lists compute instances and devices in two places, of which one may be closed.
func devicesOf(from *nodeagent.Card, g *nodeagent.Instance) []v1alpha1.MIGDevice {
	var all []v1alpha1.MIGDevice
	for _, ci := range g.Compute {
		d := v1alpha1.MIGDevice{ComputeInstance: within(ci.ID, -1), Partial: ci.Partial}
		for k := range from.Devices {
			if from.Devices[k].Instance == g.ID && from.Devices[k].ComputeInstance == ci.ID {
				d.UUID = clip(from.Devices[k].UUID, 96)
			}
		}
		all = append(all, d)
	}
	if g.Unread {
		for k := range from.Devices {
			if from.Devices[k].Instance == g.ID {
				all = append(all, device(&from.Devices[k]))
			}
		}
	}
	slices.SortFunc(all, func(a, b v1alpha1.MIGDevice) int {
		return cmp.Or(cmp.Compare(a.ComputeInstance, b.ComputeInstance), cmp.Compare(a.UUID, b.UUID))
	})
	return all
}

func device(d *nodeagent.MIGDevice) v1alpha1.MIGDevice {
	return v1alpha1.MIGDevice{ComputeInstance: within(d.ComputeInstance, -1), UUID: clip(d.UUID, 96), Partial: d.ComputeSlices < d.InstanceSlices}
}

// fromDevices are the GPU instances by their MIG devices alone: where they lie is not
// known, and of what profile they are only if the kubelet has a name for the device.
func (c *conversion) fromDevices(from *nodeagent.Card) []v1alpha1.Instance {
	var all []v1alpha1.Instance
	for k := range from.Devices {
		d := &from.Devices[k]
		id := within(d.Instance, -1)
		at := slices.IndexFunc(all, func(i v1alpha1.Instance) bool { return id >= 0 && i.ID == id })
		if at < 0 {
			at = len(all)
			all = append(all, v1alpha1.Instance{ID: id})
		}
		if len(all[at].Devices) < maxDevices {
			all[at].Devices = append(all[at].Devices, device(d))
		}
		if profile := c.profiles[d.UUID]; profile != "" {
			all[at].Profile = profile
		}
	}
	slices.SortStableFunc(all, func(a, b v1alpha1.Instance) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// profileOf is the profile whose slices are offered under a name, or "".
func profileOf(resource string) string {
	name, ok := strings.CutPrefix(strings.TrimSuffix(resource, ".shared"), v1alpha1.SliceResource(""))
	if !ok {
		return ""
	}
	// 1g.5gb.me.all: the first dot is in the name, a later one was a plus.
	head, tail, dotted := strings.Cut(name, ".")
	if !dotted {
		return ""
	}
	size, suffix, plus := strings.Cut(tail, ".")
	if !plus {
		return clip(head+"."+size, 48)
	}
	return clip(head+"."+size+"+"+suffix, 48)
}

func health(from *nodeagent.Health) *v1alpha1.Health {
	h := v1alpha1.Health{RecoveryAction: clip(from.RecoveryAction, 48)}
	for _, x := range from.Xids {
		if len(h.Xids) == maxXids {
			break
		}
		one := v1alpha1.Xid{Code: int64(min(x.Code, 1<<62)), Action: clip(x.Action, 64), Instance: optional(x.Instance), Time: metav1.NewTime(x.Last).Rfc3339Copy()}
		// Events of several compute instances are one of their GPU instance, the latest.
		if n := len(h.Xids); n > 0 && sameXid(&h.Xids[n-1], &one) {
			if h.Xids[n-1].Time.Before(&one.Time) {
				h.Xids[n-1].Time = one.Time
			}
			continue
		}
		h.Xids = append(h.Xids, one)
	}
	if from.ECC != nil {
		h.UncorrectedErrors = int64(min(from.ECC.Uncorrected, 1<<62))
	}
	if r := from.RowRemap; r != nil {
		switch {
		case r.Failed:
			h.RowRemap = "failed"
		case r.Pending:
			h.RowRemap = "pending"
		}
	}
	for _, s := range from.Slowdown[:min(len(from.Slowdown), maxSlowdowns)] {
		h.Slowdown = append(h.Slowdown, clip(s, 32))
	}
	if h.RecoveryAction == "" && len(h.Xids) == 0 && h.UncorrectedErrors == 0 && h.RowRemap == "" && len(h.Slowdown) == 0 {
		return nil
	}
	return &h
}

// sameXid says whether two events are the same thing again.
func sameXid(a, b *v1alpha1.Xid) bool {
	return a.Code == b.Code && (a.Instance == nil) == (b.Instance == nil) && (a.Instance == nil || *a.Instance == *b.Instance)
}
