package tables

import (
	"fmt"
	"math"
	"testing"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// Two users ask for (1 CPU, 4 GB) and (3 CPU, 1 GB) a task on 9 CPU and 18 GB: three
// tasks and two, both with two thirds of what they want most (Ghodsi et al., NSDI
// 2011). One cycle of the whole engine does it.
func TestDominantShares(t *testing.T) {
	s := admission.NewState(admission.DefaultConfig())
	s.Apply(admission.NodeSeen{Node: &gang.Node{Name: "n", Offer: quota.Resources{9, 18, 110}}})
	asks := map[string]quota.Resources{"a": {1, 4, 1}, "b": {3, 1, 1}}
	for name, req := range asks {
		s.Apply(admission.QueueSeen{Queue: &queue.Queue{Quota: quota.Queue{Name: name, Weight: 1, Nominal: map[int]int64{quota.CPU: 0, quota.Memory: 0}}}})
		for i := range 9 {
			key := fmt.Sprintf("%s-%d", name, i)
			s.Apply(admission.WorkloadSeen{Version: 1, Workload: &queue.Workload{
				Key: key, UID: key, Queue: name, Queued: time.Unix(0, 0),
				Spec: gang.Spec{PodSets: []gang.PodSet{{Name: "main", Count: 1, Min: 1, Request: req}}},
			}})
		}
	}
	tasks := map[string]int{}
	var used quota.Resources
	for _, a := range admission.Cycle(s, time.Unix(0, 0)).Admit {
		tasks[a.Queue]++
		used.Add(asks[a.Queue])
	}
	if tasks["a"] != 3 || tasks["b"] != 2 || used[quota.CPU] != 9 || used[quota.Memory] != 14 {
		t.Errorf("a %d, b %d, %d CPU, %d GB; want 3, 2, 9, 14", tasks["a"], tasks["b"], used[quota.CPU], used[quota.Memory])
	}
	if memory, cpu := tasks["a"]*4, tasks["b"]*3; 3*memory != 2*18 || 3*cpu != 2*9 {
		t.Errorf("a has %d of 18 GB, b %d of 9 CPU; want two thirds each", memory, cpu)
	}
}

// account is a queue of the example in Slurm's documentation of its classic
// fair-share (classic_fair_share.html). Used is in percent of the machine; effective
// usage and factor are what the documentation gives.
type account struct {
	name, parent string
	shares, used int64
	effective    float64
	factor       float64
}

var slurmExample = []account{
	{"A", "", 40, 0, .45, 0},
	{"D", "", 60, 0, .25, 0},
	{"B", "A", 30, 0, .3875, 0},
	{"C", "A", 10, 0, .3, 0},
	{"E", "D", 25, 0, .25, 0},
	{"F", "D", 35, 0, .1458, 0},
	{"user1", "B", 1, 20, .3875, .408479},
	{"user2", "C", 1, 25, .275, .022097},
	{"user3", "C", 1, 0, .15, .125},
	{"user4", "E", 1, 25, .25, .5},
	{"user5", "F", 1, 0, .1458, .749154},
}

// The engine counts usage up the tree and weighs it level by level; from what it
// counts follow the effective usages and factors of the example, and it serves the
// users in the order of these factors.
func TestSlurmExample(t *testing.T) {
	ledger := slurmLedger(t)
	tree := ledger.Tree()
	// parts of a level: shares over those of all siblings, and that times the parent's.
	part := func(id int) float64 {
		sum := int64(0)
		for _, c := range tree.Children(tree.Parent(id)) {
			sum += tree.Weight(c)
		}
		return float64(tree.Weight(id)) / float64(sum)
	}
	actual := func(id int) float64 { return float64(ledger.Usage(id).At(quota.CPU)) / 100 }
	var effective, share func(id int) float64
	effective = func(id int) float64 {
		if tree.Parent(id) == quota.Root {
			return actual(id)
		}
		return actual(id) + (effective(tree.Parent(id))-actual(id))*part(id)
	}
	share = func(id int) float64 {
		if id == quota.Root {
			return 1
		}
		return part(id) * share(tree.Parent(id))
	}
	for _, a := range slurmExample {
		id, _ := tree.ID(a.name)
		if got := effective(id); math.Abs(got-a.effective) > 5e-5 {
			t.Errorf("%s: effective usage %.4f, want %.4f", a.name, got, a.effective)
		}
		if got := math.Exp2(-effective(id) / share(id)); a.factor > 0 && math.Abs(got-a.factor) > 1e-6 {
			t.Errorf("%s: factor %.6f, want %.6f", a.name, got, a.factor)
		}
	}
	if got, want := served(ledger, 0), "user5 user4 user1 user3 user2"; got != want {
		t.Errorf("served in the order %s, want %s", got, want)
	}
}

// If an account ranks above its sibling, everybody in it ranks above everybody in
// the sibling (Slurm's fair_tree.html), however much single users have used.
func TestAccountsRankWhole(t *testing.T) {
	ledger := slurmLedger(t)
	// user5 has used more than anybody, but D as a whole still less than A for its shares.
	id, _ := ledger.Tree().ID("user5")
	ledger.Charge(id, quota.Resources{40})
	if got, want := served(ledger, 0), "user4 user5 user1 user3 user2"; got != want {
		t.Errorf("served in the order %s, want %s", got, want)
	}
	// By 40 to 60 shares, 45 of A are as much as 67.5 of D; beyond that A's users come first.
	ledger.Charge(id, quota.Resources{3})
	if got, want := served(ledger, 0), "user1 user3 user2 user4 user5"; got != want {
		t.Errorf("served in the order %s, want %s", got, want)
	}
}

func slurmLedger(t *testing.T) *quota.Ledger {
	var queues []quota.Queue
	charges := map[string]quota.Resources{}
	for _, a := range slurmExample {
		queues = append(queues, quota.Queue{Name: a.name, Parent: a.parent, Weight: a.shares, Nominal: map[int]int64{quota.CPU: 0}})
		charges[a.name] = quota.Resources{a.used}
	}
	tree, problems := quota.Build(queues, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	tree.Settle(quota.Resources{1000}, func(int) quota.Resources { return nil })
	return quota.NewLedger(tree, charges)
}

// served is the order in which one claim of each leaf comes up, each charged so much
// when it does.
func served(l *quota.Ledger, charge int64) string {
	done := map[int]bool{}
	c := queue.NewContest(l, func(int) int64 { return 0 }, func(leaf int) (*queue.Workload, quota.Resources) {
		if done[leaf] {
			return nil, nil
		}
		return &queue.Workload{UID: l.Tree().Name(leaf)}, quota.Resources{1}
	})
	out := ""
	for {
		claim := c.Best()
		if claim.Workload == nil {
			return out
		}
		if out != "" {
			out += " "
		}
		out += l.Tree().Name(claim.Leaf)
		done[claim.Leaf] = true
		l.Charge(claim.Leaf, quota.Resources{charge})
		c.Changed(claim.Leaf)
	}
}
