package jobs

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// gated is a manager whose runnables, added through it, start only once ready
// is closed. Everything else about them is settled before the manager starts:
// the indexes, the informers, the webhook handlers.
type gated struct {
	ctrl.Manager
	ready <-chan struct{}
}

func (g gated) Add(r manager.Runnable) error {
	return g.Manager.Add(waiting{Runnable: r, ready: g.ready})
}

// waiting starts a runnable after ready is closed, on the same terms about
// leadership as without it.
type waiting struct {
	manager.Runnable
	ready <-chan struct{}
}

func (w waiting) Start(ctx context.Context) error {
	select {
	case <-w.ready:
		return w.Runnable.Start(ctx)
	case <-ctx.Done():
		return nil
	}
}

func (w waiting) NeedLeaderElection() bool {
	if r, ok := w.Runnable.(manager.LeaderElectionRunnable); ok {
		return r.NeedLeaderElection()
	}
	return true
}
