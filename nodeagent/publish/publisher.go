package publish

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// Options are how a Publisher works. What is zero has the default.
type Options struct {
	Clock clock.Clock // the real one
	// Between is the shortest time between two writes of the inventory. 1s.
	Between time.Duration
	// Renew is how often the heartbeat is sent, Lasts for how long it counts:
	// v1alpha1's RenewEvery and HeartbeatTime.
	Renew, Lasts time.Duration
	// Look is how old a look at the devices may be for a heartbeat to be sent. A look
	// that takes longer is taken for one that hangs. 3m.
	Look time.Duration
	// Check is how often the inventory and the node are read, in case somebody deleted or
	// changed either. 5m.
	Check time.Duration
	// Retry is how long to wait after a failure, doubled up to RetryMost. 1s, 1m.
	Retry, RetryMost time.Duration
	Log              logr.Logger
}

func (o *Options) defaults() {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	for _, d := range []struct {
		of      *time.Duration
		usually time.Duration
	}{
		{&o.Between, time.Second},
		{&o.Renew, v1alpha1.RenewEvery},
		{&o.Lasts, v1alpha1.HeartbeatTime},
		{&o.Look, 3 * time.Minute},
		{&o.Check, 5 * time.Minute},
		{&o.Retry, time.Second},
		{&o.RetryMost, time.Minute},
	} {
		*d.of = cmp.Or(*d.of, d.usually)
	}
}

// Publisher writes what an agent sees to the cluster.
type Publisher struct {
	cluster Cluster
	o       Options
	seen    chan Seen // holds the latest that nobody has looked at yet

	// Of Run alone:
	owner   *corev1.Node
	book    *Book
	latest  *Seen            // seen last
	looked  time.Time        // and when
	report  *v1alpha1.Report // what the inventory should say; nil if it does already
	written time.Time        // when the inventory was written last
	rewrite bool             // the inventory has to be written even if nothing changed

	reading, writing, beating attempts
	check                     time.Time // when to read the inventory next
}

// New returns a Publisher, which does nothing before Run.
func New(c Cluster, o Options) *Publisher {
	o.defaults()
	return &Publisher{cluster: c, o: o, seen: make(chan Seen, 1)}
}

// See hands over what was seen. It never waits: if nobody has looked at what was
// handed over before, that is forgotten. One goroutine may call it.
func (p *Publisher) See(s Seen) {
	select {
	case <-p.seen:
	default:
	}
	p.seen <- s
}

// Run publishes until ctx ends. Nothing that fails ends it.
func (p *Publisher) Run(ctx context.Context) {
	for ctx.Err() == nil {
		now := p.o.Clock.Now()
		next := p.step(ctx, now)
		timer := p.o.Clock.NewTimer(max(0, next.Sub(p.o.Clock.Now())))
		select {
		case <-ctx.Done():
		case s := <-p.seen:
			p.latest, p.looked = &s, p.o.Clock.Now()
			if p.book != nil {
				p.enter()
			}
		case <-timer.C():
		}
		timer.Stop()
	}
}

// step does what is due and returns when something will be.
func (p *Publisher) step(ctx context.Context, now time.Time) time.Time {
	if p.reading.due(now) && !now.Before(p.check) {
		p.read(ctx, now)
	}
	if p.owner == nil {
		return p.reading.next
	}
	if p.looksLately(now) && p.beating.due(now) {
		err := p.cluster.Beat(ctx, p.owner, now, p.o.Lasts)
		p.settle(ctx, &p.beating, now, err)
		if at := now.Add(p.o.Renew); err == nil || at.Before(p.beating.next) {
			p.beating.next = at
		}
	}
	if p.report != nil && p.writing.due(now) && !now.Before(p.written.Add(p.o.Between)) {
		p.write(ctx, now)
	}
	next := latestOf(p.check, p.reading.next)
	if p.looksLately(now) && p.beating.next.Before(next) {
		next = p.beating.next
	}
	if p.report != nil {
		if at := latestOf(p.writing.next, p.written.Add(p.o.Between)); at.Before(next) {
			next = at
		}
	}
	return next
}

// looksLately says whether the agent still looks at its devices.
func (p *Publisher) looksLately(now time.Time) bool {
	return p.latest != nil && now.Sub(p.looked) <= p.o.Look
}

// read learns whose node this is and what was published last. An inventory that says
// something else than this agent wrote is written anew.
func (p *Publisher) read(ctx context.Context, now time.Time) {
	node, err := p.cluster.Node(ctx)
	if err == nil {
		var inv *v1alpha1.SliceInventory
		if inv, err = p.cluster.Inventory(ctx); err == nil {
			p.compare(node, inv)
		}
	}
	p.settle(ctx, &p.reading, now, err)
	if err == nil {
		p.check = now.Add(p.o.Check)
	}
}

func (p *Publisher) compare(node *corev1.Node, inv *v1alpha1.SliceInventory) {
	var last *v1alpha1.Report
	var owner types.UID
	if inv != nil {
		last = &inv.Report
		for _, o := range inv.OwnerReferences {
			owner = o.UID
		}
	}
	p.owner = node
	if p.book == nil {
		p.book = NewBook(last)
	} else if !p.book.agrees(last) && p.report == nil {
		p.o.Log.Info("the inventory is not as this agent wrote it, writing it anew", "node", node.Name)
	}
	p.rewrite = owner != node.UID || !p.book.agrees(last)
	if p.latest != nil {
		p.enter()
	}
}

// enter puts the latest into the book.
func (p *Publisher) enter() {
	if r, changed := p.book.Enter(*p.latest); changed || p.rewrite {
		p.report, p.rewrite = r, false
	}
}

func (p *Publisher) write(ctx context.Context, now time.Time) {
	err := p.cluster.Write(ctx, p.owner, p.report)
	if apierrors.IsInvalid(err) {
		// An API server with other bounds. Readers must not take the last report for true.
		p.o.Log.Error(err, "the API server refuses the report; saying so in its place", "node", p.owner.Name)
		err = p.cluster.Write(ctx, p.owner, refusedReport(p.report, err))
	}
	p.settle(ctx, &p.writing, now, err)
	if err != nil {
		return
	}
	p.written, p.report = now, nil
}

// refusedReport stands for a report that the API server does not accept.
func refusedReport(r *v1alpha1.Report, why error) *v1alpha1.Report {
	return &v1alpha1.Report{
		State: v1alpha1.Failed, Message: clip("the API server refuses what the agent reports: "+why.Error(), 1024),
		Summary: v1alpha1.Summary{Cards: "?", Taken: "?"}, Changed: r.Changed, BootID: r.BootID, AgentVersion: r.AgentVersion,
	}
}

// settle notes how a request went. A failure is said when it is a new one, and when
// it is over.
func (p *Publisher) settle(ctx context.Context, a *attempts, now time.Time, err error) {
	switch {
	case ctx.Err() != nil: // not the cluster's fault
	case err == nil:
		if a.failed > 0 {
			p.o.Log.Info("works again", "was", a.said, "failures", a.failed)
		}
		*a = attempts{}
	default:
		a.failed++
		wait := min(p.o.Retry<<min(a.failed-1, 16), p.o.RetryMost)
		a.next = now.Add(wait)
		if text := explain(err); text != a.said {
			a.said = text
			p.o.Log.Error(err, "will be tried again", "reason", text, "in", wait.String())
		}
	}
}

// explain is what to do about an error, where that is known.
func explain(err error) string {
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return fmt.Sprintf("%v: see deploy/agent for the rights and policies of agents", err)
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return fmt.Sprintf("%v: is deploy/crd installed?", err)
	default:
		return err.Error()
	}
}

// attempts is how often something failed, and when to try next.
type attempts struct {
	failed int
	said   string
	next   time.Time
}

func (a *attempts) due(now time.Time) bool { return !now.Before(a.next) }

func latestOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
