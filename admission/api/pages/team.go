package pages

import (
	"fmt"
	"html/template"
)

// Teams are told apart by a colour, a pattern and a letter. Of the first 32 no two
// share colour and pattern; letters never repeat.
const (
	huesOf     = 8
	patternsOf = 4
)

// team is how a queue looks in pictures.
type team struct {
	Queue  string
	Letter string
	Index  int
	Hue    int
	Art    template.HTML // a swatch
	Holds  string
}

// fill is the name of the paint: a pattern of the page.
func (t *team) fill() string { return fmt.Sprintf("t%d", t.Index%(huesOf*patternsOf)) }

func newTeam(i int, queue string) *team {
	t := &team{Queue: queue, Index: i, Hue: i % huesOf, Letter: letters(i)}
	t.Art = art(fmt.Sprintf(`<svg class="swatch" width="22" height="16" viewBox="0 0 22 16" aria-hidden="true"><rect class="unit h%d" x=".5" y=".5" width="21" height="15" fill="url(#%s)"/><text class="letter" x="11" y="12">%s</text></svg>`, t.Hue, t.fill(), t.Letter))
	return t
}

// letters is A to Z, then AA, AB and so on.
func letters(i int) string {
	s := ""
	for {
		s = string(rune('A'+i%26)) + s
		if i = i/26 - 1; i < 0 {
			return s
		}
	}
}

// strokes are the patterns: none, diagonals, lines, dots.
var strokes = [patternsOf]string{"", `<path d="M-1 7L7 -1M-3 3L3 -3M3 9L9 3"/>`, `<path d="M0 1.5H6M0 4.5H6"/>`, `<path d="M1.5 1.5h.01M4.5 4.5h.01"/>`}

// paints are the patterns of the first n teams, of holes and of what is out of use,
// for all drawings of a page.
func paints(n int) template.HTML {
	s := `<svg class="paints" width="0" height="0" aria-hidden="true" focusable="false"><defs>`
	for i := range min(n, huesOf*patternsOf) {
		hue := i % huesOf
		s += fmt.Sprintf(`<pattern id="t%d" width="6" height="6" patternUnits="userSpaceOnUse"><rect class="wash h%d" width="6" height="6"/><g class="weave h%d k%d">%s</g></pattern>`,
			i, hue, hue, (hue+i/huesOf)%patternsOf, strokes[(hue+i/huesOf)%patternsOf])
	}
	s += `<pattern id="hole" width="5" height="5" patternUnits="userSpaceOnUse"><path class="hatch" d="M-1 6L6 -1M-2 2L2 -2M3 7L7 3"/></pattern>` +
		`<pattern id="out" width="5" height="5" patternUnits="userSpaceOnUse"><path class="hatch bad" d="M0 0L5 5M5 0L0 5"/></pattern></defs></svg>`
	return art(s)
}
