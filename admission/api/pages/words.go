package pages

import (
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/admission/answer"
)

var functions = template.FuncMap{
	"percent":  percent,
	"clock":    clock,
	"stamp":    func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"age":      answer.Age,
	"short":    answer.Short,
	"quantity": admission.Quantity,
	"queue":    queueHref,
	"job":      jobHref,
	"map":      mapHref,
	"some":     some,
	"join":     strings.Join,
	"plural":   plural,
	"add":      func(a, b int) int { return a + b },
}

func percent(v float64) string { return fmt.Sprintf("%.0f%%", v) }

func queueHref(name string) string { return "queue?" + url.Values{"name": {name}}.Encode() }

func jobHref(key string) string { return "job?" + url.Values{"name": {key}}.Encode() }

// clock writes a time near now, in UTC: the hour alone, or with the day.
func clock(t, now time.Time) string {
	if t.Sub(now).Abs() < 20*time.Hour {
		return t.UTC().Format("15:04")
	}
	return t.UTC().Format("2 Jan 15:04")
}

// someShown is how many names of a long list are told.
const someShown = 5

// some names the first of a list and counts the others.
func some(names []string) string {
	if len(names) <= someShown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:someShown], ", "), len(names)-someShown)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// cards is a resource that quotas count and no pod has: what a node has of it is
// never free or used.
const cards = "sluice.dev/gpu"

// amounts writes what there is of several resources, the largest slices first.
func amounts(a answer.Amounts) string {
	var names []string
	for n := range a {
		if a[n] != 0 && n != cards {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	var parts []string
	for _, n := range names {
		parts = append(parts, admission.Quantity(n, a[n])+"\u00a0×\u00a0"+answer.Short(n))
	}
	return strings.Join(parts, ", ")
}

// cutCode takes the code off a reason: "Capacity: 3 of 4 fit".
func cutCode(text string) (code, rest string, ok bool) { return strings.Cut(text, ": ") }

func mapHref(words string) string { return "map?" + url.Values{"q": {words}}.Encode() }
