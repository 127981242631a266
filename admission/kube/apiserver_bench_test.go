package kube_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
)

// BenchmarkAdmission measures admissions a second against the rate at which a bare
// client writes the same status, as the metric "ofBareClient". Run it with
// -benchtime 1x; one round is both.
func BenchmarkAdmission(b *testing.B) {
	const gangs = 400
	for b.Loop() {
		w := newWorld(b, node("n0", 100), node("n1", 100), node("n2", 100), node("n3", 100))
		hold := func(cq *kueue.ClusterQueue) { cq.Spec.StopPolicy = ptr.To(kueue.Hold) }
		w.queues(gangs, hold)
		var list []*kueue.Workload
		for i := range gangs {
			wl := w.workload(fmt.Sprintf("w-%d", i), 1, 1)
			w.create(wl)
			list = append(list, wl)
		}
		for _, wl := range list {
			w.waits(wl, "QueueClosed")
		}
		all := w.watchAdmissions(gangs)
		start := time.Now()
		change(w, clusterQueue(w.ns, gangs), func(cq *kueue.ClusterQueue) { cq.Spec.StopPolicy = ptr.To(kueue.None) })
		<-all
		ours := time.Since(start)
		w.stop()

		admission := w.admitted(list[0]).Status.Admission
		for i, wl := range list {
			w.removed(wl)
			list[i] = w.workload(wl.Name, 1, 1)
			w.create(list[i])
		}
		config := rest.CopyConfig(w.server.config)
		bare, err := client.New(config, client.Options{Scheme: scheme()})
		if err != nil {
			b.Fatal(err)
		}
		start = time.Now()
		w.writeAll(bare, list, admission)
		theirs := time.Since(start)
		b.ReportMetric(gangs/ours.Seconds(), "admissions/s")
		b.ReportMetric(gangs/theirs.Seconds(), "bareWrites/s")
		b.ReportMetric(theirs.Seconds()/ours.Seconds(), "ofBareClient")
	}
}

// watchAdmissions returns a channel that is closed when n workloads are admitted.
// It watches, since listing them again and again would be most of the work.
func (w *world) watchAdmissions(n int) <-chan struct{} {
	c, err := client.NewWithWatch(w.server.config, client.Options{Scheme: scheme()})
	if err != nil {
		w.t.Fatal(err)
	}
	events, err := c.Watch(context.Background(), &kueue.WorkloadList{}, client.InNamespace(w.ns))
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer events.Stop()
		admitted := map[string]bool{}
		for e := range events.ResultChan() {
			if wl, ok := e.Object.(*kueue.Workload); ok && wl.Status.Admission != nil {
				admitted[wl.Name] = true
			}
			if len(admitted) == n {
				return
			}
		}
	}()
	return done
}

// writeAll writes the admission to every workload as fast as the client can.
func (w *world) writeAll(c client.Client, list []*kueue.Workload, a *kueue.Admission) {
	var wg sync.WaitGroup
	work := make(chan *kueue.Workload)
	for range 64 {
		wg.Go(func() {
			for wl := range work {
				err := workload.PatchAdmissionStatus(context.Background(), c, wl, clock.RealClock{}, func(wl *kueue.Workload) (bool, error) {
					workload.SetQuotaReservation(wl, a, clock.RealClock{})
					workload.SyncAdmittedCondition(wl, time.Now())
					return true, nil
				})
				if err != nil {
					w.t.Error(err)
				}
			}
		})
	}
	for _, wl := range list {
		work <- wl
	}
	close(work)
	wg.Wait()
}

func (w *world) removed(o client.Object) {
	if err := client.IgnoreNotFound(w.Delete(context.Background(), o)); err != nil {
		w.t.Fatal(err)
	}
}
