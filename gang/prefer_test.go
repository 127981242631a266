package gang

import (
	"fmt"
	"testing"

	"sluice.dev/sluice/quota"
)

// liking rates nodes by name, and has them hold fewer pods than are counted.
type liking struct {
	score map[string]int64
	room  map[string]int
	asked int
}

func (l *liking) Kind(*PodSet) int { return 0 }

func (l *liking) Rate(_ *PodSet, n *Node, _ quota.Resources, most int) (int, int64) {
	l.asked++
	if room, ok := l.room[n.Name]; ok {
		most = min(most, room)
	}
	return most, l.score[n.Name]
}

func (l *liking) Choose([]Rated) int { return -1 }

func threeNodes() *Inventory {
	v := NewInventory()
	for i, cpu := range []int64{4, 2, 3} {
		v.Put(&Node{Name: fmt.Sprint("n", i), Offer: quota.Resources{cpu, 0, 9}})
	}
	return v
}

func pods(n int) *Spec {
	return &Spec{PodSets: []PodSet{{Name: "main", Count: n, Min: n, Request: quota.Resources{1, 0, 1}}}}
}

func TestPreferredNodesFirst(t *testing.T) {
	for name, c := range map[string]struct {
		l    *liking
		pods int
		want string
	}{
		"nothing said, so the fullest first": {&liking{}, 6, "n0×1 n1×2 n2×3"},
		"the liked one first":                {&liking{score: map[string]int64{"n0": 2, "n2": 1}}, 5, "n0×4 n2×1"},
		"less room than is counted":          {&liking{score: map[string]int64{"n0": 2}, room: map[string]int{"n1": 0}}, 5, "n0×4 n2×1"},
		"none":                               {&liking{room: map[string]int{"n0": 0, "n1": 0, "n2": 0}}, 1, ""},
		"too little":                         {&liking{}, 10, ""},
	} {
		v := threeNodes()
		v.Prefer(c.l)
		plan, short := Place(v, pods(c.pods), []int{c.pods})
		if got := plan.String(); got != c.want || (short != nil) != (c.want == "") || Fits(v, pods(c.pods), []int{c.pods}) != (c.want != "") {
			t.Errorf("%s: got %q, %v, want %q", name, got, short, c.want)
		}
		for _, n := range v.Names() {
			if !v.Used(n).IsZero() {
				t.Errorf("%s: %s has %v taken", name, n, v.Used(n))
			}
		}
	}
}

// Without anything said the plan is that of no preference.
func TestNoPreferenceIsThePlainOrder(t *testing.T) {
	for n := 1; n <= 10; n++ {
		plain, _ := Place(threeNodes(), pods(n), []int{n})
		v := threeNodes()
		v.Prefer(&liking{})
		got, _ := Place(v, pods(n), []int{n})
		v.Prefer(nil)
		back, _ := Place(v, pods(n), []int{n})
		if got.String() != plain.String() || back.String() != plain.String() {
			t.Errorf("%d pods: %s with, %s after, %s without", n, got, back, plain)
		}
	}
}

// What was said of a node is asked again only when something was taken or given there.
func TestRatingsAreRemembered(t *testing.T) {
	v, l := threeNodes(), &liking{}
	v.Prefer(l)
	Place(v, pods(1), []int{1})
	Place(v, pods(1), []int{1})
	first := l.asked
	Place(v, pods(1), []int{1})
	if again := l.asked - first; again > 1 {
		t.Errorf("asked %d times about nodes of which at most one was touched", again)
	}
	v.Take("n2", quota.Resources{3, 0, 3})
	if plan, _ := Place(v, pods(3), []int{3}); plan.String() != "n0×1 n1×2" {
		t.Errorf("n2 is full now, but got %s", plan)
	}
}
