package pages

import (
	"fmt"
	"html/template"
	"strings"
	"time"
)

// Drawings are SVG with classes for colours, so that they follow light and dark. All
// text in them is escaped here, since a template takes them as they are.

func esc(s string) string { return template.HTMLEscapeString(s) }

// art marks a drawing as finished.
func art(s string) template.HTML { return template.HTML(s) } //nolint:gosec // texts in it went through esc

// The size of a bar, in pixels.
const barWidth, barHeight = 120, 10

// bar draws a share as a bar, and what is fair as a line across it.
func bar(share, fair float64) template.HTML {
	x := func(v float64) float64 { return max(0, min(100, v)) / 100 * barWidth }
	class := "used"
	if share > fair+0.5 {
		class = "used over"
	}
	return art(fmt.Sprintf(`<svg class="bar" width="%d" height="%d" viewBox="0 -2 %d %d" role="img" aria-label="uses %.0f%%, fair %.0f%%"><title>uses %.0f%%, fair %.0f%%</title>`+
		`<rect class="track" x="0" y="0" width="%d" height="%d"/><rect class="%s" x="0" y="0" width="%.1f" height="%d"/><path class="fair" d="M%.1f -2V%d"/></svg>`,
		barWidth, barHeight+4, barWidth, barHeight+4, share, fair, share, fair, barWidth, barHeight, class, x(share), barHeight, max(1, min(barWidth-1, x(fair))), barHeight+2))
}

// part draws a part of a whole.
func part(used, whole int64, label string) template.HTML {
	share := 0.0
	if whole > 0 {
		share = 100 * float64(used) / float64(whole)
	}
	return art(fmt.Sprintf(`<svg class="bar" width="%d" height="%d" viewBox="0 -2 %d %d" role="img" aria-label="%s"><title>%s</title>`+
		`<rect class="track" x="0" y="0" width="%d" height="%d"/><rect class="used" x="0" y="0" width="%.1f" height="%d"/></svg>`,
		barWidth, barHeight+4, barWidth, barHeight+4, esc(label), esc(label), barWidth, barHeight, max(0, min(100, share))/100*barWidth, barHeight))
}

// lines is the used line and the fair line of a queue, as paths in a box.
type lines struct{ used, area, fair string }

// plot steps from sample to sample: a share holds until the next was taken.
func plot(list []moment, from, to time.Time, width, height, top float64) lines {
	x := func(t time.Time) float64 {
		if !to.After(from) {
			return 0
		}
		return width * float64(t.Sub(from)) / float64(to.Sub(from))
	}
	y := func(v float64) float64 { return height - height*min(v, top)/top }
	var used, fair strings.Builder
	var lastUsed, lastFair float64
	for i, m := range list {
		switch i {
		case 0:
			fmt.Fprintf(&used, "M%.1f %.1f", x(m.at), y(m.used))
			fmt.Fprintf(&fair, "M%.1f %.1f", x(m.at), y(m.fair))
		default:
			if m.used != lastUsed {
				fmt.Fprintf(&used, "H%.1fV%.1f", x(m.at), y(m.used))
			}
			if m.fair != lastFair {
				fmt.Fprintf(&fair, "H%.1fV%.1f", x(m.at), y(m.fair))
			}
		}
		lastUsed, lastFair = m.used, m.fair
	}
	if len(list) == 0 {
		return lines{}
	}
	end := x(list[len(list)-1].at)
	fmt.Fprintf(&used, "H%.1f", end)
	fmt.Fprintf(&fair, "H%.1f", end)
	area := fmt.Sprintf("%sV%.1fH%.1fZ", used.String(), height, x(list[0].at))
	return lines{used.String(), area, fair.String()}
}

// highest is the top of a scale that holds all samples: 25, 50 or 100 percent.
func highest(list []moment) float64 {
	most := 0.0
	for _, m := range list {
		most = max(most, m.used, m.fair)
	}
	for _, top := range []float64{25, 50} {
		if most <= top*0.95 {
			return top
		}
	}
	return 100
}

// The size of a small line, in pixels.
const sparkWidth, sparkHeight = 132.0, 26.0

// spark draws the lines small, without a scale.
func spark(list []moment) template.HTML {
	if len(list) < 2 {
		return ""
	}
	first, last := list[0], list[len(list)-1]
	p := plot(list, first.at, last.at, sparkWidth-2, sparkHeight-2, highest(list))
	label := fmt.Sprintf("since %s UTC: used %.0f%%, now %.0f%%; fair %.0f%%, now %.0f%%", first.at.UTC().Format("15:04"), first.used, last.used, first.fair, last.fair)
	return art(fmt.Sprintf(`<svg class="spark" width="%.0f" height="%.0f" viewBox="-1 -1 %.0f %.0f" role="img" aria-label="%s"><title>%s</title><path class="area" d="%s"/><path class="fair" d="%s"/><path class="line" d="%s"/></svg>`,
		sparkWidth, sparkHeight, sparkWidth, sparkHeight, esc(label), esc(label), p.area, p.fair, p.used))
}

// chart is the lines large; its labels are beside it, as text that does not shrink.
type chart struct {
	Art      template.HTML
	Label    string
	Top      string
	Middle   string
	From, To time.Time
}

// The box in which a chart is drawn. It is stretched to the width of the page.
const chartWidth, chartHeight = 720.0, 160.0

func chartOf(list []moment) *chart {
	if len(list) < 2 {
		return nil
	}
	first, last := list[0], list[len(list)-1]
	top := highest(list)
	p := plot(list, first.at, last.at, chartWidth, chartHeight, top)
	c := &chart{Top: percent(top), Middle: percent(top / 2), From: first.at, To: last.at}
	c.Label = fmt.Sprintf("Share over time, %s to %s UTC: it used %.0f%% and now %.0f%%; fair was %.0f%% and is %.0f%%",
		first.at.UTC().Format("15:04"), last.at.UTC().Format("15:04"), first.used, last.used, first.fair, last.fair)
	c.Art = art(fmt.Sprintf(`<svg class="chart" viewBox="0 0 %.0f %.0f" preserveAspectRatio="none" role="img" aria-label="%s"><title>%s</title>`+
		`<path class="grid" d="M0 0H720M0 80H720M0 160H720"/><path class="area" d="%s"/><path class="fair" d="%s"/><path class="line" d="%s"/></svg>`,
		chartWidth, chartHeight, esc(c.Label), esc(c.Label), p.area, p.fair, p.used))
	return c
}
