package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/simulations/sandbox/kube"
	"sluice.dev/sluice/simulations/sandbox/nodes"
)

// settleTimeout bounds the wait for what a cluster does by itself once its
// components are healthy.
const settleTimeout = 2 * time.Minute

// UpOptions are what Up is told.
type UpOptions struct {
	// Adjust changes the remembered settings; nil changes nothing.
	Adjust func(*Settings)
	// Nodes are the wanted nodes. With nil the nodes stay as they are, and a new
	// sandbox of mode All gets those of DefaultNodes.
	Nodes *[]nodes.Group
}

// Up makes the sandbox run as its settings say and returns when everything is
// healthy, the nodes are ready and pods can be created.
func (s *Sandbox) Up(ctx context.Context, o UpOptions) error {
	held, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer held.Release()
	st, err := loadState(s.statePath())
	if err != nil {
		return err
	}
	if o.Adjust != nil {
		o.Adjust(&st.Settings)
		if err := st.Settings.Validate(); err != nil {
			return err
		}
	}
	r, err := newRunner(ctx, s, st)
	if err != nil {
		return err
	}
	if err := r.startAll(ctx); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.applyNodes(ctx, o.Nodes); err != nil {
		return err
	}
	return st.save(s.statePath())
}

// startAll stops what the mode excludes and starts the rest, stage by stage.
func (r *runner) startAll(ctx context.Context) error {
	var excluded, wanted []component
	for _, c := range components {
		if c.in(r.st.Settings.Mode) {
			wanted = append(wanted, c)
		} else {
			excluded = append(excluded, c)
		}
	}
	if err := r.box.stopAll(ctx, r.st, excluded); err != nil {
		return err
	}
	// Ports first: the files of one component name those of another.
	for _, c := range wanted {
		if p, recorded := r.st.Processes[c.name]; recorded && p.Alive() {
			continue
		}
		if err := assignPorts(r.st.Ports, c.ports); err != nil {
			return err
		}
	}
	if err := r.st.save(r.box.statePath()); err != nil {
		return err
	}
	for _, stage := range stages(wanted) {
		if err := r.startStage(ctx, stage); err != nil {
			return err
		}
	}
	return nil
}

// stages cuts components, which are in order, where the stage changes.
func stages(cs []component) [][]component {
	var cut [][]component
	for _, c := range cs {
		if last := len(cut) - 1; last >= 0 && cut[last][0].stage == c.stage {
			cut[last] = append(cut[last], c)
			continue
		}
		cut = append(cut, []component{c})
	}
	return cut
}

// settle waits for what a pod needs before it can be created: its namespace,
// and in mode All the service account that a controller makes there.
func (r *runner) settle(ctx context.Context) error {
	path := "/api/v1/namespaces/default"
	if r.st.Settings.Mode == All {
		path += "/serviceaccounts/default"
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		err := r.api().Read(ctx, path, nil)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the namespace default: %w", errors.Join(err, ctx.Err()))
		case <-time.After(healthEvery):
		}
	}
}

// applyNodes makes the nodes what the groups say and waits until they are ready.
func (r *runner) applyNodes(ctx context.Context, groups *[]nodes.Group) error {
	full := r.st.Settings.Mode == All
	if groups == nil && full && !r.st.NodesGiven {
		parsed, err := nodes.Parse("nodes.yaml", DefaultNodes)
		if err != nil {
			return err
		}
		groups = &parsed
	}
	a := nodes.Applier{API: r.api(), Ready: !full}
	if groups != nil {
		changes, err := a.Apply(ctx, nodes.Expand(*groups))
		if err != nil {
			return err
		}
		r.st.NodesGiven = true
		if !changes.Empty() {
			r.box.say("nodes: %s; %d created, %d changed, %d removed", nodes.Summary(*groups),
				len(changes.Created), len(changes.Changed), len(changes.Removed))
		}
	}
	if !full {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	begin := time.Now()
	ready, err := a.WaitReady(ctx)
	if err != nil {
		return err
	}
	r.box.say("nodes: %d ready after %v", ready, time.Since(begin).Round(10*time.Millisecond))
	return nil
}

// Client is a client of the sandbox's API server as its administrator.
func (s *Sandbox) Client() (*kube.Client, error) {
	st, err := loadState(s.statePath())
	if err != nil {
		return nil, err
	}
	trust, err := s.trust()
	if err != nil {
		return nil, err
	}
	return kube.New("https://"+hostPort(st.Ports[apiserverName]), trust), nil
}
