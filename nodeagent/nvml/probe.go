package nvml

import (
	"bytes"
	"cmp"
	"context"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"sluice.dev/sluice/nodeagent"
)

// Options are how a Probe works. What is zero has the default.
type Options struct {
	Node string // its name, for the report
	Root fs.FS  // with proc and sys of the node; the machine's
	// Interval is the time between two looks; events shorten it. 15s.
	Interval time.Duration
	// Between is the shortest time between two looks, however many events there are. 1s.
	Between time.Duration
	// Retry is how long to wait after the driver did not answer, or before it is opened
	// anew for a lost card; doubled up to RetryMost. 2s, 2m.
	Retry, RetryMost time.Duration
	// Wait is how long one wait for events may take in the driver, and so how long
	// letting it go may. 500ms.
	Wait time.Duration
}

func (o *Options) defaults() {
	if o.Root == nil {
		o.Root = os.DirFS("/")
	}
	o.Interval = cmp.Or(o.Interval, 15*time.Second)
	o.Between = cmp.Or(o.Between, time.Second)
	o.Retry = cmp.Or(o.Retry, 2*time.Second)
	o.RetryMost = cmp.Or(o.RetryMost, 2*time.Minute)
	o.Wait = cmp.Or(o.Wait, 500*time.Millisecond)
}

// Probe looks at the cards of its node again and again, and listens for their events.
type Probe struct {
	lib  Library
	o    Options
	wake chan struct{} // a look is wanted soon

	mu     sync.Mutex
	memory *nodeagent.Memory
	yield  string        // why the driver is let go; "": it is not
	deaf   gonvml.Return // how the last wait for events failed; SUCCESS: it did not

	// Of Run and Look alone:
	session *session
	last    *nodeagent.Report
	lost    bool          // the last look found a lost card
	retry   time.Duration // before the driver is opened again
	reopen  time.Time     // when that may be
}

// New returns a Probe, which loads nothing before it looks.
func New(lib Library, o Options) *Probe {
	o.defaults()
	return &Probe{lib: lib, o: o, wake: make(chan struct{}, 1), memory: nodeagent.NewMemory()}
}

// Run looks until the context ends, and calls report after every look, from this
// goroutine. Nothing that a driver answers ends it. A call that hangs in the driver
// hangs it too: then report is not called, which is how others notice.
func (p *Probe) Run(ctx context.Context, report func(*nodeagent.Report)) error {
	defer p.Close()
	for {
		r := p.Look()
		report(r)
		if !p.pause(ctx, r) {
			return nil
		}
	}
}

// pause waits until the next look is due; false if the context ended.
func (p *Probe) pause(ctx context.Context, r *nodeagent.Report) bool {
	least, most := p.o.Between, p.o.Interval
	if r.State != nodeagent.Ready && r.State != nodeagent.NoDevices && p.yielded() == "" {
		most = max(least, min(p.retry, most))
	}
	soonest := time.After(least)
	latest := time.NewTimer(most)
	defer latest.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-p.wake:
	case <-latest.C:
	}
	select {
	case <-ctx.Done():
		return false
	case <-soonest:
		return true
	}
}

// Poke asks for a look soon.
func (p *Probe) Poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Yield lets the driver go at the next look, and keeps it so until it is called with
// "". While any program holds a card open, nobody can reset it, switch its MIG mode
// or unload the driver: whoever does that says so first. Reports go on, as the cards
// were last, with why in Errors.
func (p *Probe) Yield(why string) {
	p.mu.Lock()
	p.yield = why
	p.mu.Unlock()
	p.Poke()
}

func (p *Probe) yielded() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.yield
}

// Close lets the driver go. Look opens it again.
func (p *Probe) Close() {
	if p.session != nil {
		p.session.close()
		p.session = nil
	}
}

// Look reads the node once. It is not to be called while Run is.
func (p *Probe) Look() *nodeagent.Report {
	now := time.Now()
	r := &nodeagent.Report{Node: p.o.Node, Time: now, State: nodeagent.Ready}
	if raw, err := fs.ReadFile(p.o.Root, "proc/sys/kernel/random/boot_id"); err == nil {
		r.BootID = string(bytes.TrimSpace(raw))
	} else {
		r.Errors = append(r.Errors, nodeagent.FieldError{Field: "bootID", Code: "UNREADABLE", Message: err.Error()})
	}
	if why := p.yielded(); why != "" {
		p.Close()
		return p.asLast(r, nodeagent.FieldError{Field: "driver", Code: "YIELDED", Message: "the driver was let go: " + why})
	}
	p.look(r, now)
	p.mu.Lock()
	if p.deaf != gonvml.SUCCESS {
		r.Errors = append(r.Errors, fieldError("events", p.deaf))
	}
	p.memory.Complete(r)
	p.mu.Unlock()
	if r.State == nodeagent.Ready || r.State == nodeagent.NoDevices {
		p.settle(r, now)
	}
	slices.SortStableFunc(r.Errors, func(a, b nodeagent.FieldError) int { return strings.Compare(a.Field, b.Field) })
	p.last = r
	return r
}

// asLast is the report as it was last, with what keeps it from being fresh.
func (p *Probe) asLast(r *nodeagent.Report, why nodeagent.FieldError) *nodeagent.Report {
	if p.last == nil {
		r.State, r.Message = nodeagent.Failed, why.Message
		r.Errors = append(r.Errors, why)
		return r
	}
	old := *p.last
	old.Time, old.BootID = r.Time, r.BootID
	old.Errors = append(slices.Clone(p.last.Errors), why)
	return &old
}

func (p *Probe) look(r *nodeagent.Report, now time.Time) {
	// What a process once found lost stays lost for it, whatever happens to the card.
	if p.session != nil && p.lost && !now.Before(p.reopen) {
		p.Close()
		p.later(now)
	}
	if p.session == nil {
		if !p.start(r) {
			p.later(now)
			return
		}
	}
	s := p.session
	r.Driver = s.driver
	r.Errors = append(r.Errors, s.errors...)
	cards, links, ret := s.read(p.o.Root)
	if ret != gonvml.SUCCESS {
		r.State, r.Message = stateOf(ret)
		p.Close()
		p.later(now)
		return
	}
	r.Cards, r.Links = cards, links
	switch {
	case len(cards) == 0:
		r.State, r.Message = nodeagent.NoDevices, "the driver is there and lists no card"
	case p.gone(cards):
		p.Close()
		p.later(now)
		r.State, r.Message = stateOf(gonvml.ERROR_DRIVER_NOT_LOADED)
		r.Cards, r.Links = nil, nil
	}
}

// settle notes whether a card is missing, so that the driver has to be opened anew to
// see it come back.
func (p *Probe) settle(r *nodeagent.Report, now time.Time) {
	p.lost = len(r.Cards) == 0 || slices.ContainsFunc(r.Cards, func(c nodeagent.Card) bool { return c.Lost })
	switch {
	case !p.lost:
		p.retry = 0
	case p.retry == 0:
		p.later(now)
	}
}

// gone says that every card answers that the library is not started any more: the
// driver left under us.
func (p *Probe) gone(cards []nodeagent.Card) bool {
	return len(cards) > 0 && !slices.ContainsFunc(cards, func(c nodeagent.Card) bool {
		return !slices.ContainsFunc(c.Errors, func(e nodeagent.FieldError) bool {
			return e.Code == "UNINITIALIZED" || e.Code == "DRIVER_NOT_LOADED" || e.Code == "LIB_RM_VERSION_MISMATCH"
		})
	})
}

// start opens the driver; if it does not answer, the report says why.
func (p *Probe) start(r *nodeagent.Report) bool {
	s, state, why := open(p.lib)
	if s == nil {
		r.State, r.Message = state, why
		p.mu.Lock()
		p.deaf = gonvml.SUCCESS
		p.memory.Restarted()
		p.mu.Unlock()
		return false
	}
	p.session = s
	ears, ret := listen(p.lib, p.o.Wait, p.heard)
	if ret == gonvml.SUCCESS {
		s.events = ears
	} else {
		s.fail("events", ret)
	}
	p.mu.Lock()
	p.deaf = gonvml.SUCCESS
	p.mu.Unlock()
	return true
}

// later puts off the next attempt to open the driver.
func (p *Probe) later(now time.Time) {
	p.retry = min(max(2*p.retry, p.o.Retry), p.o.RetryMost)
	p.reopen = now.Add(p.retry)
}

// heard takes an event, from the goroutine that waits for them.
func (p *Probe) heard(e event) {
	p.mu.Lock()
	p.deaf = e.failure
	if e.xid != 0 && e.uuid != "" {
		p.memory.Heard(e.uuid, e.xid, e.instance, e.compute, time.Now())
	}
	p.mu.Unlock()
	p.Poke()
}
