package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/nodeagent"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
	"sluice.dev/sluice/nodeagent/kubelet"
	"sluice.dev/sluice/nodeagent/publish"
)

// fakeDriver looks every second, until it is told to hang in a call.
type fakeDriver struct {
	hang   chan struct{} // Run does not return before it is closed, if set
	yields []string      // each new answer
}

func (f *fakeDriver) Run(ctx context.Context, report func(*nodeagent.Report)) error {
	for ctx.Err() == nil {
		report(f.Look())
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	if f.hang != nil {
		<-f.hang
	}
	return nil
}

func (f *fakeDriver) Look() *nodeagent.Report {
	return &nodeagent.Report{Time: time.Now(), State: nodeagent.Ready, Cards: []nodeagent.Card{{UUID: "GPU-a", Product: "NVIDIA L4"}}}
}

func (f *fakeDriver) Yield(why string) {
	if n := len(f.yields); n == 0 || f.yields[n-1] != why {
		f.yields = append(f.yields, why)
	}
}

func (f *fakeDriver) Close() {}

// fakeCluster is one node.
type fakeCluster struct {
	sync.Mutex
	labels map[string]string
	report *v1alpha1.Report
	beats  int
}

func (f *fakeCluster) Node(context.Context) (*corev1.Node, error) {
	f.Lock()
	defer f.Unlock()
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1", Labels: f.labels}}, nil
}

func (f *fakeCluster) Inventory(context.Context) (*v1alpha1.SliceInventory, error) { return nil, nil }

func (f *fakeCluster) Write(_ context.Context, _ *corev1.Node, r *v1alpha1.Report) error {
	f.Lock()
	defer f.Unlock()
	f.report = r
	return nil
}

func (f *fakeCluster) Beat(context.Context, *corev1.Node, time.Time, time.Duration) error {
	f.Lock()
	defer f.Unlock()
	f.beats++
	return nil
}

// running starts an agent in the bubble of the test.
func running(t *testing.T, d *fakeDriver, c *fakeCluster) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	a := agent{
		driver: d, cluster: c, version: "v0", log: logr.Discard(),
		neighbours: publish.Neighbourhood{PodResources: kubelet.PodResources{Socket: filepath.Join(t.TempDir(), "none")}},
	}
	go func() { done <- a.run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

// What the driver shows and the labels say arrives in the cluster; the driver is let go
// while the labels say that cards are cut, and no longer.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		c := &fakeCluster{labels: map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4-SHARED", "nvidia.com/gpu.replicas": "4"}}
		stop := running(t, d, c)
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		c.Lock()
		if c.report == nil || c.report.Summary.Layout != "1x L4 shared: 4" || c.report.AgentVersion != "v0" || c.beats != 1 {
			t.Errorf("published %+v, %d heartbeats", c.report, c.beats)
		}
		c.Unlock()
		for _, state := range []string{"pending", "success"} {
			c.Lock()
			c.labels = map[string]string{v1alpha1.LabelMIGState: state}
			c.Unlock()
			time.Sleep(labelsEvery + time.Second)
			synctest.Wait()
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if want := []string{"", "the label nvidia.com/mig.config.state is pending", ""}; !slices.Equal(d.yields, want) {
			t.Errorf("yielded %q, want %q", d.yields, want)
		}
	})
}

// A call that hangs in the driver does not keep the agent from ending.
func TestEndsWithoutTheDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{hang: make(chan struct{})}
		stop := running(t, d, &fakeCluster{})
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		close(d.hang)
	})
}

// The DaemonSet calls the agent with flags that it has.
func TestDaemonSet(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "agent", "daemon-set.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	set := appsv1.DaemonSet{}
	if err := yaml.UnmarshalStrict(text, &set); err != nil {
		t.Fatal(err)
	}
	container := set.Spec.Template.Spec.Containers[0]
	c, args, err := command(nil).Find(container.Args)
	if err != nil || c.Name() != "run" {
		t.Fatalf("%v is the command %v, %v", container.Args, c, err)
	}
	if err := c.ParseFlags(args); err != nil {
		t.Error(err)
	}
	if left := c.Flags().Args(); len(left) > 0 {
		t.Errorf("arguments left over: %v", left)
	}
	var mounts []string
	for _, m := range container.VolumeMounts {
		mounts = append(mounts, m.MountPath)
	}
	for _, name := range []string{"podresources-socket", "device-plugin-config"} {
		path := c.Flag(name).Value.String()
		if !slices.Contains(mounts, path) && !slices.Contains(mounts, filepath.Dir(path)) {
			t.Errorf("--%s=%s is not mounted: %v", name, path, mounts)
		}
	}
}
