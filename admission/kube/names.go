package kube

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// Annotations and labels of sluice's own.
const (
	// NodeAnnotation is on a released pod: the node that its plan names.
	NodeAnnotation = "sluice.dev/node"
	// StampAnnotation is on a released pod: when its workload was admitted, in
	// seconds since 1970. It tells pods of one admission from those of the next.
	StampAnnotation = "sluice.dev/admitted"
	// PreemptibleAnnotation, "false" as a label or annotation of a Workload, says
	// that nobody may take the gang back.
	PreemptibleAnnotation = "sluice.dev/preemptible"
)

const (
	// DefaultFlavor is the ResourceFlavor that admissions name where the queue has
	// none of its own. It has no labels.
	DefaultFlavor = "sluice-default"
	// FieldOwner is who writes what is not Kueue's: pods and the status of queues.
	FieldOwner = "sluice"

	gate       = kueue.TopologySchedulingGate
	hostname   = corev1.LabelHostname
	finalizer  = kueue.ResourceInUseFinalizerName
	cohortMark = "cohort/" // starts the core's name of a cohort; no object can be called so
)

// AddToScheme adds the kinds that this package reads and writes.
func AddToScheme(s *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, kueue.AddToScheme, volcano.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			return err
		}
	}
	return nil
}
