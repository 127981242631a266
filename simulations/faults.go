package simulations

import (
	"errors"
	"fmt"
	"strings"
)

// Faults are the kinds of faults that happen by lot. Each kind draws from a stream of
// its own of the run's seed, so that one does not change what becomes of another:
//
//	stream    draws
//	story     the events of a random story: gangs, queues, nodes lost, drained, added, removed, crashes
//	hardware  its lost cards and silent agents, and their return
//	faults    writes refused, lost, applied without an answer, or the controller's last
//	watch     streams that hang, are listed anew, tell a state twice
//	clock     steps of the controller's clock, forward and back
//	order     what a real cluster does in parallel, in any run with a seed
//	aside     the same for those who only look
//	looks     at which rests of a long story a new controller is compared
type Faults struct{ Writes, Watch, Clock bool }

// ParseFaults reads a list such as "writes,clock"; "all" is all of them.
func ParseFaults(text string) (Faults, error) {
	var f Faults
	for name := range strings.SplitSeq(text, ",") {
		switch name {
		case "":
		case "all":
			f = Faults{true, true, true}
		case "writes":
			f.Writes = true
		case "watch":
			f.Watch = true
		case "clock":
			f.Clock = true
		default:
			return f, errors.New("faults are writes, watch, clock or all, not " + fmt.Sprintf("%q", name))
		}
	}
	return f, nil
}

// String is the list that ParseFaults reads.
func (f Faults) String() string {
	var names []string
	for _, k := range []struct {
		on   bool
		name string
	}{{f.Writes, "writes"}, {f.Watch, "watch"}, {f.Clock, "clock"}} {
		if k.on {
			names = append(names, k.name)
		}
	}
	return strings.Join(names, ",")
}

// fewer are the smaller choices of the same faults, the smallest first.
func (f Faults) fewer() []Faults {
	list := []Faults{{}}
	for _, one := range []Faults{{Writes: f.Writes}, {Watch: f.Watch}, {Clock: f.Clock}, {Writes: f.Writes, Watch: f.Watch}, {Writes: f.Writes, Clock: f.Clock}, {Watch: f.Watch, Clock: f.Clock}} {
		if one != f && one != (Faults{}) {
			list = append(list, one)
		}
	}
	return list
}

// Options are those of a run with the seed and these faults.
func (f Faults) Options(seed uint64) Options {
	o := Options{Seed: seed, Watch: f.Watch, Clock: f.Clock}
	if f.Writes {
		o.Fault = Unlucky(seed)
	}
	return o
}

// Unlucky lets a write in thirty go wrong, in all ways.
func Unlucky(seed uint64) func() Fault {
	return func() Fault {
		rnd := stream(seed, "faults")
		return func(w Write) Fate {
			fate := Fate(rnd.IntN(4)) + Refused
			if rnd.IntN(30) > 0 || w.Act == "tell" && fate != Fatal {
				return Done
			}
			return fate
		}
	}
}
