package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// lookEvery is how often the table is made anew.
const lookEvery = 300 * time.Millisecond

// Result is how the gangs came out.
type Result struct {
	Rows []Row
	// Took is the time from the first submission until the last gang was over.
	Took time.Duration
	// Kills counts how often the demo itself killed the controller.
	Kills int
	// TimedOut says that gangs were not over within the timeout.
	TimedOut bool
}

// Surprises lists the gangs that did not come out as their manifests say.
func (r Result) Surprises() []string {
	var all []string
	for _, row := range r.Rows {
		if !row.AsExpected() {
			all = append(all, fmt.Sprintf("%s: %s, its manifest expects %s", row.Gang, row.Outcome(), row.Expect))
		}
	}
	return all
}

// Kills says how often the controller is killed while the gangs run. The zero
// value is never.
type Kills struct {
	// Every is the mean time from one to the next.
	Every time.Duration
	// Times is how often; 0 has no bound.
	Times int
	// Seed makes the times repeatable.
	Seed uint64
}

// Play submits the gangs and shows how they fare until all are over. Gangs of an
// earlier run are deleted first. It needs Up.
func (d *Demo) Play(ctx context.Context, kills Kills) (Result, error) {
	if kills.Every < 0 || kills.Every > 0 && d.supervisor == nil {
		return Result{}, fmt.Errorf("kill the controller every %v: want a positive time, and a controller of the demo's own", kills.Every)
	}
	bounded, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	var aside sync.WaitGroup
	defer aside.Wait()
	kept, release := context.WithCancel(bounded)
	defer release()
	before := 0
	if d.supervisor != nil {
		before = d.supervisor.Kills()
		aside.Go(func() { d.supervisor.Keep(kept) })
	}
	if err := d.withdraw(bounded, d.gangs); err != nil {
		return Result{}, err
	}
	if kills.Every > 0 {
		aside.Go(func() { d.kill(kept, kills) })
	}
	d.screen.restart()
	for _, g := range d.gangs {
		g.refused = ""
		if err := d.submit(bounded, g); err != nil {
			return Result{}, err
		}
	}
	result := Result{Rows: d.follow(bounded), Took: time.Since(d.screen.begin)}
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	result.TimedOut = bounded.Err() != nil
	if d.supervisor != nil {
		result.Kills = d.supervisor.Kills() - before
	}
	d.screen.final(result.Rows)
	return result, nil
}

// follow shows the gangs until all are over or ctx ends, and returns the last
// rows. While the API server does not answer it shows what was seen last.
func (d *Demo) follow(ctx context.Context) []Row {
	rows := make([]Row, len(d.gangs)) // as long as nothing was seen
	for i, g := range d.gangs {
		rows[i] = Row{Gang: g.key.String(), Expect: g.expect}
	}
	silent := time.Time{}
	for {
		w, err := d.look(ctx, d.gangs)
		note := "waiting for the API server"
		switch {
		case err == nil:
			rows, silent = rows[:0:0], time.Time{}
			for _, g := range d.gangs {
				rows = append(rows, w.row(g))
			}
			note = tally(rows)
		case silent.IsZero():
			silent = time.Now()
		default:
			note = fmt.Sprintf("no answer from the API server for %v", time.Since(silent).Round(time.Second))
		}
		if ctx.Err() == nil {
			d.screen.show(rows, note)
		}
		if err == nil && over(rows) {
			return rows
		}
		select {
		case <-ctx.Done():
			return rows
		case <-time.After(lookEvery):
		}
	}
}

func over(rows []Row) bool {
	for _, r := range rows {
		if !r.Over() {
			return false
		}
	}
	return true
}

// kill ends the controller again and again, at random instants, until ctx ends.
// Times between are drawn evenly from nothing to twice the mean, so that starts
// are hit as well.
func (d *Demo) kill(ctx context.Context, kills Kills) {
	random := rand.New(rand.NewPCG(kills.Seed, 0))
	for n := 0; kills.Times == 0 || n < kills.Times; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(random.Float64() * 2 * float64(kills.Every))):
		}
		if err := d.supervisor.Kill(ctx); err != nil && !errors.Is(err, context.Canceled) {
			d.say("sluice-controller: cannot be killed: %v", err)
		}
	}
}
