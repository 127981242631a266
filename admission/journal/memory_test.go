package journal

import (
	"errors"
	"reflect"
	"testing"

	"sluice.dev/sluice/admission"
)

// A crash before a call leaves nothing of it, a crash after it leaves all of it.
func TestMemoryCrash(t *testing.T) {
	for _, c := range []struct {
		at   Point
		want []uint64
	}{
		{BeforeAppend, nil},
		{AfterAppend, []uint64{1}},
		{BeforeSettle, []uint64{1}},
		{AfterSettle, nil},
	} {
		m := &Memory{Crash: func(p Point) bool { return p == c.at }}
		seq, err := m.Append(decide(1))
		if err == nil {
			err = m.Settle(seq)
		}
		if !errors.Is(err, ErrCrashed) {
			t.Fatalf("point %d: %v", c.at, err)
		}
		m.Crash = nil
		if _, err := m.Append(decide(2)); !errors.Is(err, ErrCrashed) {
			t.Errorf("point %d: a dead process appends: %v", c.at, err)
		}
		if _, err := m.Replay(); !errors.Is(err, ErrCrashed) {
			t.Errorf("point %d: a dead process replays: %v", c.at, err)
		}
		m.Restart()
		wantNumbers(t, "unsettled", unsettled(t, m), c.want...)
	}
}

// Memory and file answer the same.
func TestMemoryIsLikeAFile(t *testing.T) {
	file := mustOpen(t, t.TempDir()+"/journal.db", DefaultLimits())
	memory := &Memory{}
	type journal interface {
		admission.Journal
		Replay() ([]admission.Decision, error)
	}
	var left [2][]admission.Decision
	for i, j := range []journal{file, memory} {
		for n := range 4 {
			if _, err := j.Append(decide(n)); err != nil {
				t.Fatal(err)
			}
		}
		for _, seq := range []uint64{3, 1, 3} {
			if err := j.Settle(seq); err != nil {
				t.Fatal(err)
			}
		}
		for _, seq := range []uint64{0, 5} {
			if err := j.Settle(seq); err == nil {
				t.Errorf("settle %d: no error", seq)
			}
		}
		var err error
		if left[i], err = j.Replay(); err != nil {
			t.Fatal(err)
		}
	}
	if len(left[0]) != 2 || !reflect.DeepEqual(left[0], left[1]) {
		t.Errorf("file replays %+v\nmemory %+v", left[0], left[1])
	}
	all, err := memory.Decisions()
	if err != nil {
		t.Fatal(err)
	}
	wantNumbers(t, "appended", numbers(all), 1, 2, 3, 4)
}
