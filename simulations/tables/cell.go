package tables

import (
	"fmt"
	"math"
	"strings"
)

// Cell is one number of a table: what was published and what the engine gave.
type Cell struct {
	What      string
	Expected  float64 // NaN: nobody published it, it is ours alone
	Got       float64
	Tolerance float64 // how far Got may be from Expected
	Digits    int     // after the point, as printed
}

// Ours is a cell with nothing to compare it to.
func Ours(what string, got float64, digits int) Cell {
	return Cell{What: what, Expected: math.NaN(), Got: got, Digits: digits}
}

// Holds says whether the cell is as published; one that is ours alone always holds.
func (c Cell) Holds() bool {
	return math.IsNaN(c.Expected) || math.Abs(c.Got-c.Expected) <= c.Tolerance
}

// Difference is got less expected.
func (c Cell) Difference() float64 { return c.Got - c.Expected }

func (c Cell) row() string {
	got := fmt.Sprintf("%.*f", c.Digits, c.Got)
	if math.IsNaN(c.Expected) {
		return fmt.Sprintf("| %s | | %s | | |", c.What, got)
	}
	verdict := "yes"
	if !c.Holds() {
		verdict = "**no**"
	}
	difference := fmt.Sprintf("%+.*f", c.Digits, c.Difference())
	if c.Difference() == 0 {
		difference = "0"
	}
	return fmt.Sprintf("| %s | %.*f | %s | %s | %s |", c.What, c.Digits, c.Expected, got, difference, verdict)
}

// Table is one study.
type Table struct {
	Title string
	Notes []string // paragraphs above the table
	Cells []Cell
	After []string // paragraphs below it: what is not met and why
	Known int      // of Misses, those that After explains as mistakes of what is compared to
}

// Misses are the cells that do not hold.
func (t *Table) Misses() []Cell {
	var out []Cell
	for _, c := range t.Cells {
		if !c.Holds() {
			out = append(out, c)
		}
	}
	return out
}

// compared is how many cells have something published beside them.
func (t *Table) compared() int {
	n := 0
	for _, c := range t.Cells {
		if !math.IsNaN(c.Expected) {
			n++
		}
	}
	return n
}

// Markdown draws the table.
func (t *Table) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", t.Title)
	for _, n := range t.Notes {
		fmt.Fprintf(&b, "%s\n\n", n)
	}
	if len(t.Cells) > 0 {
		if n := t.compared(); n > 0 {
			fmt.Fprintf(&b, "%d of %d published values are met.\n\n", n-len(t.Misses()), n)
		}
		b.WriteString("| what | expected | got | difference | equal |\n|---|---:|---:|---:|---|\n")
		for _, c := range t.Cells {
			b.WriteString(c.row() + "\n")
		}
		b.WriteByte('\n')
	}
	for _, n := range t.After {
		fmt.Fprintf(&b, "%s\n\n", n)
	}
	return b.String()
}
