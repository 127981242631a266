package admission

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/queue"
)

// TestShortCuts: what a state remembers to save work changes no decision. Stories drawn
// by lot run on a state that keeps all of it; before each cycle a state is made
// that knows only what has to be known, and that takes no short cut within a cycle
// either, and both have to decide the same and tell the same reasons.
//
// The stories are the same in every run; -rapid.seed=N draws others. Of some thousand one
// still differs: a claim that could count on a gang that returns is looked at an event
// later where the order of the two queues has turned meanwhile.
func TestShortCuts(t *testing.T) {
	sameStories(t)
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(t, rt)
		for range rapid.IntRange(10, 50).Draw(rt, "steps") {
			told := w.turn(t, rt)
			rt.Logf("%s: %s", w.now.Format(time.TimeOnly), told)
			w.compare(rt, told)
			w.advance(rt)
		}
	})
}

// sameStories has rapid draw the same in every run, if no seed was asked for.
func sameStories(t *testing.T) {
	t.Helper()
	if seed := flag.Lookup("rapid.seed"); seed != nil && seed.Value.String() == "0" {
		if err := seed.Value.Set("1"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = seed.Value.Set("0") })
	}
}

// compare lets both states decide.
func (w *world) compare(rt *rapid.T, after string) {
	plain := NewStateOf(w.s.Image())
	plain.plain = true
	want, got := Cycle(plain, w.now), Cycle(w.s, w.now)
	if a, b := deeds(&want)+reasons(&want, plain), deeds(&got)+reasons(&got, w.s); a != b {
		rt.Fatalf("after %s, at %s: without short cuts\n%s\nwith them\n%s\nstate\n%s", after, w.now.Format(time.TimeOnly), a, b, w.story())
	}
	if bad := w.s.Check(); len(bad) > 0 {
		rt.Fatalf("after %s: %v", after, bad)
	}
}

// reasons are what all who wait have been told once the decision is told: the code.
// Numbers may be those of an earlier look, and who lacked room then may by now be
// behind a reservation besides.
func reasons(d *Decision, s *State) string {
	code := map[string]Reason{}
	for key, r := range s.records {
		if r.phase == Waiting {
			code[key] = r.reason
		}
	}
	for _, v := range d.Verdicts {
		code[v.Key] = v.Reason
	}
	var b strings.Builder
	for _, a := range d.Admit {
		delete(code, a.Key)
	}
	for _, key := range sortedKeys(code) {
		why := code[key].Code
		if why == Behind || why == Capacity || why == Fragmented {
			why = "room"
		}
		fmt.Fprintf(&b, "%s %s\n", key, why)
	}
	return b.String()
}

// story draws what there is, for people.
func (w *world) story() string {
	var b strings.Builder
	b.WriteString(w.show())
	for _, key := range sortedKeys(w.s.records) {
		r := w.s.records[key]
		plan := ""
		if r.admission != nil {
			plan = r.admission.Plan.String()
		}
		fmt.Fprintf(&b, "%s phase %d prio %d queued %s queue %s limit %s settled %t held %v plan %s least %v %v\n",
			key, r.phase, r.w.Priority, r.w.Queued.Format(time.TimeOnly), r.w.Queue, r.w.Limit, r.settled, r.held, plan, r.w.LeastSizes(), r.w.Spec.PodSets[0].Request)
	}
	return b.String()
}

func drawWorld(t *testing.T, rt *rapid.T) *world {
	w := newWorld()
	c := DefaultConfig()
	c.ReserveAfter = rapid.SampledFrom([]time.Duration{0, 30 * time.Second, 2 * time.Minute}).Draw(rt, "reserveAfter")
	c.Reservations = rapid.SampledFrom([]int{1, 2, 100}).Draw(rt, "reservations")
	c.MinRuntime = rapid.SampledFrom([]time.Duration{0, 0, 40 * time.Second}).Draw(rt, "minRuntime")
	c.FairReclaim = rapid.Bool().Draw(rt, "fairReclaim")
	c.ShortestFirst = rapid.Bool().Draw(rt, "shortestFirst")
	w.s.Apply(ConfigSeen{c})
	for i := range 3 {
		w.node(t, fields(fmt.Sprintf("n%d gpu=%d cpu=16", i, rapid.IntRange(2, 8).Draw(rt, "gpus"))))
	}
	w.s.Apply(QueueSeen{w.queue(t, fields("org"))})
	for _, name := range []string{"A", "B", "C"} {
		w.s.Apply(QueueSeen{drawQueue(t, rt, w, name)})
	}
	return w
}

func drawQueue(t *testing.T, rt *rapid.T, w *world, name string) *queue.Queue {
	text := fmt.Sprintf("%s weight=%d priority=%d within=%s reclaim=%s", name,
		rapid.IntRange(0, 2).Draw(rt, "weight"), rapid.IntRange(0, 1).Draw(rt, "priority"),
		rapid.SampledFrom([]string{"Never", "LowerPriority", "LowerOrNewerEqualPriority"}).Draw(rt, "within"),
		rapid.SampledFrom([]string{"Never", "LowerPriority", "Any", "Any"}).Draw(rt, "reclaim"))
	if name != "C" {
		text += " parent=org"
	}
	if n := rapid.IntRange(-2, 8).Draw(rt, "nominal"); n >= 0 {
		text += fmt.Sprintf(" nominal=gpu:%d", n)
	}
	if n := rapid.IntRange(0, 12).Draw(rt, "max"); n > 6 {
		text += fmt.Sprintf(" max=gpu:%d", n)
	}
	text += rapid.SampledFrom([]string{"", "", "", " strict", " sheltered", " turns"}).Draw(rt, "kind")
	return w.queue(t, fields(text))
}

// turn lets one thing happen, and says what.
func (w *world) turn(t *testing.T, rt *rapid.T) string {
	all := sortedKeys(w.objects)
	one := func() string { return all[rapid.IntRange(0, len(all)-1).Draw(rt, "gang")] }
	kind := rapid.SampledFrom([]string{"submit", "submit", "submit", "end", "end", "time", "time", "node", "pods", "stop", "stop", "queue", "priority", "hold", "delete"}).Draw(rt, "turn")
	if len(all) == 0 {
		kind = "submit"
	}
	switch kind {
	case "submit":
		text := drawGang(rt, fmt.Sprintf("g%d", w.seq))
		w.submit(t, text)
		return text
	case "end":
		key := one()
		if w.s.records[key] == nil || w.s.records[key].phase != Admitted {
			return "nothing"
		}
		w.end(key)
		return "end " + key
	case "time":
		d := time.Duration(rapid.SampledFrom([]int{1, 10, 31, 61, 300}).Draw(rt, "seconds")) * time.Second
		w.now = w.now.Add(d)
		return d.String()
	case "node":
		text := fmt.Sprintf("n%d gpu=%d cpu=16", rapid.IntRange(0, 2).Draw(rt, "node"), rapid.IntRange(2, 8).Draw(rt, "gpus")) +
			rapid.SampledFrom([]string{"", "", " lost", " cordoned"}).Draw(rt, "out")
		w.node(t, fields(text))
		return text
	case "pods":
		key, node := one(), fmt.Sprintf("n%d", rapid.IntRange(0, 2).Draw(rt, "node"))
		if w.s.records[key] == nil || w.s.records[key].phase != Admitted {
			return "nothing"
		}
		w.lose(key, node)
		return "lose " + key + " " + node
	case "stop":
		key := one()
		w.stop([]string{key})
		return "stop " + key
	case "queue":
		q := drawQueue(t, rt, w, rapid.SampledFrom([]string{"A", "B", "C"}).Draw(rt, "queue"))
		q.Closed = rapid.IntRange(0, 5).Draw(rt, "closed") == 0
		w.s.Apply(QueueSeen{q})
		return "queue " + q.Quota.Name
	case "delete":
		key := one()
		w.s.Apply(WorkloadGone{key})
		delete(w.objects, key)
		return "delete " + key
	default:
		key := one()
		if r := w.s.records[key]; r == nil || r.phase == Finished {
			return "nothing"
		}
		w.see(key, func(e *WorkloadSeen) {
			if kind == "hold" {
				e.Workload.Held = !e.Workload.Held
			} else {
				e.Workload.Priority = int64(rapid.IntRange(0, 2).Draw(rt, "value"))
			}
		})
		return kind + " " + key
	}
}

func drawGang(rt *rapid.T, name string) string {
	pods := rapid.IntRange(1, 4).Draw(rt, "pods")
	text := fmt.Sprintf("%s queue=%s pods=%d gpu=%d cpu=%d priority=%d", name, rapid.SampledFrom([]string{"A", "B", "C"}).Draw(rt, "queue"), pods,
		rapid.IntRange(0, 3).Draw(rt, "gpu"), rapid.IntRange(0, 4).Draw(rt, "cpu"), rapid.IntRange(0, 2).Draw(rt, "priority"))
	if least := rapid.IntRange(1, 6).Draw(rt, "min"); least < pods {
		text += fmt.Sprintf(" min=%d", least)
	}
	return text + rapid.SampledFrom([]string{"", "", " limit=1m", " limit=5m", " limit=20m", " pinned", " user=u", " level=host"}).Draw(rt, "extra")
}

// advance carries out what the state decides: all of it, or its writes are refused.
func (w *world) advance(rt *rapid.T) {
	d := Cycle(w.s, w.now)
	rt.Logf("%s\n%s", strings.Join(tell(&d), "\n"), reasons(&d, w.s))
	w.s.Apply(Assumed{d})
	if rapid.IntRange(0, 7).Draw(rt, "refused") > 0 {
		w.carry(&d)
		for _, rel := range d.Release {
			w.s.Apply(Outcome{Act: ActRelease, Key: rel.UID, Result: Committed, At: w.now})
		}
		return
	}
	answer := rapid.SampledFrom([]Result{Refused, Unknown}).Draw(rt, "answer")
	for _, a := range slices.Concat(d.Admit, d.Move) {
		w.s.Apply(Outcome{Act: ActAdmit, Key: a.Key, Result: answer, At: w.now})
	}
	for _, e := range d.Evict {
		w.s.Apply(Outcome{Act: ActEvict, Key: e.Key, Result: answer, At: w.now})
	}
	for _, key := range d.Finish {
		w.s.Apply(Outcome{Act: ActFinish, Key: key, Result: answer, At: w.now})
	}
	for _, rel := range d.Release {
		w.s.Apply(Outcome{Act: ActRelease, Key: rel.UID, Result: answer, At: w.now})
	}
	if answer == Unknown { // it is seen soon that nothing was done
		for _, key := range sortedKeys(w.objects) {
			if r := w.s.records[key]; r != nil && !r.settled {
				w.see(key, func(*WorkloadSeen) {})
			}
		}
	}
}
