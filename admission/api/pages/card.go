package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"sluice.dev/sluice/admission/answer"
)

// held is a place on a card and who has it; nobody is an owner of -1.
type held struct {
	team *team
	job  string
}

// dealing is one way in which the owners of a node can lie on its cards: which of
// like slices a pod has is up to the device plugin.
type dealing struct {
	cards [][]*held        // by card, then by span, share or the whole
	left  []answer.Amounts // by owner: what no card has
}

// deal gives each owner slices of the profiles that it holds, then whole cards and
// shares, from the first card on.
func deal(m *answer.NodeMap, teams map[string]*team) dealing {
	d := dealing{cards: make([][]*held, len(m.Cards)), left: make([]answer.Amounts, len(m.Owners))}
	for i := range m.Cards {
		d.cards[i] = make([]*held, places(&m.Cards[i]))
	}
	for i, o := range m.Owners {
		d.left[i] = answer.Amounts{}
		for _, name := range sortedNames(o.Amount) {
			if rest := d.give(m, name, o.Amount[name], &held{teams[o.Queue], o.Job}); rest > 0 {
				d.left[i][name] = rest
			}
		}
	}
	return d
}

func sortedNames(a answer.Amounts) []string {
	var names []string
	for n := range a {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// places is how many pods the card can have at once.
func places(c *answer.CardMap) int {
	switch {
	case c.Out != "" && len(c.Spans) == 0:
		return 0
	case c.Whole:
		return max(1, c.Replicas)
	default:
		return len(c.Spans)
	}
}

// give lays n of a resource down and returns how many found no place. What names a
// profile goes on slices of it; where no card has such a slice and none is whole, on
// any slice, since a node may offer all its slices under one name.
func (d *dealing) give(m *answer.NodeMap, name string, n int64, who *held) int64 {
	short := strings.ReplaceAll(answer.Short(name), ".shared", "")
	slice := strings.Contains(name, "/mig-")
	whole := slices.ContainsFunc(m.Cards, func(c answer.CardMap) bool { return c.Whole })
	for i := range m.Cards {
		c := &m.Cards[i]
		for k := range d.cards[i] {
			fits := c.Whole && !slice
			if !c.Whole {
				fits = slice && strings.ReplaceAll(c.Spans[k].Profile, "+", ".") == short || !slice && !whole
			}
			if n > 0 && fits && d.cards[i][k] == nil {
				d.cards[i][k] = who
				n--
			}
		}
	}
	return n
}

// The size of a card in the map, in pixels.
const unitPixels, cardHeight = 10, 24

// unitsShown is how wide a card is of which the units are not known.
// unitsUnseen that of a device of which no agent tells.
const unitsShown, unitsUnseen = 8, 2

// drawCard draws the card as its units: slices, holes, a whole or shares of it.
func drawCard(c *answer.CardMap, has []*held, seen bool) template.HTML {
	units := cmp.Or(c.Units, unitsShown)
	if !seen {
		units = unitsUnseen
	}
	width := units * unitPixels
	var b, text strings.Builder
	p := pen{&b, &text}
	switch {
	case c.Out != "" && len(c.Spans) == 0:
		p.cell(0, 0, width, cardHeight, "out", "unit outof", "×", c.Out)
	case c.Whole && c.Replicas > 1:
		p.shares(c, has, width)
	case c.Whole:
		p.place(0, 0, width, cardHeight, "whole", has[0], true)
	default:
		p.slices(c, has, units)
	}
	if c.Out != "" && len(c.Spans) > 0 {
		p.cell(0, 0, width, cardHeight, "out", "unit outof", "", c.Out)
	}
	label := fmt.Sprintf("Card %d%s: %s", c.Card, prefix(" ", c.Model), strings.TrimPrefix(text.String(), "; "))
	return art(fmt.Sprintf(`<svg class="card" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">%s</svg>`, width+1, cardHeight+1, width+1, cardHeight+1, esc(label), b.String()))
}

func prefix(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

// pen draws the parts of a card, and says them.
type pen struct{ out, text *strings.Builder }

// cell is one rectangle with a mark in it.
func (p pen) cell(x, y, w, h int, paint, class, mark, says string) {
	fill := ""
	if paint != "" {
		fill = fmt.Sprintf(` fill="url(#%s)"`, paint)
	}
	fmt.Fprintf(p.out, `<g><title>%s</title><rect class="%s" x="%.1f" y="%.1f" width="%d" height="%d"%s/>`, esc(says), class, float64(x)+.5, float64(y)+.5, w-1, h-1, fill)
	if mark != "" {
		fmt.Fprintf(p.out, `<text class="%s" x="%.1f" y="%.1f">%s</text>`, cmp.Or(markClass(class), "letter"), float64(x)+float64(w)/2, float64(y)+float64(h)/2+4, esc(mark))
	}
	p.out.WriteString("</g>")
	p.text.WriteString("; " + says)
}

func markClass(class string) string {
	switch class {
	case "unit free":
		return "letter quiet"
	case "unit outof":
		return "letter bad"
	default:
		return ""
	}
}

// place is a slice, a share or a whole card, held or free.
func (p pen) place(x, y, w, h int, what string, who *held, marked bool) {
	if who == nil {
		mark := ""
		if short, _, cut := strings.Cut(what, "."); marked && cut && w >= 8*len(short) {
			mark = short
		}
		p.cell(x, y, w, h, "", "unit free", mark, what+" free")
		return
	}
	paint, class, mark := "", "unit held", "•"
	if who.team != nil {
		paint, class, mark = who.team.fill(), fmt.Sprintf("unit h%d", who.team.Hue), who.team.Letter
	}
	if !marked || w < 8*len(mark) {
		mark = ""
	}
	says := what + " " + who.job
	if who.team != nil && !strings.Contains(who.job, who.team.Queue) {
		says += " of " + who.team.Queue
	}
	p.cell(x, y, w, h, paint, class, mark, says)
}

// slices draws a card that is cut.
func (p pen) slices(c *answer.CardMap, has []*held, units int) {
	at := 0
	hole := func(to int) {
		if to > at {
			p.cell(at*unitPixels, 0, (to-at)*unitPixels, cardHeight, "hole", "unit hole", "", plural(to-at, "unit", "units")+" that no slice covers")
		}
	}
	for i, s := range c.Spans {
		hole(s.Start)
		p.place(s.Start*unitPixels, 0, s.Size*unitPixels, cardHeight, s.Profile, has[i], true)
		at = max(at, s.Start+s.Size)
	}
	hole(units)
}

// sharesDrawn is how many shares of a card are drawn apart; more are as so many.
const sharesDrawn = 12

// shares draws a card that is shared in time: side by side, each as high as half the
// card and with a gap, so that it does not look cut.
func (p pen) shares(c *answer.CardMap, has []*held, width int) {
	n := min(c.Replicas, sharesDrawn)
	columns := (n + 1) / 2
	for i := range n {
		w := width / columns
		p.place(i%columns*w, i/columns*cardHeight/2, w, cardHeight/2, fmt.Sprintf("1 of %d shares in time", c.Replicas), has[i], false)
	}
	if taken := slices.IndexFunc(has[n:], func(h *held) bool { return h != nil }); taken >= 0 {
		fmt.Fprintf(p.text, "; and %d more shares", c.Replicas-n)
	}
}
