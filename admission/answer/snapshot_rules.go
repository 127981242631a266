package answer

import (
	"sluice.dev/sluice/gang"
)

// PodGroup is pods that others mind: how they are counted on nodes, and which pod sets
// of the gang itself are among them.
type PodGroup struct {
	CountedAs string `json:"countedAs,omitempty"` // a dimension; absent if only pods of the gang can be in it
	Sets      []bool `json:"sets,omitempty"`
}

// Apart bounds how many pods of a group a domain may hold, or wishes for fewer.
type Apart struct {
	Key    string   `json:"key"`
	Group  PodGroup `json:"group"`
	Most   int      `json:"most,omitempty"`
	Weight int      `json:"weight,omitempty"`
	Text   string   `json:"text,omitempty"`
}

// Spread keeps domains even.
type Spread struct {
	Key     string   `json:"key"`
	Group   PodGroup `json:"group"`
	Skew    int      `json:"skew"`
	Must    bool     `json:"must,omitempty"`
	Domains int      `json:"domains,omitempty"`
	All     bool     `json:"all,omitempty"`
	Open    bool     `json:"open,omitempty"`
	Text    string   `json:"text,omitempty"`
}

// Near asks for domains in which others are.
type Near struct {
	Key       string `json:"key"`
	CountedAs string `json:"countedAs,omitempty"`
	Self      bool   `json:"self,omitempty"`
	Text      string `json:"text,omitempty"`
}

// Wish is nodes that are liked more.
type Wish struct {
	Terms  []Requirement `json:"terms,omitempty"`
	Weight int           `json:"weight"`
}

// rules writes what the pods of a set ask about where other pods are.
func (w *writer) rules(to *PodSet, ps *gang.PodSet) {
	for _, dim := range ps.Groups {
		to.CountedAs = append(to.CountedAs, w.names[dim])
	}
	for _, a := range ps.Apart {
		to.Apart = append(to.Apart, Apart{Key: a.Key, Group: w.group(a.Group), Most: a.Most, Weight: a.Weight, Text: a.Text})
	}
	for _, s := range ps.Spread {
		to.Spread = append(to.Spread, Spread{
			Key: s.Key, Group: w.group(s.Group), Skew: s.Skew, Must: s.Must, Domains: s.Domains, All: s.All, Open: s.Open, Text: s.Text,
		})
	}
	for _, n := range ps.Near {
		to.Near = append(to.Near, Near{Key: n.Key, CountedAs: w.countedAs(n.Dim), Self: n.Self, Text: n.Text})
	}
	for _, x := range ps.Wishes {
		to.Wishes = append(to.Wishes, Wish{Terms: writeRequirements(x.Terms), Weight: x.Weight})
	}
}

func (w *writer) group(g gang.Group) PodGroup {
	return PodGroup{CountedAs: w.countedAs(g.Dim), Sets: g.Sets}
}

// countedAs names the dimension of a group; the first dimension is none of these.
func (w *writer) countedAs(dim int) string {
	if dim == 0 {
		return ""
	}
	return w.names[dim]
}

// rules reads what was written.
func (r *reader) rules(where string, to *gang.PodSet, ps *PodSet) {
	for _, name := range ps.CountedAs {
		to.Groups = append(to.Groups, r.dim(where, name))
	}
	for _, a := range ps.Apart {
		to.Apart = append(to.Apart, gang.Apart{Key: a.Key, Group: r.group(where, a.Group), Most: a.Most, Weight: a.Weight, Text: a.Text})
	}
	for _, s := range ps.Spread {
		to.Spread = append(to.Spread, gang.Spread{
			Key: s.Key, Group: r.group(where, s.Group), Skew: s.Skew, Must: s.Must, Domains: s.Domains, All: s.All, Open: s.Open, Text: s.Text,
		})
	}
	for _, n := range ps.Near {
		to.Near = append(to.Near, gang.Near{Key: n.Key, Dim: r.countedAs(where, n.CountedAs), Self: n.Self, Text: n.Text})
	}
	for _, x := range ps.Wishes {
		to.Wishes = append(to.Wishes, gang.Wish{Terms: readRequirements(x.Terms), Weight: x.Weight})
	}
}

func (r *reader) group(where string, g PodGroup) gang.Group {
	return gang.Group{Dim: r.countedAs(where, g.CountedAs), Sets: g.Sets}
}

func (r *reader) countedAs(where, name string) int {
	if name == "" {
		return 0
	}
	return r.dim(where, name)
}
