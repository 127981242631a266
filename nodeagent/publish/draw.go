package publish

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// Draw writes a report as text, for people and bug reports.
func Draw(node string, r *v1alpha1.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", cmp.Or(node, "this machine"), r.State)
	if r.Message != "" {
		fmt.Fprintf(&b, "%s\n", r.Message)
	}
	drawFacts(&b, r)
	for i := range r.Cards {
		drawCard(&b, r, &r.Cards[i])
	}
	drawLinks(&b, r)
	drawSharing(&b, r)
	drawHoldings(&b, r)
	if len(r.Problems) > 0 {
		b.WriteString("\nproblems\n")
	}
	for _, p := range r.Problems {
		since := ""
		if !p.Since.IsZero() {
			since = " (since " + p.Since.UTC().Format(time.RFC3339) + ")"
		}
		field := ""
		if p.Field != "" {
			field = " " + p.Field
		}
		fmt.Fprintf(&b, "  %s%s: %s%s\n", p.What, field, said(&p), since)
	}
	return b.String()
}

// drawFacts writes what is said of the node in a word each.
func drawFacts(b *strings.Builder, r *v1alpha1.Report) {
	var facts []string
	fact := func(name, value string) {
		if value != "" {
			facts = append(facts, name+" "+value)
		}
	}
	if r.Driver != nil {
		fact("driver", r.Driver.Version)
		fact("CUDA", r.Driver.CUDA)
		fact("NVML", r.Driver.NVML)
	}
	fact("boot", r.BootID)
	if r.Layout != nil {
		fact("layout", fmt.Sprintf("%d (%s)", r.Layout.Generation, r.Layout.Print))
	}
	fact("agent", r.AgentVersion)
	if len(facts) > 0 {
		fmt.Fprintf(b, "%s\n", strings.Join(facts, ", "))
	}
	fmt.Fprintf(b, "cards %s, taken %s\n", r.Summary.Cards, r.Summary.Taken)
}

func drawCard(b *strings.Builder, r *v1alpha1.Report, c *v1alpha1.Card) {
	facts := []string{cmp.Or(c.Model, "unknown"), c.UUID, c.PCI}
	if c.NUMANode != nil {
		facts = append(facts, fmt.Sprintf("NUMA %d", *c.NUMANode))
	}
	if c.MemoryMiB > 0 {
		facts = append(facts, fmt.Sprintf("%d MiB", c.MemoryMiB))
	}
	if c.Fabric != nil {
		facts = append(facts, fmt.Sprintf("fabric %s.%d", c.Fabric.ClusterUUID, c.Fabric.Clique))
	}
	facts = slices.DeleteFunc(facts, func(f string) bool { return f == "" })
	fmt.Fprintf(b, "\ncard %d  %s\n", c.Index, strings.Join(facts, ", "))
	if c.Out != "" {
		fmt.Fprintf(b, "  out of use: %s\n", c.Out)
	}
	switch {
	case c.MIG == nil:
	case c.MIG.Current != c.MIG.Pending:
		fmt.Fprintf(b, "  MIG %s, after a reset %s\n", onOff(c.MIG.Current), onOff(c.MIG.Pending))
	default:
		fmt.Fprintf(b, "  MIG %s\n", onOff(c.MIG.Current))
	}
	if m := r.Model(c.Model); m != nil && c.InMIGMode() && c.InstancesKnown {
		fmt.Fprintf(b, "  units %s\n", units(m, c))
	}
	for i := range c.Instances {
		drawInstance(b, &c.Instances[i])
	}
	var offers []string
	for _, o := range r.Offers(c) {
		offers = append(offers, fmt.Sprintf("%d %s", o.Count, o.Resource))
	}
	switch {
	case len(offers) == 0:
	case c.Out != "":
		fmt.Fprintf(b, "  in order it would offer %s\n", strings.Join(offers, ", "))
	default:
		fmt.Fprintf(b, "  offers %s\n", strings.Join(offers, ", "))
	}
	drawHealth(b, c.Health)
}

func drawInstance(b *strings.Builder, in *v1alpha1.Instance) {
	at := "somewhere"
	if in.Start != nil {
		at = fmt.Sprintf("at %d, size %d", *in.Start, in.Size)
	}
	fmt.Fprintf(b, "  instance %d  %s %s", in.ID, cmp.Or(in.Profile, "of an unknown profile"), at)
	for _, d := range in.Devices {
		fmt.Fprintf(b, ", %s", cmp.Or(d.UUID, "a device without a name"))
		if d.Partial {
			b.WriteString(" (a part)")
		}
	}
	b.WriteByte('\n')
}

// units draws the grid of a card: a letter for each instance, a dot for what is free.
func units(m *v1alpha1.Model, c *v1alpha1.Card) string {
	grid := []byte(strings.Repeat(".", int(m.Units)))
	for i := range c.Instances {
		in := &c.Instances[i]
		for u := range in.Size {
			if in.Start != nil && int(*in.Start+u) < len(grid) {
				grid[*in.Start+u] = byte('a' + i%26)
			}
		}
	}
	return string(grid)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func drawHealth(b *strings.Builder, h *v1alpha1.Health) {
	if h == nil {
		return
	}
	if h.RecoveryAction != "" && h.RecoveryAction != "none" {
		fmt.Fprintf(b, "  the driver asks for %s\n", h.RecoveryAction)
	}
	for _, x := range h.Xids {
		fmt.Fprintf(b, "  Xid %d", x.Code)
		if x.Instance != nil {
			fmt.Fprintf(b, " in instance %d", *x.Instance)
		}
		fmt.Fprintf(b, " at %s: %s\n", x.Time.UTC().Format(time.RFC3339), cmp.Or(x.Action, "no action known"))
	}
	if h.UncorrectedErrors > 0 {
		fmt.Fprintf(b, "  %d uncorrected memory errors\n", h.UncorrectedErrors)
	}
	if h.RowRemap != "" {
		fmt.Fprintf(b, "  row remapping %s\n", h.RowRemap)
	}
	if len(h.Slowdown) > 0 {
		fmt.Fprintf(b, "  clocks held down: %s\n", strings.Join(h.Slowdown, ", "))
	}
}

// drawLinks writes the pairs of cards that are alike together.
func drawLinks(b *strings.Builder, r *v1alpha1.Report) {
	pairs := map[string][]string{}
	var order []string
	for _, l := range r.Links {
		var how []string
		if l.NVLinks > 0 {
			how = append(how, fmt.Sprintf("%d NVLinks", l.NVLinks))
		}
		if l.Path != "" {
			how = append(how, "PCIe "+l.Path)
		}
		text := strings.Join(how, ", ")
		if pairs[text] == nil {
			order = append(order, text)
		}
		pairs[text] = append(pairs[text], fmt.Sprintf("%d-%d", l.A, l.B))
	}
	if len(order) > 0 {
		b.WriteString("\nlinks\n")
	}
	for _, text := range order {
		fmt.Fprintf(b, "  %s: %s\n", text, strings.Join(pairs[text], " "))
	}
}

func drawSharing(b *strings.Builder, r *v1alpha1.Report) {
	s := &r.Sharing
	if s.From == "" && len(r.Registered) == 0 {
		return
	}
	fmt.Fprintf(b, "\noffered")
	if s.From != "" {
		fmt.Fprintf(b, " by %s", s.From)
	}
	if s.MIGStrategy != "" {
		fmt.Fprintf(b, ", MIG strategy %s", s.MIGStrategy)
	}
	b.WriteByte('\n')
	for _, share := range s.Shares {
		fmt.Fprintf(b, "  %s: %s × %d", share.Resource, share.Strategy, share.Replicas)
		if share.Renamed {
			b.WriteString(", renamed to .shared")
		}
		if share.FailAboveOne != nil && *share.FailAboveOne {
			b.WriteString(", more than one is refused")
		}
		b.WriteByte('\n')
	}
	for _, g := range r.Registered {
		fmt.Fprintf(b, "  the kubelet knows %d %s", g.Devices, g.Resource)
		if g.Unknown > 0 {
			fmt.Fprintf(b, ", %d of them not there", g.Unknown)
		}
		b.WriteByte('\n')
	}
}

func drawHoldings(b *strings.Builder, r *v1alpha1.Report) {
	if len(r.Holdings) > 0 {
		b.WriteString("\nholdings\n")
	}
	for _, h := range r.Holdings {
		fmt.Fprintf(b, "  %s/%s/%s  %s:", h.Namespace, h.Pod, h.Container, h.Resource)
		for _, d := range h.Devices {
			switch {
			case d.Card == nil:
				fmt.Fprintf(b, " %s (not there)", d.ID)
			case d.Instance != nil:
				fmt.Fprintf(b, " card %d instance %d", *d.Card, *d.Instance)
			default:
				fmt.Fprintf(b, " card %d", *d.Card)
			}
			if d.Replica != nil {
				fmt.Fprintf(b, " share %d", *d.Replica)
			}
		}
		b.WriteByte('\n')
	}
}
