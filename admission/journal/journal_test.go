package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
)

var start = time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)

// decide returns a decision with something in most of its parts.
func decide(n int) *admission.Decision {
	name := fmt.Sprintf("ml/train-%d", n)
	at := start.Add(time.Duration(n) * time.Second)
	return &admission.Decision{
		At: at,
		Admit: []admission.Admission{{
			Key: name, UID: fmt.Sprintf("uid-%d", n), Queue: "team-a", At: at, Based: 7,
			Plan: gang.Plan{Sets: []gang.SetPlan{{Name: "main", Slots: []gang.Slot{{Node: "n-1", Count: 2}, {Node: "n-2", Count: 1}}}}},
		}},
		Evict:   []admission.Eviction{{Key: "ml/old", UID: "uid-old", Cause: admission.Preempted, For: name}},
		Release: []admission.Release{{UID: "pod-1", Key: name + "-0", Workload: name, Node: "n-1", Stamp: at.Unix()}},
		Verdicts: []admission.Verdict{{Key: "vision/wide", Text: "Quota: 8 of 16", Reason: admission.Reason{
			Code: admission.Quota, Queue: "team-b", Bound: &admission.Bound{Queue: "team-b", Resource: "nvidia.com/gpu", Limit: 16, Used: 8, Asked: 9},
		}}},
	}
}

func mustOpen(t *testing.T, path string, limits Limits) *Journal {
	t.Helper()
	j, err := open(path, limits, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func mustAppend(t *testing.T, j *Journal, d *admission.Decision) uint64 {
	t.Helper()
	seq, err := j.Append(d)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

func mustSettle(t *testing.T, j *Journal, seq uint64) {
	t.Helper()
	if err := j.Settle(seq); err != nil {
		t.Fatal(err)
	}
}

func mustClose(t *testing.T, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func unsettled(t *testing.T, j interface {
	Replay() ([]admission.Decision, error)
},
) []uint64 {
	t.Helper()
	all, err := j.Replay()
	if err != nil {
		t.Fatal(err)
	}
	return numbers(all)
}

func history(t *testing.T, j *Journal, f Filter, limit int) []admission.Decision {
	t.Helper()
	all, err := j.History(f, limit)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func numbers(all []admission.Decision) []uint64 {
	var out []uint64
	for _, d := range all {
		out = append(out, d.Seq)
	}
	return out
}

func wantNumbers(t *testing.T, what string, got []uint64, want ...uint64) {
	t.Helper()
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// What is replayed is what was appended, whole, with its number, in order, and only
// what is not settled, in this process and in the next.
func TestReplay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "journal.db")
	j := mustOpen(t, path, DefaultLimits())
	for n := 1; n <= 5; n++ {
		d := decide(n)
		if seq := mustAppend(t, j, d); seq != uint64(n) || d.Seq != 0 {
			t.Fatalf("append %d gave %d and left %d in the decision", n, seq, d.Seq)
		}
	}
	mustSettle(t, j, 2)
	mustSettle(t, j, 4)
	mustSettle(t, j, 2)
	for range 2 {
		all, err := j.Replay()
		if err != nil {
			t.Fatal(err)
		}
		wantNumbers(t, "unsettled", numbers(all), 1, 3, 5)
		want := decide(3)
		want.Seq = 3
		if !reflect.DeepEqual(all[1], *want) {
			t.Errorf("replayed %+v\nwant     %+v", all[1], *want)
		}
		mustClose(t, j)
		j = mustOpen(t, path, DefaultLimits())
	}
	if seq := mustAppend(t, j, decide(6)); seq != 6 {
		t.Errorf("after a restart the next number is %d, want 6", seq)
	}
}

func TestSettleWhatWasNeverAppended(t *testing.T) {
	j := mustOpen(t, filepath.Join(t.TempDir(), "journal.db"), DefaultLimits())
	mustAppend(t, j, decide(1))
	for _, seq := range []uint64{0, 2} {
		if err := j.Settle(seq); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("there is no decision %d", seq)) {
			t.Errorf("settle %d: %v", seq, err)
		}
	}
}

// A number is never given twice, though what had it is long dropped.
func TestNumbersOutliveTheirDecisions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := mustOpen(t, path, Limits{})
	for n := uint64(1); n <= 3; n++ {
		mustSettle(t, j, mustAppend(t, j, decide(1)))
		mustClose(t, j)
		j = mustOpen(t, path, Limits{})
	}
	if seq := mustAppend(t, j, decide(1)); seq != 4 {
		t.Errorf("next number is %d, want 4", seq)
	}
}

// Against a list: whatever is appended and settled, in whatever order and with
// restarts between, what is kept is the newest settled that fit and all unsettled.
func TestHistoryIsBounded(t *testing.T) {
	dir := t.TempDir()
	run := 0
	rapid.Check(t, func(r *rapid.T) {
		run++
		path := filepath.Join(dir, fmt.Sprint(run))
		limits := Limits{Decisions: rapid.IntRange(0, 5).Draw(r, "decisions"), Bytes: rapid.Int64Range(0, 6000).Draw(r, "bytes")}
		j, err := open(path, limits, 0)
		if err != nil {
			r.Fatal(err)
		}
		defer func() { _ = j.Close() }()
		type kept struct {
			seq     uint64
			bytes   int
			settled bool
		}
		var model []kept
		var seq uint64
		for range rapid.IntRange(1, 15).Draw(r, "steps") {
			switch rapid.SampledFrom([]string{"append", "append", "settle", "restart"}).Draw(r, "step") {
			case "append":
				seq++
				d := decide(int(seq))
				d.Admit[0].Plan.Sets[0].Name = strings.Repeat("x", rapid.IntRange(0, 2000).Draw(r, "size"))
				record, err := encode(d, seq)
				if err != nil {
					r.Fatal(err)
				}
				if _, err := j.Append(d); err != nil {
					r.Fatal(err)
				}
				model = append(model, kept{seq: seq, bytes: len(record)})
				for i := 0; i < len(model); {
					count, bytes := len(model), 0
					for _, k := range model {
						bytes += k.bytes
					}
					if count <= limits.Decisions && int64(bytes) <= limits.Bytes {
						break
					}
					if model[i].settled {
						model = append(model[:i:i], model[i+1:]...)
					} else {
						i++
					}
				}
			case "settle":
				if len(model) > 0 {
					i := rapid.IntRange(0, len(model)-1).Draw(r, "which")
					if err := j.Settle(model[i].seq); err != nil {
						r.Fatal(err)
					}
					model[i].settled = true
				}
			case "restart":
				if err := j.Close(); err != nil {
					r.Fatal(err)
				}
				if j, err = open(path, limits, 0); err != nil {
					r.Fatal(err)
				}
			}
			all, err := j.History(Filter{}, 0)
			if err != nil {
				r.Fatal(err)
			}
			left, err := j.Replay()
			if err != nil {
				r.Fatal(err)
			}
			var wantAll, wantLeft []uint64
			for _, k := range model {
				wantAll = append([]uint64{k.seq}, wantAll...)
				if !k.settled {
					wantLeft = append(wantLeft, k.seq)
				}
			}
			if fmt.Sprint(numbers(all)) != fmt.Sprint(wantAll) || fmt.Sprint(numbers(left)) != fmt.Sprint(wantLeft) {
				r.Fatalf("kept %v of which unsettled %v, want %v and %v (limits %+v)", numbers(all), numbers(left), wantAll, wantLeft, limits)
			}
		}
	})
}

func TestHistory(t *testing.T) {
	j := mustOpen(t, filepath.Join(t.TempDir(), "journal.db"), DefaultLimits())
	for n := 1; n <= 20; n++ {
		d := decide(n)
		if n%5 == 0 {
			d.Admit[0].Queue = "team-c"
		}
		mustAppend(t, j, d)
	}
	for _, c := range []struct {
		name  string
		f     Filter
		limit int
		want  []uint64
	}{
		{"all, latest first", Filter{}, 3, []uint64{20, 19, 18}},
		{"a workload, not one whose name begins alike", Filter{Workload: "ml/train-1"}, 0, []uint64{1}},
		{"a workload that waits", Filter{Workload: "vision/wide"}, 2, []uint64{20, 19}},
		{"a workload that was taken back", Filter{Workload: "ml/old"}, 1, []uint64{20}},
		{"a queue", Filter{Queue: "team-c"}, 0, []uint64{20, 15, 10, 5}},
		{"both", Filter{Queue: "team-c", Workload: "ml/train-15"}, 0, []uint64{15}},
		{"both, apart", Filter{Queue: "team-c", Workload: "vision/wide"}, 0, nil},
		{"nobody", Filter{Workload: "ml/nobody"}, 0, nil},
	} {
		wantNumbers(t, c.name, numbers(history(t, j, c.f, c.limit)), c.want...)
	}
	d := history(t, j, Filter{Workload: "vision/wide"}, 1)[0]
	if len(d.Admit)+len(d.Evict)+len(d.Release) != 0 || len(d.Verdicts) != 1 {
		t.Errorf("parts about others are left in: %+v", d)
	}
}

// History may be read while decisions are written.
func TestReadersAndWriters(t *testing.T) {
	j := mustOpen(t, filepath.Join(t.TempDir(), "journal.db"), Limits{Decisions: 10, Bytes: 1 << 20})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				seq, err := j.Append(decide(1))
				if err == nil {
					err = j.Settle(seq)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 20 {
				if _, err := j.History(Filter{Workload: "ml/train-1"}, 5); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	wantNumbers(t, "unsettled", unsettled(t, j))
	if n := len(history(t, j, Filter{}, 0)); n != 10 {
		t.Errorf("%d decisions are kept, want 10", n)
	}
}

func TestOneProcessAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	first := mustOpen(t, path, DefaultLimits())
	mustAppend(t, first, decide(1))
	if _, err := open(path, DefaultLimits(), 0); err == nil || !strings.Contains(err.Error(), path+": another process has it open") {
		t.Fatalf("second open: %v", err)
	}
	mustClose(t, first)
	wantNumbers(t, "unsettled", unsettled(t, mustOpen(t, path, DefaultLimits())), 1)
}

// The next leader waits a little for the last one to let go.
func TestOpenWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	first := mustOpen(t, path, DefaultLimits())
	opened := make(chan error)
	go func() {
		second, err := open(path, DefaultLimits(), time.Minute)
		if err == nil {
			err = second.Close()
		}
		opened <- err
	}()
	mustAppend(t, first, decide(1))
	mustClose(t, first)
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
}

// A file of a later format, or of another program, is refused and left as it is.
func TestNotOurs(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(tx *bbolt.Tx) error
		want   string
	}{
		{"later format", func(tx *bbolt.Tx) error { return tx.Bucket(bucketAbout).Put(keyFormat, []byte("2")) }, "has format 2, this program knows formats up to 1"},
		{"other program", func(tx *bbolt.Tx) error {
			if err := tx.DeleteBucket(bucketAbout); err != nil {
				return err
			}
			_, err := tx.CreateBucket([]byte("members"))
			return err
		}, "it belongs to another program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			j := mustOpen(t, path, DefaultLimits())
			mustAppend(t, j, decide(1))
			if err := j.db.Update(c.change); err != nil {
				t.Fatal(err)
			}
			mustClose(t, j)
			if _, err := open(path, DefaultLimits(), 0); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("open: %v, want %q", err, c.want)
			}
			files, err := filepath.Glob(path + "*")
			if err != nil || len(files) != 1 {
				t.Errorf("files after that: %v %v", files, err)
			}
		})
	}
}

func TestNotAFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); err == nil || !strings.HasPrefix(err.Error(), "open journal "+dir) {
		t.Errorf("open a folder: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(file, "journal.db")); err == nil {
		t.Error("open below a file: no error")
	}
}

// An undecided journal is not written to: what is closed says so.
func TestClosed(t *testing.T) {
	j := mustOpen(t, filepath.Join(t.TempDir(), "journal.db"), DefaultLimits())
	mustClose(t, j)
	if _, err := j.Append(decide(1)); err == nil {
		t.Error("append to a closed journal: no error")
	}
	if err := j.Settle(1); err == nil {
		t.Error("settle in a closed journal: no error")
	}
	if _, err := j.Replay(); err == nil {
		t.Error("replay a closed journal: no error")
	}
	mustClose(t, j)
}
