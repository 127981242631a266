package witness

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Write writes the log for a person to read: a line for each version of each
// object, in the order of what happened, with what the rules look at.
func (l *Log) Write(out io.Writer) error {
	records, blind := l.ordered()
	for _, kind := range slices.Sorted(maps.Keys(blind)) {
		for _, b := range blind[kind] {
			if _, err := fmt.Fprintf(out, "blind to %ss from %s to %s\n", kind, b.From.Format(clock), b.To.Format(clock)); err != nil {
				return err
			}
		}
	}
	for _, r := range records {
		for _, o := range r.Objects {
			_, err := fmt.Fprintf(out, "%8d %s %-7s %-12s %s %s\n", r.Revision, r.At.Format(clock), r.Verb, r.Kind, client.ObjectKeyFromObject(o), summary(o))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

const clock = "15:04:05.000"

func (v Verb) String() string { return [...]string{"listed", "changed", "deleted"}[v] }

func summary(o client.Object) string {
	var parts []string
	if o.GetDeletionTimestamp() != nil {
		parts = append(parts, "stopping")
	}
	switch o := o.(type) {
	case *corev1.Pod:
		p := &Pod{Pod: o, Workload: workloadOf(o), Gated: gated(o)}
		parts = append(parts, string(o.Status.Phase), fmt.Sprintf("gated=%v", p.Gated), "gang="+p.Workload.Name, "sent="+p.Node(), "bound="+o.Spec.NodeName)
		for _, c := range o.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				parts = append(parts, c.Reason)
			}
		}
	case *kueue.Workload:
		parts = append(parts, fmt.Sprintf("admission=%v", o.Status.Admission != nil))
		for _, name := range []string{kueue.WorkloadAdmitted, kueue.WorkloadEvicted, kueue.WorkloadFinished} {
			if meta.IsStatusConditionTrue(o.Status.Conditions, name) {
				parts = append(parts, name)
			}
		}
		if c := meta.FindStatusCondition(o.Status.Conditions, kueue.WorkloadQuotaReserved); c != nil {
			parts = append(parts, c.Message)
		}
	case *corev1.Node:
		for _, c := range o.Status.Conditions {
			if c.Type == corev1.NodeReady {
				parts = append(parts, "ready="+string(c.Status))
			}
		}
		parts = append(parts, fmt.Sprintf("taints=%d unschedulable=%v", len(o.Spec.Taints), o.Spec.Unschedulable))
	case *batchv1.Job:
		parts = append(parts, fmt.Sprintf("suspend=%v active=%d succeeded=%d", ptr.Deref(o.Spec.Suspend, false), o.Status.Active, o.Status.Succeeded))
	}
	return strings.Join(parts, " ")
}
