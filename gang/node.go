package gang

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"sluice.dev/sluice/quota"
)

// Node is what one node offers. Values are never changed in place: an update is
// a new Node.
type Node struct {
	Name   string
	Labels map[string]string
	Taints []Taint
	// Offer is what pods may take of it now (allocatable).
	Offer quota.Resources
	// Whole is what it would offer with all its hardware in order, cut and shared
	// as it is now. nil means the same as Offer.
	Whole quota.Resources
	// Cards are its GPUs, if somebody reports them: see Equip. nil means that what it
	// offers is counted and nothing more is known.
	Cards *Deck
	// Drift is what is claimed of it and its cards contradict, for people.
	Drift []Difference
	// Doubtful says that it refused pods before and has not taken one since: it is
	// used last.
	Doubtful bool
	// Outages says why the node, or part of it, is out of use now: cordoned, not
	// ready, refusing pods. A node with a Closed outage takes no new pods at all.
	Outages []Outage
}

// Outage is one reason why hardware is out of use.
type Outage struct {
	What   string // one word: cordoned, notReady, refusing, lost, ...
	Detail string // numbers or names for people, may be empty
	Closed bool   // no new pod may use the node
}

// NotReady is the Outage of a node that does not answer.
const NotReady = "notReady"

// Open says whether the node takes new pods at all.
func (n *Node) Open() bool {
	for _, o := range n.Outages {
		if o.Closed {
			return false
		}
	}
	return true
}

// Lost says whether the node itself is gone for now: it does not answer, so what
// is said of its pods may be old.
func (n *Node) Lost() bool {
	for _, o := range n.Outages {
		if o.What == NotReady {
			return true
		}
	}
	return false
}

// whole is what the node would offer with all its hardware in order.
func (n *Node) whole() quota.Resources {
	if n.Whole == nil {
		return n.Offer
	}
	return n.Whole
}

// Objection is why a node's labels or taints, or other pods, keep a pod out.
type Objection struct {
	Wants string // the requirement or the taint, as people write it; of pods the whole sentence
	Has   string // the value the node has instead; "" if it has none
	Taint bool
	Pods  bool // pods that are there, or are not elsewhere
}

func (o Objection) String() string {
	switch {
	case o.Taint:
		return "taint " + o.Wants
	case o.Pods:
		return o.Wants
	case o.Has == "":
		return "wants " + o.Wants + ", has no such label"
	default:
		return fmt.Sprintf("wants %s, has %s", o.Wants, o.Has)
	}
}

// Passes says whether the node's labels and taints let a pod with filter f in,
// and if not, the first objection.
func (n *Node) Passes(f *Filter) (Objection, bool) {
	for i := range f.All {
		if !n.meets(&f.All[i]) {
			return n.objection(&f.All[i]), false
		}
	}
	if f.Any != nil {
		var first *Requirement
		ok := false
		for _, term := range f.Any {
			miss := -1
			for i := range term {
				if !n.meets(&term[i]) {
					miss = i
					break
				}
			}
			if miss < 0 && len(term) > 0 { // an empty term matches nothing
				ok = true
				break
			}
			if miss >= 0 && first == nil {
				first = &term[miss]
			}
		}
		if !ok {
			if first == nil {
				return Objection{Wants: "an affinity term that is empty and matches nothing"}, false
			}
			return n.objection(first), false
		}
	}
	if t := n.untolerated(f); t != nil {
		return Objection{Wants: t.String(), Taint: true}, false
	}
	return Objection{}, true
}

// untolerated is the first taint that keeps pods with the filter out, or nil.
func (n *Node) untolerated(f *Filter) *Taint {
	for i := range n.Taints {
		if !slices.ContainsFunc(f.Tolerations, func(tol Toleration) bool { return tol.tolerates(n.Taints[i]) }) {
			return &n.Taints[i]
		}
	}
	return nil
}

func (n *Node) objection(r *Requirement) Objection {
	v, _ := n.value(r.Key)
	return Objection{Wants: r.String(), Has: v}
}

func (n *Node) value(key string) (string, bool) {
	if key == NameField {
		return n.Name, true
	}
	v, ok := n.Labels[key]
	return v, ok
}

func (n *Node) meets(r *Requirement) bool {
	v, ok := n.value(r.Key)
	switch r.Op {
	case In:
		return ok && slices.Contains(r.Values, v)
	case NotIn:
		return !ok || !slices.Contains(r.Values, v)
	case Exists:
		return ok
	case DoesNotExist:
		return !ok
	case Gt, Lt:
		have, err1 := strconv.ParseInt(v, 10, 64)
		if !ok || err1 != nil || len(r.Values) != 1 {
			return false
		}
		want, err2 := strconv.ParseInt(r.Values[0], 10, 64)
		if err2 != nil {
			return false
		}
		return r.Op == Gt && have > want || r.Op == Lt && have < want
	}
	return false
}

// compareNames orders names with numbers in them as people count: n-2 before n-10.
// Only equal names compare as 0.
func compareNames(a, b string) int { return cmp.Or(compareCounting(a, b), cmp.Compare(a, b)) }

func compareCounting(a, b string) int {
	for len(a) > 0 && len(b) > 0 {
		if digit(a[0]) && digit(b[0]) {
			x, y := number(a), number(b)
			a, b = a[len(x):], b[len(y):]
			x, y = trimZeros(x), trimZeros(y)
			if len(x) != len(y) {
				return len(x) - len(y)
			}
			if x != y {
				return sign(x < y)
			}
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func number(s string) string {
	i := 0
	for i < len(s) && digit(s[i]) {
		i++
	}
	return s[:i]
}

func trimZeros(s string) string {
	for len(s) > 1 && s[0] == '0' {
		s = s[1:]
	}
	return s
}

func sign(less bool) int {
	if less {
		return -1
	}
	return 1
}
