package queue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

const gpu = quota.Pods + 1

var midnight = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// TestOrder runs the files of testdata/order:
//
//	queues hardware=N   the tree, one queue a line, indented below its parent:
//	                    NAME [weight=W] [nominal=N] [priority=P] [uses=N]
//	waiting             what waits: NAME queue=Q gpu=N [priority=P] [at=SECOND]
//	contest             the claims in the order in which they come up, each charged
//	                    when it does; aside=NAME is set aside instead
//
// A queue is drawn as what it owns, # used and . free, and what it borrows, +.
func TestOrder(t *testing.T) {
	datadriven.Walk(t, "testdata/order", func(t *testing.T, path string) {
		b := &board{}
		datadriven.RunTest(t, path, b.run)
	})
}

type board struct {
	tree     *quota.Tree
	ledger   *quota.Ledger
	priority map[string]int64
	waiting  *Set
}

func (b *board) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "queues":
		b.queues(t, d)
		return b.draw()
	case "waiting":
		b.waiting = NewSet()
		for line := range strings.Lines(d.Input) {
			b.waiting.Put(workload(t, d, strings.Fields(line)))
		}
		return lines(t, b.waiting)
	case "contest":
		return b.contest(d)
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

func (b *board) queues(t *testing.T, d *datadriven.TestData) {
	var hardware int64
	d.ScanArgs(t, "hardware", &hardware)
	b.priority = map[string]int64{}
	var queues []quota.Queue
	var path []string
	charges := map[string]quota.Resources{}
	for line := range strings.Lines(d.Input) {
		fields := strings.Fields(line)
		q := quota.Queue{Name: fields[0], Weight: 1}
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		path = append(path[:depth], q.Name)
		if depth > 0 {
			q.Parent = path[depth-1]
		}
		for _, f := range fields[1:] {
			k, v, _ := strings.Cut(f, "=")
			n := integer(t, d, v)
			switch k {
			case "weight":
				q.Weight = n
			case "nominal":
				q.Nominal = map[int]int64{gpu: n}
			case "priority":
				b.priority[q.Name] = n
			case "uses":
				charges[q.Name] = quota.Resources{gpu: n}
			default:
				d.Fatalf(t, "unknown key %s", f)
			}
		}
		queues = append(queues, q)
	}
	tree, problems := quota.Build(queues, nil)
	if len(problems) > 0 {
		d.Fatalf(t, "%q", problems)
	}
	tree.Settle(quota.Resources{gpu: hardware}, func(int) quota.Resources { return quota.Resources{gpu: hardware} })
	b.tree, b.ledger = tree, quota.NewLedger(tree, charges)
}

func workload(t *testing.T, d *datadriven.TestData, fields []string) *Workload {
	w := &Workload{Key: fields[0], UID: fields[0], Queued: midnight}
	ps := gang.PodSet{Name: "main", Count: 1, Min: 1}
	for _, f := range fields[1:] {
		k, v, _ := strings.Cut(f, "=")
		switch k {
		case "queue":
			w.Queue = v
		case "gpu":
			ps.Request = quota.Resources{gpu: integer(t, d, v)}
		case "priority":
			w.Priority = integer(t, d, v)
		case "at":
			w.Queued = midnight.Add(time.Duration(integer(t, d, v)) * time.Second)
		default:
			d.Fatalf(t, "unknown key %s", f)
		}
	}
	w.Spec.PodSets = []gang.PodSet{ps}
	w.Settle()
	return w
}

func integer(t *testing.T, d *datadriven.TestData, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return n
}

// contest takes claim after claim until none is left.
func (b *board) contest(d *datadriven.TestData) string {
	aside := map[string]bool{}
	for _, a := range d.CmdArgs {
		for _, name := range a.Vals {
			aside[name] = true
		}
	}
	done := map[string]bool{}
	c := NewContest(b.ledger, func(id int) int64 { return b.priority[b.tree.Name(id)] }, func(leaf int) (*Workload, quota.Resources) {
		for _, w := range b.waiting.Order(b.tree.Name(leaf)) {
			if !done[w.Key] {
				return w, w.Least()
			}
		}
		return nil, nil
	})
	var out strings.Builder
	for {
		claim := c.Best()
		if claim.Workload == nil {
			return out.String() + b.draw()
		}
		done[claim.Workload.Key] = true
		how := "borrows"
		if claim.Owned {
			how = "owned"
		}
		if aside[claim.Workload.Key] {
			how += ", set aside"
		} else {
			b.ledger.Charge(claim.Leaf, claim.Charge)
		}
		fmt.Fprintf(&out, "%-4s %-3s %d %s\n", claim.Workload.Key, b.tree.Name(claim.Leaf), claim.Charge.At(gpu), how)
		c.Changed(claim.Leaf)
	}
}

// lines draws what waits, queue by queue, shape by shape.
func lines(t *testing.T, s *Set) string {
	if bad := s.Check(); len(bad) > 0 {
		t.Fatalf("%q", bad)
	}
	var out strings.Builder
	for _, q := range s.Queues() {
		fmt.Fprintf(&out, "%s:", q)
		for _, g := range s.Groups(q) {
			names := make([]string, len(g.Members))
			for i, w := range g.Members {
				names[i] = w.Key
			}
			fmt.Fprintf(&out, " [%s]", strings.Join(names, " "))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func (b *board) draw() string {
	var out strings.Builder
	var below func(id, depth int)
	below = func(id, depth int) {
		if id != quota.Root {
			owns, uses := int(b.tree.Nominal(id).At(gpu)), int(b.ledger.Usage(id).At(gpu))
			bar := strings.Repeat("#", min(owns, uses)) + strings.Repeat(".", max(0, owns-uses)) + strings.Repeat("+", max(0, uses-owns))
			fmt.Fprintf(&out, "%-5s [%s] weight %d", strings.Repeat("  ", depth-1)+b.tree.Name(id), bar, b.tree.Weight(id))
			if p := b.priority[b.tree.Name(id)]; p != 0 {
				fmt.Fprintf(&out, ", priority %d", p)
			}
			out.WriteByte('\n')
		}
		for _, c := range b.tree.Children(id) {
			below(c, depth+1)
		}
	}
	below(quota.Root, 0)
	return out.String()
}

// TestWaiting runs the files of testdata/waiting: put (as waiting above, into what
// is there already) and remove NAME...
func TestWaiting(t *testing.T) {
	datadriven.Walk(t, "testdata/waiting", func(t *testing.T, path string) {
		s := NewSet()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "put":
				for line := range strings.Lines(d.Input) {
					s.Put(workload(t, d, strings.Fields(line)))
				}
			case "remove":
				for name := range slices.Values(strings.Fields(d.Input)) {
					s.Remove(name)
				}
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			return lines(t, s) + fmt.Sprintf("%d wait\n", s.Len())
		})
	})
}
