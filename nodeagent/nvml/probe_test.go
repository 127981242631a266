package nvml

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice.dev/sluice/nodeagent"
	"sluice.dev/sluice/nodeagent/nvml/mock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a node of mock cards and a probe of it.
func machine(t *testing.T, models ...string) (*mock.Node, *Probe) {
	t.Helper()
	n, err := mock.New("n", models...)
	if err != nil {
		t.Fatal(err)
	}
	p := New(n.Library(), Options{Node: "n", Root: n.Files(), Retry: time.Millisecond, RetryMost: time.Millisecond, Wait: 10 * time.Millisecond})
	t.Cleanup(func() { n.Close(); p.Close() })
	return n, p
}

// draw is a report in a line a card.
func draw(r *nodeagent.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", r.State)
	for i := range r.Cards {
		c := &r.Cards[i]
		out, _ := c.Outage()
		fmt.Fprintf(&b, "\n%d %s", c.Index, c.Product)
		if c.Cut() {
			b.WriteString(" cut")
		}
		for _, in := range c.Instances {
			fmt.Fprintf(&b, " %s@%d", in.Profile, in.Start)
		}
		if out != nodeagent.InOrder {
			fmt.Fprintf(&b, " %s", out)
		}
		for _, e := range c.Errors {
			fmt.Fprintf(&b, " !%s:%s", e.Field, e.Code)
		}
	}
	return b.String()
}

// What the driver does to an agent, and what the agent says of it. None of it hides
// another card, and none ends the probe: with the last command it is well again.
func TestFailures(t *testing.T) {
	const a100, well = "NVIDIA A100-SXM4-40GB", "Ready\n0 NVIDIA A100-SXM4-40GB\n1 NVIDIA A100-SXM4-40GB"
	for name, c := range map[string]struct {
		breaks []string
		want   string
		mends  []string
	}{
		"no library":        {[]string{"driver missing"}, "NoDriver", []string{"driver ok"}},
		"driver not loaded": {[]string{"driver unloaded"}, "NoDriver", []string{"driver ok"}},
		"not permitted":     {[]string{"driver forbidden"}, "NoPermission", []string{"driver ok"}},
		"replaced under it": {[]string{"driver mismatch"}, "DriverChanged", []string{"driver ok"}},
		"something else":    {[]string{"driver unknown"}, "Failed", []string{"driver ok"}},
		"one card lost":     {[]string{"lose 0"}, "Ready\n0 " + a100 + " lost !handle:GPU_IS_LOST\n1 " + a100, []string{"return 0"}},
		"no power for one": {
			[]string{"fail 0 DeviceGetHandleByIndex INSUFFICIENT_POWER"},
			"Ready\n0 " + a100 + " lost !handle:INSUFFICIENT_POWER\n1 " + a100,
			[]string{"mend 0"},
		},
		"an unknown profile": {[]string{"strange 0"}, well, nil},
		"a mode that waits":  {[]string{"mig 1 pending-on"}, "Ready\n0 " + a100 + "\n1 " + a100 + " migModePending", []string{"mig 1 pending-off"}},
		"holes": {
			[]string{"mig 0 on", "cut 0 1g.5gb@0 1g.5gb@1 1g.5gb@2", "drop 0 1"},
			"Ready\n0 " + a100 + " cut 1g.5gb@0 1g.5gb@2\n1 " + a100,
			[]string{"clear 0", "mig 0 off"},
		},
		"a boot": {[]string{"mig 0 on", "cut 0 3g.20gb@4", "reboot"}, "Ready\n0 " + a100 + " cut\n1 " + a100, []string{"mig 0 off"}},
		"uncorrected errors": {
			[]string{"recovery 1 gpuReset"}, "Ready\n0 " + a100 + "\n1 " + a100 + " resetNeeded", []string{"recovery 1 none"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, p := machine(t, "A100-40GB", "A100-40GB")
			if got := draw(p.Look()); got != well {
				t.Fatalf("before:\n%s", got)
			}
			n.Must(c.breaks...)
			p.Close() // what a driver answers at Init is asked again
			if got := draw(p.Look()); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
			n.Must(c.mends...)
			p.Close()
			if got := draw(p.Look()); got != well {
				t.Errorf("after:\n%s", got)
			}
		})
	}
}

// An agent that may not see how cards are cut says so, and lists the rest.
func TestMayNotSeeInstances(t *testing.T) {
	n, p := machine(t, "A100-40GB")
	n.Must("mig 0 on", "cut 0 3g.20gb@4", "fail 0 GetGpuInstances NO_PERMISSION")
	c := p.Look().Cards[0]
	if c.InstancesKnown || len(c.Devices) != 1 || len(c.Errors) == 0 || c.Errors[0].Code != "NO_PERMISSION" {
		t.Errorf("known %t, %d devices, errors %v", c.InstancesKnown, len(c.Devices), c.Errors)
	}
}

// Every model is read with its grid, by the driver's names and placements.
func TestModels(t *testing.T) {
	for _, m := range mock.Models() {
		_, p := machine(t, m.Key)
		r := p.Look()
		c := r.Cards[0]
		if r.State != nodeagent.Ready || c.Product != m.Product || c.UUID == "" || c.PCI == "" || len(c.Errors) > 0 {
			t.Errorf("%s: %+v", m.Key, c)
		}
		if (c.Grid == nil) != (len(m.Profiles) == 0) {
			t.Errorf("%s: grid %v", m.Key, c.Grid)
			continue
		}
		for _, want := range m.Profiles {
			got := c.Grid.Named(want.Name)
			if got == nil || got.Size != want.Size || fmt.Sprint(got.Starts) != fmt.Sprint(want.Starts) || got.ID != want.ID {
				t.Errorf("%s: %s is %+v, want %+v", m.Key, want.Name, got, want)
			}
		}
	}
}

// An Xid hastens the next look and is said with what NVIDIA says to do; a call that
// hangs ends when the driver answers again.
func TestRun(t *testing.T) {
	n, p := machine(t, "A100-40GB")
	n.Must("recovery 0 unknown") // a driver that judges the card is believed before any Xid
	p.o.Interval, p.o.Between = time.Hour, time.Millisecond
	reports := make(chan *nodeagent.Report, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Run(ctx, func(r *nodeagent.Report) { reports <- r }) }()
	next := func(ok func(*nodeagent.Report) bool) *nodeagent.Report {
		t.Helper()
		deadline := time.After(20 * time.Second)
		for {
			select {
			case r := <-reports:
				if ok(r) {
					return r
				}
			case <-deadline:
				t.Fatal("no such report")
			}
		}
	}
	next(func(r *nodeagent.Report) bool { return len(r.Cards) == 1 })
	n.Must("xid 0 79")
	r := next(func(r *nodeagent.Report) bool { return len(r.Cards[0].Health.Xids) > 0 })
	if x := r.Cards[0].Health.Xids[0]; x.Code != 79 || x.Action == "" {
		t.Errorf("Xid %+v", x)
	}
	if out, _ := r.Cards[0].Outage(); out == nodeagent.InOrder {
		t.Error("a card that fell off the bus is in order")
	}
	n.Must("silence on")
	p.Poke()
	n.Must("silence off")
	p.Poke()
	next(func(r *nodeagent.Report) bool { return r.State == nodeagent.Ready })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Layouts have a generation that grows when cards are cut otherwise, and only then.
func TestGeneration(t *testing.T) {
	n, p := machine(t, "A100-40GB")
	n.Must("mig 0 on")
	first := p.Look().Layout.Generation
	if again := p.Look().Layout.Generation; again != first {
		t.Errorf("generation %d, then %d", first, again)
	}
	n.Must("cut 0 1g.5gb@3")
	if cut := p.Look().Layout.Generation; cut <= first {
		t.Errorf("generation %d after %d", cut, first)
	}
}

// A recorded report is what the same node answers now, but for its time. The record is
// of mock cards: no real one was at hand.
func TestRecorded(t *testing.T) {
	n, p := machine(t, "A100-40GB", "A100-40GB")
	n.Must("mig 0 on", "cut 0 3g.20gb@4 2g.10gb@0 1g.5gb@2", "xid 1 31")
	r := p.Look()
	r.Time = time.Time{}
	for i := range r.Cards {
		for k := range r.Cards[i].Health.Xids {
			r.Cards[i].Health.Xids[k].First, r.Cards[i].Health.Xids[k].Last = time.Time{}, time.Time{}
		}
	}
	r.Layout.Since = time.Time{}
	got, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "a100-cut.json")
	if os.Getenv("REWRITE") != "" {
		if err := os.WriteFile(path, append(got, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got)+"\n" != string(want) {
		t.Errorf("the node answers otherwise than in %s; REWRITE=1 writes it anew:\n%s", path, got)
	}
	var back nodeagent.Report
	if err := json.Unmarshal(want, &back); err != nil || draw(&back) != draw(r) {
		t.Errorf("read back: %v\n%s", err, draw(&back))
	}
}
