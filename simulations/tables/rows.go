package tables

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/simulations/traces"
)

// Row is one job of a replay. Times are s from the log's start.
type Row struct {
	Job, User          int64
	Submit, Start, End int64
	Procs              int64
}

var rowColumns = []string{"job", "user", "submit", "start", "end", "processors"}

func (r *Row) fields() []*int64 {
	return []*int64{&r.Job, &r.User, &r.Submit, &r.Start, &r.End, &r.Procs}
}

// WriteRows writes the rows as a table with a header.
func WriteRows(w io.Writer, rows []Row) error {
	out := csv.NewWriter(w)
	line := make([]string, len(rowColumns))
	if err := out.Write(rowColumns); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	for i := range rows {
		for k, v := range rows[i].fields() {
			line[k] = strconv.FormatInt(*v, 10)
		}
		if err := out.Write(line); err != nil {
			return fmt.Errorf("write rows: %w", err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}

// ReadRows reads what WriteRows wrote.
func ReadRows(path string) ([]Row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	defer f.Close()
	in := csv.NewReader(f)
	var rows []Row
	for line := 1; ; line++ {
		fields, err := in.Read()
		switch {
		case errors.Is(err, io.EOF) && line > 1:
			return rows, nil
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%s:1: no header, want %s", path, strings.Join(rowColumns, ","))
		case err != nil:
			return nil, fmt.Errorf("%s:%d: %w", path, line, err)
		case line == 1 && strings.Join(fields, ",") != strings.Join(rowColumns, ","):
			return nil, fmt.Errorf("%s:1: the columns are %s, want %s: a table of sluice simulate replay -o csv", path, strings.Join(fields, ","), strings.Join(rowColumns, ","))
		case line == 1:
			continue
		}
		var r Row
		for k, v := range r.fields() {
			if *v, err = strconv.ParseInt(fields[k], 10, 64); err != nil {
				return nil, fmt.Errorf("%s:%d: %s: %q is not a whole number", path, line, rowColumns[k], fields[k])
			}
		}
		if r.Start < r.Submit || r.End < r.Start || r.Procs < 1 {
			return nil, fmt.Errorf("%s:%d: job %d is submitted at %d, starts at %d and ends at %d on %d processors", path, line, r.Job, r.Submit, r.Start, r.End, r.Procs)
		}
		rows = append(rows, r)
	}
}

// arrival is a job of a log, of either format.
type arrival struct{ id, user, submit, run, procs, limit int64 }

// arrivalsOf reads a log in the Standard Workload Format (.swf), or a joined one. Jobs
// that did not run or asked for nothing are left out.
func arrivalsOf(f *traces.File, path string) ([]arrival, error) {
	var out []arrival
	if !strings.HasSuffix(strings.TrimSuffix(path, ".gz"), ".swf") {
		for j, err := range f.Jobs() {
			if err != nil {
				return nil, err
			}
			out = append(out, arrival{j.ID, j.User, j.Submit, j.Run, j.Procs, j.Requested})
		}
		return out, nil
	}
	for r, err := range f.Records() {
		if err != nil {
			return nil, err
		}
		a := arrival{r.ID, r.User, r.Submit, r.Run, max(r.Procs, r.Asked), max(r.Requested, r.Run)}
		if a.run > 0 && a.procs > 0 {
			out = append(out, a)
		}
	}
	return out, nil
}

// ReplayLog runs a log on the engine, on one pool of so many processors; 0 is as many
// as the largest job asks for. Progress is told the part that is done.
func ReplayLog(path string, procs int64, cfg admission.Config, progress func(part float64)) ([]Row, error) {
	f, err := traces.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	jobs, err := arrivalsOf(f, path)
	if err != nil {
		return nil, err
	}
	largest := int64(0)
	for i, j := range jobs {
		largest = max(largest, j.procs)
		if i > 0 && j.submit < jobs[i-1].submit {
			return nil, fmt.Errorf("%s: job %d is submitted before the one above it", filepath.Base(path), j.id)
		}
	}
	if procs == 0 {
		procs = largest
	}
	if largest > procs {
		return nil, fmt.Errorf("%s: a job asks for %d processors, there are %d", filepath.Base(path), largest, procs)
	}
	p := newPool(procs, cfg)
	for i, j := range jobs {
		p.until(j.submit, false)
		p.expire(j.submit)
		p.submit(j.submit, j.run, j.procs, j.limit)
		p.cycle(j.submit)
		if progress != nil {
			progress(float64(i+1) / float64(len(jobs)))
		}
	}
	p.until(math.MaxInt64, true)
	rows := make([]Row, len(jobs))
	for i, j := range jobs {
		start := p.jobs[i].started
		if start < 0 {
			return nil, fmt.Errorf("%s: job %d never starts", filepath.Base(path), j.id)
		}
		rows[i] = Row{j.id, j.user, j.submit, start, start + j.run, j.procs}
	}
	return rows, nil
}
