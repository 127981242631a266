package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/simulations/demo"
)

// runVariable set to 1 runs the tests even if the control plane must be built
// first.
const runVariable = "SLUICE_E2E"

// progress is where lines go that tell what a long test does.
var progress io.Writer = os.Stderr

// stage is the demo that all tests share, once one of them has asked for it.
type stage struct {
	*demo.Demo
	root    string
	skipped string // why there is none
	err     error
}

var shared *stage

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // broken watches are expected here
	code := m.Run()
	if shared != nil && shared.Demo != nil {
		code = shared.clear(code)
	}
	os.Exit(code)
}

// clear removes all that was started. After a failure the data and logs stay
// until the next run.
func (s *stage) clear(code int) int {
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	err := s.err
	if code == 0 && err == nil {
		err = s.Down(ctx)
	} else {
		if s.Supervisor() != nil {
			err = s.Supervisor().Stop(ctx)
		}
		_, down := s.Sandbox(ctx, "down")
		err = errors.Join(err, down)
		for _, line := range s.Places() {
			fmt.Fprintln(progress, line)
		}
	}
	if err != nil {
		fmt.Fprintln(progress, "e2e:", err)
		return max(code, 1)
	}
	return code
}

// onStage brings the shared demo up, or skips the test. When it returns the
// controller is ready and the queues are there.
func onStage(t *testing.T) *stage {
	t.Helper()
	if shared == nil {
		shared = &stage{}
		shared.open(t.Context())
	}
	switch {
	case shared.skipped != "":
		t.Skip(shared.skipped)
	case shared.err != nil:
		t.Fatalf("bring the demo up: %v", shared.err)
	}
	if _, err := shared.Supervisor().Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	return shared
}

func (s *stage) open(ctx context.Context) {
	cache, err := demo.CacheDir()
	if err != nil {
		s.err = err
		return
	}
	if missing := missingProgram(cache); missing != "" && os.Getenv(runVariable) != "1" {
		s.skipped = fmt.Sprintf("the control plane is not built (there is no %s in %s); %s=1 builds it, in about ten minutes", missing, cache, runVariable)
		return
	}
	if s.root, s.err = demo.RootAbove("."); s.err != nil {
		return
	}
	o := demo.Options{Root: s.root, Dir: filepath.Join(cache, "e2e"), Out: progress}
	if s.err = removeEarlier(ctx, o); s.err != nil {
		return
	}
	if s.Demo, s.err = demo.Open(o); s.err != nil {
		return
	}
	s.err = s.Up(ctx)
}

// removeEarlier removes what a run left that failed or was cut off.
func removeEarlier(ctx context.Context, o demo.Options) error {
	if _, err := os.Stat(filepath.Join(o.Dir, "state.json")); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	fmt.Fprintln(progress, "removing what an earlier run left")
	d, err := demo.Open(o)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Down(ctx)
}

// missingProgram names a program of the control plane that was not built yet.
func missingProgram(cache string) string {
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"} {
		if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
			if _, err := os.Stat(filepath.Join(assets, name)); err == nil {
				continue
			}
		}
		if found, err := filepath.Glob(filepath.Join(cache, "bin", "*", name)); err != nil || len(found) == 0 {
			return name
		}
	}
	return ""
}

// tell writes a line of progress.
func tell(t *testing.T, format string, args ...any) {
	t.Helper()
	fmt.Fprintf(progress, "%s  %s: %s\n", time.Now().Format("15:04:05"), t.Name(), fmt.Sprintf(format, args...))
}

// patience bounds the wait for a state that must come. Nothing is measured.
const patience = 3 * time.Minute

// eventually waits for a state, and says every ten seconds what is missing.
func eventually(t *testing.T, what string, reached func() error) {
	t.Helper()
	deadline, told := time.Now().Add(patience), time.Now()
	for {
		err := reached()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		if time.Since(told) > 10*time.Second {
			tell(t, "waiting: %s: %v", what, err)
			told = time.Now()
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// namespace makes a namespace for a test, with the LocalQueue `main` of a
// ClusterQueue.
func (s *stage) namespace(t *testing.T, name, clusterQueue string) {
	t.Helper()
	c := s.Cluster()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := c.Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	eventually(t, "pods can be created in "+name, func() error {
		return c.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
	})
	queue := &kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "main"},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(clusterQueue)},
	}
	if err := c.Create(t.Context(), queue); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}
