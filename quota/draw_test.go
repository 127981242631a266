package quota

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestTree runs the files of testdata/tree. One dimension, gpu, is drawn:
//
//	queues hardware=N    the tree, one queue a line, indented below its parent:
//	                     NAME weight=W nominal=N max=N lendable=N parent=NAME gone
//	                     (nominal={} owns nothing; gone holds charges only)
//	demand               what leaves run or want: NAME N
//	charge, release      queue=NAME gpu=N
//	fits, owns           queue=NAME gpu=N
//	try                  like charge, undone after it is drawn
//
// A queue is drawn as what it owns, # used, . free, - free but not lent, then what
// it borrows, +, and may still borrow up to its max, _.
func TestTree(t *testing.T) {
	datadriven.Walk(t, "testdata/tree", func(t *testing.T, path string) {
		b := &board{space: NewSpace(), demand: map[string]int64{}}
		b.gpu = b.space.Index("gpu")
		datadriven.RunTest(t, path, b.run)
	})
}

type board struct {
	space    *Space
	gpu      int
	hardware int64
	demand   map[string]int64
	tree     *Tree
	ledger   *Ledger
}

func (b *board) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "queues":
		return b.queues(t, d)
	case "hardware":
		d.ScanArgs(t, "gpu", &b.hardware)
		return b.settle()
	case "demand":
		for line := range strings.Lines(d.Input) {
			name, n, _ := strings.Cut(strings.TrimSpace(line), " ")
			b.demand[name] = number(t, d, n)
		}
		return b.settle()
	}
	var name string
	var n int64
	d.ScanArgs(t, "queue", &name)
	d.ScanArgs(t, "gpu", &n)
	id, ok := b.tree.ID(name)
	if !ok {
		d.Fatalf(t, "there is no queue %s", name)
	}
	r := b.space.Vector(map[string]int64{"gpu": n})
	switch d.Cmd {
	case "charge":
		b.ledger.Charge(id, r)
	case "release":
		b.ledger.Release(id, r)
	case "try":
		mark := b.ledger.Mark()
		b.ledger.Charge(id, r)
		drawn := b.draw(t)
		b.ledger.Undo(mark)
		return drawn + "undone:\n" + b.draw(t)
	case "fits":
		return b.fits(id, r)
	case "owns":
		return fmt.Sprintln(b.ledger.Owns(id, r))
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return b.draw(t)
}

func (b *board) fits(id int, r Resources) string {
	lack, ok := b.ledger.Fits(id, r)
	switch {
	case ok:
		return "yes\n"
	case lack.Borrow:
		return fmt.Sprintf("no: %q has %d, %d are taken, %d asked\n", lack.Queue, lack.Bound, lack.Used, lack.Asked)
	default:
		return fmt.Sprintf("no: %q may use %d, %d are used, %d asked\n", lack.Queue, lack.Bound, lack.Used, lack.Asked)
	}
}

// queues builds the tree. Charges by name are kept from an earlier one.
func (b *board) queues(t *testing.T, d *datadriven.TestData) string {
	d.ScanArgs(t, "hardware", &b.hardware)
	var queues []Queue
	var ghosts, path []string
	for line := range strings.Lines(d.Input) {
		fields := strings.Fields(line)
		q := Queue{Name: fields[0], Weight: 1}
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		path = append(path[:depth], q.Name)
		if depth > 0 {
			q.Parent = path[depth-1]
		}
		gone := false
		for _, f := range fields[1:] {
			k, v, _ := strings.Cut(f, "=")
			switch k {
			case "gone":
				gone = true
			case "parent":
				q.Parent = v
			case "weight":
				q.Weight = number(t, d, v)
			case "nominal":
				q.Nominal = map[int]int64{}
				if v != "{}" {
					q.Nominal[b.gpu] = number(t, d, v)
				}
			case "max":
				q.Max = map[int]int64{b.gpu: number(t, d, v)}
			case "lendable":
				q.Lendable = map[int]int64{b.gpu: number(t, d, v)}
			default:
				d.Fatalf(t, "unknown key %s", f)
			}
		}
		if gone {
			ghosts = append(ghosts, q.Name)
		} else {
			queues = append(queues, q)
		}
	}
	charges := map[string]Resources{}
	if b.tree != nil {
		for id := 1; id < b.tree.Len(); id++ {
			if own := b.ledger.Own(id); !own.IsZero() {
				charges[b.tree.Name(id)] = own
			}
		}
	}
	tree, problems := Build(queues, ghosts)
	b.tree = tree
	b.ledger = NewLedger(tree, charges)
	out := b.settle()
	for _, p := range problems {
		out += "problem: " + p + "\n"
	}
	return out
}

func number(t *testing.T, d *datadriven.TestData, s string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return n
}

func (b *board) settle() string {
	b.tree.Settle(b.space.Vector(map[string]int64{"gpu": b.hardware}), func(leaf int) Resources {
		return b.space.Vector(map[string]int64{"gpu": b.demand[b.tree.Name(leaf)]})
	})
	b.ledger.Recount()
	return b.draw(nil)
}

func (b *board) draw(t *testing.T) string {
	if bad := b.ledger.Check(); len(bad) > 0 {
		t.Fatalf("after that:\n%s", strings.Join(bad, "\n"))
	}
	var out strings.Builder
	var below func(id, depth int)
	below = func(id, depth int) {
		fmt.Fprintf(&out, "%-9s %s\n", strings.Repeat("  ", depth)+max(b.tree.Name(id), "*"), b.line(id))
		for _, c := range b.tree.Children(id) {
			below(c, depth+1)
		}
	}
	below(Root, 0)
	return out.String()
}

// line draws one queue.
func (b *board) line(id int) string {
	n := &b.tree.nodes[id]
	owns, uses := n.nominal.At(b.gpu), b.ledger.Usage(id).At(b.gpu)
	most := b.tree.Max(id, b.gpu)
	var bar strings.Builder
	for i := range max(owns, uses, most) {
		switch {
		case i < owns && i < uses:
			bar.WriteByte('#')
		case i < owns && i < n.kept.At(b.gpu):
			bar.WriteByte('-')
		case i < owns:
			bar.WriteByte('.')
		case i < uses:
			bar.WriteByte('+')
		default:
			bar.WriteByte('_')
		}
	}
	text := fmt.Sprintf("[%s] %d of %d", &bar, uses, owns)
	if id != Root {
		text += fmt.Sprintf(", weight %d", n.queue.Weight)
		if s := b.ledger.Share(id); s.Above > 0 {
			text += fmt.Sprintf(", share %d/%d/%d", s.Above, s.Lent, s.Weight)
		}
	}
	if most != Unbounded {
		text += fmt.Sprintf(", max %d", most)
	}
	if n.ghost {
		text += ", gone"
	}
	return text
}

// TestDivide runs the files of testdata/divide:
//
//	divide total=N
//	weight=W want=N
//	----
//	how much each part gets
func TestDivideDrawn(t *testing.T) {
	datadriven.Walk(t, "testdata/divide", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var total int64
			d.ScanArgs(t, "total", &total)
			var parts []Part
			for line := range strings.Lines(d.Input) {
				var p Part
				if _, err := fmt.Sscanf(line, "weight=%d want=%d", &p.Weight, &p.Want); err != nil {
					d.Fatalf(t, "%q: %v", line, err)
				}
				parts = append(parts, p)
			}
			var out strings.Builder
			for i, n := range Divide(total, parts) {
				fmt.Fprintf(&out, "weight %d: %s%s %d of %d\n", parts[i].Weight,
					strings.Repeat("#", int(n)), strings.Repeat(".", int(parts[i].Want-n)), n, parts[i].Want)
			}
			return out.String()
		})
	})
}
