package sandbox

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/simulations/sandbox/build"
	"sluice.dev/sluice/simulations/sandbox/kube"
	"sluice.dev/sluice/simulations/sandbox/nodes"
)

// realBox is a sandbox that can be brought up. The test is skipped where the
// programs were not built: that takes minutes and is not what is tested.
func realBox(t *testing.T, mode Mode) *Sandbox {
	t.Helper()
	cache, err := build.DefaultCache()
	if err != nil {
		t.Skip(err)
	}
	b := &build.Builder{Cache: cache, Assets: os.Getenv("KUBEBUILDER_ASSETS"), Out: t.Output()}
	names, err := Artifacts(mode)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := b.Find(name); err != nil {
			t.Skipf("%s is not built; go run ./cmd/sandbox build does that", name)
		}
	}
	s := &Sandbox{Dir: filepath.Join(t.TempDir(), "box"), Builder: b, Out: t.Output()}
	t.Cleanup(func() {
		if t.Failed() {
			for _, c := range components {
				t.Logf("end of the log of %s:\n%s", c.name, s.logTail(c.name, 0))
			}
		}
		if err := s.Reset(context.Background()); err != nil {
			t.Errorf("reset: %v", err)
		}
	})
	return s
}

func up(t *testing.T, s *Sandbox, o UpOptions) *kube.Client {
	t.Helper()
	if err := s.Up(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	st, err := s.Status(t.Context())
	if err != nil || !st.Healthy() {
		t.Fatalf("up, but not healthy: %+v (%v)", st.Components, err)
	}
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func groups(t *testing.T, text string) *[]nodes.Group {
	t.Helper()
	parsed, err := nodes.Parse("nodes.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &parsed
}

// pids are those of what runs.
func pids(t *testing.T, s *Sandbox) map[string]int {
	t.Helper()
	st, err := loadState(s.statePath())
	if err != nil {
		t.Fatal(err)
	}
	running := make(map[string]int)
	for name, p := range st.Processes {
		if p.Alive() {
			running[name] = p.PID
		}
	}
	return running
}

const podsPath = "/api/v1/namespaces/default/pods"

type pod struct {
	Metadata struct {
		UID string
	}
	Spec   struct{ NodeName string }
	Status struct{ Phase, Reason string }
}

func createPod(t *testing.T, c *kube.Client, name string, gpus string, annotations map[string]string) {
	t.Helper()
	err := c.Create(t.Context(), podsPath, map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "annotations": annotations},
		"spec": map[string]any{"containers": []any{map[string]any{
			"name": "main", "image": "example.com/train", "resources": map[string]any{"limits": map[string]string{"nvidia.com/gpu": gpus}},
		}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// waitPod waits until the pod is as it should be; it has as long as the test.
func waitPod(t *testing.T, c *kube.Client, name, want string, is func(pod) bool) pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var p pod
	for {
		err := c.Read(ctx, podsPath+"/"+name, &p)
		if err == nil && is(p) {
			return p
		}
		if ctx.Err() != nil {
			t.Fatalf("pod %s is not %s: %+v (%v)", name, want, p, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func inPhase(phase string) func(pod) bool { return func(p pod) bool { return p.Status.Phase == phase } }

func TestPodsRunAndEndOnSimulatedNodes(t *testing.T) {
	s := realBox(t, All)
	c := up(t, s, UpOptions{Nodes: groups(t, `
- {name: gpu, gpus: 8}
- {name: kept-free, gpus: 8, taints: ["team=other:NoSchedule"]}`)})

	createPod(t, c, "short", "8", map[string]string{"sandbox.sluice.dev/run-for": "2s"})
	createPod(t, c, "next", "8", map[string]string{"sandbox.sluice.dev/run-for": "1s", "sandbox.sluice.dev/exit-code": "3"})
	short := waitPod(t, c, "short", "Succeeded", inPhase("Succeeded"))
	next := waitPod(t, c, "next", "Failed", inPhase("Failed"))
	if short.Spec.NodeName != "gpu" || next.Spec.NodeName != "gpu" {
		t.Errorf("pods ran on %s and %s, want the node without a taint", short.Spec.NodeName, next.Spec.NodeName)
	}
	createPod(t, c, "unclear", "0", map[string]string{"sandbox.sluice.dev/run-for": "a while"})
	if p := waitPod(t, c, "unclear", "Failed", inPhase("Failed")); p.Status.Reason != "SandboxAnnotation" {
		t.Errorf("a pod with an unreadable annotation failed because of %q", p.Status.Reason)
	}

	// A second up finds everything as it should be.
	before := pids(t, s)
	if len(before) != len(components) {
		t.Errorf("running are %v", before)
	}
	up(t, s, UpOptions{})
	if after := pids(t, s); !maps.Equal(before, after) {
		t.Errorf("a second up changed the processes from %v to %v", before, after)
	}

	// The API server dies and comes back where it was; pods go on.
	createPod(t, c, "through", "1", nil)
	through := waitPod(t, c, "through", "Running", inPhase("Running"))
	if err := s.Stop(t.Context(), "apiserver", true); err != nil {
		t.Fatal(err)
	}
	if st, err := s.Status(t.Context()); err != nil || st.Healthy() {
		t.Errorf("healthy without an API server (%v)", err)
	}
	if err := s.Start(t.Context(), "apiserver"); err != nil {
		t.Fatal(err)
	}
	if p := waitPod(t, c, "through", "Running", inPhase("Running")); p.Metadata.UID != through.Metadata.UID {
		t.Error("the pod is another one after the API server came back")
	}

	if err := s.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := pids(t, s); len(left) != 0 {
		t.Errorf("still running after down: %v", left)
	}

	// The data is kept, and KWOK takes its nodes over at once.
	c = up(t, s, UpOptions{})
	if p := waitPod(t, c, "through", "Running", inPhase("Running")); p.Metadata.UID != through.Metadata.UID {
		t.Error("the pod is another one after down and up")
	}
	if err := c.Delete(t.Context(), podsPath+"/through"); err != nil {
		t.Fatal(err)
	}
	createPod(t, c, "after", "8", map[string]string{"sandbox.sluice.dev/run-for": "1s"})
	waitPod(t, c, "after", "Succeeded", inPhase("Succeeded"))
}

func TestModeAPIStoresAndActsOnNothing(t *testing.T) {
	s := realBox(t, API)
	c := up(t, s, UpOptions{
		Adjust: func(s *Settings) { s.Mode, s.Audit = API, true },
		Nodes:  groups(t, `[{name: gpu, count: 2, gpus: 8, labels: {rack: a}}]`),
	})
	if got := slices.Sorted(maps.Keys(pids(t, s))); !slices.Equal(got, []string{etcdName, apiserverName}) {
		t.Errorf("running are %v", got)
	}
	if total, waiting, err := (nodes.Applier{API: c}).Readiness(t.Context()); err != nil || total != 2 || len(waiting) != 0 {
		t.Errorf("%d nodes, not ready %v (%v)", total, waiting, err)
	}
	refusesStrangers(t, s)
	createPod(t, c, "p", "1", nil)
	if p := waitPod(t, c, "p", "Pending", inPhase("Pending")); p.Spec.NodeName != "" {
		t.Errorf("somebody put the pod on %s", p.Spec.NodeName)
	}

	// A changed nodes file is made so; the mode is remembered.
	up(t, s, UpOptions{Nodes: groups(t, `[{name: gpu, count: 2, gpus: 4}, {name: big, gpus: 16}]`)})
	var node struct {
		Metadata struct{ Labels map[string]string }
		Status   struct{ Allocatable map[string]string }
	}
	if err := c.Read(t.Context(), "/api/v1/nodes/gpu-1", &node); err != nil {
		t.Fatal(err)
	}
	if got := node.Status.Allocatable["nvidia.com/gpu"]; got != "4" || node.Metadata.Labels["rack"] != "" {
		t.Errorf("gpu-1 has %s GPUs and labels %v", got, node.Metadata.Labels)
	}
	up(t, s, UpOptions{Nodes: &[]nodes.Group{}})
	if err := c.Read(t.Context(), "/api/v1/nodes/gpu-1", nil); !kube.IsCode(err, http.StatusNotFound) {
		t.Errorf("gpu-1 after all nodes were taken away: %v", err)
	}

	log, err := os.ReadFile(s.LogPath("audit"))
	if err != nil || !strings.Contains(string(log), podsPath) || strings.Contains(string(log), `"resource":"nodes"`) {
		t.Errorf("the audit log should hold the pod and no node (%v):\n%.2000s", err, log)
	}
}

// refusesStrangers: certificates are asked for and RBAC is on.
func refusesStrangers(t *testing.T, s *Sandbox) {
	t.Helper()
	st, err := loadState(s.statePath())
	if err != nil {
		t.Fatal(err)
	}
	trust, err := s.trust()
	if err != nil {
		t.Fatal(err)
	}
	trust.Certificates = nil
	anonymous := kube.New("https://"+hostPort(st.Ports[apiserverName]), trust)
	if err := anonymous.Read(t.Context(), podsPath, nil); !kube.IsCode(err, http.StatusForbidden) {
		t.Errorf("anonymous reads pods: %v", err)
	}
}
