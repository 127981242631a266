package jobs

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// What the configuration may name, in full: a new version of Kueue that adds or
// drops a kind is to be noticed.
func TestFrameworks(t *testing.T) {
	want := []string{
		"batch/job", "deployment", "jobset.x-k8s.io/jobset",
		"kubeflow.org/jaxjob", "kubeflow.org/mpijob", "kubeflow.org/paddlejob", "kubeflow.org/pytorchjob", "kubeflow.org/tfjob", "kubeflow.org/xgboostjob",
		"leaderworkerset.x-k8s.io/leaderworkerset", "pod", "ray.io/raycluster", "ray.io/rayjob", "ray.io/rayservice",
		"sparkoperator.k8s.io/sparkapplication", "statefulset", "trainer.kubeflow.org/trainjob", "workload.codeflare.dev/appwrapper",
	}
	var got []string
	for _, f := range Frameworks() {
		got = append(got, f.Name)
		if f.GVK.Kind == "" || f.GVK.Version == "" || f.Resource == "" {
			t.Errorf("%s: %+v", f.Name, f)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		frameworks []string
		ok         bool
	}{
		{nil, false},
		{[]string{FrameworkJob}, true},
		{[]string{FrameworkJob, FrameworkPod}, true},
		{[]string{FrameworkJob, "ray.io/rayjob"}, true},
		{[]string{FrameworkJob, "ray.io/raytask"}, false},
		{[]string{FrameworkDeployment}, false}, // it queues pods
		{[]string{FrameworkDeployment, FrameworkPod}, true},
		{frameworkNames(), true},
	} {
		if err := (Options{Frameworks: test.frameworks}).validate(); (err == nil) != test.ok {
			t.Errorf("%v: %v", test.frameworks, err)
		}
	}
}

// v1beta1 in the scheme would register a conversion webhook.
func TestSchemeSpeaksOneVersion(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	if got := s.PrioritizedVersionsForGroup("kueue.x-k8s.io"); len(got) != 1 || got[0] != (schema.GroupVersion{Group: "kueue.x-k8s.io", Version: "v1beta2"}) {
		t.Errorf("versions %v", got)
	}
}

type recorder struct {
	ctrl.Manager
	added []manager.Runnable
}

func (r *recorder) Add(runnable manager.Runnable) error {
	r.added = append(r.added, runnable)
	return nil
}

type everywhere struct{ manager.Runnable }

func (everywhere) NeedLeaderElection() bool { return false }

func TestGateHoldsRunnablesBack(t *testing.T) {
	ready, ran := make(chan struct{}), make(chan struct{}, 1)
	m := &recorder{}
	g := gated{Manager: m, ready: ready}
	run := manager.RunnableFunc(func(context.Context) error { ran <- struct{}{}; return nil })
	for _, r := range []manager.Runnable{run, everywhere{run}} {
		if err := g.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if leads := m.added[0].(manager.LeaderElectionRunnable).NeedLeaderElection(); !leads {
		t.Error("a runnable that says nothing runs on the leader only; behind the gate it does not")
	}
	if leads := m.added[1].(manager.LeaderElectionRunnable).NeedLeaderElection(); leads {
		t.Error("a runnable for every replica waits for leadership behind the gate")
	}

	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := m.added[0].Start(stopped); err != nil {
		t.Fatal(err)
	}
	if len(ran) != 0 {
		t.Fatal("ran before it was ready")
	}
	close(ready)
	if err := m.added[0].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(ran) != 1 {
		t.Fatal("did not run when ready")
	}
}
