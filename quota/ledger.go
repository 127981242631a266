package quota

import "fmt"

// Ledger holds what every queue of a Tree is charged. A charge goes to one queue
// and counts in all its ancestors. Trial charges are undone with Mark and Undo.
type Ledger struct {
	tree  *Tree
	own   []Resources // charged to the queue itself
	usage []Resources // own plus everything below
	// taken is what a queue takes from its level: usage, but never less than what
	// it keeps to itself, since nobody else can have that. Of the root it is the sum.
	taken []Resources
	// past is what each queue used of late, on average; see SetPast.
	past  []Resources
	undo  []entry
	trial int // depth of open marks; only then entries are kept
}

type entry struct {
	id     int
	amount Resources
	sign   int
}

// NewLedger returns a ledger for a settled tree with the given charges by queue
// name. A name that the tree lacks is a broken invariant: pass it as a ghost.
func NewLedger(t *Tree, charges map[string]Resources) *Ledger {
	l := &Ledger{tree: t}
	l.own = make([]Resources, t.Len())
	for name, r := range charges {
		id, ok := t.ID(name)
		if !ok {
			panic(fmt.Sprintf("quota: charge %v for queue %s, which the tree lacks", r, name))
		}
		l.own[id] = r.Clone()
	}
	l.Recount()
	return l
}

// Tree returns the tree that the ledger counts for.
func (l *Ledger) Tree() *Tree { return l.tree }

// Recount rebuilds every sum from the charges, after the tree was settled anew.
func (l *Ledger) Recount() {
	n := l.tree.Len()
	l.usage, l.taken = make([]Resources, n), make([]Resources, n)
	for id := range n {
		for at := id; at != -1; at = l.tree.nodes[at].parent {
			l.usage[at].Add(l.own[id])
		}
	}
	var fill func(id int)
	fill = func(id int) {
		node := &l.tree.nodes[id]
		taken := l.own[id].Clone()
		for _, c := range node.children {
			fill(c)
			taken.Add(l.taken[c])
		}
		l.taken[id] = floor(taken, node.kept)
	}
	fill(Root)
}

func floor(r, least Resources) Resources {
	for i, v := range least {
		if r.At(i) < v {
			r.Set(i, v)
		}
	}
	return r
}

// Usage returns what queue id and everything below it is charged. Not to be changed.
func (l *Ledger) Usage(id int) Resources { return l.usage[id] }

// Own returns what queue id itself is charged. Not to be changed.
func (l *Ledger) Own(id int) Resources { return l.own[id] }

// Charge adds r to queue id and its ancestors.
func (l *Ledger) Charge(id int, r Resources) { l.move(id, r, 1) }

// Release takes r back from queue id and its ancestors. Releasing more than was
// charged is a broken invariant.
func (l *Ledger) Release(id int, r Resources) { l.move(id, r, -1) }

func (l *Ledger) move(id int, r Resources, sign int) {
	if l.trial > 0 {
		l.undo = append(l.undo, entry{id, r.Clone(), sign})
	}
	shift(&l.own[id], r, sign)
	for i := range l.own[id] {
		if l.own[id][i] < 0 {
			panic(fmt.Sprintf("quota: %s released %d more of dimension %d than it was charged", l.tree.Name(id), -l.own[id][i], i))
		}
	}
	delta := r
	if sign < 0 {
		delta = Resources{}
		delta.Sub(r)
	}
	for at := id; at != -1; at = l.tree.nodes[at].parent {
		shift(&l.usage[at], r, sign)
		delta = l.retake(at, delta)
	}
}

func shift(r *Resources, by Resources, sign int) {
	if sign > 0 {
		r.Add(by)
	} else {
		r.Sub(by)
	}
}

// retake works delta into what queue at takes from its level, and returns by how
// much that changed: less than delta where the queue uses what it keeps anyway.
func (l *Ledger) retake(at int, delta Resources) Resources {
	kept := l.tree.nodes[at].kept
	if len(kept) == 0 {
		l.taken[at].Add(delta)
		return delta
	}
	before := l.taken[at]
	after := l.own[at].Clone()
	for _, c := range l.tree.nodes[at].children {
		after.Add(l.taken[c])
	}
	l.taken[at] = floor(after, kept)
	change := l.taken[at].Clone()
	change.Sub(before)
	return change
}

// Mark opens a trial; Undo with the mark takes back all that was done since.
func (l *Ledger) Mark() int {
	l.trial++
	return len(l.undo)
}

// Undo closes the trial that mark opened and restores the charges as they were.
func (l *Ledger) Undo(mark int) {
	depth := l.trial
	l.trial = 0
	for i := len(l.undo) - 1; i >= mark; i-- {
		e := l.undo[i]
		l.move(e.id, e.amount, -e.sign)
	}
	l.undo = l.undo[:mark]
	l.trial = depth - 1
}

// Lack says which bound a charge would break.
type Lack struct {
	Queue    string // the queue whose bound it is; "" is the cluster
	Resource int
	Borrow   bool  // the bound is what may be borrowed at that level, not a max
	Bound    int64 // the amount that must not be passed
	Used     int64 // counted against it now
	Asked    int64 // the charge
}

// Fits says whether r may be charged to queue id, and if not, the first bound that
// it would break, from the queue upwards: each queue's max; and where a queue
// ends above what it owns, what its level has to lend.
func (l *Ledger) Fits(id int, r Resources) (Lack, bool) {
	asks := id         // the last level below the one that is asked
	grows := r.Clone() // by how much each level is taken more, 0 once it is owned
	for at := id; at != -1; at = l.tree.nodes[at].parent {
		for i, v := range r {
			if v <= 0 || !l.tree.Counts(i) {
				continue
			}
			if m := l.tree.Max(at, i); m != Unbounded && Sum(l.usage[at].At(i), v) > m {
				return Lack{Queue: l.tree.Name(at), Resource: i, Bound: m, Used: l.usage[at].At(i), Asked: v}, false
			}
			if grows[i] <= 0 {
				continue
			}
			after := l.after(at, i, grows[i])
			switch own := l.tree.nodes[at].nominal.At(i); {
			case after <= own:
				grows[i] = 0
			case at == Root && own == 0: // not hardware: a quota that ends one level below
				return Lack{Queue: l.tree.Name(asks), Resource: i, Borrow: true, Bound: l.tree.nodes[asks].nominal.At(i), Used: l.taken[asks].At(i), Asked: v}, false
			case at == Root:
				return Lack{Resource: i, Borrow: true, Bound: own, Used: l.taken[Root].At(i), Asked: v}, false
			default:
				grows[i] = after - l.taken[at].At(i)
			}
		}
		asks = at
	}
	return Lack{}, true
}

// after is what queue at takes from its level in dimension i once its own level
// is taken by grow more: what it keeps to itself is used up first.
func (l *Ledger) after(at, i int, grow int64) int64 {
	kept := l.tree.nodes[at].kept.At(i)
	if kept == 0 {
		return Sum(l.taken[at].At(i), grow)
	}
	raw := l.own[at].At(i)
	for _, c := range l.tree.nodes[at].children {
		raw = Sum(raw, l.taken[c].At(i))
	}
	return max(Sum(raw, grow), kept)
}

// Owns says whether queue id, with r more, uses no more than it owns, over the
// dimensions that r asks for.
func (l *Ledger) Owns(id int, r Resources) bool {
	for i, v := range r {
		if v > 0 && l.tree.Counts(i) && Sum(l.usage[id].At(i), v) > l.tree.nodes[id].nominal.At(i) {
			return false
		}
	}
	return true
}

// Above says whether queue id uses more than it owns in a dimension that r asks for.
func (l *Ledger) Above(id int, r Resources) bool {
	for i, v := range r {
		if v > 0 && l.tree.Counts(i) && l.usage[id].At(i) > l.tree.nodes[id].nominal.At(i) {
			return true
		}
	}
	return false
}

// SetPast says what queues used of late, on average, by name. It joins what they
// use now where Standing is compared, and nowhere else. The caller leaves r alone.
func (l *Ledger) SetPast(past map[string]Resources) {
	l.past = make([]Resources, l.tree.Len())
	for name, r := range past {
		id, ok := l.tree.ID(name)
		for ; ok && id != -1; id = l.tree.nodes[id].parent {
			l.past[id].Add(r)
		}
	}
}

// Share returns how far queue id is above what it owns, in the dimension where
// that is most.
func (l *Ledger) Share(id int) Share { return l.share(id, nil) }

// Standing is Share with what the queue used of late added to what it uses now: who
// has used little goes first.
func (l *Ledger) Standing(id int) Share {
	if l.past == nil {
		return l.share(id, nil)
	}
	return l.share(id, l.past[id])
}

func (l *Ledger) share(id int, past Resources) Share {
	weight := l.tree.Weight(id)
	worst := Share{Weight: weight, Lent: 1}
	up := l.tree.nodes[id].parent
	for i := range max(len(l.usage[id]), len(past)) {
		if !l.tree.Counts(i) {
			continue
		}
		above := Sum(l.usage[id].At(i), past.At(i)) - l.tree.nodes[id].nominal.At(i)
		if above <= 0 {
			continue
		}
		s := Share{Above: above, Weight: weight, Lent: l.tree.nodes[up].lent.At(i), Resource: i}
		if worst.Above == 0 || s.Compare(worst) > 0 {
			worst = s
		}
	}
	return worst
}

// Check recounts everything from the charges and returns what does not match.
func (l *Ledger) Check() []string {
	var bad []string
	fresh := &Ledger{tree: l.tree, own: l.own}
	fresh.Recount()
	for id := range l.own {
		for i, v := range l.own[id] {
			if v < 0 {
				bad = append(bad, fmt.Sprintf("queue %s is charged %d of dimension %d", l.tree.Name(id), v, i))
			}
		}
		if !fresh.usage[id].Equal(l.usage[id]) {
			bad = append(bad, fmt.Sprintf("queue %s counts usage %v, its charges add up to %v", l.tree.Name(id), l.usage[id], fresh.usage[id]))
		}
		if !fresh.taken[id].Equal(l.taken[id]) {
			bad = append(bad, fmt.Sprintf("queue %s counts %v as taken, its charges give %v", l.tree.Name(id), l.taken[id], fresh.taken[id]))
		}
	}
	return bad
}

// Clone returns a ledger for the same tree with the same charges and no open trial.
func (l *Ledger) Clone() *Ledger {
	return &Ledger{tree: l.tree, past: l.past, own: clones(l.own), usage: clones(l.usage), taken: clones(l.taken)}
}

// clones are copies of all vectors, out of one piece of memory.
func clones(list []Resources) []Resources {
	n := 0
	for _, r := range list {
		n += len(r)
	}
	all, out := make(Resources, 0, n), make([]Resources, len(list))
	for i, r := range list {
		at := len(all)
		all = append(all, r...)
		out[i] = all[at:len(all):len(all)] // one that grows moves away
	}
	return out
}
