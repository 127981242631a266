package gang

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"sluice.dev/sluice/quota"
)

// TestPlacement runs the files of testdata/place:
//
//	nodes         one node, or several alike, a line: NAME [count=N] [gpu=N] [cpu=N]
//	              [pods=N] [KEY=LABEL]... [taint=KEY] [cordoned] [lost=N] (of its GPUs)
//	              [by=N] (each GPU is shared by so many pods; the agent reports them)
//	take          node=NAME gpu=N (or cpu=N) [online]: pods of others
//	remove        node=NAME
//	place, take-place, grow
//	              one pod set a line: NAME pods=N [min=N] [gpu=N] [cpu=N] [in=KEY]
//	              [near=KEY] [KEY=LABEL]... [tolerates=KEY] [shared] [any]; the arguments in=KEY and
//	              near=KEY are for the whole gang; in is required, near preferred.
//	              [apart=KEY] from pods of the same set, [shuns=KEY] what is online there, [joins=KEY] it,
//	              [even=KEY/SKEW] or, as a wish, [evenish=KEY/SKEW], [likes=KEY/LABEL/WEIGHT];
//	              the argument roomy takes the emptiest nodes first.
//	              take-place keeps what it places; grow places the minimum first
//	look          the survey for such a gang
//
// A node is drawn as its GPUs, or its CPUs if it has none: # in use, . free, x out
// of use, and the first letter of the pod set that is planned there.
func TestPlacement(t *testing.T) {
	datadriven.Walk(t, "testdata/place", func(t *testing.T, path string) {
		b := &bench{v: NewInventory()}
		datadriven.RunTest(t, path, b.run)
	})
}

type bench struct{ v *Inventory }

func (b *bench) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "nodes":
		for line := range strings.Lines(d.Input) {
			b.node(t, d, strings.Fields(line))
		}
		return b.draw(nil, nil)
	case "remove":
		b.v.Remove(b.name(t, d))
		return b.draw(nil, nil)
	case "take":
		r := quota.Resources{0, 0, 1}
		for _, a := range d.CmdArgs {
			if dim, ok := dimension(a.Key); ok {
				r.Set(dim, integer(t, d, a.Vals[0]))
			}
			if a.Key == "online" {
				r.Set(others, 1)
			}
		}
		b.v.Take(b.name(t, d), r)
		return b.draw(nil, nil)
	}
	spec := b.spec(t, d)
	switch d.Cmd {
	case "place", "take-place":
		plan, short := Place(b.v, spec, spec.Sizes())
		if short != nil {
			return shortText(short)
		}
		drawn := b.draw(spec, &plan)
		if d.Cmd == "take-place" {
			b.v.TakePlan(spec, plan)
		}
		return drawn
	case "grow":
		plan, short := Place(b.v, spec, spec.Least())
		if short != nil {
			return shortText(short)
		}
		least := b.draw(spec, &plan)
		b.v.TakePlan(spec, plan)
		grown := Grow(b.v, spec, plan, func(int) bool { return true })
		b.v.GivePlan(spec, plan)
		return least + "grown:\n" + b.draw(spec, &grown)
	case "look":
		return lookText(Look(b.v, spec))
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

func (b *bench) name(t *testing.T, d *datadriven.TestData) string {
	var name string
	d.ScanArgs(t, "node", &name)
	return name
}

func (b *bench) node(t *testing.T, d *datadriven.TestData, fields []string) {
	n := Node{Offer: quota.Resources{0, 0, 110}, Labels: map[string]string{}}
	count, lost, by := int64(0), int64(0), int64(0)
	for _, f := range fields[1:] {
		k, v, _ := strings.Cut(f, "=")
		dim, isDim := dimension(k)
		switch {
		case k == "count":
			count = integer(t, d, v)
		case isDim:
			n.Offer.Set(dim, integer(t, d, v))
		case k == "taint":
			n.Taints = append(n.Taints, Taint{Key: v, Effect: NoSchedule})
		case k == "cordoned":
			n.Outages = append(n.Outages, Outage{What: "cordoned", Closed: true})
		case k == "lost":
			lost = integer(t, d, v)
		case k == "by":
			by = integer(t, d, v)
		default:
			n.Labels[k] = v
		}
	}
	if by > 0 {
		cards := deck(int(n.Offer.At(gpu)), int(by), int(lost))
		n.Offer.Set(gpu, cards.now.At(gpu))
		n = *Equip(n, cards)
	} else if lost > 0 {
		n.Whole = n.Offer.Clone()
		n.Offer[gpu] -= lost
		n.Outages = append(n.Outages, Outage{What: "lost", Detail: fmt.Sprintf("%d cards", lost)})
	}
	if count == 0 {
		n.Name = fields[0]
		b.v.Put(&n)
	}
	for i := range count {
		m := n
		m.Name = fmt.Sprintf("%s-%d", fields[0], i)
		b.v.Put(&m)
	}
}

// deck is cards that are shared by so many pods, the last of them lost.
func deck(cards, by, lost int) *Deck {
	list := make([]Card, cards)
	for i := range list {
		list[i].Replicas = by
		list[i].Offer.Set(gpu, int64(by))
		if i >= cards-lost {
			list[i].Out = LostCard
		}
	}
	return NewDeck(list, gpu, false)
}

func (b *bench) spec(t *testing.T, d *datadriven.TestData) *Spec {
	s := &Spec{}
	for _, a := range d.CmdArgs {
		if a.Key == "roomy" {
			s.Roomy = true
			continue
		}
		s.Level = level(a.Key, a.Vals[0])
	}
	for line := range strings.Lines(d.Input) {
		fields := strings.Fields(line)
		ps := PodSet{Name: fields[0], Min: -1, Request: quota.Resources{0, 0, 1}}
		for _, f := range fields[1:] {
			k, v, _ := strings.Cut(f, "=")
			dim, isDim := dimension(k)
			switch {
			case k == "pods":
				ps.Count = int(integer(t, d, v))
			case k == "min":
				ps.Min = int(integer(t, d, v))
			case isDim:
				ps.Request.Set(dim, integer(t, d, v))
			case k == "in" || k == "near":
				ps.Level = level(k, v)
			case k == "shared" || k == "any":
				ps.Sharing = Sharing(k)
			case k == "apart" || k == "shuns" || k == "joins" || k == "even" || k == "evenish" || k == "likes":
				b.rule(t, d, &ps, len(s.PodSets), k, strings.Split(v, "/"))
			case k == "tolerates":
				ps.Filter.Tolerations = append(ps.Filter.Tolerations, Toleration{Key: v, Exists: true})
			default:
				ps.Filter.All = append(ps.Filter.All, Requirement{Key: k, Op: In, Values: []string{v}})
			}
		}
		if ps.Min < 0 {
			ps.Min = ps.Count
		}
		s.PodSets = append(s.PodSets, ps)
	}
	return s
}

// rule adds a rule or a wish to pod set i.
func (b *bench) rule(t *testing.T, d *datadriven.TestData, ps *PodSet, i int, word string, args []string) {
	own := Group{Sets: make([]bool, i+1)}
	own.Sets[i] = true
	key := args[0]
	if key == "node" {
		key = NameField
	}
	switch word {
	case "apart":
		ps.Apart = append(ps.Apart, Apart{Key: key, Group: own, Most: 1, Text: "its own pods"})
	case "shuns":
		ps.Apart = append(ps.Apart, Apart{Key: key, Group: Group{Dim: others}, Most: 1, Text: "pods that are online"})
	case "joins":
		ps.Near = append(ps.Near, Near{Key: key, Dim: others, Text: "pods that are online"})
	case "even", "evenish":
		ps.Spread = append(ps.Spread, Spread{Key: key, Group: own, Skew: int(integer(t, d, args[1])), Must: word == "even"})
	case "likes":
		ps.Wishes = append(ps.Wishes, Wish{[]Requirement{{Key: key, Op: In, Values: []string{args[1]}}}, int(integer(t, d, args[2]))})
	}
}

func level(word, key string) Level { return Level{Key: key, Required: word == "in"} }

func dimension(name string) (int, bool) {
	dim := slices.Index([]string{"cpu", "memory", "pods", "gpu"}, name)
	return dim, dim >= 0 && name != "pods"
}

func integer(t *testing.T, d *datadriven.TestData, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return n
}

func shortText(short *Shortfall) string {
	var b strings.Builder
	b.WriteString("no place:")
	for _, s := range short.Sets {
		fmt.Fprintf(&b, " %s %d of %d", s.Name, s.Found, s.Want)
	}
	if short.Level != "" {
		fmt.Fprintf(&b, " in one %s", short.Level)
	}
	if short.Cut {
		b.WriteString(", the search was cut")
	}
	return b.String() + "\n"
}

func lookText(s Survey) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d nodes could take a pod, %d free on open nodes\n", s.Fitting, s.Free.At(s.Resource))
	for _, e := range s.Excluded {
		why := "too little is free"
		switch {
		case e.Objection != nil:
			why = e.Objection.String()
		case e.Outage != nil:
			why = strings.TrimSpace(e.Outage.What + " " + e.Outage.Detail)
		case e.Cards != "":
			why = e.Cards
		}
		fmt.Fprintf(&b, "not %s: %s (%d free)\n", strings.Join(e.Nodes, " "), why, e.Free)
	}
	return b.String()
}

// draw shows every node, with the plan if there is one.
func (b *bench) draw(spec *Spec, plan *Plan) string {
	var out strings.Builder
	for _, name := range b.v.Names() {
		n := b.v.Node(name)
		if n == nil {
			fmt.Fprintf(&out, "%-6s is gone, %d pods are left\n", name, b.v.Used(name).At(quota.Pods))
			continue
		}
		dim := gpu
		if n.whole().At(gpu) == 0 {
			dim = quota.CPU
		}
		bar := strings.Repeat("#", int(b.v.Used(name).At(dim)))
		if plan != nil {
			for i, s := range plan.Sets {
				for _, slot := range s.Slots {
					if slot.Node == name {
						pod := s.Name[:1] + strings.Repeat(strings.ToLower(s.Name[:1]), int(max(spec.PodSets[i].Request.At(dim)-1, 0)))
						bar += strings.Repeat(pod, slot.Count)
					}
				}
			}
		}
		bar += strings.Repeat(".", max(0, int(n.Offer.At(dim))-len(bar)))
		bar += strings.Repeat("x", max(0, int(n.whole().At(dim))-len(bar)))
		fmt.Fprintf(&out, "%-6s [%s]", name, bar)
		if dim == quota.CPU {
			out.WriteString(" cpu")
		}
		for _, o := range n.Outages {
			out.WriteString(" " + o.What)
		}
		out.WriteByte('\n')
	}
	return out.String()
}
