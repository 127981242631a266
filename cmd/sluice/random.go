package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"sluice.dev/sluice/simulations"
)

// garbage lets the heap grow by so much before it is collected: stories make much
// and keep little.
const garbage = 800

// faultsOf are those that the command line asks for, else those of the seed.
func faultsOf(f simulateFlags, seed uint64) simulations.Faults {
	if f.faults != "" {
		return f.kinds
	}
	return simulations.FaultsOf(seed)
}

// simulateRandom runs stories drawn by lot on all processors, tells how far it
// is, and prints the first that goes wrong as a scenario, made shorter.
func simulateRandom(f simulateFlags, stdout, stderr io.Writer) error {
	debug.SetGCPercent(garbage)
	todo, done := make(chan uint64), make(chan *simulations.Drawn)
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for seed := range todo {
				done <- simulations.RunStory(seed, f.events, faultsOf(f, seed))
			}
		}()
	}
	go func() {
		for i := range f.seeds {
			todo <- f.seed + i
		}
		close(todo)
	}()
	var first *simulations.Drawn
	events, writes, bad, flags := 0, 0, 0, 0
	for i := range f.seeds {
		d := <-done
		events, writes = events+d.Events, writes+d.Writes
		for _, l := range d.Wrong {
			fmt.Fprintln(stderr, l)
		}
		for _, l := range d.Flags {
			if flags++; flags <= 5 {
				fmt.Fprintf(stderr, "flagged: seed %d: %s\n", d.Seed, l)
			}
		}
		if len(d.Wrong) > 0 {
			bad++
			if first == nil || d.Seed < first.Seed {
				first = d
			}
		}
		if tell := max(1, f.seeds/20); (i+1)%tell == 0 {
			fmt.Fprintf(stderr, "%d of %d stories: %d events, %d writes, %d went wrong\n", i+1, f.seeds, events, writes, bad)
		}
	}
	if first == nil {
		fmt.Fprintf(stdout, "%d stories from seed %d, %d events, %d writes: every promise held\n", f.seeds, f.seed, events, writes)
		if flags > 0 {
			fmt.Fprintf(stderr, "flagged: %d gangs were admitted and evicted at one instant\n", flags)
		}
		return nil
	}
	fmt.Fprintf(stderr, "looking for a shorter story with the fault of seed %d\n", first.Seed)
	text := first.Shrink(func(events int) { fmt.Fprintf(stderr, "%d events\n", events) })
	fmt.Fprint(stdout, text)
	return exitError(exitFailed)
}
