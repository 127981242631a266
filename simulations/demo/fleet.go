package demo

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
	"sluice.dev/sluice/simulations/demo/process"
	"sluice.dev/sluice/simulations/fleet"
)

//go:embed fleet.yaml
var fleetFile []byte

// startFleet makes the machines of the sandbox run: their cards, and the agents and
// other programs that look at them. It returns when each has reported.
func (d *Demo) startFleet(ctx context.Context) error {
	program := d.place.program("fleet")
	if err := goBuild(ctx, d.o.Out, d.o.Root, "./simulations/fleet/cmd/fleet", program); err != nil {
		return err
	}
	if err := writeWhole(d.place.fleet(), fleetFile); err != nil {
		return err
	}
	args := []string{"run", "--kubeconfig", d.box.kubeconfig, "--socket", d.place.fleetSocket(), d.place.fleet()}
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", args)
	for _, path := range []string{program, d.place.fleet(), d.box.kubeconfig} {
		if err := addFile(h, path); err != nil {
			return fmt.Errorf("digest of the machines: %w", err)
		}
	}
	digest := hex.EncodeToString(h.Sum(nil))[:16]
	if d.state.Fleet.Alive() && d.state.Fleet.Digest != digest {
		if err := d.state.Fleet.Stop(ctx, stopGrace); err != nil {
			return err
		}
	}
	begin := time.Now()
	if !d.state.Fleet.Alive() {
		identity, err := process.Start(process.Spec{Program: program, Args: args, Dir: d.place.dir, Env: environment(d.place.dir), Log: d.place.fleetLog()})
		if err != nil {
			return err
		}
		d.state.Fleet = recorded{Identity: identity, Digest: digest, Since: begin.Round(0)}
		if err := d.state.save(); err != nil {
			return err
		}
	}
	machines, err := fleet.ReadFile(d.place.fleet())
	if err != nil {
		return err
	}
	err = eventually(ctx, d.say, "the machines report", func() error { return d.reported(ctx, machines) })
	if err == nil {
		d.say("machines: %d report after %v, pid %d", len(machines), time.Since(begin).Round(10*time.Millisecond), d.state.Fleet.PID)
	}
	return err
}

// reported returns nil once each machine's agent has said what its cards are, and its
// node says the same.
func (d *Demo) reported(ctx context.Context, machines []fleet.Machine) error {
	if !d.state.Fleet.Alive() {
		return fmt.Errorf("the machines ended; see %s", d.place.fleetLog())
	}
	for _, m := range machines {
		inv := &v1alpha1.SliceInventory{}
		node := &corev1.Node{}
		if err := d.cluster.Get(ctx, client.ObjectKey{Name: m.Node}, inv); err != nil {
			if client.IgnoreNotFound(err) == nil {
				return fmt.Errorf("%s has not reported: %w", m.Node, errNotYet)
			}
			return err
		}
		if err := d.cluster.Get(ctx, client.ObjectKey{Name: m.Node}, node); err != nil {
			return err
		}
		for _, f := range inv.Report.Features() {
			if node.Labels[f.Key] != f.Value {
				return fmt.Errorf("label %s of %s is %q: %w", f.Key, m.Node, node.Labels[f.Key], errNotYet)
			}
		}
	}
	return nil
}

// Control has something happen to a machine of the sandbox: its node's name, then a
// command of package fleet.
func (d *Demo) Control(ctx context.Context, line string) error {
	return fleet.Send(ctx, d.place.fleetSocket(), line)
}

// label sets a label of a node as a person would, or takes it away if value is "".
func (d *Demo) label(ctx context.Context, node, key, value string) error {
	v := fmt.Sprintf("%q", value)
	if value == "" {
		v = "null"
	}
	o := &corev1.Node{}
	o.Name = node
	body := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, key, v)
	return d.cluster.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(body)), fieldOwner)
}
