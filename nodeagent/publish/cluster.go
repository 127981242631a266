package publish

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// Cluster is what an agent asks and writes of one node.
type Cluster interface {
	// Node is the node itself.
	Node(ctx context.Context) (*corev1.Node, error)
	// Inventory is the node's, or nil if there is none.
	Inventory(ctx context.Context) (*v1alpha1.SliceInventory, error)
	// Write makes the inventory say this, whatever it said before.
	Write(ctx context.Context, owner *corev1.Node, r *v1alpha1.Report) error
	// Beat renews the heartbeat.
	Beat(ctx context.Context, owner *corev1.Node, now time.Time, lasts time.Duration) error
}

// answerTime bounds each request.
const answerTime = 30 * time.Second

// Node is the Cluster of an agent on the node called Name.
type Node struct {
	client.Client
	Name string
}

var _ Cluster = Node{}

// Node reads the node.
func (n Node) Node(ctx context.Context) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	node := &corev1.Node{}
	if err := n.Get(ctx, client.ObjectKey{Name: n.Name}, node); err != nil {
		return nil, fmt.Errorf("read node %s: %w", n.Name, err)
	}
	return node, nil
}

// Inventory reads the node's inventory.
func (n Node) Inventory(ctx context.Context) (*v1alpha1.SliceInventory, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	inv := &v1alpha1.SliceInventory{}
	err := n.Get(ctx, client.ObjectKey{Name: n.Name}, inv)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the inventory of %s: %w", n.Name, err)
	default:
		return inv, nil
	}
}

// Write applies the inventory, owned by the node.
func (n Node) Write(ctx context.Context, owner *corev1.Node, r *v1alpha1.Report) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
	if err != nil {
		return fmt.Errorf("convert the report of %s: %w", n.Name, err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"report": content}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("SliceInventory"))
	u.SetName(n.Name)
	if err := n.apply(ctx, u, owner); err != nil {
		return fmt.Errorf("write the inventory of %s: %w", n.Name, err)
	}
	return nil
}

// Beat applies the Lease.
func (n Node) Beat(ctx context.Context, owner *corev1.Node, now time.Time, lasts time.Duration) error {
	lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &n.Name, RenewTime: ptr.To(metav1.NewMicroTime(now)), LeaseDurationSeconds: ptr.To(int32(lasts / time.Second)),
	}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&lease.Spec)
	if err != nil {
		return fmt.Errorf("convert the heartbeat of %s: %w", n.Name, err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	u.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	u.SetName(n.Name)
	u.SetNamespace(v1alpha1.HeartbeatNamespace)
	if err := n.apply(ctx, u, owner); err != nil {
		return fmt.Errorf("renew the heartbeat of %s: %w", n.Name, err)
	}
	return nil
}

// apply is by force: nobody else has a say in what an agent writes.
func (n Node) apply(ctx context.Context, u *unstructured.Unstructured, owner *corev1.Node) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: owner.Name, UID: owner.UID}})
	return n.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(v1alpha1.AgentName), client.ForceOwnership)
}

// labelTime bounds the wait for labels, for which a look at the devices waits.
const labelTime = 5 * time.Second

// Labels reads the node's labels, at most as often as given. In between, and while the
// API server does not answer, they are those read last: an error is only that none
// were ever read. One goroutine may call it.
func Labels(c Cluster, o clock.PassiveClock, every time.Duration) func(context.Context) (map[string]string, error) {
	var last map[string]string
	var at time.Time
	known := false
	return func(ctx context.Context) (map[string]string, error) {
		if known && o.Since(at) < every {
			return last, nil
		}
		ctx, cancel := context.WithTimeout(ctx, labelTime)
		defer cancel()
		node, err := c.Node(ctx)
		switch {
		case err == nil:
			last, known = node.Labels, true
		case !known:
			return nil, err
		}
		at = o.Now()
		return last, nil
	}
}
