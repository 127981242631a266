package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sluice.dev/sluice/admission"
)

const (
	// writeTimeout is how long a write may take to be answered.
	writeTimeout = 15 * time.Second
	// mostUnanswered is how many writes of one decision may go without an answer
	// before the rest is not even sent.
	mostUnanswered = 4
)

// errNotSent says of a write that it was never sent, so it did not happen.
var errNotSent = errors.New("not sent")

// write is one write of a decision. It returns the object's version after it.
type write struct {
	act admission.Act
	key string
	do  func(ctx context.Context) (uint64, error)
}

// Carry writes what the decision says, in parallel, and returns how each write
// ended. Verdicts are handed on and written later, since nothing depends on them.
func (r *runner) Carry(ctx context.Context, d *admission.Decision) []admission.Outcome {
	began := r.clock.Now()
	defer func() { r.carried.took = r.clock.Since(began) }()
	r.tell(d.Verdicts)
	results := r.all(ctx, r.writes(d))
	r.wrote(d, results)
	for _, key := range d.Finish {
		r.admitEmpty(ctx, key, d.At)
	}
	for _, o := range results {
		switch o.Result {
		case admission.Committed:
			r.carried.progress = true
		case admission.Unknown:
			r.carried.unknown = append(r.carried.unknown, o)
		case admission.Refused: // the core waits before it tries again
		}
	}
	return results
}

// carried is what the last decision came to, for the runner to go on from.
type carried struct {
	progress bool // something was done; another look may find more
	took     time.Duration
	unknown  []admission.Outcome
	emptied  []string // workloads of no pods that were admitted
}

func (r *runner) writes(d *admission.Decision) []write {
	var list []write
	for i := range d.Evict {
		e := &d.Evict[i]
		list = append(list, write{admission.ActEvict, e.Key, func(ctx context.Context) (uint64, error) { return r.evict(ctx, e, d.At) }})
	}
	for i := range d.Admit {
		a := &d.Admit[i]
		list = append(list, write{admission.ActAdmit, a.Key, func(ctx context.Context) (uint64, error) { return r.admit(ctx, a, true) }})
	}
	for i := range d.Move {
		a := &d.Move[i]
		list = append(list, write{admission.ActMove, a.Key, func(ctx context.Context) (uint64, error) { return r.admit(ctx, a, false) }})
	}
	for i := range d.Release {
		p := &d.Release[i]
		list = append(list, write{admission.ActRelease, p.UID, func(ctx context.Context) (uint64, error) { return r.release(ctx, p) }})
	}
	return list
}

// all does the writes with a bounded number of workers.
func (r *runner) all(ctx context.Context, writes []write) []admission.Outcome {
	results := make([]admission.Outcome, len(writes))
	var next, unanswered atomic.Int64
	var wg sync.WaitGroup
	for range min(r.workers, len(writes)) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(writes) {
					return
				}
				results[i] = r.one(ctx, &writes[i], unanswered.Load() >= mostUnanswered)
				if results[i].Result == admission.Unknown {
					unanswered.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return results
}

func (r *runner) one(ctx context.Context, w *write, skip bool) admission.Outcome {
	o := admission.Outcome{Act: w.act, Key: w.key}
	err := error(errNotSent)
	if !skip {
		limited, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		o.Version, err = w.do(limited)
	}
	o.At = r.clock.Now()
	o.Result = resultOf(err)
	if err != nil {
		o.Version = 0
		r.log.V(1).Info("write did not succeed", "act", actName(w.act), "object", w.key, "reason", err.Error(), "unanswered", o.Result == admission.Unknown)
	}
	return o
}

// resultOf says what an error tells about the write: that it was not done, or
// nothing. A 5xx may come after the write took effect.
func resultOf(err error) admission.Result {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return admission.Committed
	case errors.Is(err, errNotSent):
		return admission.Refused
	case errors.As(err, &status):
		code := status.Status().Code
		if code >= 400 && code < 500 && code != http.StatusRequestTimeout {
			return admission.Refused
		}
	}
	return admission.Unknown
}

func notSent(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errNotSent, fmt.Sprintf(format, args...))
}

func actName(a admission.Act) string {
	switch a {
	case admission.ActAdmit:
		return "admit"
	case admission.ActMove:
		return "move"
	case admission.ActEvict:
		return "evict"
	default:
		return "release"
	}
}
