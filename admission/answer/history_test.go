package answer

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
)

// An eviction is told on both sides: who took it, by which rule, what was lost and when
// it may return; who may not see the other side is told neither its name nor texts with it.
func TestHistoryTellsBothSides(t *testing.T) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	plan := gang.Plan{Sets: []gang.SetPlan{{Name: "main", Slots: []gang.Slot{{Node: "n1", Count: 2}}}}}
	list := []admission.Decision{
		{
			Seq: 2, At: at.Add(2 * time.Hour),
			Evict:    []admission.Eviction{{Key: "b/small", Cause: admission.Reclaimed, For: "a/big"}},
			Verdicts: []admission.Verdict{{Key: "a/big", Reason: admission.Reason{Code: admission.Preempting}, Text: "Preempting: waits for b/small"}},
		},
		{Seq: 1, At: at, Admit: []admission.Admission{{Key: "b/small", Queue: "team-b", Plan: plan, At: at}}},
	}
	everybody := func(string) bool { return true }
	victim := History(list, "b/small", everybody)
	if len(victim) != 2 || victim[0].What != "Evicted" || victim[0].By != "a/big" || victim[0].Code != "Reclaimed" {
		t.Fatalf("%+v", victim)
	}
	for _, want := range []string{"for a/big", "another queue owns", "had run for 2h", "waits again"} {
		if !strings.Contains(victim[0].Text, want) {
			t.Errorf("the eviction does not say %q: %s", want, victim[0].Text)
		}
	}
	if victim[1].What != "Admitted" || !strings.Contains(victim[1].Text, "2 pods on n1") {
		t.Errorf("%+v", victim[1])
	}
	taker := History(list, "a/big", everybody)
	if len(taker) != 2 || taker[0].What != "Took" || taker[0].By != "b/small" || taker[1].What != "Waits" {
		t.Errorf("%+v", taker)
	}
	for _, d := range History(list, "", func(ns string) bool { return ns == "b" }) {
		if strings.Contains(d.Text+d.By+d.Job, "a/big") {
			t.Errorf("a name is told: %+v", d)
		}
	}
}
