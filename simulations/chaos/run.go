package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/simulations/demo"
	"sluice.dev/sluice/simulations/e2e/witness"
)

const (
	// halfFor is the promise: no gang stays partly released for longer, while somebody
	// could release the rest.
	halfFor = 5 * time.Second
	// perRound is how many faults a round has.
	perRound = 3
	// patience bounds every wait for a state that must come.
	patience = 3 * time.Minute
)

// Options say how a run goes.
type Options struct {
	// Demo brings up the sandbox and the controllers. Standby and FrontPort are set
	// by Run.
	Demo demo.Options
	// For is how long faults go on.
	For  time.Duration
	Seed uint64
	// Only are the names of the faults to try, all of them in each round; empty means
	// all there are.
	Only []string
	// Earlier is an earlier build of the controller. With it, going back to it and
	// forth again is one of the faults.
	Earlier string
	// Say is told, a line at a time, what happens.
	Say func(format string, args ...any)
}

// Report is what came of a run.
type Report struct {
	Seed        uint64
	Took        time.Duration
	Rounds      int
	Faults      map[string]int
	Jobs        int // that came to their end
	Released    int // pods
	LongestHalf time.Duration
	// FailOvers are the times from the instant at which nobody could decide any more
	// to the one at which the other controller led.
	FailOvers  []time.Duration
	Violations []string
}

// run is a run that goes on.
type run struct {
	o           Options
	demo        *demo.Demo
	gateway     *gateway
	controllers []*demo.Supervisor
	load        *load
	report      Report

	mu         sync.Mutex
	leaderless []witness.Interval // the last has no end while it lasts
	leader     *demo.Supervisor   // as last seen
}

// Run brings up a control plane with two controllers, breaks it for as long as it
// should, and says what came of it. An error means that the run could not be made.
func Run(ctx context.Context, o Options) (Report, error) {
	r := &run{o: o, report: Report{Seed: o.Seed, Faults: make(map[string]int)}}
	var err error
	if r.gateway, err = newGateway(); err != nil {
		return r.report, err
	}
	inner, cancel := context.WithCancel(ctx)
	var aside sync.WaitGroup
	defer aside.Wait()
	defer cancel()
	aside.Go(func() { r.gateway.serve(inner) })
	r.o.Demo.Standby, r.o.Demo.FrontPort = true, r.gateway.port()
	r.o.Demo.Started = func(s *demo.Supervisor) {
		r.gateway.add(s)
		r.controllers = append(r.controllers, s)
	}
	if r.demo, err = demo.Open(r.o.Demo); err != nil {
		return r.report, err
	}
	defer r.demo.Close()
	if err := r.demo.Up(inner); err != nil {
		return r.report, err
	}
	if err := r.demo.Apply(inner, filepath.Join(r.o.Demo.Root, "simulations", "chaos")); err != nil {
		return r.report, err
	}
	aside.Go(func() { r.watchLeader(inner) })
	for _, s := range r.controllers {
		aside.Go(func() { s.Keep(inner) })
	}
	r.load = &load{cluster: r.demo.Cluster(), random: rand.New(rand.NewPCG(o.Seed, 1)), seed: o.Seed}
	aside.Go(func() { r.load.run(inner) })
	begin := time.Now()
	err = r.rounds(inner, begin.Add(o.For))
	if err == nil {
		err = r.finish(inner)
	}
	r.mu.Lock() // it is still watched who leads
	defer r.mu.Unlock()
	r.report.Took = time.Since(begin)
	return r.report, err
}

// rounds makes rounds until the time is over; at least one.
func (r *run) rounds(ctx context.Context, end time.Time) error {
	random := rand.New(rand.NewPCG(r.o.Seed, 2))
	chosen, err := r.choose()
	if err != nil {
		return err
	}
	var order []int
	each := perRound
	if len(r.o.Only) > 0 {
		each = len(r.o.Only)
	}
	for first := true; first || time.Now().Before(end); first = false {
		var of []fault
		for range each {
			if len(order) == 0 { // each in turn, in an order by lot
				order = random.Perm(len(chosen))
			}
			of, order = append(of, chosen[order[0]]), order[1:]
		}
		if err := r.round(ctx, of, random); err != nil {
			return err
		}
	}
	return nil
}

// round does some faults under the eyes of a witness, and asks it.
func (r *run) round(ctx context.Context, of []fault, random *rand.Rand) error {
	r.report.Rounds++
	watching, stop := context.WithCancel(ctx)
	defer stop()
	log := &witness.Log{}
	wait, err := witness.Watch(watching, r.demo.Cluster().Config, log)
	if err != nil {
		return err
	}
	var excused []witness.Interval
	for _, f := range of {
		if err := pause(ctx, between(random, time.Second, 6*time.Second)); err != nil {
			return err
		}
		r.o.Say("%s", f.name)
		i, err := r.strike(ctx, f, random)
		if err != nil {
			return err
		}
		r.report.Faults[f.name]++
		if err := r.well(ctx); err != nil {
			return fmt.Errorf("after %s: %w", f.name, err)
		}
		if f.excuses {
			i.To = time.Now() // also what the controllers need to reach it again
			excused = append(excused, i)
		}
	}
	stop()
	wait()
	r.judge(log, excused)
	return nil
}

// judge asks the witness.
func (r *run) judge(log *witness.Log, excused []witness.Interval) {
	r.mu.Lock()
	excused = append(excused, r.leaderless...)
	r.mu.Unlock()
	v := witness.Judge(log, witness.Terms{HalfFor: halfFor, Excused: excused, OutOfReach: []string{metav1.NamespaceSystem, "sluice-system"}})
	made, ended := r.load.counts()
	r.o.Say("round %d: %v; Jobs: %d made, %d over", r.report.Rounds, v, made, ended)
	r.report.Released += v.Released
	r.report.LongestHalf = max(r.report.LongestHalf, v.LongestHalf-v.ExcusedOfHalf)
	for _, violation := range v.Violations {
		r.violated("round %d: %v", r.report.Rounds, violation)
	}
	before := len(r.report.Violations)
	for _, text := range needless(log) {
		r.violated("round %d: %s", r.report.Rounds, text)
	}
	if len(v.Violations)+len(r.report.Violations)-before > 0 {
		r.keep(log)
	}
}

// needless tells of the gangs that were taken back for something else than to make
// room: no fault is a reason to stop what runs.
func needless(log *witness.Log) []string {
	found := make(map[string]bool)
	witness.Replay(log, func(w *witness.World, _ witness.Record) {
		for key, wl := range w.Workloads {
			if wl == nil {
				continue
			}
			c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)
			if c != nil && c.Status == metav1.ConditionTrue && c.Reason != kueue.WorkloadEvictedByPreemption {
				found[fmt.Sprintf("%s was evicted: %s: %s", key, c.Reason, c.Message)] = true
			}
		}
	})
	return slices.Sorted(maps.Keys(found))
}

func (r *run) violated(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.o.Say("VIOLATION  %s", text)
	r.report.Violations = append(r.report.Violations, text)
}

// keep writes down what the witness saw.
func (r *run) keep(log *witness.Log) {
	path := filepath.Join(filepath.Dir(r.demo.ControllerLog()), fmt.Sprintf("witness-%d.log", r.report.Rounds))
	file, err := os.Create(path)
	if err == nil {
		err = errors.Join(log.Write(file), file.Close())
	}
	r.o.Say("what the witness saw: %s (%v)", path, err)
}

// finish lets the load end and looks at what is left.
func (r *run) finish(ctx context.Context) error {
	r.o.Say("the load ends")
	r.load.drain()
	err := r.eventually(ctx, "every Job comes to its end", func() error {
		if left, err := r.load.look(ctx); err != nil || left > 0 {
			return errors.Join(fmt.Errorf("%d are left", left), err)
		}
		return nil
	})
	if err != nil {
		r.violated("%v", err)
	}
	_, r.report.Jobs = r.load.counts()
	for _, job := range r.load.failed {
		r.violated("Job %s", job)
	}
	if err := r.eventually(ctx, "no queue counts anything", func() error { return r.nothingCharged(ctx) }); err != nil {
		r.violated("%v", err)
	}
	return r.readLogs()
}

// nothingCharged is an error while a queue of the load says that something runs.
func (r *run) nothingCharged(ctx context.Context) error {
	for _, team := range teams {
		cq := &kueue.ClusterQueue{}
		if err := r.demo.Cluster().Get(ctx, client.ObjectKey{Name: team}, cq); err != nil {
			return err
		}
		for _, flavor := range cq.Status.FlavorsUsage {
			for _, u := range flavor.Resources {
				if !u.Total.IsZero() {
					return fmt.Errorf("%s is charged %s of %s", team, u.Total.String(), u.Name)
				}
			}
		}
		if n := cq.Status.PendingWorkloads + cq.Status.ReservingWorkloads; n > 0 {
			return fmt.Errorf("%s has %d workloads", team, n)
		}
	}
	return nil
}

// readLogs looks for a controller that found its own state wrong, or broke.
func (r *run) readLogs() error {
	for _, s := range r.controllers {
		text, err := os.ReadFile(s.Log())
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "invariants do not hold") || strings.HasPrefix(line, "panic:") {
				r.violated("%s: %s", s.Title(), strings.TrimSpace(line))
			}
		}
	}
	return nil
}

// eventually waits for a state, and says now and then what is missing.
func (r *run) eventually(ctx context.Context, what string, reached func() error) error {
	end, told := time.Now().Add(patience), time.Now()
	for {
		err := reached()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: not within %v: %w", what, patience, err)
		}
		if time.Since(told) > 10*time.Second {
			r.o.Say("waiting: %s: %v", what, err)
			told = time.Now()
		}
		if err := pause(ctx, lookEvery); err != nil {
			return err
		}
	}
}
