package simulations

import (
	"fmt"
	"slices"
	"strings"
)

// Error is one thing that is wrong with a file, at the line where it stands.
type Error struct {
	File string
	Line int // from 1; 0 if the file as a whole is meant
	Msg  string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Errors is everything that was found wrong with one file, by line; it is
// never empty.
type Errors []*Error

func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find a single *Error.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// maxErrors bounds what is collected of one file: a reader mends the first
// few, and an event that repeats a million times repeats its mistake as often.
const maxErrors = 200

// sorted returns the errors by line, each of them once.
func (es Errors) sorted() Errors {
	slices.SortStableFunc(es, func(a, b *Error) int { return a.Line - b.Line })
	return slices.CompactFunc(es, func(a, b *Error) bool { return *a == *b })
}

// closest returns ", did you mean X?" if one of the known words is near, else
// nothing.
func closest(word string, known []string) string {
	best, bestDistance := "", len(word)/3+1
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

// distance counts the letters to insert, remove or replace between a and b; it
// answers "far" early for words of very unlike lengths.
func distance(a, b string) int {
	const far = 99
	if len(a) > len(b)+3 || len(b) > len(a)+3 {
		return far
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
