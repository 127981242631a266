package gang

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/quota"
)

// Labels, affinity and taints mean what they mean to kube-scheduler.
func TestPasses(t *testing.T) {
	node := &Node{Name: "gpu-7", Labels: map[string]string{"zone": "a", "cores": "64", "word": "many", "empty": ""}}
	req := func(key string, op Operator, values ...string) []Requirement {
		return []Requirement{{Key: key, Op: op, Values: values}}
	}
	for _, c := range []struct {
		name string
		f    Filter
		want string // the objection, or ""
	}{
		{"nothing asked", Filter{}, ""},
		{"In", Filter{All: req("zone", In, "b", "a")}, ""},
		{"In, other value", Filter{All: req("zone", In, "b", "c")}, "wants zone=b|c, has a"},
		{"In, no such label", Filter{All: req("rack", In, "r1")}, "wants rack=r1, has no such label"},
		{"In, no values", Filter{All: req("zone", In)}, "wants zone=, has a"},
		{"NotIn", Filter{All: req("zone", NotIn, "b")}, ""},
		{"NotIn, that value", Filter{All: req("zone", NotIn, "b", "a")}, "wants zone!=b|a, has a"},
		{"NotIn holds without the label", Filter{All: req("rack", NotIn, "r1")}, ""},
		{"Exists", Filter{All: req("zone", Exists)}, ""},
		{"Exists, with an empty value", Filter{All: req("empty", Exists)}, ""},
		{"Exists, no such label", Filter{All: req("rack", Exists)}, "wants rack, has no such label"},
		{"DoesNotExist", Filter{All: req("rack", DoesNotExist)}, ""},
		{"DoesNotExist, but does", Filter{All: req("zone", DoesNotExist)}, "wants !zone, has a"},
		{"Gt", Filter{All: req("cores", Gt, "63")}, ""},
		{"Gt is not at least", Filter{All: req("cores", Gt, "64")}, "wants cores Gt 64, has 64"},
		{"Lt", Filter{All: req("cores", Lt, "65")}, ""},
		{"Lt is not at most", Filter{All: req("cores", Lt, "64")}, "wants cores Lt 64, has 64"},
		{"Gt of a word", Filter{All: req("word", Gt, "1")}, "wants word Gt 1, has many"},
		{"Gt than a word", Filter{All: req("cores", Gt, "few")}, "wants cores Gt few, has 64"},
		{"Lt, no such label", Filter{All: req("rack", Lt, "5")}, "wants rack Lt 5, has no such label"},
		{"Gt of two", Filter{All: req("cores", Gt, "1", "2")}, "wants cores Gt 1,2, has 64"},
		{"unknown operator", Filter{All: req("zone", "Near", "a")}, "wants zone Near a, has a"},
		{"all must hold", Filter{All: slices.Concat(req("zone", In, "a"), req("word", In, "few"))}, "wants word=few, has many"},
		{"name", Filter{All: req(NameField, In, "gpu-7")}, ""},
		{"other name", Filter{All: req(NameField, NotIn, "gpu-7")}, "wants metadata.name!=gpu-7, has gpu-7"},

		{"one term of two", Filter{Any: [][]Requirement{req("zone", In, "b"), req("word", Exists)}}, ""},
		{"no term of two", Filter{Any: [][]Requirement{req("zone", In, "b"), req("rack", Exists)}}, "wants zone=b, has a"},
		{"a term holds as a whole", Filter{Any: [][]Requirement{slices.Concat(req("zone", In, "a"), req("rack", Exists))}}, "wants rack, has no such label"},
		{"an empty term matches nothing", Filter{Any: [][]Requirement{{}}}, "wants an affinity term that is empty and matches nothing, has no such label"},
		{"an empty term beside one that holds", Filter{Any: [][]Requirement{{}, req("zone", In, "a")}}, ""},
		{"an empty term beside one that does not", Filter{Any: [][]Requirement{{}, req("zone", In, "b")}}, "wants zone=b, has a"},
		{"selector and terms must both hold", Filter{All: req("zone", In, "a"), Any: [][]Requirement{req("zone", In, "b")}}, "wants zone=b, has a"},
	} {
		o, ok := node.Passes(&c.f)
		if got := o.String(); ok != (c.want == "") || !ok && got != c.want {
			t.Errorf("%s: %t, %q, want %q", c.name, ok, got, c.want)
		}
	}
}

func TestTolerations(t *testing.T) {
	hard := Taint{Key: "gpu", Value: "only", Effect: NoSchedule}
	evicts := Taint{Key: "gpu", Value: "only", Effect: NoExecute}
	for _, c := range []struct {
		name   string
		taints []Taint
		tol    []Toleration
		want   bool
	}{
		{"no taint", nil, nil, true},
		{"none tolerated", []Taint{hard}, nil, false},
		{"equal", []Taint{hard}, []Toleration{{Key: "gpu", Value: "only", Effect: NoSchedule}}, true},
		{"other value", []Taint{hard}, []Toleration{{Key: "gpu", Value: "no", Effect: NoSchedule}}, false},
		{"other key", []Taint{hard}, []Toleration{{Key: "cpu", Value: "only", Effect: NoSchedule}}, false},
		{"other effect", []Taint{hard}, []Toleration{{Key: "gpu", Value: "only", Effect: NoExecute}}, false},
		{"every effect", []Taint{hard, evicts}, []Toleration{{Key: "gpu", Value: "only"}}, true},
		{"one effect of two", []Taint{hard, evicts}, []Toleration{{Key: "gpu", Exists: true, Effect: NoSchedule}}, false},
		{"any value", []Taint{hard}, []Toleration{{Key: "gpu", Exists: true}}, true},
		{"everything", []Taint{hard, evicts}, []Toleration{{Exists: true}}, true},
		{"everything of one effect", []Taint{hard, evicts}, []Toleration{{Exists: true, Effect: NoExecute}}, false},
		{"no key and a value tolerates nothing", []Taint{hard}, []Toleration{{Value: "only"}}, false},
		{"an empty value is a value", []Taint{{Key: "gpu", Effect: NoSchedule}}, []Toleration{{Key: "gpu"}}, true},
		{"an empty value is not every value", []Taint{hard}, []Toleration{{Key: "gpu"}}, false},
		{"each taint by another", []Taint{hard, evicts}, []Toleration{
			{Key: "gpu", Exists: true, Effect: NoSchedule}, {Key: "gpu", Exists: true, Effect: NoExecute},
		}, true},
	} {
		n := &Node{Name: "n", Taints: c.taints}
		o, ok := n.Passes(&Filter{Tolerations: c.tol})
		if ok != c.want {
			t.Errorf("%s: %t, want %t", c.name, ok, c.want)
		}
		if !ok && !strings.HasPrefix(o.String(), "taint gpu=only:") {
			t.Errorf("%s: objection %q", c.name, o)
		}
	}
}

func TestOutages(t *testing.T) {
	for _, c := range []struct {
		name       string
		outages    []Outage
		open, lost bool
	}{
		{"none", nil, true, false},
		{"a lost card", []Outage{{What: "lost"}}, true, false},
		{"cordoned", []Outage{{What: "cordoned", Closed: true}}, false, false},
		{"both", []Outage{{What: "lost"}, {What: "cordoned", Closed: true}}, false, false},
		{"silent", []Outage{{What: NotReady, Closed: true}}, false, true},
	} {
		n := &Node{Outages: c.outages}
		if n.Open() != c.open || n.Lost() != c.lost {
			t.Errorf("%s: open %t, lost %t, want %t, %t", c.name, n.Open(), n.Lost(), c.open, c.lost)
		}
	}
}

// Numbers in names count as numbers.
func TestNamesInOrder(t *testing.T) {
	want := []string{"", "a", "a-0", "a-1", "a-2", "a-10", "a-10-b", "a-99999999999999999999", "a-100000000000000000000", "a1b2", "a1b10", "a2", "b"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, compareNames)
	if !slices.Equal(got, want) {
		t.Errorf("order is %q, want %q", got, want)
	}
}

// The order of names is total: no two names are the same place, whatever zeros
// their numbers begin with, and it has no circles.
func TestNamesAreTotallyOrdered(t *testing.T) {
	name := rapid.StringMatching(`([0-2]{0,3}[a-b-]){0,2}[0-2]{0,3}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := name.Draw(t, "a"), name.Draw(t, "b"), name.Draw(t, "c")
		ab, ba, bc, ac := compareNames(a, b), compareNames(b, a), compareNames(b, c), compareNames(a, c)
		if (ab == 0) != (a == b) {
			t.Fatalf("%q and %q compare as %d", a, b, ab)
		}
		if (ab < 0) != (ba > 0) {
			t.Fatalf("%q and %q compare as %d and %d", a, b, ab, ba)
		}
		if ab < 0 && bc < 0 && ac >= 0 {
			t.Fatalf("%q < %q < %q, but first and last compare as %d", a, b, c, ac)
		}
	})
}

// What passes is remembered by filter. Filters that differ must not share it.
func TestFilterKeys(t *testing.T) {
	filters := []Filter{
		{},
		{Any: [][]Requirement{}},
		{Any: [][]Requirement{{}}},
		{All: []Requirement{{Key: "a", Op: In, Values: []string{"b", "c"}}}},
		{All: []Requirement{{Key: "a", Op: In, Values: []string{"b|c"}}}},
		{All: []Requirement{{Key: "a", Op: NotIn, Values: []string{"b"}}}},
		{All: []Requirement{{Key: "a!", Op: In, Values: []string{"b"}}}},
		{All: []Requirement{{Key: "a=b", Op: Exists}}},
		{All: []Requirement{{Key: "a", Op: In, Values: []string{"b"}}}},
		{All: []Requirement{{Key: "!a", Op: Exists}}},
		{All: []Requirement{{Key: "a", Op: DoesNotExist}}},
		{All: []Requirement{{Key: "a", Op: Gt, Values: []string{"1"}}}},
		{All: []Requirement{{Key: "a Gt 1", Op: Exists}}},
		{Any: [][]Requirement{{{Key: "a", Op: Exists}, {Key: "b", Op: Exists}}}},
		{Any: [][]Requirement{{{Key: "a", Op: Exists}}, {{Key: "b", Op: Exists}}}},
		{Tolerations: []Toleration{{Key: "a", Value: "b c"}}},
		{Tolerations: []Toleration{{Key: "a", Value: "b", Effect: "c"}}},
		{Tolerations: []Toleration{{Key: "a", Exists: true}}},
		{Tolerations: []Toleration{{Key: "a true", Exists: false}}},
	}
	for i, a := range filters {
		for k, b := range filters {
			if i != k && a.key() == b.key() {
				t.Errorf("%+v and %+v have the key %s", a, b, a.key())
			}
		}
	}
}

// Two nodes whose names differ in a zero are two nodes, to a plan as well.
func TestNamesThatDifferInAZero(t *testing.T) {
	v := NewInventory()
	v.Put(&Node{Name: "n-1", Offer: quota.Resources{0, 0, 1}})
	v.Put(&Node{Name: "n-01", Offer: quota.Resources{0, 0, 1}})
	spec := &Spec{PodSets: []PodSet{{Name: "main", Count: 2, Request: quota.Resources{0, 0, 1}}}}
	plan, short := Place(v, spec, []int{2})
	if short != nil {
		t.Fatalf("%+v", *short)
	}
	if w := wrong(v, spec, []int{2}, plan); w != "" {
		t.Errorf("plan %s: %s", plan, w)
	}
}

// A gang of no pods needs no node, whatever level it asks for.
func TestNoPods(t *testing.T) {
	spec := &Spec{PodSets: []PodSet{{Name: "main", Request: quota.Resources{0, 0, 1}}}, Level: Level{Key: "rack", Required: true}}
	if _, short := Place(NewInventory(), spec, []int{0}); short != nil {
		t.Errorf("%+v", *short)
	}
}
