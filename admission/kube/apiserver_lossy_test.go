package kube_test

import (
	"context"
	"maps"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// lossyClient loses the answers to some patches and some patches altogether, and
// says the same of both: that no answer came in time.
type lossyClient struct {
	client.Client
	n *atomic.Int64
}

func (w *world) newClient(c *rest.Config, o client.Options) (client.Client, error) {
	plain, err := client.New(c, o)
	if err != nil || !w.lossy {
		return plain, err
	}
	return &lossyClient{plain, &w.patches}, nil
}

func (l *lossyClient) lose(patch func() error) error {
	switch l.n.Add(1) % 4 {
	case 1: // it took effect, the answer is lost
		if err := patch(); err != nil {
			return err
		}
		return context.DeadlineExceeded
	case 2: // it never arrived
		return context.DeadlineExceeded
	default:
		return patch()
	}
}

func (l *lossyClient) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return l.lose(func() error { return l.Client.Patch(ctx, o, p, opts...) })
}

func (l *lossyClient) Status() client.SubResourceWriter { return lossyStatus{l.Client.Status(), l} }

type lossyStatus struct {
	client.SubResourceWriter
	l *lossyClient
}

func (s lossyStatus) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.l.lose(func() error { return s.SubResourceWriter.Patch(ctx, o, p, opts...) })
}

// Whichever answers are lost, nothing is done twice and nothing is forgotten.
func TestAnswersAreLost(t *testing.T) {
	w := newWorld(t)
	w.stop()
	w.lossy = true
	w.addNode(node("n0", 8))
	w.addNode(node("n1", 8))
	w.queues(16, preemptsWithin)
	w.start()
	low := w.workload("low", 8, 2, job)
	w.create(low)
	low = w.admitted(low)
	on := map[string]int{}
	pods := w.pods(low, 8)
	for _, p := range pods {
		node := w.released(p)
		w.bind(p, node)
		on[node]++
	}
	if want := (map[string]int{"n0": 4, "n1": 4}); !maps.Equal(on, want) {
		t.Errorf("released to %v, want %v", on, want)
	}
	high := w.workload("high", 2, 8, job, func(wl *kueue.Workload) { wl.Spec.Priority = ptr.To[int32](10) })
	w.create(high)
	low = w.evicted(low, kueue.WorkloadEvictedByPreemption)
	if n := low.Status.SchedulingStats.Evictions[0].Count; n != 1 {
		t.Errorf("evicted %d times", n)
	}
	w.stopped(low)
	for _, p := range pods {
		w.gone(p)
	}
	high = w.admitted(high)
	on = map[string]int{}
	for _, p := range w.pods(high, 2) {
		on[w.released(p)]++
	}
	if want := (map[string]int{"n0": 1, "n1": 1}); !maps.Equal(on, want) {
		t.Errorf("released to %v, want %v", on, want)
	}
	w.waits(low, "Quota")
	if n := w.patches.Load(); n < 14 { // 3 of workloads, 10 of pods, and verdicts
		t.Errorf("only %d patches went through the client that loses them", n)
	}
}
