package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kueue/pkg/workload"

	"sluice.dev/sluice/admission/jobs/plane"
)

// Every kind with a suspend field, through its whole life: suspended at creation,
// its Workload made, started, taken back, started again, finished. The manager runs
// before the CRDs are there, so that this is also the test of kinds that come later.
func TestKinds(t *testing.T) {
	w := newWorld(t)
	installKinds(t)
	objects, err := plane.Read("testdata/kinds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range objects {
		u.SetNamespace(w.ns)
		sets, finish := u.GetAnnotations()["test/pod-sets"], u.GetAnnotations()["test/finish"]
		if sets == "" { // described by others
			w.create(u)
			continue
		}
		t.Run(u.GetKind(), func(t *testing.T) { (&world{T: t, Client: w.Client, ns: w.ns}).live(u, sets, finish) })
	}
}

func (w *world) live(u *unstructured.Unstructured, sets, finish string) {
	w.create(u)
	if !w.jobOf(u).IsSuspended() {
		w.Fatal("created unsuspended")
	}
	wl, err := w.workloadOf(u)
	w.eventually("a Workload", func() error {
		wl, err = w.workloadOf(u)
		return err
	})
	if got := podSets(wl); got != sets {
		w.Fatalf("pod sets %s, want %s", got, sets)
	}
	if wl.Spec.QueueName != "main" {
		w.Errorf("queue %q", wl.Spec.QueueName)
	}
	running := func() {
		w.admit(wl)
		w.eventually("started", func() error {
			if w.jobOf(u).IsSuspended() {
				return errors.New("still suspended")
			}
			return nil
		})
	}
	running()
	w.evict(wl)
	w.eventually("suspended again", func() error {
		if !w.jobOf(u).IsSuspended() {
			return errors.New("it runs")
		}
		return nil
	})
	running()
	if finish == "" {
		return // it serves until it is deleted
	}
	if err := w.Status().Patch(context.Background(), u, client.RawPatch(types.MergePatchType, []byte(finish))); err != nil {
		w.Fatal(err)
	}
	w.eventually("finished", func() error {
		if err := w.Get(context.Background(), client.ObjectKeyFromObject(wl), wl); err != nil {
			return err
		}
		if !workload.IsFinished(wl) {
			return fmt.Errorf("conditions %v", wl.Status.Conditions)
		}
		return nil
	})
}
