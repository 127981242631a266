package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/simulations"
)

// Every scenario, stopped in its middle, written down and read back, is the same
// state: it checks, it draws alike, and it decides the same.
func TestSnapshotOfScenarios(t *testing.T) {
	files, err := filepath.Glob("../../simulations/testdata/scenarios/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d scenarios: %v", len(files), err)
	}
	for _, file := range files {
		s, err := simulations.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range middles(s) {
			state, now, err := simulations.StateAt(s, simulations.Options{}, at)
			if err != nil {
				t.Fatalf("%s at %s: %v", file, at, err)
			}
			roundTrip(t, filepath.Base(file)+" at "+at.String(), state, now)
		}
	}
}

// The same of stories that are drawn by lot, in which everything happens.
func TestSnapshotOfStories(t *testing.T) {
	for seed := range uint64(12) {
		s, err := simulations.Story(seed, 60)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range middles(s) {
			o := simulations.Options{Seed: seed, Fault: simulations.Unlucky(seed)}
			state, now, err := simulations.StateAt(s, o, at)
			if err != nil {
				t.Fatalf("seed %d at %s: %v", seed, at, err)
			}
			roundTrip(t, fmt.Sprintf("seed %d at %s", seed, at), state, now)
		}
	}
}

// middles are the times right after events of the scenario, at most six.
func middles(s *simulations.Scenario) []time.Duration {
	var all []time.Duration
	for _, e := range s.Events {
		if at := e.At + time.Second; len(all) == 0 || all[len(all)-1] != at {
			all = append(all, at)
		}
	}
	if len(all) > 6 {
		all = append(all[:3:3], all[len(all)-3:]...)
	}
	return all
}

func roundTrip(t *testing.T, name string, state *admission.State, now time.Time) {
	t.Helper()
	var b bytes.Buffer
	if err := Take(state, now).Encode(&b); err != nil {
		t.Fatal(err)
	}
	read, err := Decode(&b)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	im, err := read.Image()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	again := admission.NewStateOf(im)
	if bad := again.Check(); len(bad) > 0 {
		t.Errorf("%s: the state read back does not check: %q", name, bad)
	}
	dims := make([]int, state.Space.Len())
	for i := range dims {
		dims[i] = i
	}
	if got, want := again.Inventory().Draw(again.Space, dims...), state.Inventory().Draw(state.Space, dims...); got != want {
		t.Errorf("%s: nodes are\n%swere\n%s", name, got, want)
	}
	for id := 1; id < state.Ledger().Tree().Len(); id++ {
		q := state.Ledger().Tree().Name(id)
		if got, want := again.Usage(q), state.Usage(q); !got.Equal(want) {
			t.Errorf("%s: queue %s uses %v, did %v", name, q, got, want)
		}
	}
	if got, want := asText(t, again, now), asText(t, state, now); got != want {
		t.Errorf("%s: written down again it differs:\n%s", name, firstDifference(got, want))
	}
	if got, want := acts(admission.Cycle(again, now)), acts(admission.Cycle(state, now)); got != want {
		t.Errorf("%s: it decides\n%s, not\n%s", name, got, want)
	}
}

func asText(t *testing.T, s *admission.State, now time.Time) string {
	t.Helper()
	var b bytes.Buffer
	if err := Take(s, now).Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// acts is what a decision does, as text; what it tells and reserves aside.
func acts(d admission.Decision) string {
	b, err := json.Marshal([]any{d.Admit, d.Move, d.Evict, d.Release, d.Finish, d.Nominees})
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range x {
		if i >= len(y) || x[i] != y[i] {
			return strings.Join(x[max(0, i-5):min(len(x), i+3)], "\n") + "\nwas\n" + strings.Join(y[max(0, i-1):min(len(y), i+3)], "\n")
		}
	}
	return "it is longer"
}

// A field that a snapshot forgets is a wrong answer some day: every field of every
// struct that goes into it is filled, written and read back.
func TestSnapshotForgetsNothing(t *testing.T) {
	names := []string{"cpu", "memory", "pods", "gpu", "slice"}
	fill := func(v any) { fillValue(reflect.ValueOf(v).Elem(), 0) }
	var im admission.Image
	fill(&im)
	im.Resources = names
	fixImage(&im)
	for i := range im.Nodes {
		im.Nodes[i].Cards = gang.NewDeck([]gang.Card{{
			Kind:  &gang.Kind{Name: "model", Slices: []int{4}, Grid: gang.NewGrid(4, []gang.Profile{{Name: "p", Size: 2, Starts: []int{0, 2}, Sole: "x"}})},
			Offer: []int64{0, 0, 0, 1}, Cut: true, Replicas: 3, Layout: "p", Out: gang.LostCard,
		}}, 3, true, 4)
	}
	back, err := Write(im, time.Unix(5, 0)).Image()
	if err != nil {
		t.Fatal(err)
	}
	for i := range back.Workloads { // told anew
		back.Workloads[i].Reason, back.Workloads[i].Told = im.Workloads[i].Reason, im.Workloads[i].Told
	}
	if !reflect.DeepEqual(back, im) {
		a, _ := json.MarshalIndent(back, "", " ")
		b, _ := json.MarshalIndent(im, "", " ")
		t.Errorf("something is lost:\n%s", firstDifference(string(a), string(b)))
	}
}

// fixImage makes the filled values ones that can be.
func fixImage(im *admission.Image) {
	im.Refusals = []admission.Mark{{Node: "x", Refused: 2, Until: time.Unix(8, 0)}}
	for i := range im.Workloads {
		w := &im.Workloads[i]
		*w.Workload = queue.Workload{
			Key: "a/b", UID: "u", Queue: "q", User: "me", Priority: 3, Queued: time.Unix(3, 0), Spec: w.Workload.Spec, Pinned: true,
			Limit: 1, MaxRun: 2, Held: true, Invalid: "x", After: time.Unix(9, 0), Gate: "g", MinRuntime: 4,
		}
		w.Phase, w.Before.Phase = admission.Admitted, admission.Admitted
	}
}

// fillValue puts something into every exported field, through pointers, slices and
// maps.
func fillValue(v reflect.Value, depth int) {
	if depth > 9 {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*gang.Deck]() {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(v.Elem(), depth+1)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(7, 0)))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillValue(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillValue(v.Index(0), depth+1)
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillValue(k, depth+1)
		fillValue(e, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, e)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint64:
		v.SetUint(1)
	default:
		panic("nothing to fill a " + v.Kind().String() + " with")
	}
}

// What is wrong in a snapshot is named, and nothing is made of it.
func TestSnapshotErrors(t *testing.T) {
	head := `"apiVersion": "sluice.dev/v1", "kind": "Snapshot", "time": "2026-01-01T00:00:00Z", "resources": ["cpu", "memory", "pods"]`
	for _, c := range []struct{ text, want string }{
		{`{`, "unexpected EOF"},
		{`{"kind": "Snapshot"}`, `kind Snapshot, this says ""`},
		{`{` + head + `, "colour": 1}`, `unknown field "colour"`},
		{`{` + head + `, "nodes": [{"name": "n", "offer": {"gpu": 1}}]}`, `node n: "gpu" is not in resources`},
		{`{` + head + `, "nodes": [{"name": "n", "offer": {"cpu": -1}}]}`, "node n: cpu is -1"},
		{`{` + head + `, "workloads": [{"key": "a/b", "phase": "Lost"}]}`, `workload a/b: phase is one of`},
		{`{` + head + `, "workloads": [{"key": "a/b", "phase": "Admitted"}]}`, "workload a/b: phase Admitted goes with an admission"},
		{`{"apiVersion": "sluice.dev/v1", "kind": "Snapshot", "resources": ["gpu"]}`, `resources: number 0 is "gpu", not cpu`},
	} {
		s, err := Decode(strings.NewReader(c.text))
		if err == nil {
			_, err = s.Image()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.text, err, c.want)
		}
	}
}
