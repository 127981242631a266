package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/admission"
)

const (
	// batchFor is how long the runner waits for more after something new, so that
	// what belongs together is decided on together.
	batchFor = 20 * time.Millisecond
	// statusEvery is how often the status of queues is worked out.
	statusEvery = time.Second
	// longestSleep is how long the runner sleeps at most, whatever it waits for.
	longestSleep = time.Minute
)

// runner owns the loop and all that is known of the cluster. Everything but the
// clerks and the writes of a decision runs in the goroutine of Start.
type runner struct {
	log       logr.Logger
	client    client.Client // reads from the cache
	live      client.Reader // reads from the API server
	recorder  record.EventRecorder
	clock     clock.Clock
	workers   int
	namespace string
	userKey   string
	policies  []LabelPolicy
	podGroups bool // somebody else writes the counts and the state of Volcano Queues

	copies      Copies
	openJournal func() (Journal, error)
	watches     []watched
	inbox       *inbox
	state       *admission.State
	loop        *admission.Loop
	view
	own      *own
	cards    *cardReader
	groups   *groups
	carried  carried
	measures measures

	verdicts *clerk
	chores   *clerk
	later    map[string]later     // verdicts that are not due yet
	lastTold map[string]time.Time // when a verdict about a workload was handed on last

	changed    bool // the status of queues may have changed
	reported   time.Time
	statuses   map[object]sentStatus
	said       map[object]string // faults that an event was made of
	drifted    map[string]string // by node, the drift that was written
	lacking    map[object]string // by policy and node, the missing labels that were said
	pause      time.Duration     // before the next step, while nothing succeeds
	retryAt    time.Time
	checkEvery time.Duration
	nextCheck  time.Time
}

func newRunner(o Options, log logr.Logger, c client.Client, live client.Reader, recorder record.EventRecorder) *runner {
	r := &runner{
		log: log, client: c, live: live, recorder: recorder, clock: o.Clock, workers: o.Workers, namespace: o.Namespace, userKey: o.UserKey, policies: o.Labels, podGroups: o.PodGroups, checkEvery: o.CheckEvery,
		openJournal: o.OpenJournal, copies: o.Copies, inbox: newInbox(), state: admission.NewState(o.Config), view: newView(), own: newOwn(),
		verdicts: newClerk("verdicts", log, 200), chores: newClerk("chores", log, 200),
		measures: newMeasures(), drifted: map[string]string{}, lacking: map[object]string{}, later: map[string]later{}, lastTold: map[string]time.Time{}, statuses: map[object]sentStatus{}, said: map[object]string{},
	}
	r.cards = newCardReader(r.state.Space)
	r.groups = newGroups(r.state.Space, func(ns string) labels.Set { return r.catalog.namespaces[ns] })
	return r
}

// NeedLeaderElection keeps the loop to one process.
func (r *runner) NeedLeaderElection() bool { return true }

// Start runs the loop until ctx ends. By then the caches are full.
func (r *runner) Start(ctx context.Context) error {
	journal, err := r.openJournal()
	if err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	defer func() {
		if err := journal.Close(); err != nil {
			r.log.Error(err, "close the journal")
		}
	}()
	r.loop = admission.NewLoop(r.state, journal, r)
	stop, err := r.subscribe(ctx)
	if err != nil {
		return err
	}
	defer stop()

	var clerks sync.WaitGroup
	defer clerks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, c := range []*clerk{r.verdicts, r.chores} {
		clerks.Go(func() { c.work(ctx, 8) })
	}
	r.ingest(ctx, r.inbox.take())
	if err := r.replay(journal); err != nil {
		return err
	}
	leadingSince.Set(float64(r.clock.Now().Unix()))
	r.log.Info("loop started", "nodes", len(r.nodes), "workloads", len(r.workloads), "queues", len(r.catalog.told))
	r.run(ctx)
	return nil
}

// subscribe has every watch put its news into the inbox, and returns when what
// exists now is in.
func (r *runner) subscribe(ctx context.Context) (stop func(), err error) {
	var synced []toolscache.InformerSynced
	var undo []func()
	stop = func() {
		for _, f := range undo {
			f()
		}
	}
	for _, w := range r.watches {
		registration, err := w.informer.AddEventHandler(r.handler(w.kind))
		if err != nil {
			stop()
			return nil, fmt.Errorf("follow kind %d: %w", w.kind, err)
		}
		undo = append(undo, func() { _ = w.informer.RemoveEventHandler(registration) })
		synced = append(synced, registration.HasSynced)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		stop()
		return nil, fmt.Errorf("wait for what exists: %w", ctx.Err())
	}
	return stop, nil
}

func (r *runner) handler(k kind) toolscache.ResourceEventHandler {
	put := func(x any, gone bool) {
		if d, ok := x.(toolscache.DeletedFinalStateUnknown); ok {
			x = d.Obj
		}
		o, ok := x.(client.Object)
		if !ok {
			return
		}
		name := object{k, o.GetNamespace(), o.GetName()}
		if gone {
			o = nil
		}
		r.inbox.put(name, o)
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(x any) { put(x, false) },
		UpdateFunc: func(_, x any) { put(x, false) },
		DeleteFunc: func(x any) { put(x, true) },
	}
}

// run decides whenever something changed, and when the core or a clock asks for it.
func (r *runner) run(ctx context.Context) {
	r.nextCheck = r.clock.Now().Add(r.checkEvery)
	for ctx.Err() == nil {
		r.step(ctx)
		r.endEvictions()
		r.check()
		r.measure()
		timer := r.clock.NewTimer(r.sleep())
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-r.inbox.ready:
			wait(ctx, r.clock, batchFor)
		case <-r.asked():
			r.copies.Put(r.state.Image(), r.clock.Now())
		}
		timer.Stop()
		r.ingest(ctx, r.inbox.take())
	}
}

func wait(ctx context.Context, c clock.Clock, d time.Duration) {
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C():
	}
}

// step decides and acts until there is nothing to do, or nothing of it succeeds.
// Then the next try is at the next news, or after a growing pause.
func (r *runner) step(ctx context.Context) {
	for ctx.Err() == nil {
		r.carried = carried{}
		began := r.clock.Now()
		d, err := r.loop.Step(ctx, began)
		r.measured(&d, r.clock.Since(began))
		if err != nil {
			r.log.Error(err, "keep a decision")
		}
		r.settle(ctx)
		switch {
		case err == nil && !d.Acts():
			r.pause, r.retryAt = 0, time.Time{}
			return
		case err != nil || !r.carried.progress:
			r.pause = min(max(2*r.pause, 250*time.Millisecond), 30*time.Second)
			r.retryAt = r.clock.Now().Add(r.pause)
			return
		}
		r.pause, r.retryAt = 0, time.Time{}
		r.changed = true
		r.ingest(ctx, r.inbox.take())
		r.between()
	}
}

// between does what must not wait until a backlog has been let in, which takes many
// steps.
func (r *runner) between() {
	r.endEvictions()
	r.report(r.clock.Now())
	select {
	case <-r.asked():
		r.copies.Put(r.state.Image(), r.clock.Now())
	default:
	}
}

// sleep is how long nothing has to be done if nothing happens.
func (r *runner) sleep() time.Duration {
	now := r.clock.Now()
	next := now.Add(longestSleep)
	for _, at := range []time.Time{r.state.Wake(now), r.tellDue(now), r.report(now), r.retryAt, r.nextCheck, r.agents.next, r.measures.due()} {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return max(next.Sub(now), time.Millisecond)
}

// check has the state check itself. A violation is a bug; it is told, and the
// controller goes on.
func (r *runner) check() {
	if r.clock.Now().Before(r.nextCheck) {
		return
	}
	r.nextCheck = r.clock.Now().Add(r.checkEvery)
	bad := r.state.Check()
	violations.Set(float64(len(bad)))
	if len(bad) > 0 {
		r.log.Error(fmt.Errorf("%d invariants do not hold", len(bad)), "check the state", "violations", bad)
		r.sayViolations(bad)
	}
}
