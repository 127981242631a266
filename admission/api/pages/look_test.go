package pages

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/admission/answer"
)

// palette is the colours of the style sheet, in light and in dark.
func palette(t *testing.T) (light, dark map[string]string) {
	t.Helper()
	b, err := files.ReadFile("static/pages.css")
	if err != nil {
		t.Fatal(err)
	}
	roots := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(string(b), -1)
	if len(roots) != 2 {
		t.Fatalf("%d palettes", len(roots))
	}
	read := func(text string) map[string]string {
		out := map[string]string{}
		for _, m := range regexp.MustCompile(`--(\w+): (#[0-9a-f]{6})`).FindAllStringSubmatch(text, -1) {
			out[m[1]] = m[2]
		}
		return out
	}
	light, dark = read(roots[0][1]), read(roots[1][1])
	for name := range light {
		if dark[name] == "" {
			t.Errorf("--%s has no colour in the dark", name)
		}
	}
	return light, dark
}

type rgb [3]float64

func colour(t *testing.T, s string) rgb {
	t.Helper()
	var c rgb
	for i := range c {
		v, err := strconv.ParseUint(s[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c[i] = float64(v) / 255
	}
	return c
}

// over is the colour c of an opacity over b.
func (c rgb) over(b rgb, opacity float64) rgb {
	for i := range c {
		c[i] = opacity*c[i] + (1-opacity)*b[i]
	}
	return c
}

func (c rgb) luminance() float64 {
	linear := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
}

// contrast is that of WCAG: 1 for equal colours, 21 for black on white.
func contrast(a, b rgb) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// Text is at least 4.5 to 1 on all that it stands on, and what a drawing says is at
// least 3 to 1, in light and in dark.
func TestContrast(t *testing.T) {
	light, dark := palette(t)
	for name, p := range map[string]map[string]string{"light": light, "dark": dark} {
		c := func(key string) rgb {
			if p[key] == "" {
				t.Fatalf("there is no --%s in the %s", key, name)
			}
			return colour(t, p[key])
		}
		atLeast := func(want float64, what string, a, b rgb) {
			if got := contrast(a, b); got < want {
				t.Errorf("%s: %s is %.2f to 1, want %.1f", name, what, got, want)
			}
		}
		for _, text := range []string{"ink", "muted", "accent", "good", "warn", "bad"} {
			atLeast(4.5, text+" on the page", c(text), c("bg"))
			atLeast(4.5, text+" on a row under the pointer", c(text), c("soft").over(c("bg"), 0.3))
		}
		for _, text := range []string{"ink", "accent", "muted"} {
			atLeast(4.5, text+" on a marked row", c(text), c("soft"))
		}
		atLeast(4.5, "a command", c("ink"), c("track"))
		atLeast(4.5, "the main button", c("bg"), c("accent"))
		for _, mark := range []string{"edge", "accent", "warn", "ink", "bad"} {
			atLeast(3, "a line of "+mark, c(mark), c("bg"))
		}
		atLeast(3, "a bar on its track", c("accent"), c("track"))
		atLeast(3, "a bar that is over on its track", c("warn"), c("track"))
		for i := range huesOf {
			wash, line := c(fmt.Sprintf("wash%d", i)), c(fmt.Sprintf("line%d", i))
			atLeast(3, fmt.Sprintf("the edge of team %d", i), line, c("bg"))
			atLeast(4.5, fmt.Sprintf("the letter of team %d", i), c("ink"), wash)
			atLeast(4.5, fmt.Sprintf("the letter of team %d on its pattern", i), c("ink"), line.over(wash, 0.34))
		}
	}
	b, _ := files.ReadFile("static/pages.css")
	if !strings.Contains(string(b), ".weave { fill: none; stroke-width: 1.4; opacity: 0.34; }") {
		t.Error("patterns have another opacity than this test takes for granted")
	}
}

// Each drawing says what it shows, or is left out of what is read aloud.
func TestDrawingsAreSaid(t *testing.T) {
	h := serve(fleetAt(t, afternoon), history(t))
	drawing := regexp.MustCompile(`<svg[^>]*>`)
	label := regexp.MustCompile(`aria-label="[^"]+"`)
	ids := regexp.MustCompile(`\sid="([^"]+)"`)
	for _, p := range everyPage {
		_, body := open(t, h, p)
		for _, tag := range drawing.FindAllString(body, -1) {
			if !strings.Contains(tag, `aria-hidden="true"`) && (!strings.Contains(tag, `role="img"`) || !label.MatchString(tag)) {
				t.Errorf("%s: nothing is said of %s", p, tag)
			}
		}
		seen := map[string]bool{}
		for _, m := range ids.FindAllStringSubmatch(body, -1) {
			if seen[m[1]] {
				t.Errorf("%s: two things are called %s", p, m[1])
			}
			seen[m[1]] = true
		}
		for _, tag := range []string{"<header>", "<main id=\"main\"", `<nav aria-label="Pages">`, `class="skip" href="#main"`, `aria-current="page"`, `aria-live="polite"`, `<html lang="en">`, "<h1>"} {
			if !strings.Contains(body, tag) {
				t.Errorf("%s has no %s", p, tag)
			}
		}
		for _, tag := range regexp.MustCompile(`<th[ >][^>]*`).FindAllString(body, -1) {
			if !strings.Contains(tag, "scope=") {
				t.Errorf("%s: %s heads neither a row nor a column", p, tag)
			}
		}
		for _, tag := range regexp.MustCompile(`(?s)<table[^>]*>\s*(<\w+)`).FindAllStringSubmatch(body, -1) {
			if tag[1] != "<caption" {
				t.Errorf("%s: a table has no caption", p)
			}
		}
	}
}

// No two of 32 teams share colour and pattern, no two share a letter, and neighbours
// share neither colour nor pattern.
func TestTeamsDiffer(t *testing.T) {
	looks, letters := map[string]bool{}, map[string]bool{}
	last := ""
	for i := range 100 {
		x := newTeam(i, "q")
		pattern := (x.Hue + i/huesOf) % patternsOf
		look := fmt.Sprint(x.Hue, pattern)
		if i < huesOf*patternsOf && looks[look] || letters[x.Letter] {
			t.Errorf("team %d looks like another: %s %s", i, look, x.Letter)
		}
		if looks[look], letters[x.Letter] = true, true; last != "" && strings.HasSuffix(last, fmt.Sprint(" ", pattern)) && i%huesOf != 0 {
			t.Errorf("team %d has the pattern of the one before", i)
		}
		last = look
	}
	if got := newTeam(26, "q").Letter + newTeam(701, "q").Letter + newTeam(702, "q").Letter; got != "AAZZAAA" {
		t.Errorf("letters go on as %s", got)
	}
}

// say writes how owners lie on the cards of a node.
func say(m *answer.NodeMap) string {
	teams := map[string]*team{"A": newTeam(0, "A"), "B": newTeam(1, "B")}
	d := deal(m, teams)
	var b strings.Builder
	for i := range m.Cards {
		for k, h := range d.cards[i] {
			what := "whole"
			if len(m.Cards[i].Spans) > 0 {
				what = m.Cards[i].Spans[k].Profile
			}
			if h == nil {
				fmt.Fprintf(&b, "%d:%s free ", i, what)
			} else {
				fmt.Fprintf(&b, "%d:%s %s ", i, what, h.job)
			}
		}
	}
	for i := range m.Owners {
		if left := amounts(d.left[i]); left != "" {
			fmt.Fprintf(&b, "left of %s: %s", m.Owners[i].Job, left)
		}
	}
	return strings.TrimSpace(b.String())
}

// Owners lie on what they hold: slices by profile, whole cards and shares otherwise;
// what no card has is told.
func TestDeal(t *testing.T) {
	cut := answer.CardMap{Card: 0, Units: 8, Spans: []answer.Span{{Profile: "3g.20gb", Start: 0, Size: 4}, {Profile: "1g.5gb+me", Start: 4, Size: 1}}}
	whole := answer.CardMap{Card: 1, Units: 8, Whole: true}
	lost := answer.CardMap{Card: 2, Units: 8, Whole: true, Out: "lost"}
	shared := answer.CardMap{Card: 3, Whole: true, Replicas: 3}
	own := func(job, queue string, a answer.Amounts) answer.Owner {
		return answer.Owner{Job: job, Queue: queue, Amount: a}
	}
	for _, c := range []struct {
		m    answer.NodeMap
		want string
	}{
		{
			answer.NodeMap{Cards: []answer.CardMap{cut, whole}, Owners: []answer.Owner{own("a", "A", answer.Amounts{"nvidia.com/mig-1g.5gb.me": 1}), own("b", "B", answer.Amounts{"nvidia.com/gpu": 1})}},
			"0:3g.20gb free 0:1g.5gb+me a 1:whole b",
		},
		{
			answer.NodeMap{Cards: []answer.CardMap{cut}, Owners: []answer.Owner{own("a", "A", answer.Amounts{"nvidia.com/mig-3g.20gb": 2})}},
			"0:3g.20gb a 0:1g.5gb+me free left of a: 1\u00a0×\u00a03g.20gb",
		},
		{answer.NodeMap{Cards: []answer.CardMap{cut}, Owners: []answer.Owner{own("a", "A", answer.Amounts{"nvidia.com/gpu": 2})}}, "0:3g.20gb a 0:1g.5gb+me a"},
		{answer.NodeMap{Cards: []answer.CardMap{lost, whole}, Owners: []answer.Owner{own("a", "A", answer.Amounts{"nvidia.com/gpu": 1})}}, "1:whole a"},
		{answer.NodeMap{Cards: []answer.CardMap{shared}, Owners: []answer.Owner{own("a", "A", answer.Amounts{"nvidia.com/gpu.shared": 2})}}, "0:whole a 0:whole a 0:whole free"},
	} {
		if got := say(&c.m); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// What only quotas count is not told as free.
func TestAmounts(t *testing.T) {
	if got := amounts(answer.Amounts{cards: 2000, "nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 0}); got != "1\u00a0×\u00a0gpu" {
		t.Errorf("it is %q", got)
	}
	_, body := open(t, serve(fleetAt(t, afternoon), nil), "/ui/")
	if !strings.Contains(body, "whose labels or claims differ") || strings.Count(body, ">gpu</th>") != 1 {
		t.Errorf("the overview says %s", body)
	}
}

func TestDrawCard(t *testing.T) {
	a := &held{newTeam(0, "A"), "ns/job"}
	cut := answer.CardMap{Card: 4, Model: "M", Units: 8, Spans: []answer.Span{{Profile: "3g.20gb", Start: 0, Size: 4}, {Profile: "2g.10gb", Start: 4, Size: 2}}, Holes: 2}
	for _, c := range []struct {
		card answer.CardMap
		has  []*held
		says string
	}{
		{cut, []*held{a, nil}, "Card 4 M: 3g.20gb ns/job of A; 2g.10gb free; 2 units that no slice covers"},
		{answer.CardMap{Units: 8}, nil, "Card 0: 8 units that no slice covers"},
		{answer.CardMap{Card: 1, Whole: true}, []*held{a}, "Card 1: whole ns/job of A"},
		{answer.CardMap{Card: 1, Whole: true, Out: "lost"}, nil, "Card 1: lost"},
		{answer.CardMap{Whole: true, Replicas: 2}, []*held{a, nil}, "Card 0: 1 of 2 shares in time ns/job of A; 1 of 2 shares in time free"},
	} {
		text := string(drawCard(&c.card, c.has, true))
		if !strings.Contains(text, `aria-label="`+c.says+`"`) {
			t.Errorf("want %q in %s", c.says, text)
		}
		if n := strings.Count(text, "<rect"); n != strings.Count(text, "<title>") {
			t.Errorf("%d parts with %d titles: %s", n, strings.Count(text, "<title>"), text)
		}
	}
}

// Shares are kept by queue and resource, for as many samples as fit, in their order.
func TestShares(t *testing.T) {
	s, begin := &Shares{}, time.Unix(1000, 0)
	q := func(resource string, share float64) []answer.QueueState {
		return []answer.QueueState{{Name: "A", Resource: resource, Share: share, Fair: 50}}
	}
	for i := range samplesMost + 10 {
		at := begin.Add(time.Duration(i) * SampleEvery)
		s.Add(at, q("gpu", float64(i)))
		if i > samplesMost {
			s.Add(at, q("slice", 7))
		}
	}
	s.Add(begin, q("gpu", 99)) // too late to be told
	gpu, slice := s.of("A", "gpu"), s.of("A", "slice")
	if len(gpu) != samplesMost || gpu[0].used != 10 || gpu[len(gpu)-1].used != samplesMost+9 || len(slice) != 9 || slice[0].used != 7 {
		t.Errorf("%d samples from %v, %d of slices", len(gpu), gpu[0], len(slice))
	}
	if got := fmt.Sprint(s.Resources()); got != "[gpu slice]" {
		t.Errorf("sampled are %s", got)
	}
	for i := range resourcesMost + 2 {
		s.Add(begin.Add(24*time.Hour), q(fmt.Sprint("r", i), 1))
	}
	if n := len(s.Resources()); n != resourcesMost {
		t.Errorf("%d resources", n)
	}
}
