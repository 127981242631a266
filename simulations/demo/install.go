package demo

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// install puts the CRDs, the namespace, the service account and its rights into
// the cluster, as `kubectl apply --server-side -k` would. Workloads of the
// deployment are left out: here the controller runs on this machine.
func (d *Demo) install(ctx context.Context) error {
	crds, err := readFolder(filepath.Join(d.o.Root, "deploy", "crd"))
	if err != nil {
		return err
	}
	base, err := readFolder(filepath.Join(d.o.Root, "deploy", "base"))
	if err != nil {
		return err
	}
	base = slices.DeleteFunc(base, func(o *unstructured.Unstructured) bool {
		return o.GroupVersionKind().Group == "apps" || o.GetKind() == "Service" || o.GetKind() == "PodDisruptionBudget"
	})
	agent, err := readFolder(filepath.Join(d.o.Root, "deploy", "agent"))
	if err != nil {
		return err
	}
	agent = slices.DeleteFunc(agent, func(o *unstructured.Unstructured) bool { return o.GroupVersionKind().Group == "apps" })
	if err := d.applyAll(ctx, slices.Concat(crds, base, agent)); err != nil {
		return err
	}
	for _, crd := range crds {
		err := eventually(ctx, d.say, describe(crd)+" is served", func() error { return d.cluster.served(ctx, crd.GetName()) })
		if err != nil {
			return err
		}
	}
	return nil
}

// applyAll applies objects, those that others need first.
func (d *Demo) applyAll(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range inOrder(objects) {
		err := eventually(ctx, d.say, "apply "+describe(object), func() error { return d.cluster.apply(ctx, object) })
		if err != nil {
			return fmt.Errorf("apply %s: %w", describe(object), err)
		}
	}
	return nil
}

// served returns nil once the API server serves a CRD's kind.
func (c *Cluster) served(ctx context.Context, name string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return err
	}
	for _, condition := range crd.Status.Conditions {
		switch condition.Type {
		case apiextensionsv1.Established:
			if condition.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		case apiextensionsv1.NamesAccepted:
			if condition.Status == apiextensionsv1.ConditionFalse {
				return fmt.Errorf("%s: %s", name, condition.Message)
			}
		}
	}
	return fmt.Errorf("%s: %w", name, errNotYet)
}
