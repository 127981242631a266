package simulations

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/admission"
)

// What the controller does hangs on what is, not on how it came to know: told twice, in
// another order, one thing after the other, asked in between, or begun anew.

// drawnWith is a story of the seed, parsed; policy replaces its own if it is not "".
func drawnWith(t *testing.T, seed uint64, policy string) *Scenario {
	t.Helper()
	st := drawStory(seed, 80, nil)
	for i, l := range st.head {
		if policy != "" && strings.HasPrefix(l, "policy:") {
			st.head[i] = "policy: " + policy
		}
	}
	s, err := Parse("f.yaml", []byte(st.whole()))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// apart is where two runs of the scenario go apart, one of them with hooks.
func apart(t *testing.T, s *Scenario, h hooks) string {
	t.Helper()
	a, b := runOnce(s, Options{}), runOnce(s, Options{hooks: h})
	if a.Broken != nil {
		t.Fatal(a.Broken)
	}
	if b.Broken != nil {
		return b.Broken.String()
	}
	return firstDifference(moves(a.Trace), moves(b.Trace))
}

// deliveries are ways of telling a controller what happens.
var deliveries = map[string]hooks{
	"told twice":      {told: func(r *run, ch change) { r.loop.Observe(converter{r.loop.State().Space}.event(ch)) }},
	"told backwards":  {news: backwards},
	"asked all along": {told: func(r *run, _ change) { admission.Cycle(r.loop.State(), r.now()) }},
	"told all anew": {asks: func(r *run) {
		for _, ch := range r.cluster.Snapshot(nil) {
			r.loop.Observe(converter{r.loop.State().Space}.event(ch))
		}
	}},
}

// backwards tells of the last object first. What happened to one stays in order.
func backwards(list []change) []change {
	out := slices.Clone(list)
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b change) int { return strings.Compare(b.name(), a.name()) })
	for from := 0; from < len(out); {
		to := from
		for to < len(out) && out[to].name() == out[from].name() {
			to++
		}
		slices.Reverse(out[from:to])
		from = to
	}
	return out
}

// TestDelivery: however the controller is told, it does the same.
func TestDelivery(t *testing.T) {
	for what, h := range deliveries {
		for seed := range uint64(2) {
			if at := apart(t, drawnWith(t, seed, ""), h); at != "" {
				t.Errorf("%s, seed %d: %s", what, seed, at)
			}
		}
	}
}

// TestDeliveryCanFail: who is told less, or is told of another state, does not the same.
func TestDeliveryCanFail(t *testing.T) {
	for what, h := range map[string]hooks{
		"no pod goes": {news: func(list []change) []change {
			return slices.DeleteFunc(list, func(ch change) bool { return ch.pod != nil && ch.gone })
		}},
		"priorities are lost": {news: func(list []change) []change {
			for _, ch := range list {
				if ch.workload != nil {
					ch.workload.Priority = 0
				}
			}
			return list
		}},
		"a decision is lost": {asks: func(r *run) {
			r.loop.State().Apply(admission.Assumed{Decision: admission.Cycle(r.loop.State(), r.now())})
		}},
	} {
		if at := apart(t, drawnWith(t, 0, ""), h); at == "" {
			t.Errorf("%s, and all goes as it did", what)
		}
	}
}

// strictStory is a strict queue of gangs that need whole nodes and come several at a time.
func strictStory(seed uint64) string {
	rnd := stream(seed, "strict")
	var b strings.Builder
	b.WriteString("nodes: [{name: h, count: 6, gpus: 1}]\nqueues: [{name: A, strategy: StrictFIFO}]\nevents:\n")
	at := 0
	for i := range 40 {
		if rnd.IntN(3) == 0 {
			at += rnd.IntN(60)
		}
		fmt.Fprintf(&b, "- {at: %ds, submit: [{name: g%d, queue: A, pods: %d, requests: {nvidia.com/gpu: 1}, runtime: %ds, stops: %ds}]}\n",
			at, i, 1+rnd.IntN(6), 10+rnd.IntN(60), rnd.IntN(5))
	}
	fmt.Fprintf(&b, "expect: [{at: %ds, quiet: 1s}]\n", at+7200)
	return b.String()
}

// entries is who is let in, one after the other, and who has ended.
func entries(t *testing.T, s *Scenario, h hooks) string {
	t.Helper()
	var ended []string
	h.rests = func(r *run) { ended = slices.Sorted(maps.Keys(r.cluster.past.finished)) }
	r := runOnce(s, Options{hooks: h})
	if r.Broken != nil {
		t.Error(r.Broken)
	}
	return fmt.Sprint(admits.FindAllString(r.Trace, -1), ended)
}

var admits = regexp.MustCompile(`(?m)^  admit +\S+`)

// atOnce lets the controller act on each thing that it is told before it hears the next.
func atOnce(r *run, _ change) {
	for range maxSteps {
		if !r.step() {
			return
		}
	}
	r.breaks("it does not come to rest")
}

// TestBatches: in a strict queue of one priority the same gangs are let in, in the same
// order, whether the controller hears of an instant as a whole or acts on each event by
// itself, though then it knows too little and some writes are refused. In other queues it
// is not so: who acts before it has heard all lets in whom it would have let wait.
func TestBatches(t *testing.T) {
	parted := 0
	for seed := range uint64(2) {
		s, err := Parse("f.yaml", []byte(strictStory(seed)))
		if err != nil {
			t.Fatal(err)
		}
		if a, b := entries(t, s, hooks{}), entries(t, s, hooks{told: atOnce}); a != b {
			t.Errorf("seed %d: at once\n%s\none by one\n%s", seed, a, b)
		}
		s.Queues[0].Strategy = BestEffortFIFO
		if entries(t, s, hooks{}) != entries(t, s, hooks{told: atOnce}) {
			parted++
		}
	}
	if parted == 0 {
		t.Error("nobody passes in any queue: this cannot fail")
	}
}

// forgetful is a policy under which nothing depends on what only a controller remembers:
// since when somebody waits, misses pods, or was offered more.
const forgetful = "{reserveAfter: 10000h, recoveryWindow: 10000h, growEvery: 0s}"

// deeds is what a decision would do.
func deeds(d *admission.Decision) string {
	var out []string
	for _, a := range d.Admit {
		out = append(out, fmt.Sprintf("admit %s %v", a.Key, a.Plan))
	}
	for _, a := range d.Move {
		out = append(out, fmt.Sprintf("move %s %v", a.Key, a.Plan))
	}
	for _, e := range d.Evict {
		out = append(out, fmt.Sprintf("evict %s %s for %q %s", e.Key, e.Cause, e.For, e.Detail))
	}
	for _, p := range d.Release {
		out = append(out, fmt.Sprintf("release %s to %s", p.Key, p.Node))
	}
	slices.Sort(out)
	return strings.Join(append(out, d.Finish...), "; ")
}

// whatIsWritten are the events of a story after which all that matters is written
// down somewhere. Not so after others: that a gang was complete before its pods were lost, and
// for whom the surplus of one stops that gives back in part, is known to those alone who saw it.
var whatIsWritten = regexp.MustCompile(`submit|finish:|hold|resume|priority|delete|foreign|[qQ]ueue`)

var elastic = regexp.MustCompile(`, (min|minTotal): [0-9]+`)

// written is a story of such events and of gangs that are not elastic.
func written(t *testing.T, seed uint64) *Scenario {
	t.Helper()
	st := drawStory(seed, 120, nil)
	for i, l := range st.head {
		if strings.HasPrefix(l, "policy:") {
			st.head[i] = "policy: " + forgetful
		}
	}
	var lines []string
	for _, l := range st.events {
		if whatIsWritten.MatchString(l) {
			lines = append(lines, elastic.ReplaceAllString(l, ""))
		}
	}
	_, s := st.valid(lines)
	if s == nil {
		t.Fatalf("seed %d: no story is left", seed)
	}
	return s
}

// newOnes counts the decisions to do something, and those that a controller that starts
// now, from what the API holds, would have made otherwise; forget is what it does
// not find there.
func newOnes(s *Scenario, forget func(change) bool) (acted int, unlike []string) {
	runOnce(s, Options{hooks: hooks{asks: func(r *run) {
		cold := admission.NewState(config(&r.cluster.policy))
		for _, ch := range r.cluster.Snapshot(nil) {
			if !forget(ch) {
				cold.Apply(converter{cold.Space}.event(ch))
			}
		}
		a, b := admission.Cycle(r.loop.State(), r.now()), admission.Cycle(cold, r.now())
		if x, y := deeds(&a), deeds(&b); x != y {
			unlike = append(unlike, fmt.Sprintf("at %s who runs would %q, a new one %q", Spoken(r.clock.Now()), x, y))
		} else if x != "" {
			acted++
		}
	}}})
	return acted, unlike
}

// TestBegunAnew: before each decision one that starts now would decide the same. One
// that does not find all, say no pods, would not.
func TestBegunAnew(t *testing.T) {
	acted, blind := 0, 0
	for seed := range uint64(4) {
		s := written(t, seed)
		n, bad := newOnes(s, func(change) bool { return false })
		for _, l := range bad[:min(len(bad), 3)] {
			t.Errorf("seed %d: %s", seed, l)
		}
		acted += n
		_, bad = newOnes(s, func(ch change) bool { return ch.pod != nil })
		blind += len(bad)
	}
	if acted < 100 || blind == 0 {
		t.Errorf("%d decisions to do something, %d otherwise without pods", acted, blind)
	}
}

// TestRestless: a controller that is a new one at every rest breaks no promise, though
// it does not the same as one that remembers.
func TestRestless(t *testing.T) {
	for seed := range uint64(4) {
		if r := runOnce(drawnWith(t, seed, ""), Options{hooks: hooks{rests: func(r *run) { r.start() }}}); r.Broken != nil {
			t.Errorf("seed %d: %v", seed, r.Broken)
		}
	}
}

// TestLetInByPieces: a controller that admits one gang in a cycle breaks no promise, and
// ends as many.
func TestLetInByPieces(t *testing.T) {
	for seed := range uint64(6) {
		s, err := Parse("f.yaml", []byte(drawStory(seed, 80, nil).whole()))
		if err != nil {
			t.Fatal(err)
		}
		a, b := runOnce(s, Options{}), runOnce(s, Options{mostActs: 1})
		if a.Broken != nil || b.Broken != nil {
			t.Fatalf("seed %d: %v, by pieces %v", seed, a.Broken, b.Broken)
		}
		all, pieces := strings.Count(a.Trace, "\n  ends "), strings.Count(b.Trace, "\n  ends ")
		if all == 0 || all != pieces {
			t.Errorf("seed %d: %d gangs end, by pieces %d", seed, all, pieces)
		}
	}
}
