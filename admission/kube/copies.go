package kube

import (
	"time"

	"sluice.dev/sluice/admission"
)

// Copies is who answers questions about the state, from copies of it.
type Copies interface {
	// Asked tells that a copy is wanted.
	Asked() <-chan struct{}
	// Put takes one. It does not block for long.
	Put(im admission.Image, at time.Time)
}

// asked is nil, on which nobody ever sends, if nobody asks.
func (r *runner) asked() <-chan struct{} {
	if r.copies == nil {
		return nil
	}
	return r.copies.Asked()
}
