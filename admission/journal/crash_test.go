package journal

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"
)

// At every instant at which a process can die, the file is what a copy taken then
// is. What the next process replays is what was appended and not settled.
func TestCrashPoints(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "journal.db")
	j := mustOpen(t, path, DefaultLimits())
	snap := func() []byte {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	opened := snap()
	mustAppend(t, j, decide(1))
	appended := snap()
	mustAppend(t, j, decide(2))
	second := snap()
	mustSettle(t, j, 1)
	settled := snap()
	mustSettle(t, j, 2)
	mustAppend(t, j, decide(3))
	mustClose(t, j)
	third := snap()

	cut := func(data []byte, n int) []byte { return data[:len(data)-n] }
	for _, c := range []struct {
		name string
		data []byte
		want []uint64
	}{
		{"never started", nil, nil},
		{"opened", opened, nil},
		{"append: pages are written, the meta page is not", withMeta(appended, opened), nil},
		{"append: half of the meta page is written", tornMeta(appended, opened), nil},
		{"append returned", appended, []uint64{1}},
		{"second append: the meta page is not written", withMeta(second, appended), []uint64{1}},
		{"second append returned", second, []uint64{1, 2}},
		{"settle: the meta page is not written", withMeta(settled, second), []uint64{1, 2}},
		{"settle: half of the meta page is written", tornMeta(settled, second), []uint64{1, 2}},
		{"settle returned", settled, []uint64{2}},
		{"all settled, one more appended", third, []uint64{3}},
		{"the file has grown, nothing is written there yet", append(bytes.Clone(third), make([]byte, 1<<16)...), []uint64{3}},
		{"the first start was cut off while it made the file", cut(opened[:4*4096], 4096+1), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			if err := os.WriteFile(path, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			j := mustOpen(t, path, DefaultLimits())
			wantNumbers(t, "unsettled", unsettled(t, j), c.want...)
			if len(c.want) > 0 && j.Notice() != "" {
				t.Errorf("a sound file was moved: %s", j.Notice())
			}
			// The next process goes on as if nothing had happened.
			seq := mustAppend(t, j, decide(9))
			for _, w := range c.want {
				mustSettle(t, j, w)
			}
			mustClose(t, j)
			wantNumbers(t, "unsettled after that", unsettled(t, mustOpen(t, path, DefaultLimits())), seq)
		})
	}
}

// withMeta is the later file with the meta pages of the earlier one: its other
// pages reached the disk, these did not.
func withMeta(later, earlier []byte) []byte {
	out := bytes.Clone(later)
	copy(out, earlier[:2*os.Getpagesize()])
	return out
}

// tornMeta is the later file in which the meta page that changed is half old.
func tornMeta(later, earlier []byte) []byte {
	out := bytes.Clone(later)
	for p := range 2 {
		at := p*os.Getpagesize() + headerSize
		copy(out[at+metaSize/2:at+metaSize], earlier[at+metaSize/2:])
	}
	return out
}

// seal makes the meta pages whole again after a change, as bbolt would have them.
func seal(data []byte) {
	for p := range 2 {
		at := p*4096 + headerSize
		if at+metaSize > len(data) {
			return
		}
		sum := fnv.New64a()
		_, _ = sum.Write(data[at : at+metaSize-8])
		order.PutUint64(data[at+metaSize-8:], sum.Sum64())
	}
}

func golden(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A damaged file is kept under another name, a fresh one takes its place, and the
// notice says both.
func TestDamaged(t *testing.T) {
	sound := golden(t)
	page := func(id, at int, b ...byte) []byte {
		out := bytes.Clone(sound)
		copy(out[id*4096+at:], b)
		seal(out)
		return out
	}
	m, ok := readMeta(sound)
	if other, ok1 := readMeta(sound[4096:]); ok1 && other.tx > m.tx {
		m = other
	}
	if !ok {
		t.Fatal("the golden file has no meta page")
	}
	root, free := int(m.root), int(m.freelist)
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"text", []byte(strings.Repeat("this is not a journal\n", 400)), "no whole meta page"},
		{"short text", []byte("x"), "no whole meta page"},
		{"both meta pages are zeros", make([]byte, len(sound)), "no whole meta page"},
		{"cut off", sound[:3*4096], "too few for"},
		{"a page is another", page(root, 0, 0xff), "says that it is page"},
		{"a page is of no kind", page(root, 8, 0x40), "should hold keys"},
		{"a page runs over the end", page(root, 12, 0xff, 0xff), "beyond the last"},
		{"a key is beyond its page", page(root, headerSize+4, 0xff, 0xff), "does not fit its page"},
		{"a page has more keys than room", page(root, 10, 0xff, 0xff), "no room for 65535 keys"},
		{"the list of free pages is none", page(free, 8, kindLeaf), "should list free pages"},
		{"a free page is in use", page(free, headerSize, byte(root)), "used twice"},
		{"a free page is not there", page(free, headerSize, 0xff, 0xff), "is not among its"},
		{"a record is changed", bytes.Replace(bytes.Clone(sound), []byte("ml/train-2"), []byte("ml/train-8"), 1), "adds up to"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			for n := 1; n <= 2; n++ {
				if err := os.WriteFile(path, c.data, 0o600); err != nil {
					t.Fatal(err)
				}
				j := mustOpen(t, path, DefaultLimits())
				to := fmt.Sprintf("%s.corrupt-%d", path, n)
				if !strings.Contains(j.Notice(), c.want) || !strings.Contains(j.Notice(), to) {
					t.Errorf("notice %q, want %q and %s", j.Notice(), c.want, to)
				}
				if there, err := os.ReadFile(to); err != nil || !bytes.Equal(there, c.data) {
					t.Errorf("the damaged file is not what it was: %v", err)
				}
				if seq := mustAppend(t, j, decide(1)); seq != 1 {
					t.Errorf("the fresh file starts at %d", seq)
				}
				mustClose(t, j)
				if j = mustOpen(t, path, DefaultLimits()); j.Notice() != "" {
					t.Errorf("the fresh file is damaged too: %s", j.Notice())
				}
				mustClose(t, j)
			}
		})
	}
}

// tryFile opens a file of the given content and uses it. It may be refused, but
// then with an error; and what was opened can be written and opened again.
func tryFile(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := open(path, Limits{Decisions: 3, Bytes: 4096}, 0)
	if err != nil {
		var d *damage
		if errors.As(err, &d) {
			t.Fatalf("a damaged file was not moved aside: %v", err)
		}
		return
	}
	if _, err := j.Replay(); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		seq, err := j.Append(decide(n))
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Settle(seq); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := open(path, DefaultLimits(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if again.Notice() != "" {
		t.Fatalf("what was written is damaged: %s", again.Notice())
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// Bytes changed anywhere, with the meta pages made to agree: what bbolt would have
// trusted is found out before it is asked.
func TestChangedBytes(t *testing.T) {
	sound := golden(t)
	dir := t.TempDir()
	run := 0
	rapid.Check(t, func(r *rapid.T) {
		run++
		data := bytes.Clone(sound)
		for range rapid.IntRange(1, 4).Draw(r, "changes") {
			// Most bytes of a file are free space and change nothing.
			at := rapid.OneOf(rapid.IntRange(0, len(data)-1), rapid.Custom(func(r *rapid.T) int {
				return rapid.IntRange(0, len(data)/4096-1).Draw(r, "page")*4096 + rapid.IntRange(0, 80).Draw(r, "byte")
			})).Draw(r, "at")
			data[at] = rapid.Byte().Draw(r, "to")
		}
		seal(data)
		path := filepath.Join(dir, fmt.Sprint(run))
		tryFile(t, path, data)
		for _, f := range []string{path, path + ".corrupt-1"} {
			_ = os.Remove(f)
		}
	})
}

// FuzzReplay opens arbitrary files. With patch the data is written over a sound
// file from offset at on, and the meta pages are made to agree with it.
func FuzzReplay(f *testing.F) {
	f.Add([]byte{}, uint16(0), false)
	f.Add([]byte("not a journal"), uint16(0), false)
	f.Add([]byte{0xff, 0xff}, uint16(3*4096+10), true)
	f.Add([]byte{4}, uint16(2*4096+8), true)
	sound := golden(f)
	f.Add([]byte{}, uint16(0), true)
	path := filepath.Join(f.TempDir(), "journal.db")
	f.Fuzz(func(t *testing.T, data []byte, at uint16, patch bool) {
		if patch {
			whole := bytes.Clone(sound)
			copy(whole[min(int(at), len(whole)):], data)
			data = whole
			seal(data)
		}
		path := fmt.Sprintf("%s-%d", path, os.Getpid())
		tryFile(t, path, data)
		for _, left := range []string{path, path + ".corrupt-1"} {
			_ = os.Remove(left)
		}
	})
}

// Records are checked one by one: a bucket of ours with an entry that is no
// decision is as damaged as a torn page.
func TestDamagedContent(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(tx *bbolt.Tx) error
		want   string
	}{
		{"no record", func(tx *bbolt.Tx) error { return tx.Bucket(bucketDecisions).Put(key(1), []byte("{}")) }, "has format 0"},
		{"not JSON", func(tx *bbolt.Tx) error { return tx.Bucket(bucketDecisions).Put(key(1), []byte("{")) }, "unexpected end"},
		{"a key of another kind", func(tx *bbolt.Tx) error { return tx.Bucket(bucketDecisions).Put([]byte("x"), []byte("{}")) }, "is beyond the last"},
		{"a number beyond the last", func(tx *bbolt.Tx) error { return tx.Bucket(bucketDecisions).SetSequence(0) }, "is beyond the last"},
		{"an unsettled decision is missing", func(tx *bbolt.Tx) error { return tx.Bucket(bucketDecisions).Delete(key(1)) }, "not settled but not kept"},
		{"a bucket is missing", func(tx *bbolt.Tx) error { return tx.DeleteBucket(bucketUnsettled) }, "lacks a bucket"},
		{"the format is no number", func(tx *bbolt.Tx) error { return tx.Bucket(bucketAbout).Put(keyFormat, []byte("one")) }, `its format is "one"`},
		{"a record under another number", func(tx *bbolt.Tx) error {
			b := tx.Bucket(bucketDecisions)
			if err := b.SetSequence(2); err != nil {
				return err
			}
			return b.Put(key(2), bytes.Clone(b.Get(key(1))))
		}, "decision 1 is kept as decision 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			j := mustOpen(t, path, DefaultLimits())
			mustAppend(t, j, decide(1))
			if err := j.db.Update(c.change); err != nil {
				t.Fatal(err)
			}
			mustClose(t, j)
			j = mustOpen(t, path, DefaultLimits())
			if !strings.Contains(j.Notice(), c.want) {
				t.Errorf("notice %q, want %q", j.Notice(), c.want)
			}
			wantNumbers(t, "unsettled", unsettled(t, j))
		})
	}
}
