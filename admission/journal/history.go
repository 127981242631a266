package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"sluice.dev/sluice/admission"
)

// Filter says which decisions, and which parts of them, are asked for. The zero
// value asks for everything; with both fields set both must hold.
type Filter struct {
	Workload string // key; what makes room for it counts too
	// Queue is that of an admission, or the one that a verdict speaks of. Evictions,
	// releases and marks name no queue; they are found by their workload.
	Queue string
}

// History returns the latest decisions that match, latest first, at most limit of
// them (all if limit is 0). Of each only the parts that match are returned.
func (j *Journal) History(f Filter, limit int) ([]admission.Decision, error) {
	var out []admission.Decision
	err := j.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketDecisions).Cursor()
		for k, v := c.Last(); k != nil && (limit <= 0 || len(out) < limit); k, v = c.Prev() {
			d, ok, err := f.find(v, number(k))
			if err != nil {
				return err
			}
			if ok {
				out = append(out, d)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read history of journal %s: %w", j.db.Path(), err)
	}
	return out, nil
}

// find decodes the record if it may match, and returns the parts that do.
func (f Filter) find(data []byte, seq uint64) (admission.Decision, bool, error) {
	// Most records do not match: to look for the names is much cheaper than to decode.
	for _, name := range []string{f.Workload, f.Queue} {
		quoted, err := json.Marshal(name)
		if err != nil {
			return admission.Decision{}, false, fmt.Errorf("encode %q: %w", name, err)
		}
		if !bytes.Contains(data, quoted[1:len(quoted)-1]) {
			return admission.Decision{}, false, nil
		}
	}
	d, err := decode(data, seq)
	if err != nil {
		return d, false, err
	}
	d, ok := f.parts(d)
	return d, ok, nil
}

// parts is d without what does not match, and whether anything is left.
func (f Filter) parts(d admission.Decision) (admission.Decision, bool) {
	if f == (Filter{}) {
		return d, true
	}
	d.Admit = only(d.Admit, func(a admission.Admission) bool { return f.matches(a.Queue, a.Key) })
	d.Move = only(d.Move, func(a admission.Admission) bool { return f.matches(a.Queue, a.Key) })
	d.Evict = only(d.Evict, func(e admission.Eviction) bool { return f.matches("", e.Key, e.For) })
	d.Release = only(d.Release, func(r admission.Release) bool { return f.matches("", r.Workload) })
	d.Finish = only(d.Finish, func(key string) bool { return f.matches("", key) })
	d.Verdicts = only(d.Verdicts, func(v admission.Verdict) bool { return f.matches(v.Reason.Queue, v.Key) })
	d.Marks = only(d.Marks, func(m admission.Mark) bool { return f.matches("", m.Key) })
	d.Nominees = only(d.Nominees, func(n admission.Nominee) bool {
		return f.matches("", n.Key) || f.matches("", n.Victims...)
	})
	d.Reservations = only(d.Reservations, func(r admission.Reservation) bool { return f.matches("", r.Key) })
	left := len(d.Admit) + len(d.Move) + len(d.Evict) + len(d.Release) + len(d.Finish) +
		len(d.Verdicts) + len(d.Marks) + len(d.Nominees) + len(d.Reservations)
	return d, left > 0
}

func (f Filter) matches(queue string, keys ...string) bool {
	return (f.Queue == "" || f.Queue == queue) && (f.Workload == "" || slices.Contains(keys, f.Workload))
}

// only returns what holds, or nil.
func only[T any](all []T, holds func(T) bool) []T {
	var out []T
	for _, x := range all {
		if holds(x) {
			out = append(out, x)
		}
	}
	return out
}
