package jobs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// warm has the kinds watched from the start that the integrations otherwise
// begin to watch when the first job needs them, which then waits for the list.
func warm(ctx context.Context, c cache.Cache) error {
	for _, kind := range []client.Object{
		&corev1.Namespace{}, &corev1.LimitRange{},
		&schedulingv1.PriorityClass{}, &nodev1.RuntimeClass{},
		&kueue.ResourceFlavor{}, &kueue.WorkloadPriorityClass{},
	} {
		if _, err := c.GetInformer(ctx, kind); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	return nil
}
