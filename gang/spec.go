package gang

import (
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/quota"
)

// Spec is what a gang asks for.
type Spec struct {
	PodSets []PodSet
	// MinTotal is the fewest pods over all pod sets with which an elastic gang may
	// run, beside the minimum of each; 0 asks for nothing more than these.
	MinTotal int
	Level    Level // holds the whole gang
	// Roomy says that the emptiest nodes are taken first, not the fullest.
	Roomy bool
	// Stays are places that pods of the gang have already, taken in the inventory:
	// those to come mind them. It is no part of what is asked for.
	Stays Plan
}

// PodSet is a number of alike pods.
type PodSet struct {
	Name  string
	Count int
	Min   int // the fewest with which the gang may run, at most Count
	// Request is what one pod takes, the pod itself (1 of quota.Pods) included.
	Request quota.Resources
	Filter  Filter
	Sharing Sharing // which cards serve a request for whole ones
	Level   Level   // holds this pod set, within the gang's own level
	Groups  []int   // the dimensions of groups that its pods are counted in: see Group
	Apart   []Apart
	Spread  []Spread
	Near    []Near
	Wishes  []Wish
}

// Level asks that pods share a domain: nodes with one value of the label Key.
type Level struct {
	Key      string // "" asks for nothing
	Required bool   // else tried first and given up if it does not hold
}

// Sizes returns the full size of every pod set.
func (s *Spec) Sizes() []int {
	n := make([]int, len(s.PodSets))
	for i, ps := range s.PodSets {
		n[i] = ps.Count
	}
	return n
}

// Least returns the minimum of every pod set.
func (s *Spec) Least() []int {
	n := make([]int, len(s.PodSets))
	for i, ps := range s.PodSets {
		n[i] = ps.Min
	}
	return n
}

// Elastic says whether the gang can run with fewer pods than it asks for.
func (s *Spec) Elastic() bool {
	for _, ps := range s.PodSets {
		if ps.Min < ps.Count {
			return true
		}
	}
	return false
}

// Request returns what the gang takes with the given sizes, saturating.
func (s *Spec) Request(sizes []int) quota.Resources {
	var sum quota.Resources
	for i, ps := range s.PodSets {
		sum.Add(ps.Request.Times(sizes[i]))
	}
	return sum
}

// Total adds up sizes.
func Total(sizes []int) int {
	n := 0
	for _, k := range sizes {
		n += k
	}
	return n
}

// Operator is how a Requirement compares a label.
type Operator string

// The operators of Kubernetes node affinity.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
	Gt           Operator = "Gt"
	Lt           Operator = "Lt"
)

// NameField is the Requirement key that stands for the node's own name.
const NameField = "metadata.name"

// Requirement is one condition on a node's labels, or on its name.
type Requirement struct {
	Key    string
	Op     Operator
	Values []string
}

// String writes the requirement as people write it: key=value, key!=value, key.
func (r Requirement) String() string {
	switch r.Op {
	case In:
		return r.Key + "=" + strings.Join(r.Values, "|")
	case NotIn:
		return r.Key + "!=" + strings.Join(r.Values, "|")
	case Exists:
		return r.Key
	case DoesNotExist:
		return "!" + r.Key
	default:
		return fmt.Sprintf("%s %s %s", r.Key, r.Op, strings.Join(r.Values, ","))
	}
}

// Effect is what a taint does to pods that do not tolerate it.
type Effect string

// Effects that keep pods away. PreferNoSchedule does not and is left out.
const (
	NoSchedule Effect = "NoSchedule"
	NoExecute  Effect = "NoExecute"
)

// Taint keeps pods away that do not tolerate it.
type Taint struct {
	Key, Value string
	Effect     Effect
}

func (t Taint) String() string { return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect) }

// Toleration lets a pod onto a tainted node. An empty Key with Exists tolerates
// everything, an empty Effect every effect.
type Toleration struct {
	Key    string
	Exists bool // any value
	Value  string
	Effect Effect
}

func (t Toleration) tolerates(x Taint) bool {
	if t.Effect != "" && t.Effect != x.Effect {
		return false
	}
	if t.Key == "" {
		return t.Exists
	}
	return t.Key == x.Key && (t.Exists || t.Value == x.Value)
}

// Filter says which nodes a pod may use.
type Filter struct {
	All         []Requirement   // each must hold (node selector, flavor labels)
	Any         [][]Requirement // one of these must hold as a whole (node affinity terms); nil asks nothing
	Tolerations []Toleration
}

// With returns f with further requirements and tolerations.
func (f Filter) With(all []Requirement, tolerations []Toleration) Filter {
	f.All = slices.Concat(f.All, all)
	f.Tolerations = slices.Concat(f.Tolerations, tolerations)
	return f
}

// key identifies the filter among others: equal filters have equal keys, and
// different ones different keys, whatever their strings contain.
func (f Filter) key() string {
	var b strings.Builder
	write := func(rs []Requirement) {
		for _, r := range rs {
			fmt.Fprintf(&b, "%q %q %q;", r.Key, string(r.Op), r.Values)
		}
	}
	write(f.All)
	for _, term := range f.Any {
		b.WriteByte('|')
		write(term)
	}
	fmt.Fprintf(&b, "%t", f.Any != nil)
	for _, t := range f.Tolerations {
		fmt.Fprintf(&b, "&%q %t %q %q", t.Key, t.Exists, t.Value, string(t.Effect))
	}
	return b.String()
}

// Key identifies the spec: gangs with equal keys ask for the same.
func (s *Spec) Key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %q %t %t", s.MinTotal, s.Level.Key, s.Level.Required, s.Roomy)
	for _, ps := range s.PodSets {
		fmt.Fprintf(&b, ";%q %d %d %v %q %t %q %s%s", ps.Name, ps.Count, ps.Min, ps.Request, ps.Level.Key, ps.Level.Required, string(ps.Sharing), ps.Filter.key(), ps.ruleKey())
	}
	return b.String()
}
