package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/simulations/demo"
	"sluice.dev/sluice/simulations/e2e/witness"
)

// fault is one way to break something, for a while.
type fault struct {
	name string
	// excuses says that nobody can release pods while it lasts, however well the
	// controllers are.
	excuses bool
	// do breaks it, waits, and mends it.
	do func(*run, context.Context, *rand.Rand) error
}

// faults are all that is tried.
var faults = []fault{
	{"the leader is killed", false, func(r *run, ctx context.Context, _ *rand.Rand) error { return r.onLeader(ctx, r.kill) }},
	{"the leader is held, and goes on when another leads", false, (*run).holdLeader},
	{"the leader is held for a moment", false, (*run).holdBriefly},
	{"the standby is killed", false, (*run).killStandby},
	{"both controllers are killed", false, (*run).killBoth},
	{"both controllers are killed and their journals lost", false, (*run).loseJournals},
	{"the leader is stopped in order", false, (*run).stopLeader},
	{"the API server restarts", true, component("kube-apiserver", 2*time.Second, 12*time.Second)},
	{"etcd restarts", true, component("etcd", 2*time.Second, 8*time.Second)},
	{"kube-scheduler is gone", false, component("kube-scheduler", 5*time.Second, 20*time.Second)},
	{"kube-controller-manager is gone", false, component("kube-controller-manager", 5*time.Second, 15*time.Second)},
	{"the webhooks do not answer", false, (*run).closeGateway},
	{"somebody else writes to every object", false, (*run).scribble},
}

// exchange needs an earlier build.
var exchange = fault{"the controllers go back to an earlier build, and forth again", false, (*run).exchange}

// choose returns the faults that the options name; all, if they name none.
func (r *run) choose() (of []fault, err error) {
	all := faults
	if r.o.Earlier != "" {
		all = append(slices.Clone(faults), exchange)
	}
	if len(r.o.Only) == 0 {
		return all, nil
	}
	for _, name := range r.o.Only {
		i := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no fault %q", name)
		}
		of = append(of, all[i])
	}
	return of, nil
}

// exchange is a roll-back and an upgrade, one controller after the other, as a
// Deployment does it.
func (r *run) exchange(ctx context.Context, random *rand.Rand) error {
	for _, program := range []string{r.o.Earlier, r.demo.ControllerProgram()} {
		for _, s := range r.controllers {
			if err := s.Replace(ctx, program); err != nil {
				return err
			}
		}
		if err := pause(ctx, between(random, 3*time.Second, 10*time.Second)); err != nil {
			return err
		}
	}
	return nil
}

func between(random *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(random.Int64N(int64(high-low)))
}

// pause waits, and says whether it was let.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (r *run) kill(ctx context.Context, s *demo.Supervisor) error { return s.Kill(ctx) }

// onLeader does something to the controller that leads, once one does.
func (r *run) onLeader(ctx context.Context, do func(context.Context, *demo.Supervisor) error) error {
	s, err := r.awaitLeader(ctx)
	if err != nil {
		return err
	}
	return do(ctx, s)
}

func (r *run) killStandby(ctx context.Context, _ *rand.Rand) error {
	leader, err := r.awaitLeader(ctx)
	if err != nil {
		return err
	}
	for _, s := range r.controllers {
		if s != leader {
			err = errors.Join(err, s.Kill(ctx))
		}
	}
	return err
}

func (r *run) killBoth(ctx context.Context, _ *rand.Rand) error {
	var err error
	for _, s := range r.controllers {
		err = errors.Join(err, s.Kill(ctx))
	}
	return err
}

// loseJournals is the end of a node with the emptyDir that both journals were in.
func (r *run) loseJournals(ctx context.Context, _ *rand.Rand) error {
	var err error
	for _, s := range r.controllers {
		err = errors.Join(err, s.Stop(ctx), os.RemoveAll(s.Journal()))
	}
	for _, s := range r.controllers {
		_, e := s.Ensure(ctx)
		err = errors.Join(err, e)
	}
	return err
}

// holdLeader holds the leader until its lease has run out and another leads; then it
// wakes up and believes for a moment that it still does.
func (r *run) holdLeader(ctx context.Context, random *rand.Rand) error {
	old, err := r.awaitLeader(ctx)
	if err != nil {
		return err
	}
	if err := old.Pause(); err != nil {
		return err
	}
	defer func() { _ = old.Resume() }()
	if err := r.eventually(ctx, "another leads", func() error {
		if leader := r.leading(); leader == nil || leader == old {
			return errors.New("none does")
		}
		return nil
	}); err != nil {
		return err
	}
	return pause(ctx, between(random, 0, 3*time.Second))
}

// holdBriefly holds the leader for less than its lease.
func (r *run) holdBriefly(ctx context.Context, random *rand.Rand) error {
	return r.onLeader(ctx, func(ctx context.Context, s *demo.Supervisor) error {
		if err := s.Pause(); err != nil {
			return err
		}
		defer func() { _ = s.Resume() }()
		return pause(ctx, between(random, 500*time.Millisecond, 5*time.Second))
	})
}

func (r *run) stopLeader(ctx context.Context, random *rand.Rand) error {
	return r.onLeader(ctx, func(ctx context.Context, s *demo.Supervisor) error {
		if err := s.Stop(ctx); err != nil {
			return err
		}
		if err := pause(ctx, between(random, 0, 5*time.Second)); err != nil {
			return err
		}
		_, err := s.Ensure(ctx)
		return err
	})
}

// component stops a part of the control plane for a while.
func component(name string, low, high time.Duration) func(*run, context.Context, *rand.Rand) error {
	return func(r *run, ctx context.Context, random *rand.Rand) error {
		if _, err := r.demo.Sandbox(ctx, "stop", name); err != nil {
			return err
		}
		waited := pause(ctx, between(random, low, high))
		// It is started again also if the run is cut off.
		_, err := r.demo.Sandbox(context.WithoutCancel(ctx), "start", name)
		return errors.Join(err, waited)
	}
}

func (r *run) closeGateway(ctx context.Context, random *rand.Rand) error {
	r.gateway.closed.Store(true)
	defer r.gateway.closed.Store(false)
	return pause(ctx, between(random, 3*time.Second, 12*time.Second))
}

// scribble changes an annotation of every Workload and pod again and again, so that
// whoever wants to write has seen an older version.
func (r *run) scribble(ctx context.Context, random *rand.Rand) error {
	c := r.demo.Cluster()
	for end := time.Now().Add(between(random, 4*time.Second, 10*time.Second)); time.Now().Before(end); {
		for _, team := range teams {
			for _, list := range []client.ObjectList{&kueue.WorkloadList{}, &corev1.PodList{}} {
				if err := c.List(ctx, list, client.InNamespace(team)); err != nil {
					return err
				}
				for _, o := range objects(list) {
					patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"example.org/note":"%d"}}}`, random.Uint64()))
					if err := c.Patch(ctx, o, patch); client.IgnoreNotFound(err) != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func objects(list client.ObjectList) (all []client.Object) {
	switch l := list.(type) {
	case *kueue.WorkloadList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	case *corev1.PodList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	}
	return all
}

// strike does one fault and returns when it lasted.
func (r *run) strike(ctx context.Context, f fault, random *rand.Rand) (witness.Interval, error) {
	i := witness.Interval{From: time.Now()}
	err := f.do(r, ctx, random)
	i.To = time.Now()
	if err != nil {
		return i, fmt.Errorf("%s: %w", f.name, err)
	}
	return i, nil
}
