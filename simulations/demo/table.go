package demo

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

var columns = []string{"GANG", "QUEUE", "PODS", "STATE", "NODES", "REASON"}

func (r Row) cells() []string {
	reason := r.Text
	if r.Code != "" {
		reason = r.Code + ": " + r.Text
	}
	return []string{
		r.Gang, r.Queue, strconv.Itoa(r.Pods) + "/" + strconv.Itoa(r.Wanted), string(r.State),
		dash(shortNodes(r.Nodes)), dash(strings.ReplaceAll(reason, "\n", " ")),
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// table lays rows out in columns. With a width, lines are cut to it.
func table(rows []Row, width int) []string {
	lines := [][]string{columns}
	for _, r := range rows {
		lines = append(lines, r.cells())
	}
	widths := make([]int, len(columns))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out []string
	for _, line := range lines {
		var b strings.Builder
		for i, cell := range line {
			b.WriteString(cell)
			if i < len(line)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		out = append(out, cut(b.String(), width))
	}
	return out
}

// cut shortens a line to a width; 0 is any width.
func cut(line string, width int) string {
	if width <= 0 || utf8.RuneCountInString(line) <= width {
		return line
	}
	runes := []rune(line)
	return string(runes[:width-1]) + "…"
}
