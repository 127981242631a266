package kube

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/constants"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/quota"
)

// workloadOf is the key of the workload that the pod belongs to, or "". The job
// integrations write it on every pod that they let start.
func workloadOf(p *corev1.Pod) string {
	if name := p.Annotations[kueue.WorkloadAnnotation]; name != "" {
		return p.Namespace + "/" + name
	}
	return ""
}

// matters says whether the core has to know the pod: it belongs to a workload, or
// it takes room on a node.
func matters(p *corev1.Pod) bool {
	return workloadOf(p) != "" || p.Spec.NodeName != "" && !ended(p)
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func gated(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == gate })
}

// convertPod is the pod as the core sees it.
func convertPod(space *quota.Space, p *corev1.Pod) admission.Pod {
	out := admission.Pod{
		UID: string(p.UID), Key: p.Namespace + "/" + p.Name, Version: version(p.ResourceVersion),
		Workload: workloadOf(p),
		Set:      p.Labels[constants.PodSetLabel],
		Node:     p.Spec.NodeName,
		Stopping: p.DeletionTimestamp != nil,
		Request:  podRequest(space, p),
		Queue:    p.Labels[constants.ClusterQueueLabel],
	}
	if out.Workload == "" {
		out.Set, out.Queue = "", ""
	} else {
		out.Refused, out.Accepted = refused(p), accepted(p)
		// Its node changed after it was let go, and nothing can change where it may go:
		// to its gang it is as good as lost, unless the scheduler finds room after all.
		out.Stopping = out.Stopping || unschedulable(p)
	}
	if stamp, err := strconv.ParseInt(p.Annotations[StampAnnotation], 10, 64); err == nil {
		out.Stamp = stamp
	}
	if out.Node == "" {
		out.Node = p.Annotations[NodeAnnotation]
	}
	switch {
	case p.Status.Phase == corev1.PodSucceeded:
		out.Phase = admission.PodSucceeded
	case p.Status.Phase == corev1.PodFailed:
		out.Phase = admission.PodFailed
	case gated(p):
		// The annotation may come from a template; only the patch that removes the
		// gate gives the pod its node.
		out.Phase, out.Node, out.Stamp = admission.PodGated, "", 0
	default:
		out.Phase = admission.PodPlaced
	}
	return out
}

// unschedulable says that the scheduler found no room for the pod, which is not held
// by any gate.
func unschedulable(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && !ended(p) && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// refused says that the pod failed because its kubelet did not let it in: one of
// its resources, or the plugin of a device, was not there.
func refused(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed && !accepted(p) &&
		(p.Status.Reason == "UnexpectedAdmissionError" || strings.HasPrefix(p.Status.Reason, "OutOf"))
}

// accepted says that the pod's kubelet let it in: something of it has run.
func accepted(p *corev1.Pod) bool {
	if p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodSucceeded {
		return true
	}
	return slices.ContainsFunc(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	})
}

// podRequest is what the pod takes on its node, itself included. What cannot be
// counted cannot have been bound either.
func podRequest(space *quota.Space, p *corev1.Pod) quota.Resources {
	r, _ := vector(space, resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: true}))
	r.Set(quota.Pods, 1)
	return r
}

// version is the order of an object's versions. The API server's are numbers that
// grow; anything else is 0, which the core takes as older than all.
func version(resourceVersion string) uint64 {
	v, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return v
}
