package simulations

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"sluice.dev/sluice/admission"
)

// Options is how a scenario is run.
type Options struct {
	// Seed orders what a real cluster does in parallel: the writes of a decision
	// and the watch events of different objects. 0 leaves them as they come.
	Seed uint64
	// Fault decides what becomes of each write. It is made anew for each of the
	// two runs, since it may count.
	Fault func() Fault
	// Watch lets what the controller is told be late, listed anew or told twice, by
	// lot; see watch. Clock steps the controller's clock by lot; see skew.
	Watch, Clock bool
	// Calm ends what Watch and Clock do at that time; 0: they do not end.
	Calm time.Duration

	hooks    hooks
	mostActs int  // of admission.Config
	blind    bool // nothing is checked on the way
	// terse leaves charges out of the trace, and lets a new controller be compared
	// with the running one at some instants by lot instead of all: for long stories.
	terse bool
}

// hooks let a test of relations between runs have a hand in one. Each may be nil.
type hooks struct {
	news  func([]change) []change // what changed, as the controller is to be told it
	told  func(*run, change)      // after the controller was told of it
	asks  func(*run)              // before the controller decides; it was told everything
	rests func(*run)              // when all that was due at an instant has settled
}

// Report is how a scenario came out.
type Report struct {
	File, Name string
	Seed       uint64
	Checks     int    // how many there were
	Writes     int    // that the controller made
	Misses     []Miss // those that do not hold, in the order of the file's expectations
	// Broken is what ended the run before its time: a promise that was broken or
	// a panic of the core; nil if nothing did.
	Broken *Breach
	// Flags are what breaks no promise and is waste all the same: a gang that is
	// admitted and evicted at one instant.
	Flags []string
	Trace string

	waiting map[string]string // who waits at the end, and why
}

// Miss is an expectation that does not hold.
type Miss struct {
	At        time.Duration
	Subject   string
	Want, Got string
}

func (m Miss) String() string {
	return fmt.Sprintf("at %s: %s: want %s, got %s", Spoken(m.At), m.Subject, m.Want, m.Got)
}

// Breach is something that must not happen in any scenario.
type Breach struct {
	At   time.Duration
	Seed uint64
	What []string
}

func (b *Breach) String() string {
	return fmt.Sprintf("at %s: broken: %s (seed %d)", Spoken(b.At), strings.Join(b.What, "; "), b.Seed)
}

// OK says that everything holds.
func (r *Report) OK() bool { return len(r.Misses) == 0 && r.Broken == nil }

// Lines are what is to be told of the report, one line each.
func (r *Report) Lines() []string {
	var out []string
	for _, m := range r.Misses {
		out = append(out, r.File+": "+m.String())
	}
	if r.Broken != nil {
		out = append(out, r.File+": "+r.Broken.String())
	}
	return out
}

// Run runs a scenario twice: the second run must go like the first, to the
// letter, though nobody looks on.
func Run(s *Scenario, o Options) *Report {
	first := runOnce(s, o)
	o.blind = true
	second := runOnce(s, o)
	if first.Broken == nil {
		if at := firstDifference(first.Trace, second.Trace); at != "" {
			first.Broken = &Breach{Seed: o.Seed, What: []string{"a second run goes another way: " + at}}
		}
	}
	return first
}

// firstDifference is the first line in which two texts differ, or "".
func firstDifference(a, b string) string {
	if a == b {
		return ""
	}
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range x {
		if i >= len(y) || x[i] != y[i] {
			other := "nothing"
			if i < len(y) {
				other = fmt.Sprintf("%q", y[i])
			}
			return fmt.Sprintf("line %d of its trace is %s, was %q", i+1, other, x[i])
		}
	}
	return fmt.Sprintf("its trace has %d lines, had %d", len(y), len(x))
}

// run is one run of a scenario: the only goroutine, and all there is to it.
type run struct {
	s       *Scenario
	blind   bool
	seed    uint64
	clock   *Clock
	trace   *trace
	cluster *Cluster
	journal *memoryJournal
	loop    *admission.Loop
	checks  []*openCheck
	breach  *Breach

	watch *watch     // nil: what changes is told at once
	skew  *skew      // nil: the controller's clock is right
	terse *rand.Rand // nil: a new controller is compared at every rest
	hooks hooks
}

func newRun(s *Scenario, o Options) *run {
	clock := &Clock{}
	t := newTrace(clock)
	var fault Fault
	if o.Fault != nil {
		fault = o.Fault()
	}
	r := &run{s: s, blind: o.blind, hooks: o.hooks, seed: o.Seed, clock: clock, trace: t, cluster: newCluster(s, clock, o.Seed, fault, t)}
	r.cluster.mostActs = o.mostActs
	r.journal = newJournal(r.cluster)
	if o.Watch {
		r.watch = newWatch(o.Seed, clock, o.Calm)
		r.cluster.behind = r.watch.late
	}
	if o.Clock {
		r.skew = newSkew(o.Seed, o.Calm)
		r.cluster.skewed = r.offset
	}
	if o.terse {
		r.terse = stream(o.Seed, "looks")
	}
	return r
}

func runOnce(s *Scenario, o Options) *Report {
	r := newRun(s, o)
	r.all()
	rep := &Report{File: s.File, Name: s.Name, Seed: o.Seed, Broken: r.breach, Trace: r.trace.String()}
	rep.waiting, rep.Flags = r.cluster.waiting(), r.cluster.flags
	rep.Checks, rep.Writes = len(r.checks), r.cluster.writes
	for _, c := range r.checks {
		if m := c.miss(r.cluster.past.moves); m != nil {
			rep.Misses = append(rep.Misses, *m)
		}
	}
	return rep
}

// all runs the scenario to its end, or to the first breach. A panic of the core
// is a breach like another: it says with which seed and when.
func (r *run) all() {
	defer func() {
		if p := recover(); p != nil {
			r.breaks(fmt.Sprintf("panic: %v", p))
			r.trace.add("panic: %v\n%s", p, debug.Stack())
		}
	}()
	for _, e := range r.s.Events {
		r.clock.At(e.At, func() {
			r.trace.event(e.Action)
			r.cluster.outside()
			r.cluster.act(e.Action)
		})
	}
	r.start()
	end, expect := r.end(), r.s.Expect
	for woke := true; r.breach == nil; {
		r.settle(woke)
		for ; len(expect) > 0 && expect[0].At <= r.clock.now && r.breach == nil; expect = expect[1:] {
			r.expect(&expect[0])
		}
		next, wake, ok := r.next(expect)
		if !ok || next > end {
			r.clock.now = max(r.clock.now, end)
			return
		}
		r.clock.now, woke = next, wake
	}
}

// end is the last instant that matters: of an event or an expectation.
func (r *run) end() time.Duration {
	end := time.Duration(0)
	for _, e := range r.s.Events {
		end = max(end, e.At)
	}
	for _, e := range r.s.Expect {
		end = max(end, lastOf(e.At, e.Checks))
	}
	return end
}

// next is the instant at which to go on, and whether the controller asked for
// it. At an instant that only an expectation asks for, nothing is decided: a
// controller that should have woken by itself is not woken by the reader.
func (r *run) next(expect []Expectation) (at time.Duration, wake, ok bool) {
	at, ok = r.clock.Next()
	if w := r.loop.State().Wake(r.now()); !w.IsZero() {
		if d := max(w.Sub(epoch)-r.offset(), r.clock.Now()); !ok || d <= at {
			at, wake, ok = d, true, true
		}
	}
	if len(expect) > 0 && (!ok || expect[0].At < at) {
		at, wake, ok = expect[0].At, false, true
	}
	return at, wake, ok
}

// offset is how far the controller's clock is off, and now what it shows.
func (r *run) offset() time.Duration {
	if r.skew == nil {
		return 0
	}
	return r.skew.at(r.clock.Now(), r.trace)
}

func (r *run) now() time.Time { return r.clock.Time().Add(r.offset()) }

// maxSteps bounds what may happen at one instant.
const maxSteps = 1000

// settle lets everything happen that is due now, and the controller decide
// until it has nothing more to do.
func (r *run) settle(woke bool) {
	again, told := woke, r.trace.b.Len()
	for n := 0; r.breach == nil; n++ {
		fired := r.clock.Fire()
		r.cluster.react()
		seen := r.observe()
		if r.cluster.dead {
			r.restart()
			again = true
			continue
		}
		if fired == 0 && seen == 0 && !again || r.breach != nil {
			break
		}
		if n >= maxSteps {
			r.breaks(fmt.Sprintf("still not settled after %d steps", n))
			return
		}
		again = r.step()
	}
	if r.breach == nil && !r.blind {
		r.audit()
	}
	if r.hooks.rests != nil && r.breach == nil {
		r.hooks.rests(r)
	}
	if r.trace.b.Len() > told && r.terse == nil {
		r.trace.draw(r.loop.State(), r.cluster)
	}
}

// observe delivers what changed to the loop.
func (r *run) observe() int {
	if r.cluster.dead {
		r.cluster.Changes()
		return 0
	}
	n := 0
	for list := r.news(); len(list) > 0; list = r.news() {
		for _, ch := range list {
			r.tell(ch)
			n++
		}
	}
	return n
}

// news is what the controller is told now.
func (r *run) news() []change {
	list := r.cluster.Changes()
	if r.watch != nil {
		list = r.watch.deliver(r.cluster, list)
	}
	if r.hooks.news != nil {
		list = r.hooks.news(list)
	}
	return list
}

func (r *run) tell(ch change) {
	state := r.loop.State()
	r.loop.Observe(converter{state.Space}.event(ch))
	if r.hooks.told != nil {
		r.hooks.told(r, ch)
	}
	r.check("after the event about " + ch.name())
}

// step lets the loop decide and act once, and says whether it did anything or
// may decide otherwise if asked again.
func (r *run) step() bool {
	if r.hooks.asks != nil {
		r.hooks.asks(r)
	}
	d, err := r.loop.Step(context.Background(), r.now())
	r.trace.flush()
	switch {
	case errors.Is(err, errDead):
		return true
	case err != nil:
		r.breaks(err.Error())
		return false
	}
	r.check("after a step")
	return d.Acts() || len(d.Marks)+len(d.Verdicts) > 0
}

// start lets a controller begin with what the API holds.
func (r *run) start() {
	r.loop = admission.NewLoop(r.cluster.fresh(r.cluster.order), r.journal, r.cluster)
	r.cluster.Changes()
	if r.watch != nil {
		r.watch.forget()
	}
	r.check("after the start")
}

// restart lets a new controller take over from one that died.
func (r *run) restart() {
	r.cluster.outside()
	r.trace.add("the controller dies and starts again, %d decisions unsettled", r.journal.recover())
	r.cluster.dead = false
	r.start()
}

// fresh is the state of a controller that has read the whole cluster.
func (c *Cluster) fresh(order *rand.Rand) *admission.State {
	policy := config(&c.policy)
	policy.MostActs = c.mostActs
	s := admission.NewState(policy)
	conv := converter{s.Space}
	for _, ch := range c.Snapshot(order) {
		s.Apply(conv.event(ch))
	}
	return s
}

func (r *run) breaks(what ...string) {
	if len(what) == 0 {
		return
	}
	if r.breach == nil {
		r.breach = &Breach{At: r.clock.now, Seed: r.seed}
	}
	r.breach.What = append(r.breach.What, what...)
}

func (r *run) check(when string) {
	if r.blind {
		return
	}
	for _, bad := range r.loop.State().Check() {
		r.breaks(when + ": " + bad)
	}
}
