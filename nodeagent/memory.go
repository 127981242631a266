package nodeagent

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Memory is what an agent knows beyond one look: who a lost card is, which Xids were
// heard, how often the layout changed. It lives as long as the agent. It is not safe
// for use by several goroutines at once.
type Memory struct {
	seen  map[string]Card  // cards by UUID, as read last
	xids  map[string][]Xid // by UUID
	cut   map[string]string
	gen   int64
	since time.Time
	boot  string
}

// NewMemory returns an empty memory.
func NewMemory() *Memory {
	return &Memory{seen: map[string]Card{}, xids: map[string][]Xid{}, cut: map[string]string{}}
}

// Heard notes an Xid of the card. Instances below 0 stand for the whole card.
func (m *Memory) Heard(uuid string, code uint64, instance, compute int, now time.Time) {
	x := Xid{Code: code, First: now}
	if e, ok := LookUpXid(code); ok {
		x.Action, x.Description = e.Action, e.Description
	}
	if instance >= 0 {
		x.Instance = &instance
	}
	if compute >= 0 {
		x.ComputeInstance = &compute
	}
	list := m.xids[uuid]
	at, known := slices.BinarySearchFunc(list, x, compareXids)
	if !known {
		list = slices.Insert(list, at, x)
	}
	list[at].Last = now
	list[at].Count++
	m.xids[uuid] = list
}

func compareXids(a, b Xid) int {
	return cmp.Or(
		cmp.Compare(a.Code, b.Code),
		compareOptional(a.Instance, b.Instance),
		compareOptional(a.ComputeInstance, b.ComputeInstance),
	)
}

func compareOptional(a, b *int) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	default:
		return cmp.Compare(*a, *b)
	}
}

// Restarted forgets what a restart of the driver mends.
func (m *Memory) Restarted() { clear(m.xids) }

// Complete adds to a fresh report what only memory knows, and remembers the report.
// Without cards (no driver) nothing is added, and nothing forgotten.
func (m *Memory) Complete(r *Report) {
	if m.boot != "" && r.BootID != "" && r.BootID != m.boot {
		m.Restarted()
	}
	m.boot = cmp.Or(r.BootID, m.boot)
	if r.State == Ready {
		m.recognize(r)
		for i := range r.Cards {
			c := &r.Cards[i]
			if !c.Lost && m.seen[c.UUID].Lost {
				delete(m.xids, c.UUID) // no card comes back without a reset
			}
			c.Health.Xids = slices.Clone(m.xids[c.UUID])
			if c.UUID != "" {
				m.seen[c.UUID] = *c
			}
		}
		m.recut(r)
	}
	r.Layout = Layout{Generation: m.gen, Since: m.since, Print: m.print()}
}

// recognize says who lost cards are. A place that does not answer is the card that
// was there before if no other place shows it, else the only one that is missing.
// Cards that have no place any more come after the others.
func (m *Memory) recognize(r *Report) {
	missing := map[string]Card{}
	for uuid, c := range m.seen {
		missing[uuid] = c
	}
	var nameless []int
	for i := range r.Cards {
		if c := &r.Cards[i]; c.UUID != "" {
			delete(missing, c.UUID)
			if c.Lost {
				m.identify(c, m.seen[c.UUID])
			}
		} else {
			nameless = append(nameless, i)
		}
	}
	for _, i := range nameless {
		c := &r.Cards[i]
		uuid := ""
		for id, old := range missing {
			if old.Index == c.Index && !old.Gone || len(missing) == 1 && len(nameless) == 1 {
				uuid = id
			}
		}
		if uuid != "" {
			m.identify(c, missing[uuid])
			delete(missing, uuid)
		}
	}
	var gone []Card
	for _, c := range missing {
		gone = append(gone, c)
	}
	slices.SortFunc(gone, func(a, b Card) int { return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.UUID, b.UUID)) })
	for _, old := range gone {
		c := Card{Index: len(r.Cards), Lost: true, Gone: true}
		m.identify(&c, old)
		r.Cards = append(r.Cards, c)
	}
}

// identify gives a lost card what does not change while it is lost.
func (m *Memory) identify(c *Card, old Card) {
	c.UUID, c.Product, c.Architecture, c.Compute = old.UUID, old.Product, old.Architecture, old.Compute
	c.Serial, c.Minor, c.PCI, c.NUMANode = old.Serial, old.Minor, old.PCI, old.NUMANode
	c.MemoryMiB, c.Grid = old.MemoryMiB, old.Grid
}

// recut compares each card's layout with what it was. Lost cards, and those whose
// devices could not be read, keep theirs; that a card is seen first is a change
// only for the first report.
func (m *Memory) recut(r *Report) {
	changed := m.gen == 0
	for i := range r.Cards {
		c := &r.Cards[i]
		if c.UUID == "" || c.Lost || !c.layoutRead() {
			continue
		}
		now := c.layout()
		if old, known := m.cut[c.UUID]; known && old != now {
			changed = true
		}
		m.cut[c.UUID] = now
	}
	if changed {
		m.gen++
		m.since = r.Time
	}
}

// layoutRead says that mode, instances and devices could be read as far as this agent
// may: what it may not read stays unread, and hides no change of the rest.
func (c *Card) layoutRead() bool {
	return !slices.ContainsFunc(c.Errors, func(e FieldError) bool {
		ofLayout := e.Field == "mig" || strings.HasPrefix(e.Field, "instances") || strings.HasPrefix(e.Field, "devices")
		return ofLayout && e.Code != "NO_PERMISSION"
	})
}

// layout is how the card is cut, in a text that is equal for equal layouts. MIG
// devices are part of it, since they get new names each time.
func (c *Card) layout() string {
	if c.MIG == nil {
		return "-"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%t", c.MIG.Current)
	for _, gi := range c.Instances {
		fmt.Fprintf(&b, " %d:%d@%d", gi.ID, gi.ProfileID, gi.Start)
	}
	for _, d := range c.Devices {
		fmt.Fprintf(&b, " %s", d.UUID)
	}
	return b.String()
}

func (m *Memory) print() string {
	if m.gen == 0 {
		return ""
	}
	var lines []string
	for uuid, cut := range m.cut {
		lines = append(lines, uuid+" "+cut+"\n")
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:8])
}
