package journal

import (
	"errors"
	"fmt"
	"slices"

	"sluice.dev/sluice/admission"
)

// Point is an instant of a call to a Memory at which it can crash.
type Point int

// The points of Append and Settle. A crash before a call leaves nothing of it, a
// crash after it leaves all of it without an answer.
const (
	BeforeAppend Point = iota
	AfterAppend
	BeforeSettle
	AfterSettle
)

// ErrCrashed is what a Memory answers from its crash until its Restart.
var ErrCrashed = errors.New("the process that used the journal has crashed")

// Memory is a journal without a file, for simulations. It keeps decisions as a
// file would: encoded, so that what is replayed is what a real restart would see.
// A Memory is used by one goroutine.
type Memory struct {
	// Crash, if not nil, is asked at every point whether the process dies there.
	Crash func(Point) bool

	records   [][]byte // by number - 1
	unsettled []uint64
	crashed   bool
}

var _ admission.Journal = (*Memory)(nil)

// Append keeps the decision and returns its number.
func (m *Memory) Append(d *admission.Decision) (uint64, error) {
	if m.dies(BeforeAppend) {
		return 0, ErrCrashed
	}
	seq := uint64(len(m.records) + 1)
	r, err := encode(d, seq)
	if err != nil {
		return 0, err
	}
	m.records = append(m.records, r)
	m.unsettled = append(m.unsettled, seq)
	if m.dies(AfterAppend) {
		return 0, ErrCrashed
	}
	return seq, nil
}

// Settle says that everything of the decision was answered.
func (m *Memory) Settle(seq uint64) error {
	if m.dies(BeforeSettle) {
		return ErrCrashed
	}
	if seq == 0 || seq > uint64(len(m.records)) {
		return fmt.Errorf("settle decision %d: the last is %d", seq, len(m.records))
	}
	m.unsettled = slices.DeleteFunc(m.unsettled, func(u uint64) bool { return u == seq })
	if m.dies(AfterSettle) {
		return ErrCrashed
	}
	return nil
}

func (m *Memory) dies(p Point) bool {
	m.crashed = m.crashed || m.Crash != nil && m.Crash(p)
	return m.crashed
}

// Restart lets the next process use the journal.
func (m *Memory) Restart() { m.crashed = false }

// Replay returns the decisions that are not settled, in the order of their numbers.
func (m *Memory) Replay() ([]admission.Decision, error) {
	if m.crashed {
		return nil, ErrCrashed
	}
	var out []admission.Decision
	for _, seq := range m.unsettled {
		d, err := decode(m.records[seq-1], seq)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// Decisions returns everything that was appended, settled or not, in order.
func (m *Memory) Decisions() ([]admission.Decision, error) {
	out := make([]admission.Decision, len(m.records))
	for i, r := range m.records {
		var err error
		if out[i], err = decode(r, uint64(i+1)); err != nil {
			return nil, err
		}
	}
	return out, nil
}
