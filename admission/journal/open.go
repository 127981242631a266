package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// lockWait is how long Open waits for another process to give the file back. A
// leader that follows another on the same machine may meet its last moments.
const lockWait = 5 * time.Second

var keyFormat = []byte("format")

// Open opens the journal at path with the default limits, and makes it if there is
// none. A damaged file is moved to path.corrupt-N and a fresh one is opened; Notice
// then says so. A file of a later format, or one that another process has, is an
// error and stays as it is.
func Open(path string) (*Journal, error) { return OpenLimited(path, DefaultLimits()) }

// OpenLimited is Open with limits for the history. Lower limits than before take
// effect at the next Append.
func OpenLimited(path string, limits Limits) (*Journal, error) { return open(path, limits, lockWait) }

func open(path string, limits Limits, wait time.Duration) (*Journal, error) {
	j, err := try(path, limits, wait)
	var broken *aside
	if errors.As(err, &broken) {
		if j, err = try(path, limits, wait); err == nil {
			j.notice = broken.Error()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", path, err)
	}
	return j, nil
}

// aside says that a damaged file was moved out of the way.
type aside struct {
	path, to string
	why      error
}

func (a *aside) Error() string {
	return fmt.Sprintf("journal %s was damaged (%v) and is now %s; history starts anew", a.path, a.why, a.to)
}

// moveAside moves the file to the first free name. Only who has it locked may.
func moveAside(path string, why error) error {
	for n := 1; ; n++ {
		to := path + ".corrupt-" + strconv.Itoa(n)
		if _, err := os.Lstat(to); err == nil {
			continue
		} else if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.Rename(path, to); err != nil {
			return fmt.Errorf("move the damaged file aside: %w", err)
		}
		return &aside{path: path, to: to, why: why}
	}
}

// try opens the file once. A damaged one is moved aside, and the error says so.
func try(path string, limits Limits, wait time.Duration) (*Journal, error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	_, err := os.Stat(path)
	fresh := errors.Is(err, os.ErrNotExist)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout: wait,
		OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
			return openIntact(path, flag, mode, wait)
		},
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, errInUse
	}
	if err != nil {
		return nil, err
	}
	j := &Journal{db: db, limits: limits}
	if err := j.begin(fresh, folder); err != nil {
		var d *damage
		if errors.As(err, &d) {
			err = moveAside(path, d)
		}
		return nil, errors.Join(err, db.Close())
	}
	return j, nil
}

var errInUse = errors.New("another process has it open")

// openIntact opens the file, locks it before anyone reads it, and looks through its
// pages, since bbolt trusts them: it panics on a damaged one, or worse.
func openIntact(path string, flag int, mode os.FileMode, wait time.Duration) (*os.File, error) {
	f, err := openLocked(path, flag, mode, wait)
	if err != nil {
		return nil, err
	}
	err = checkPages(f)
	if err == nil {
		return f, nil
	}
	var d *damage
	if errors.As(err, &d) {
		err = moveAside(path, d)
	}
	return nil, errors.Join(err, f.Close())
}

// openLocked opens the file and locks it. A file that was moved while this process
// waited for it is not the one at path any more, and is opened anew.
func openLocked(path string, flag int, mode os.FileMode, wait time.Duration) (*os.File, error) {
	for deadline := time.Now().Add(wait); ; {
		f, err := os.OpenFile(path, flag, mode)
		if err != nil {
			return nil, err
		}
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			return nil, errors.Join(err, f.Close(), errors.New("it is not a regular file"))
		}
		if err := lock(f, deadline); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if same(f, path) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

func same(f *os.File, path string) bool {
	mine, err1 := f.Stat()
	there, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(mine, there)
}

// begin makes the buckets of a fresh file, or reads through those of an old one.
func (j *Journal) begin(fresh bool, folder string) error {
	err := j.db.Update(func(tx *bbolt.Tx) error {
		about := tx.Bucket(bucketAbout)
		if about == nil {
			return create(tx)
		}
		if err := checkFormat(about.Get(keyFormat)); err != nil {
			return err
		}
		kept, err := survey(tx)
		j.kept = kept
		return err
	})
	if err == nil && fresh {
		err = syncFolder(folder)
	}
	return err
}

// create makes the buckets in a file without any. A file with others belongs to
// some other program and is left alone.
func create(tx *bbolt.Tx) error {
	if name, _ := tx.Cursor().First(); name != nil {
		return fmt.Errorf("it belongs to another program: it holds a bucket %q, which is none of a journal's", name)
	}
	for _, name := range [][]byte{bucketAbout, bucketDecisions, bucketUnsettled} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return tx.Bucket(bucketAbout).Put(keyFormat, []byte(strconv.Itoa(format)))
}

func checkFormat(written []byte) error {
	n, err := strconv.Atoi(string(written))
	switch {
	case err != nil || n < 1:
		return damagef("its format is %q", written)
	case n > format:
		return fmt.Errorf("it has format %d, this program knows formats up to %d: run the version that wrote it, or move the file away, which loses history only", n, format)
	}
	return nil
}

// survey reads every record once, and returns how much there is.
func survey(tx *bbolt.Tx) (extent, error) {
	var kept extent
	decisions, unsettled := tx.Bucket(bucketDecisions), tx.Bucket(bucketUnsettled)
	if decisions == nil || unsettled == nil {
		return kept, damagef("it lacks a bucket")
	}
	last := decisions.Sequence()
	if last >= 1<<62 {
		return kept, damagef("its last decision is said to be %d", last)
	}
	err := decisions.ForEach(func(k, v []byte) error {
		if len(k) != 8 || number(k) == 0 || number(k) > last {
			return damagef("decision %x is beyond the last, %d", k, last)
		}
		kept.decisions++
		kept.bytes += int64(len(v))
		_, err := decode(v, number(k))
		return err
	})
	if err != nil {
		return kept, err
	}
	return kept, unsettled.ForEach(func(k, _ []byte) error {
		if decisions.Get(k) == nil {
			return damagef("decision %x is not settled but not kept", k)
		}
		return nil
	})
}

// syncFolder makes the name of a new file durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
