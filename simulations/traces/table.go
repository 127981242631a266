package traces

import (
	"encoding/csv"
	"errors"
	"io"
	"iter"
	"strconv"
)

// row is one line of a table with a header, read column by column. The first
// column that is not legal is its error.
type row struct {
	f      *File
	line   int
	at     map[string]int
	fields []string
	err    error
}

// rows reads a table whose first line names its columns, of which need must be there.
func (f *File) rows(need ...string) iter.Seq2[*row, error] {
	return func(yield func(*row, error) bool) {
		r := csv.NewReader(f.text)
		r.ReuseRecord = true
		head, err := r.Read()
		if err != nil {
			yield(nil, f.fail(1, "no header: %v", plain(err)))
			return
		}
		out := &row{f: f, at: map[string]int{}}
		for i, name := range head {
			out.at[name] = i
		}
		for _, name := range need {
			if _, ok := out.at[name]; !ok {
				yield(nil, f.fail(1, "no column %q", name))
				return
			}
		}
		for {
			fields, err := r.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			out.line, _ = r.FieldPos(0)
			if err != nil {
				var bad *csv.ParseError
				if errors.As(err, &bad) {
					out.line = bad.Line
				}
				yield(nil, f.fail(out.line, "%v", plain(err)))
				return
			}
			out.fields = fields
			if !yield(out, nil) || out.err != nil {
				return
			}
		}
	}
}

// plain is the error without the position that the csv reader adds.
func plain(err error) error {
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		return bad.Err
	}
	return err
}

// text is the column's field, "" if the table has no such column.
func (r *row) text(column string) string {
	if i, ok := r.at[column]; ok {
		return r.fields[i]
	}
	return ""
}

// whole is a number that is whole and not negative.
func (r *row) whole(column string) int64 {
	n, err := strconv.ParseInt(r.text(column), 10, 64)
	if (err != nil || n < 0) && r.err == nil {
		r.err = r.f.fail(r.line, "%s: %q is not a whole number from 0 up", column, r.text(column))
	}
	return n
}

// number is a number that is not negative.
func (r *row) number(column string) float64 {
	x, err := strconv.ParseFloat(r.text(column), 64)
	if (err != nil || x < 0) && r.err == nil {
		r.err = r.f.fail(r.line, "%s: %q is not a number from 0 up", column, r.text(column))
	}
	return x
}

// optional is whole, or none for an empty field.
func (r *row) optional(column string, none int64) int64 {
	if r.text(column) == "" {
		return none
	}
	return r.whole(column)
}

// each turns rows into values; the first error ends it.
func each[T any](f *File, need []string, read func(*row) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for r, err := range f.rows(need...) {
			if err != nil {
				yield(none, err)
				return
			}
			v := read(r)
			if r.err != nil {
				yield(none, r.err)
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}
