package traces

import (
	"bufio"
	"iter"
	"strconv"
	"strings"
)

// Record is a job in the Standard Workload Format: its 18 columns, of which those
// that a queue looks at have names. -1 is unknown, as in the format.
type Record struct {
	ID        int64
	Submit    int64 // s from the log's start
	Wait      int64 // s
	Run       int64 // s
	Procs     int64 // given
	Asked     int64 // processors asked for
	Requested int64 // s asked for
	Status    int64
	User      int64
	Queue     int64
}

// swfColumns is how many columns the format has.
const swfColumns = 18

// Records reads a log in the Standard Workload Format. Comments start with ';'.
func (f *File) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		lines := bufio.NewScanner(f.text)
		line := 0
		for lines.Scan() {
			line++
			text := strings.TrimSpace(lines.Text())
			if text == "" || text[0] == ';' {
				continue
			}
			r, err := f.record(line, strings.Fields(text))
			if !yield(r, err) || err != nil {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Record{}, f.fail(line+1, "%v", err))
		}
	}
}

func (f *File) record(line int, fields []string) (Record, error) {
	if len(fields) != swfColumns {
		return Record{}, f.fail(line, "%d columns, the format has %d", len(fields), swfColumns)
	}
	var v [swfColumns]int64
	for i, s := range fields {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return Record{}, f.fail(line, "column %d: %q is not a number", i+1, s)
		}
		v[i] = int64(x)
	}
	return Record{
		ID: v[0], Submit: v[1], Wait: v[2], Run: v[3], Procs: v[4], Asked: v[7], Requested: v[8],
		Status: v[10], User: v[11], Queue: v[14],
	}, nil
}
