package answer

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// groupsShown bounds how many groups of nodes a text tells one by one.
const groupsShown = 6

// Write writes the answer for people, at most width columns wide; below 40 is any
// width.
func (a *Why) Write(out io.Writer, now time.Time, width int) {
	p := page{out: out, width: width}
	head := []string{a.Job, "queue " + a.Queue, fmt.Sprintf("%s (%s)", a.Needs, a.Total)}
	if a.Verdict == Running && a.Since != nil {
		head = append(head, "running "+Age(now.Sub(*a.Since)))
	}
	if a.Code != "" || a.Verdict == Now {
		head = append(head, "waiting "+Age(time.Duration(a.WaitedMs)*time.Millisecond))
	}
	if a.Position > 0 {
		head = append(head, fmt.Sprintf("position %d of %d", a.Position, a.Waiting))
	}
	if a.ETA != nil {
		head = append(head, "ETA "+a.ETA.text(now))
	}
	p.items(head)
	p.line("", string(a.Verdict)+prefixed("  ", a.Code))
	switch a.Verdict {
	case Running, Stopping:
		p.line("  on        ", orNone(a.Where))
		if a.Missing > 0 {
			p.line("  missing   ", plural(a.Missing, "pod of its plan does not run yet", "pods of its plan do not run yet"))
		}
		if a.EndsBy != nil {
			p.line("  ends by   ", clock(*a.EndsBy, now)+", by its own time limit")
		}
		if a.For != "" {
			p.line("  stops for ", a.For)
		}
		return
	case Finished:
		return
	case Never, NotNow, Held, Now:
	}
	if a.Verdict == Now {
		p.line("  ", a.Reason)
	}
	p.check("quota", a.Quota)
	p.check("priority", a.Priority)
	p.check("capacity", a.Capacity)
	if a.Capacity != nil && !a.Capacity.OK {
		a.writeNodes(&p)
	}
	p.check("gates", a.Gates)
	if a.Verdict == Now {
		return
	}
	if len(a.Changes) == 0 {
		if a.Tried > 0 {
			p.line("  ", fmt.Sprintf("No single change was found that would admit it now (%d tried)", a.Tried))
		}
		return
	}
	p.line("  ", "What would admit it now (each checked by dry run)")
	for i, c := range a.Changes {
		text := c.Text
		if c.Command != "" {
			text += ": " + c.Command
		}
		p.line(fmt.Sprintf("   %d. ", i+1), text)
	}
}

// writeNodes tells what nodes mean for the gang, group by group.
func (a *Why) writeNodes(p *page) {
	p.hang = strings.Repeat(" ", 10)
	defer func() { p.hang = "" }()
	shown := a.Nodes
	if len(shown) > groupsShown {
		shown = shown[:groupsShown]
	}
	for _, g := range shown {
		each := ""
		if len(g.Nodes) > 1 {
			each = " in all"
		}
		fits := fmt.Sprintf("fits %d", g.Fits)
		if g.Why == "" && g.Fits > 0 {
			fits = "fits " + plural(g.Fits, "pod", "pods")
			if len(g.Nodes) > 1 {
				fits += " each"
			}
		}
		p.line("     ", fmt.Sprintf("%s  %s free%s  %s%s", fold(g.Nodes, 4), amountNumber(g.Resource, g.Free), each, fits, prefixed(": ", g.Why)))
	}
	if rest := a.Nodes[len(shown):]; len(rest) > 0 {
		n := 0
		for _, g := range rest {
			n += len(g.Nodes)
		}
		p.line("     ", fmt.Sprintf("and %s for %s", plural(n, "more node", "more nodes"), plural(len(rest), "more reason", "more reasons")))
	}
}

func amountNumber(resource string, v int64) string {
	text := amount(resource, v)
	n, _, _ := strings.Cut(text, " ")
	return n
}

func (e *ETA) text(now time.Time) string {
	switch {
	case e.Unknown != "":
		return "unknown (" + e.Unknown + ")"
	case e.Early != nil && e.Early.After(now) && e.Early.Before(*e.Late):
		return fmt.Sprintf("%s-%s (%s)", clock(*e.Early, now), clock(*e.Late, now), e.Assumes)
	default:
		return fmt.Sprintf("by %s (%s)", clock(*e.Late, now), e.Assumes)
	}
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func orNone(s string) string {
	if s == "" {
		return "no node"
	}
	return s
}

// page writes lines that are no wider than it.
type page struct {
	out   io.Writer
	width int
	hang  string // where lines go on, if not under their text
}

func (p *page) check(name string, l *Line) {
	if l == nil {
		return
	}
	ok := "NO"
	if l.OK {
		ok = "ok"
	}
	p.line(fmt.Sprintf("  %-9s %-4s ", name, ok), l.Text)
}

// items writes short texts one behind the other, two blanks between.
func (p *page) items(list []string) {
	at, text := 0, ""
	for _, s := range list {
		n := len([]rune(s))
		switch {
		case text == "":
			text, at = s, n
		case p.width >= 40 && at+2+n > p.width:
			p.line("", text)
			text, at = s, n
		default:
			text += "  " + s
			at += 2 + n
		}
	}
	p.line("", text)
}

// line writes a text behind a head; what is too wide goes on under the text.
func (p *page) line(head, text string) {
	indent := strings.Repeat(" ", len([]rune(head)))
	if p.hang != "" {
		indent = p.hang
	}
	for {
		room := p.width - len([]rune(head))
		r := []rune(text)
		if p.width < 40 || len(r) <= room {
			fmt.Fprintln(p.out, strings.TrimRight(head+text, " "))
			return
		}
		at := room
		for at > room/2 && r[at] != ' ' {
			at--
		}
		if r[at] != ' ' {
			at = room
		}
		fmt.Fprintln(p.out, strings.TrimRight(head+string(r[:at]), " "))
		head, text = indent, strings.TrimLeft(string(r[at:]), " ")
	}
}
