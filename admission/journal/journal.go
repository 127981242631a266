package journal

import (
	"encoding/binary"
	"fmt"
	"sync"

	"go.etcd.io/bbolt"

	"sluice.dev/sluice/admission"
)

// The buckets of a file. A key of decisions and of unsettled is a number, eight
// bytes, most significant first, so that the order of keys is that of numbers.
var (
	bucketAbout     = []byte("about")     // keyFormat
	bucketDecisions = []byte("decisions") // number ▶ record
	bucketUnsettled = []byte("unsettled") // number ▶ nothing
)

// Limits bounds the history. The oldest settled decisions are dropped when either
// is passed.
type Limits struct {
	Decisions int   // how many
	Bytes     int64 // of their records
}

// DefaultLimits keeps some hours of a busy cluster and months of a quiet one.
func DefaultLimits() Limits { return Limits{Decisions: 10_000, Bytes: 64 << 20} }

// Journal keeps decisions in a file. Its methods may be called from several
// goroutines.
type Journal struct {
	db     *bbolt.DB
	limits Limits
	notice string

	mu   sync.Mutex
	kept extent
}

var _ admission.Journal = (*Journal)(nil)

// extent is how much the file holds.
type extent struct {
	decisions int
	bytes     int64
}

func (e extent) within(l Limits) bool { return e.decisions <= l.Decisions && e.bytes <= l.Bytes }

// Notice says what happened at Open that people should know, or is "": that the
// file was damaged, and where it is now.
func (j *Journal) Notice() string { return j.notice }

// Close gives the file back. What was appended stays unsettled until it is
// settled in this process or another.
func (j *Journal) Close() error { return j.db.Close() }

// Append writes the decision and returns its number once it is on disk. d is not
// changed. Settled decisions that history has no room for are dropped with it.
func (j *Journal) Append(d *admission.Decision) (uint64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	seq, kept := uint64(0), j.kept
	err := j.db.Update(func(tx *bbolt.Tx) error {
		decisions := tx.Bucket(bucketDecisions)
		decisions.FillPercent = 0.9 // keys only ever rise
		var err error
		if seq, err = decisions.NextSequence(); err != nil {
			return err
		}
		record, err := encode(d, seq)
		if err != nil {
			return err
		}
		if err := decisions.Put(key(seq), record); err != nil {
			return err
		}
		if err := tx.Bucket(bucketUnsettled).Put(key(seq), nil); err != nil {
			return err
		}
		kept.decisions++
		kept.bytes += int64(len(record))
		return trim(tx, &kept, j.limits)
	})
	if err != nil {
		return 0, fmt.Errorf("write journal %s: %w", j.db.Path(), err)
	}
	j.kept = kept
	return seq, nil
}

// trim drops the oldest settled decisions until kept is within the limits.
func trim(tx *bbolt.Tx, kept *extent, limits Limits) error {
	unsettled := tx.Bucket(bucketUnsettled)
	var drop [][]byte
	c := tx.Bucket(bucketDecisions).Cursor()
	for k, v := c.First(); k != nil && !kept.within(limits); k, v = c.Next() {
		if has(unsettled, k) {
			continue
		}
		drop = append(drop, k)
		kept.decisions--
		kept.bytes -= int64(len(v))
	}
	for _, k := range drop {
		if err := tx.Bucket(bucketDecisions).Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// Settle says that everything of the decision was answered. Settling again does
// nothing; settling a number that was never given is an error.
func (j *Journal) Settle(seq uint64) error {
	err := j.db.Update(func(tx *bbolt.Tx) error {
		if last := tx.Bucket(bucketDecisions).Sequence(); seq == 0 || seq > last {
			return fmt.Errorf("there is no decision %d, the last is %d", seq, last)
		}
		return tx.Bucket(bucketUnsettled).Delete(key(seq))
	})
	if err != nil {
		return fmt.Errorf("settle decision %d in journal %s: %w", seq, j.db.Path(), err)
	}
	return nil
}

// Replay returns the decisions that are not settled, in the order of their numbers.
func (j *Journal) Replay() ([]admission.Decision, error) {
	var out []admission.Decision
	err := j.db.View(func(tx *bbolt.Tx) error {
		decisions := tx.Bucket(bucketDecisions)
		return tx.Bucket(bucketUnsettled).ForEach(func(k, _ []byte) error {
			d, err := decode(decisions.Get(k), number(k))
			if err != nil {
				return err
			}
			out = append(out, d)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("replay journal %s: %w", j.db.Path(), err)
	}
	return out, nil
}

func has(b *bbolt.Bucket, k []byte) bool {
	found, _ := b.Cursor().Seek(k)
	return string(found) == string(k)
}

func key(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

func number(k []byte) uint64 { return binary.BigEndian.Uint64(k) }
