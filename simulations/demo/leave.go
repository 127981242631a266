package demo

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leave takes the gangs and their queues out of a given cluster, while the
// controller still runs: the Workloads wait for it to let them go.
func (d *Demo) leave(ctx context.Context) (err error) {
	if d.cluster, err = connect(d.state.Kubeconfig); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := d.withdraw(ctx, d.gangs); err != nil {
		return err
	}
	return d.deleteAll(ctx, d.needs)
}

// deleteFolder deletes what a folder of deploy has put into a cluster.
func (d *Demo) deleteFolder(ctx context.Context, name string) error {
	objects, err := readFolder(filepath.Join(d.o.Root, "deploy", name))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return d.deleteAll(ctx, objects)
}

// deleteAll deletes objects against the order in which they are applied.
// Namespaces stay, unless sluice is their only user.
func (d *Demo) deleteAll(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range slices.Backward(inOrder(objects)) {
		if object.GetKind() == "Namespace" && object.GetName() != controllerNamespace {
			continue
		}
		err := eventually(ctx, d.say, "delete "+describe(object), func() error {
			return client.IgnoreNotFound(d.cluster.Delete(ctx, object.DeepCopy()))
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s: %w", describe(object), err)
		}
	}
	return nil
}
