package tables

import (
	"math"
	"testing"
)

// Two of the forty values stand exchanged in the table that is compared to: with the
// slowdowns of both equal, each of the two utilisations is the other's.
var exchanged = map[string]float64{
	"Lublin-2, WFP3, backfill: utilisation":   .583,
	"Lublin-2, UNICEP, backfill: utilisation": .587,
}

func TestHeuristicsArePublished(t *testing.T) {
	table, err := Scope{Traces: dir(t)}.Heuristics(&Store{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if n := table.compared(); n != 40 {
		t.Errorf("%d values compared, want 40", n)
	}
	for _, c := range table.Misses() {
		if want, ok := exchanged[c.What]; !ok || math.Abs(c.Got-want) > c.Tolerance {
			t.Errorf("%s: %.4f, want %.4f", c.What, c.Got, c.Expected)
		}
	}
}
