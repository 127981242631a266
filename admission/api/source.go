package api

import (
	"context"
	"errors"
	"sync"
	"time"

	"sluice.dev/sluice/admission"
)

// Copy is a state as of a time.
type Copy struct {
	Image admission.Image
	At    time.Time
}

// Source gives copies of the state.
type Source interface {
	// Copy returns a copy that is not older than maxAge, as soon as there is one.
	Copy(ctx context.Context, maxAge time.Duration) (Copy, error)
}

// Fixed is a Source of one copy, which is as old as it is: a file.
type Fixed Copy

// Copy returns the copy.
func (f Fixed) Copy(context.Context, time.Duration) (Copy, error) { return Copy(f), nil }

// Desk is where the goroutine that owns the state lays copies down, and others pick
// them up. Nothing is copied while nobody asks.
type Desk struct {
	now    func() time.Time
	asked  chan struct{}
	mu     sync.Mutex
	last   Copy
	filled chan struct{} // closed when the next copy lies there
}

// NewDesk returns a desk on which nothing lies yet.
func NewDesk(now func() time.Time) *Desk {
	return &Desk{now: now, asked: make(chan struct{}, 1), filled: make(chan struct{})}
}

// Asked tells the owner of the state that a copy is wanted: it then calls Put between
// two of its steps.
func (d *Desk) Asked() <-chan struct{} { return d.asked }

// Put lays a copy down.
func (d *Desk) Put(im admission.Image, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = Copy{Image: im, At: at}
	close(d.filled)
	d.filled = make(chan struct{})
}

// Copy waits for a copy if the last is too old.
func (d *Desk) Copy(ctx context.Context, maxAge time.Duration) (Copy, error) {
	for {
		d.mu.Lock()
		last, filled := d.last, d.filled
		d.mu.Unlock()
		if !last.At.IsZero() && d.now().Sub(last.At) <= maxAge {
			return last, nil
		}
		select {
		case d.asked <- struct{}{}:
		default: // it is asked already
		}
		select {
		case <-filled:
		case <-ctx.Done():
			return Copy{}, errors.Join(errNoCopy, ctx.Err())
		}
	}
}

var errNoCopy = errors.New("the controller has no state to answer from: it does not lead, or is busy")
