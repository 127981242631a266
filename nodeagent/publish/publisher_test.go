package publish_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/nodeagent"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
	"sluice.dev/sluice/nodeagent/publish"
)

// fakeCluster keeps one inventory and notes what is asked of it. Time in these tests
// is that of their bubble, so that a minute takes no time.
type fakeCluster struct {
	sync.Mutex
	begin   time.Time
	node    types.UID
	owner   types.UID // of the inventory
	there   *v1alpha1.Report
	failing map[string]error // by call: node, inventory, write, beat
	calls   []string
	hang    chan struct{} // write waits for it, if set
}

func newFakeCluster() *fakeCluster {
	return &fakeCluster{begin: time.Now(), node: "u1", failing: map[string]error{}}
}

// called notes a call with its second, and returns how it fails.
func (f *fakeCluster) called(name, detail string) error {
	f.calls = append(f.calls, strings.TrimSpace(fmt.Sprintf("%v %s %s", time.Since(f.begin), name, detail)))
	if err := f.failing[name]; err != nil {
		f.calls[len(f.calls)-1] += " fails"
		return err
	}
	return nil
}

func (f *fakeCluster) Node(context.Context) (*corev1.Node, error) {
	f.Lock()
	defer f.Unlock()
	if err := f.failing["node"]; err != nil {
		return nil, f.called("node", "")
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: f.node, Labels: map[string]string{"uid": string(f.node)}}}, nil
}

func (f *fakeCluster) Inventory(context.Context) (*v1alpha1.SliceInventory, error) {
	f.Lock()
	defer f.Unlock()
	if err := f.called("read", ""); err != nil || f.there == nil {
		return nil, err
	}
	return &v1alpha1.SliceInventory{Report: *f.there.DeepCopy(), ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: f.owner}}}}, nil
}

func (f *fakeCluster) Write(ctx context.Context, owner *corev1.Node, r *v1alpha1.Report) error {
	f.Lock()
	hang := f.hang
	f.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.Lock()
	defer f.Unlock()
	if err := f.called("write", r.Message); err != nil && (!apierrors.IsInvalid(err) || len(r.Cards) > 0) {
		return err
	}
	f.there, f.owner = r.DeepCopy(), owner.UID
	return nil
}

func (f *fakeCluster) Beat(_ context.Context, owner *corev1.Node, now time.Time, lasts time.Duration) error {
	f.Lock()
	defer f.Unlock()
	if owner.UID != f.node || !now.Equal(time.Now()) || lasts != v1alpha1.HeartbeatTime {
		return fmt.Errorf("a heartbeat of %s at %v for %v", owner.UID, now, lasts)
	}
	return f.called("beat", "")
}

// fail lets calls fail from now on; nil is that they work.
func (f *fakeCluster) fail(err error, calls ...string) {
	f.Lock()
	defer f.Unlock()
	for _, name := range calls {
		f.failing[name] = err
	}
}

// heard returns the calls of these names since the last question.
func (f *fakeCluster) heard(names ...string) []string {
	f.Lock()
	defer f.Unlock()
	var out []string
	for _, c := range f.calls {
		if fields := strings.Fields(c); slices.Contains(names, fields[1]) {
			out = append(out, c)
		}
	}
	f.calls = nil
	return out
}

// told is what is seen of a node whose state has the message, and a card.
func told(message string) publish.Seen {
	return publish.Seen{Report: &nodeagent.Report{
		Time: time.Now(), State: nodeagent.Ready, Message: message,
		Cards: []nodeagent.Card{{Index: 0, UUID: "GPU-a", Product: "NVIDIA L4"}},
	}, Neighbours: publish.Neighbours{HoldingsKnown: true}}
}

// bubble runs a publisher in a bubble until the test is over. Nothing of it may be left
// then, or the bubble does not end.
func bubble(t *testing.T, f func(t *testing.T, c *fakeCluster, p *publish.Publisher, log *[]string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster()
		var log []string
		p := publish.New(c, publish.Options{Log: funcr.New(func(_, args string) { log = append(log, args) }, funcr.Options{})})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.Run(ctx) }()
		f(t, c, p, &log)
		cancel()
		<-done
	})
}

// after waits so long, and until nothing is left to do then.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func TestWritesOnChange(t *testing.T) {
	bubble(t, func(t *testing.T, c *fakeCluster, p *publish.Publisher, log *[]string) {
		p.See(told("one"))
		after(0)
		expect(t, "the first is written at once", c.heard("write"), "0s write one")
		for range 10 {
			after(100 * time.Millisecond)
			p.See(told("one"))
		}
		after(time.Minute)
		expect(t, "the same is not written again", c.heard("write"))
		expect(t, "and all is well", *log)
	})
}

func TestAtMostOnceASecond(t *testing.T) {
	bubble(t, func(t *testing.T, c *fakeCluster, p *publish.Publisher, _ *[]string) {
		p.See(told("first"))
		after(50 * time.Millisecond)
		for i := range 30 { // a change every 0.1 s, none on a full second
			p.See(told(fmt.Sprint(i)))
			after(100 * time.Millisecond)
		}
		after(time.Second)
		expect(t, "the latest at the time", c.heard("write"), "0s write first", "1s write 9", "2s write 19", "3s write 29")
	})
}

// While a write is on its way, what is seen in the meantime waits, and the latest of it
// is written.
func TestNothingWaitsForAWrite(t *testing.T) {
	bubble(t, func(t *testing.T, c *fakeCluster, p *publish.Publisher, _ *[]string) {
		c.hang = make(chan struct{})
		p.See(told("one"))
		after(0)
		for i := range 5 {
			p.See(told(fmt.Sprint("later", i)))
			after(time.Second)
		}
		c.Lock()
		close(c.hang)
		c.hang = nil
		c.Unlock()
		after(2 * time.Second)
		got := c.heard("write")
		expect(t, "the one on its way and the latest", got, "5s write one", "5s write later4")
	})
}

func TestFailuresAreSaidOnceAndTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, c *fakeCluster, p *publish.Publisher, log *[]string) {
		c.fail(errors.New("the server is away"), "write")
		p.See(told("one"))
		after(10 * time.Second)
		expect(t, "seldomer the longer it lasts", c.heard("write"), "0s write one fails", "1s write one fails", "3s write one fails", "7s write one fails")
		p.See(told("two"))
		c.fail(nil, "write")
		after(10 * time.Second)
		expect(t, "then the latest", c.heard("write"), "15s write two")
		if len(*log) != 2 || !strings.Contains((*log)[0], "the server is away") || !strings.Contains((*log)[1], `"works again"`) {
			t.Errorf("the log says %q", *log)
		}
	})
}

func TestWhatToDoIsSaid(t *testing.T) {
	for _, c := range []struct {
		err  error
		says string
	}{
		{apierrors.NewForbidden(schema.GroupResource{Resource: "sliceinventories"}, "n1", errors.New("no")), "see deploy/agent"},
		{apierrors.NewNotFound(schema.GroupResource{Resource: "sliceinventories"}, "n1"), "is deploy/crd installed?"},
	} {
		bubble(t, func(t *testing.T, f *fakeCluster, p *publish.Publisher, log *[]string) {
			f.fail(c.err, "write")
			p.See(told("one"))
			after(time.Minute)
			if len(*log) != 1 || !strings.Contains((*log)[0], c.says) {
				t.Errorf("%v: the log says %q", c.err, *log)
			}
		})
	}
}

// An API server that accepts no such report gets one that it does, so that nobody
// takes the last one for true.
func TestRefusedReport(t *testing.T) {
	bubble(t, func(t *testing.T, c *fakeCluster, p *publish.Publisher, _ *[]string) {
		p.See(told("one"))
		after(0)
		c.fail(apierrors.NewInvalid(schema.GroupKind{Kind: "SliceInventory"}, "n1", nil), "write")
		after(time.Second)
		p.See(told("two"))
		after(time.Second)
		if c.there.State != v1alpha1.Failed || !strings.Contains(c.there.Message, "the API server refuses") || len(c.there.Cards) > 0 {
			t.Errorf("the inventory says %+v", c.there)
		}
		c.fail(nil, "write")
		c.heard()
		p.See(told("three"))
		after(time.Second)
		expect(t, "the next report is tried whole", c.heard("write"), "2s write three")
	})
}

func TestHeartbeat(t *testing.T) {
	bubble(t, func(t *testing.T, c *fakeCluster, p *publish.Publisher, _ *[]string) {
		after(time.Minute)
		expect(t, "nothing was looked at yet", c.heard("beat"))
		for range 6 {
			p.See(told("one"))
			after(10 * time.Second)
		}
		expect(t, "as long as the agent looks", c.heard("beat"), "1m0s beat", "1m20s beat", "1m40s beat", "2m0s beat")
		after(10 * time.Minute) // the last look was at 1m50s
		expect(t, "not when it hangs", c.heard("beat"), "2m20s beat", "2m40s beat", "3m0s beat", "3m20s beat", "3m40s beat", "4m0s beat", "4m20s beat", "4m40s beat")
		p.See(told("one"))
		after(0)
		expect(t, "again at once", c.heard("beat"), "12m0s beat")
	})
}

// A heartbeat does not wait for inventories, and is tried as often as it is due.
func TestHeartbeatStandsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, c *fakeCluster, p *publish.Publisher, _ *[]string) {
		c.fail(errors.New("no"), "write", "beat")
		var last string
		for range 20 {
			p.See(told("one"))
			after(10 * time.Second)
		}
		for _, beat := range c.heard("beat") {
			at, err := time.ParseDuration(strings.Fields(beat)[0])
			if err != nil {
				t.Fatal(err)
			}
			if last != "" {
				before, _ := time.ParseDuration(strings.Fields(last)[0])
				if at-before > v1alpha1.RenewEvery {
					t.Errorf("%s after %s", beat, last)
				}
			}
			last = beat
		}
		if last == "" {
			t.Error("no heartbeat")
		}
	})
}

// An inventory that is deleted or changed by others, or whose node is another one now,
// is written again.
func TestSomebodyElseWrote(t *testing.T) {
	for _, change := range []func(*fakeCluster){
		func(c *fakeCluster) { c.there = nil },
		func(c *fakeCluster) { c.there.Message = "altered" },
		func(c *fakeCluster) { c.owner = "u0" },
		func(c *fakeCluster) { c.node = "u2" },
	} {
		bubble(t, func(t *testing.T, c *fakeCluster, p *publish.Publisher, _ *[]string) {
			p.See(told("one"))
			after(time.Second)
			c.Lock()
			change(c)
			c.Unlock()
			c.heard()
			after(10 * time.Minute)
			expect(t, "once", c.heard("write"), "5m0s write one")
			if c.there.Message != "one" || c.owner != c.node {
				t.Errorf("the inventory of %s says %q, owned by %s", c.node, c.there.Message, c.owner)
			}
		})
	}
}

// A cluster that is away at the start delays all, and loses nothing.
func TestStartWithoutACluster(t *testing.T) {
	bubble(t, func(t *testing.T, c *fakeCluster, p *publish.Publisher, log *[]string) {
		c.fail(errors.New("connection refused"), "node")
		p.See(told("one"))
		after(4 * time.Second)
		p.See(told("two"))
		c.fail(nil, "node")
		after(4 * time.Second)
		expect(t, "the latest", c.heard("write", "beat"), "7s beat", "7s write two")
		if len(*log) != 2 || !strings.Contains((*log)[0], "connection refused") {
			t.Errorf("the log says %q", *log)
		}
	})
}

// An agent that was started anew writes nothing if nothing is new.
func TestRestart(t *testing.T) {
	bubble(t, func(t *testing.T, c *fakeCluster, p *publish.Publisher, _ *[]string) {
		p.See(told("one"))
		after(time.Second)
		c.heard()
		again := publish.New(c, publish.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go again.Run(ctx)
		again.See(told("one"))
		after(time.Second)
		expect(t, "only read", c.heard("read", "write"), "1s read")
	})
}

func TestLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster()
		c.fail(errors.New("away"), "node")
		labels := publish.Labels(c, realClock{}, 30*time.Second)
		get := func(want string) {
			t.Helper()
			got, err := labels(t.Context())
			if want == "" && err == nil || want != "" && (err != nil || got["uid"] != want) {
				t.Errorf("got %v, %v, want %q", got, err, want)
			}
		}
		get("")
		c.fail(nil, "node")
		get("u1")
		c.node = "u2"
		get("u1") // read lately
		time.Sleep(31 * time.Second)
		get("u2")
		c.fail(errors.New("away"), "node")
		time.Sleep(31 * time.Second)
		get("u2")
	})
}

type realClock struct{}

func (realClock) Now() time.Time                  { return time.Now() }
func (realClock) Since(t time.Time) time.Duration { return time.Since(t) }
