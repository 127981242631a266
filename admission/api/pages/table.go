package pages

import (
	"cmp"
	"encoding/csv"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// rowsShown bounds the rows of a page of a table; the next are on the next page.
const rowsShown = 200

// column is one column of a table.
type column struct {
	Key, Name string
	Number    bool
	Left      bool   // a number that stands beside a drawing
	Class     string // "p2" is left out on a phone, "p3" on anything narrow
	// of the page that is shown:
	Href  string // sorts by it
	Order string // ascending, descending or ""
}

// cell is one cell. N is what a column of numbers is sorted by.
type cell struct {
	Text  string
	N     float64
	Href  string
	Class string
	Title string
	Art   template.HTML // drawn before the text
}

// row is one row; its first cell is its head.
type row struct {
	Cells  []cell
	Depth  int    // in a tree
	Match  string // more that a filter looks at
	Marked bool
}

// table is rows that can be filtered, sorted, paged and read as CSV.
type table struct {
	ID, Caption string
	Columns     []column
	Rows        []row
	Empty       string // said if there are no rows
	Total       int    // rows that pass the filter, on all pages
	Prev, Next  string
	CSV         string
	From, To    int
}

// filter is what a page is narrowed by, as the form shows it.
type filter struct {
	Words string
	Hint  string
	Keep  map[string]string // other parameters
	Pick  []pick
}

// pick is a choice of one value.
type pick struct {
	Name, Label, Value string
	Options            []string
	Any                string
}

// ask applies the parameters of the request: q, sort and page.
func (t *table) ask(r *http.Request) {
	q := r.URL.Query()
	words := strings.Fields(strings.ToLower(q.Get("q")))
	t.Rows = slices.DeleteFunc(t.Rows, func(x row) bool { return !x.matches(words) })
	key, back := strings.CutPrefix(q.Get("sort"), "-")
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Key == "" {
			continue
		}
		next := c.Key
		if c.Key == key {
			c.Order = "ascending"
			next = "-" + c.Key
			if back {
				c.Order, next = "descending", ""
			}
			t.sortBy(i, c.Number, back)
		}
		c.Href = with(q, "sort", next)
	}
	t.Total = len(t.Rows)
	t.CSV = with(q, "format", "csv")
	if q.Get("format") == "csv" {
		return
	}
	page, _ := strconv.Atoi(q.Get("page")) // what is no number is the first
	page = max(0, min(page, (t.Total-1)/rowsShown))
	t.From = page * rowsShown
	t.To = min(t.Total, t.From+rowsShown)
	if page > 0 {
		t.Prev = with(q, "page", strconv.Itoa(page-1))
	}
	if t.To < t.Total {
		t.Next = with(q, "page", strconv.Itoa(page+1))
	}
	t.Rows = t.Rows[t.From:t.To]
	t.From++
}

// with is the query with one parameter changed; another order or filter begins at the
// first page.
func with(q url.Values, name, value string) string {
	out := url.Values{}
	for k, v := range q {
		if k != "page" && k != "format" {
			out[k] = v
		}
	}
	if out.Set(name, value); value == "" {
		out.Del(name)
	}
	return "?" + out.Encode()
}

func (x *row) matches(words []string) bool {
	if len(words) == 0 {
		return true
	}
	var b strings.Builder
	for _, c := range x.Cells {
		b.WriteString(c.Text + "\n")
	}
	text := strings.ToLower(b.String() + x.Match)
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

func (t *table) sortBy(i int, number, back bool) {
	slices.SortStableFunc(t.Rows, func(a, b row) int {
		x, y := a.Cells[i], b.Cells[i]
		n := cmp.Compare(x.N, y.N)
		if !number {
			n = cmp.Compare(strings.ToLower(x.Text), strings.ToLower(y.Text))
		}
		if back {
			n = -n
		}
		return n
	})
	for k := range t.Rows {
		t.Rows[k].Depth = 0 // no tree any more
	}
}

// writeCSV writes all rows, the columns by their names.
func (t *table) writeCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	var line []string
	for _, c := range t.Columns {
		line = append(line, c.Name)
	}
	if err := w.Write(line); err != nil {
		return err
	}
	for _, r := range t.Rows {
		line = line[:0]
		for _, c := range r.Cells {
			line = append(line, plain(c.Text))
		}
		if err := w.Write(line); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// plain is a text that no spreadsheet takes for a formula.
func plain(s string) string {
	switch {
	case s == "–":
		return ""
	case s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])):
		return "'" + s
	default:
		return s
	}
}

// orDash is what stands where there is nothing.
func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
