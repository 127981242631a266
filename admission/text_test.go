package admission

import (
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// A quota may count a resource in one pool of nodes alone. People read the pool and
// the resource, in the resource's own unit.
func TestAmountsForPeople(t *testing.T) {
	s := NewState(DefaultConfig())
	for _, c := range []struct {
		dimension string
		v         int64
		want      string
	}{
		{"nvidia.com/gpu", 8, "8 nvidia.com/gpu"},
		{"a100:nvidia.com/gpu", 8, "8 nvidia.com/gpu of flavor a100"},
		{"a100:cpu", 1500, "1500m cpu of flavor a100"},
		{":cpu", 2000, "2 cpu"},
		{"spot:memory", 3 << 30, "3Gi memory of flavor spot"},
		{"a100:nvidia.com/gpu", quota.MostOfOne, "more nvidia.com/gpu of flavor a100 than anything holds"},
	} {
		if got := s.amount(c.dimension, c.v); got != c.want {
			t.Errorf("%s %d is written %q, want %q", c.dimension, c.v, got, c.want)
		}
	}
}

// Nodes that have other values of one label are one group, and what the code is about
// comes first.
func TestTelling(t *testing.T) {
	wants := func(has string) *gang.Objection { return &gang.Objection{Wants: "host=n0", Has: has} }
	excluded := []gang.Exclusion{
		{Nodes: []string{"n1"}, Objection: wants("n1"), Free: 8, Most: 8},
		{Nodes: []string{"n2"}, Objection: wants("n2"), Free: 4, Most: 4},
		{Nodes: []string{"n3"}, Objection: &gang.Objection{Wants: "host=n0"}, Free: 8},
		{Nodes: []string{"n4"}, Objection: &gang.Objection{Wants: "x:NoSchedule", Taint: true}, Free: 8},
		{Nodes: []string{"n0"}, Outage: &gang.Outage{What: "lost", Detail: "card 3"}, Free: 7},
	}
	draw := func(code Code) string {
		var all []string
		for _, e := range Telling(code, excluded) {
			why := "out"
			if e.Objection != nil {
				why = e.Objection.String()
			}
			all = append(all, fmt.Sprintf("%s %d: %s", strings.Join(e.Nodes, ","), e.Free, why))
		}
		return strings.Join(all, "; ")
	}
	rest := "n1,n2 12: wants host=n0, has n1, n2; n3 8: wants host=n0, has no such label; n4 8: taint x:NoSchedule"
	for code, want := range map[Code]string{Hardware: "n0 7: out; " + rest, Labels: rest + "; n0 7: out", Capacity: rest + "; n0 7: out"} {
		if got := draw(code); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", code, got, want)
		}
	}
	if excluded[0].Free != 8 || len(excluded[0].Nodes) != 1 {
		t.Errorf("what was given changed: %+v", excluded[0])
	}
}
