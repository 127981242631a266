package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
)

// finishers is how many writes of ends may be under way at a time.
const finishers = 64

// runner plays the jobs behind the Workloads: one that was admitted ends after its
// run time, and one that was evicted gives its admission back.
type runner struct {
	client  client.WithWatch
	shape   Shape
	classes map[string]Class

	mu       sync.Mutex
	ledger   *ledger
	made     map[types.UID]time.Time // when it was first seen
	admitted map[types.UID]time.Time // when it was first seen to be admitted
	waited   map[string][]time.Duration
	finished int
	evicted  int
	doing    map[types.UID]deed // what is under way for a Workload
	slots    chan struct{}
	running  sync.WaitGroup
	failure  error
}

func newRunner(c client.WithWatch, s Shape) *runner {
	r := &runner{
		client: c, shape: s, classes: make(map[string]Class), ledger: newLedger(s), made: make(map[types.UID]time.Time),
		admitted: make(map[types.UID]time.Time), waited: make(map[string][]time.Duration), doing: make(map[types.UID]deed), slots: make(chan struct{}, finishers),
	}
	for _, class := range s.Classes {
		r.classes[class.Name] = class
	}
	return r
}

// watch follows all Workloads until ctx ends. A watch that breaks is a failure:
// what happened in between could not be judged.
func (r *runner) watch(ctx context.Context, w watch.Interface) {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-w.ResultChan():
			wl, isWorkload := e.Object.(*kueue.Workload)
			if !ok || !isWorkload {
				if ctx.Err() == nil {
					r.fail(fmt.Errorf("the watch of Workloads broke: %v %v", e.Type, e.Object))
				}
				return
			}
			if e.Type != watch.Deleted {
				r.see(ctx, wl)
			}
		}
	}
}

func (r *runner) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failure = errors.Join(r.failure, err)
}

func (r *runner) see(ctx context.Context, wl *kueue.Workload) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if wl.Labels[classLabel] == warmClass {
		return
	}
	r.ledger.see(wl)
	if _, seen := r.made[wl.UID]; !seen {
		r.made[wl.UID] = now
	}
	next := deedFor(wl)
	if next == finish {
		class := wl.Labels[classLabel]
		if _, seen := r.admitted[wl.UID]; !seen {
			r.admitted[wl.UID] = now
			r.waited[class] = append(r.waited[class], now.Sub(r.made[wl.UID]))
		}
		if r.shape.Lasts() {
			next = nothing
		}
	}
	if r.doing[wl.UID] == next {
		return
	}
	r.doing[wl.UID] = next
	switch next {
	case finish:
		r.act(ctx, wl, next, r.classes[wl.Labels[classLabel]].Runtime)
	case giveBack:
		r.act(ctx, wl, next, 0)
	case nothing:
	}
}

// deed is what a job does for its Workload.
type deed int

const (
	nothing deed = iota
	finish
	giveBack
)

func deedFor(wl *kueue.Workload) deed {
	switch is := apimeta.IsStatusConditionTrue; {
	case is(wl.Status.Conditions, kueue.WorkloadFinished):
		return nothing
	case is(wl.Status.Conditions, kueue.WorkloadEvicted) && wl.Status.Admission != nil:
		return giveBack
	case is(wl.Status.Conditions, kueue.WorkloadAdmitted):
		return finish
	default:
		return nothing
	}
}

// act does something to a Workload after a while, if it is still called for then.
func (r *runner) act(ctx context.Context, wl *kueue.Workload, what deed, after time.Duration) {
	r.running.Go(func() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(after):
		}
		r.slots <- struct{}{}
		defer func() { <-r.slots }()
		err := r.do(ctx, wl, what)
		for apierrors.IsConflict(err) { // somebody wrote since
			wl = &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: wl.Namespace, Name: wl.Name}}
			if err = r.client.Get(ctx, client.ObjectKeyFromObject(wl), wl); err == nil && deedFor(wl) == what {
				err = r.do(ctx, wl, what)
			}
		}
		if err != nil && ctx.Err() == nil {
			r.fail(err)
		}
	})
}

func (r *runner) do(ctx context.Context, wl *kueue.Workload, what deed) error {
	if what == finish {
		err := workload.SetConditionAndUpdate(ctx, r.client, wl.DeepCopy(), kueue.WorkloadFinished, metav1.ConditionTrue, "Ended", "its time is over", "bench", clock.RealClock{})
		r.count(&r.finished, err)
		return err
	}
	err := workload.PatchAdmissionStatus(ctx, r.client, wl.DeepCopy(), clock.RealClock{}, func(wl *kueue.Workload) (bool, error) {
		return workload.UnsetQuotaReservationWithCondition(wl, "Pending", "evicted", time.Now()), nil
	})
	r.count(&r.evicted, err)
	return err
}

func (r *runner) count(what *int, err error) {
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		*what++
	}
}

// progress is how far the load is.
func (r *runner) progress() (made, admitted, finished int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.made), len(r.admitted), r.finished, r.failure
}

// over reports whether nothing more is to come.
func (r *runner) over() bool {
	_, admitted, finished, _ := r.progress()
	if r.shape.Lasts() {
		return admitted == r.shape.Workloads()
	}
	return finished == r.shape.Workloads()
}
