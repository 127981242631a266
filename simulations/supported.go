package simulations

import (
	"slices"
	"strings"
)

// notYet is what the parser reads and the engine cannot execute yet: verbs as
// "event.mig", keys as "workload.topology" or "expect.drift" (the tables of
// README.md), a choice as "queue.strategy=StrictFIFO", a reason code as
// "reason.Layout". The entry goes when the engine can do it. A test checks that
// each of them is part of the grammar.
var notYet = []string{}

// Use is a place where a file uses a verb, a key or a choice.
type Use struct {
	Line int
	What string // as the file has it: "mig", "sharing: shared"
}

// Unsupported lists what a file uses and the engine cannot execute yet, by
// line. A scenario without any can be run.
func Unsupported(s *Scenario) []Use { return UsesOf(s, notYet...) }

// UsesOf lists what a file uses of what is gated, in the words of notYet.
func UsesOf(s *Scenario, gated ...string) []Use {
	closed := make(map[string]bool, len(gated))
	for _, what := range gated {
		closed[what] = true
	}
	var out []Use
	for _, u := range s.uses {
		if closed[u.what] {
			_, key, _ := strings.Cut(u.what, ".")
			out = append(out, Use{Line: u.line, What: strings.Replace(key, "=", ": ", 1)})
		}
	}
	slices.SortStableFunc(out, func(a, b Use) int { return a.Line - b.Line })
	return out
}
