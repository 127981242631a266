package witness

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Verb is what a record says.
type Verb int

const (
	// Listed gives all objects of a kind that there are. What became of them
	// before is not known.
	Listed Verb = iota
	// Changed is a new object or a new version of one.
	Changed
	// Deleted is an object's last version.
	Deleted
)

// Record is one version of one object, or a list of a kind.
type Record struct {
	Revision uint64
	At       time.Time // of its delivery
	Verb     Verb
	Kind     Kind
	Objects  []client.Object
}

// Interval is a stretch of time.
type Interval struct{ From, To time.Time }

func (i Interval) holds(t time.Time) bool { return !t.Before(i.From) && !t.After(i.To) }

// Log is what was seen.
type Log struct {
	mu      sync.Mutex
	records []Record
	blind   map[Kind][]Interval
}

// Add adds a record that was delivered now.
func (l *Log) Add(verb Verb, kind Kind, revision string, objects ...client.Object) error {
	at := time.Now()
	n, err := strconv.ParseUint(revision, 10, 64)
	if err != nil {
		return fmt.Errorf("resource version of a %s: %w", kind, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, Record{Revision: n, At: at, Verb: verb, Kind: kind, Objects: objects})
	return nil
}

// Blind adds a time in which something may have been missed of a kind.
func (l *Log) Blind(kind Kind, i Interval) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.blind == nil {
		l.blind = make(map[Kind][]Interval)
	}
	l.blind[kind] = append(l.blind[kind], i)
}

// Newest is the highest revision that was delivered of a kind.
func (l *Log) Newest(kind Kind) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var newest uint64
	for _, r := range l.records {
		if r.Kind == kind {
			newest = max(newest, r.Revision)
		}
	}
	return newest
}

// ordered returns the records in the order of what happened.
func (l *Log) ordered() ([]Record, map[Kind][]Interval) {
	l.mu.Lock()
	records, blind := slices.Clone(l.records), maps.Clone(l.blind)
	l.mu.Unlock()
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(a.Revision, b.Revision) })
	return records, blind
}
