package answer

// Table is an answer in rows, for people and for programs that read columns. The
// same fields are in its Items, which are what JSON shows.
type Table struct {
	Kind    string
	Columns []Column
	Rows    []Row
	Items   any
	Notes   []string // about the whole, one line each
}

// Column is one column.
type Column struct {
	Name  string
	Wide  bool // shown only if asked for
	Right bool // numbers
}

// Row is one row. Name is the object it speaks of, as kind/name without the kind.
type Row struct {
	Name  string
	Cells []string
	// Labels are what -l selects by.
	Labels map[string]string
}

func columns(names ...string) []Column {
	var out []Column
	for _, n := range names {
		c := Column{Name: n}
		for len(c.Name) > 0 && (c.Name[0] == '+' || c.Name[0] == '>') {
			c.Wide = c.Wide || c.Name[0] == '+'
			c.Right = c.Right || c.Name[0] == '>'
			c.Name = c.Name[1:]
		}
		out = append(out, c)
	}
	return out
}
