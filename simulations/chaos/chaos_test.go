package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"sluice.dev/sluice/simulations/demo"
)

// A leader that is held until another leads, and then wakes up, admits nothing a
// second time; one that is killed is followed; writes of somebody else lose none of
// ours. The long run of all faults is `make chaos`.
func TestFailOver(t *testing.T) {
	if os.Getenv("SLUICE_E2E") != "1" {
		t.Skip("it needs the control plane, which takes ten minutes to build the first time; SLUICE_E2E=1 runs it")
	}
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // broken connections are expected here
	cache, err := demo.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	root, err := demo.RootAbove(".")
	if err != nil {
		t.Fatal(err)
	}
	o := demo.Options{Root: root, Dir: filepath.Join(cache, "chaos"), Out: os.Stderr}
	down(t, o) // what a run left that was cut off
	report, err := Run(t.Context(), Options{
		Demo: o, Seed: 1,
		Only: []string{"the leader is held, and goes on when another leads", "the leader is killed", "somebody else writes to every object"},
		Say: func(format string, args ...any) {
			fmt.Fprintf(os.Stderr, "%s  %s: %s\n", time.Now().Format("15:04:05"), t.Name(), fmt.Sprintf(format, args...))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, violation := range report.Violations {
		t.Error(violation)
	}
	if len(report.FailOvers) < 2 || report.Released == 0 || report.Jobs == 0 {
		t.Errorf("the lead changed hands %d times, %d pods of %d Jobs were released: too little happened", len(report.FailOvers), report.Released, report.Jobs)
	}
	if !t.Failed() {
		down(t, o)
	}
}

func down(t *testing.T, o demo.Options) {
	t.Helper()
	d, err := demo.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Down(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
}
