package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/admission/answer"
)

// narrowWidth is how wide output is with --narrow.
const narrowWidth = 80

// print writes a table as the flags want it.
func (a *ask) print(w *answer.World, t answer.Table, stdout, stderr io.Writer) error {
	if err := a.selectRows(&t); err != nil {
		return err
	}
	switch a.output {
	case "json", "yaml":
		return a.object(w, listKind(t.Kind), t.Items, stdout)
	case "csv":
		return writeCSV(stdout, t)
	case "name":
		for _, r := range t.Rows {
			fmt.Fprintf(stdout, "%s/%s\n", t.Kind, r.Name)
		}
		return nil
	}
	if len(t.Rows) == 0 {
		where := ""
		if a.namespace != "" {
			where = " in " + a.namespace + " namespace"
		}
		fmt.Fprintf(stderr, "No resources found%s.\n", where)
	} else {
		a.columns(stdout, t)
	}
	for _, n := range t.Notes {
		fmt.Fprintln(stderr, n)
	}
	return nil
}

func listKind(kind string) string {
	return strings.ToUpper(kind[:1]) + kind[1:] + "List"
}

// selectRows keeps the rows that -l selects, in the order that --sort-by asks for.
// What is not shown as a table is not touched.
func (a *ask) selectRows(t *answer.Table) error {
	if a.selector != "" {
		s, err := labels.Parse(a.selector)
		if err != nil {
			return fmt.Errorf("-l %s: %w", a.selector, err)
		}
		t.Rows = slices.DeleteFunc(slices.Clone(t.Rows), func(r answer.Row) bool { return !s.Matches(labels.Set(r.Labels)) })
	}
	if a.sortBy == "" {
		return nil
	}
	at := slices.IndexFunc(t.Columns, func(c answer.Column) bool { return strings.EqualFold(c.Name, strings.TrimPrefix(a.sortBy, "-")) })
	if at < 0 {
		var names []string
		for _, c := range t.Columns {
			names = append(names, c.Name)
		}
		return fmt.Errorf("--sort-by is one of %s, not %q", strings.Join(names, ", "), a.sortBy)
	}
	t.Rows = slices.Clone(t.Rows)
	slices.SortStableFunc(t.Rows, func(x, y answer.Row) int {
		c := compareCells(x.Cells[at], y.Cells[at])
		if strings.HasPrefix(a.sortBy, "-") {
			return -c
		}
		return c
	})
	return nil
}

func compareCells(a, b string) int {
	x, errX := strconv.ParseFloat(strings.TrimSuffix(a, "%"), 64)
	y, errY := strconv.ParseFloat(strings.TrimSuffix(b, "%"), 64)
	switch {
	case errX == nil && errY == nil && x < y:
		return -1
	case errX == nil && errY == nil && x > y:
		return 1
	case errX == nil && errY == nil:
		return 0
	}
	return strings.Compare(a, b)
}

// columns writes the table in columns; with --narrow the widest give way first.
func (a *ask) columns(out io.Writer, t answer.Table) {
	var cols []int
	for i, c := range t.Columns {
		if !c.Wide || a.output == "wide" {
			cols = append(cols, i)
		}
	}
	rows := make([][]string, 0, len(t.Rows)+1)
	if !a.noHeaders {
		head := make([]string, len(t.Columns))
		for i, c := range t.Columns {
			head[i] = c.Name
		}
		rows = append(rows, head)
	}
	for _, r := range t.Rows {
		rows = append(rows, r.Cells)
	}
	width := make([]int, len(t.Columns))
	for _, r := range rows {
		for _, i := range cols {
			width[i] = max(width[i], utf8.RuneCountInString(r[i]))
		}
	}
	if a.narrow {
		squeeze(width, cols)
	}
	for _, r := range rows {
		var b strings.Builder
		for k, i := range cols {
			if k > 0 {
				b.WriteString("  ")
			}
			cell := cut(r[i], width[i])
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if t.Columns[i].Right {
				b.WriteString(pad + cell)
			} else {
				b.WriteString(cell + pad)
			}
		}
		fmt.Fprintln(out, strings.TrimRight(b.String(), " "))
	}
}

func squeeze(width, cols []int) {
	total := 2 * (len(cols) - 1)
	for _, i := range cols {
		total += width[i]
	}
	for ; total > narrowWidth; total-- {
		widest := cols[0]
		for _, i := range cols {
			if width[i] > width[widest] {
				widest = i
			}
		}
		if width[widest] <= 4 {
			return
		}
		width[widest]--
	}
}

func cut(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	return string(r[:width-1]) + "…"
}

func writeCSV(out io.Writer, t answer.Table) error {
	w := csv.NewWriter(out)
	var head []string
	for _, c := range t.Columns {
		head = append(head, c.Name)
	}
	if err := w.Write(head); err != nil {
		return err
	}
	for _, r := range t.Rows {
		if err := w.Write(r.Cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// object writes an answer as JSON or YAML.
func (a *ask) object(w *answer.World, kind string, v any, out io.Writer) error {
	b, err := json.MarshalIndent(answer.Wrap(kind, w.Now(), v), "", "  ")
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	if a.output == "yaml" {
		if b, err = yaml.JSONToYAML(b); err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
		_, err = out.Write(b)
		return err
	}
	_, err = fmt.Fprintln(out, string(b))
	return err
}
