package tables

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

// What the pictures of a page look like. Reports beside each other differ in colour
// and in how their line is dashed, for those who do not see the colours.
const (
	pictureWidth  = 960
	pictureHeight = 220
)

var (
	lineColours = []string{"#0b5fa5", "#b3500b"}
	lineDashes  = []string{"none", "6 3"}
)

// WritePage writes the reports as one HTML page that needs nothing else.
func WritePage(w io.Writer, reports ...Report) error {
	var text, b strings.Builder
	if err := WriteReports(&text, reports...); err != nil {
		return err
	}
	var names []string
	for _, r := range reports {
		names = append(names, r.Name)
	}
	title := html.EscapeString(strings.Join(names, " and "))
	fmt.Fprintf(&b, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>%s</title>\n", title)
	b.WriteString("<style>body{font:15px/1.5 sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}svg{width:100%;height:auto;background:#f7f7f5}</style>\n")
	fmt.Fprintf(&b, "<h1>%s</h1>\n<pre>%s</pre>\n", title, html.EscapeString(text.String()))
	drawLines(&b, "Processors in use", reports, func(r *Report) []float64 { return r.Used })
	drawLines(&b, "Jobs that wait", reports, func(r *Report) []float64 { return r.Waiting })
	drawLines(&b, "Mean wait of users, those with the most work first, s", reports, func(r *Report) []float64 {
		var v []float64
		for _, u := range r.Users[:min(usersMost, len(r.Users))] {
			v = append(v, u.Mean)
		}
		return v
	})
	b.WriteString("</html>\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// drawLines draws one line a report, all on one scale.
func drawLines(b *strings.Builder, title string, reports []Report, of func(*Report) []float64) {
	most := 0.0
	for i := range reports {
		if v := of(&reports[i]); len(v) > 0 {
			most = max(most, slices.Max(v))
		}
	}
	fmt.Fprintf(b, "<h2>%s</h2>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n", html.EscapeString(title), pictureWidth, pictureHeight+20, html.EscapeString(title))
	fmt.Fprintf(b, "<text x=\"4\" y=\"14\" font-size=\"12\">%.4g</text>\n", most)
	for i := range reports {
		v := of(&reports[i])
		if len(v) == 0 || most == 0 {
			continue
		}
		var points []string
		for k, x := range v {
			points = append(points, fmt.Sprintf("%.1f,%.1f", float64(k)*pictureWidth/float64(max(1, len(v)-1)), pictureHeight-x/most*(pictureHeight-20)))
		}
		k := i % len(lineColours)
		fmt.Fprintf(b, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" stroke-dasharray=\"%s\" points=\"%s\"><title>%s</title></polyline>\n",
			lineColours[k], lineDashes[k], strings.Join(points, " "), html.EscapeString(reports[i].Name))
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" font-size=\"12\" fill=\"%s\">%s</text>\n", 8+i*pictureWidth/2, pictureHeight+15, lineColours[k], html.EscapeString(reports[i].Name))
	}
	b.WriteString("</svg>\n")
}
