package gang

import (
	"fmt"
	"strings"

	"sluice.dev/sluice/quota"
)

// Group is the pods that a rule is about: those of others, and those of the gang.
type Group struct {
	// Dim is the dimension in which its pods are counted on nodes, whosever they are;
	// 0 if none but pods of the gang can be in it.
	Dim  int
	Sets []bool // by pod set of the gang: its pods are in it
}

func (g *Group) has(set int) bool { return set < len(g.Sets) && g.Sets[set] }

// Apart bounds how many pods of a group there may be in the domains that hold pods
// of the set: domains are nodes with one value of the label Key, or each node, if Key
// is NameField. A node without the label is in no domain, and any number may be there.
//
// A pod that is itself in the group counts. One that is not keeps out of domains that
// have Most of them.
type Apart struct {
	Key   string
	Group Group
	Most  int // at least 1, which is what Kubernetes calls anti-affinity
	// Weight is how much each pod of the group in the domain counts against it, if
	// this is a wish and no rule; less than nothing draws pods there. Most means nothing then.
	Weight int
	Text   string // how people know the group
}

// Spread keeps the domains that hold pods of the set even: each has at most Skew more
// pods of the group than the one with the fewest.
type Spread struct {
	Key     string
	Group   Group
	Skew    int  // at least 1
	Must    bool // else each pod above it is a wish missed, of weight 100
	Domains int  // with fewer domains than that, the fewest is none
	// All says that nodes whose labels keep the pods out are domains too, Open that
	// nodes whose taints do, or that take no new pods, are none.
	All, Open bool
	Text      string // how people know the group
}

// Near asks for domains in which others of the group are, or, if there are none at all
// and pods of the set are of the group themselves, for any. It says nothing of where
// the pods of the gang are to each other: that is a Level.
type Near struct {
	Key  string
	Dim  int // of the group
	Self bool
	Text string
}

// Wish is nodes that pods would rather be on, the more so the larger the weight.
type Wish struct {
	Terms  []Requirement // all of them hold there
	Weight int
}

// Load is what one pod of the set counts for on its node: what it takes there, and the
// groups that it is in.
func (ps *PodSet) Load() quota.Resources {
	if len(ps.Groups) == 0 {
		return ps.Request
	}
	r := ps.Request.Clone()
	for _, dim := range ps.Groups {
		r.Set(dim, 1)
	}
	return r
}

// ruled says whether any pod set minds other pods, or has wishes.
func (s *Spec) ruled() bool {
	for i := range s.PodSets {
		if ps := &s.PodSets[i]; len(ps.Apart)+len(ps.Spread)+len(ps.Near)+len(ps.Wishes) > 0 {
			return true
		}
	}
	return false
}

// ruleKey identifies the rules and wishes of a pod set.
func (ps *PodSet) ruleKey() string {
	if len(ps.Apart)+len(ps.Spread)+len(ps.Near)+len(ps.Wishes)+len(ps.Groups) == 0 {
		return ""
	}
	var b strings.Builder
	for _, r := range ps.Apart {
		fmt.Fprintf(&b, " apart %q %d %t %d %d %q", r.Key, r.Group.Dim, r.Group.Sets, r.Most, r.Weight, r.Text)
	}
	for _, r := range ps.Spread {
		fmt.Fprintf(&b, " spread %q %d %t %d %t %d %t %t %q", r.Key, r.Group.Dim, r.Group.Sets, r.Skew, r.Must, r.Domains, r.All, r.Open, r.Text)
	}
	for _, r := range ps.Near {
		fmt.Fprintf(&b, " near %q %d %t %q", r.Key, r.Dim, r.Self, r.Text)
	}
	for _, w := range ps.Wishes {
		fmt.Fprintf(&b, " wish %s %d", (Filter{All: w.Terms}).key(), w.Weight)
	}
	fmt.Fprintf(&b, " in %d", ps.Groups)
	return b.String()
}
