package demo

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/admission/kube"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// ThenAnnotation says on a Job of the second act how it comes out once the drift is
// mended, if otherwise than before.
const ThenAnnotation = "demo.sluice.dev/then"

// The drift of the second act: a node that loses a label of feature discovery, which
// does not look any more.
const (
	driftNode  = "mig-0"
	driftLabel = v1alpha1.LabelProduct
)

// Slices is the second act: gangs on slices and shares, of which one waits for a label
// that its node has lost. The drift is said by the node's inventory, and mended by the
// command that it names. It needs Up on the sandbox.
func (d *Demo) Slices(ctx context.Context) (Result, error) {
	gangs, needs, err := readGangs(filepath.Join(d.o.Root, "deploy", "examples", "slices"))
	if err != nil {
		return Result{}, err
	}
	was := d.gangs
	d.gangs = gangs
	defer func() { d.gangs = was }()
	bounded, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	if err := d.applyAll(bounded, needs); err != nil {
		return Result{}, err
	}
	d.say("%s loses its label %s, and nobody puts it back", driftNode, driftLabel)
	if err := d.Control(bounded, driftNode+" discovery freeze"); err != nil {
		return Result{}, err
	}
	if err := d.label(bounded, driftNode, driftLabel, ""); err != nil {
		return Result{}, err
	}
	result, err := d.Play(bounded, Kills{})
	if err != nil || len(result.Surprises()) > 0 {
		return result, err
	}
	if err := d.mend(bounded); err != nil {
		return result, err
	}
	for _, g := range gangs {
		if then := g.manifest.GetAnnotations()[ThenAnnotation]; then != "" {
			g.expect = then
		}
	}
	result.Rows = d.follow(bounded)
	result.TimedOut = bounded.Err() != nil
	d.screen.final(result.Rows)
	return result, d.Control(ctx, driftNode+" discovery follow")
}

// mend shows what the node's inventory says of its drift, and does what it names.
func (d *Demo) mend(ctx context.Context) error {
	var said string
	err := eventually(ctx, d.say, "the drift of "+driftNode+" is said", func() error {
		inv := &v1alpha1.SliceInventory{}
		if err := d.cluster.Get(ctx, client.ObjectKey{Name: driftNode}, inv); err != nil {
			return err
		}
		c := meta.FindStatusCondition(inv.Status.Conditions, kube.DriftCondition)
		if c == nil || !strings.Contains(c.Message, driftLabel) {
			return fmt.Errorf("its condition says nothing of the label: %w", errNotYet)
		}
		said = c.Message
		return nil
	})
	if err != nil {
		return err
	}
	d.say("drift of %s: %s", driftNode, said)
	_, command, found := strings.Cut(said, "mend: kubectl label node "+driftNode+" ")
	pair, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	key, value, ok := strings.Cut(pair, "=")
	if !found || !ok {
		return fmt.Errorf("the drift of %s names no command: %s", driftNode, said)
	}
	d.say("doing so")
	return d.label(ctx, driftNode, key, value)
}
