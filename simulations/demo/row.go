package demo

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kueue/pkg/controller/constants"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// State is where a gang stands.
type State string

// The states of a gang, in the order of a life without trouble.
const (
	Submitted State = "Submitted" // no Workload yet
	Pending   State = "Pending"   // it waits, and the reason is told
	Admitted  State = "Admitted"  // it has its nodes; not all pods run yet
	Running   State = "Running"   // every pod has started
	Stopping  State = "Stopping"  // it was taken back; its pods stop
	Succeeded State = "Succeeded"
	Failed    State = "Failed"
	Refused   State = "Refused" // the API server did not take the Job
	Missing   State = "Missing" // somebody deleted the Job
)

// Row is one gang as the table shows it.
type Row struct {
	Gang  string // namespace/name
	Queue string
	// Pods counts those that run or have succeeded.
	Pods, Wanted int
	State        State
	// Code is why the gang waits, and Text says so with numbers.
	Code, Text string
	Nodes      []string
	Expect     string
}

// Outcome is the state, with the reason of one that waits.
func (r Row) Outcome() string {
	if r.State == Pending && r.Code != "" {
		return string(Pending) + "/" + r.Code
	}
	return string(r.State)
}

// AsExpected reports whether the gang stands as its manifest says it should end.
func (r Row) AsExpected() bool { return r.Outcome() == r.Expect }

// Over reports whether the gang will not change any more, as far as its
// manifest can tell: it has ended, or it waits as expected.
func (r Row) Over() bool {
	switch r.State {
	case Succeeded, Failed, Refused, Missing:
		return true
	case Pending:
		return r.AsExpected()
	default:
		return false
	}
}

// row says how a gang stands in the world.
func (w *world) row(g *gang) Row {
	wanted, found, err := unstructuredInt(g.manifest.Object, "spec", "parallelism")
	if err != nil || !found {
		wanted = 1
	}
	r := Row{Gang: g.key.String(), Wanted: wanted, Expect: g.expect}
	local := client.ObjectKey{Namespace: g.key.Namespace, Name: g.manifest.GetLabels()[constants.QueueLabel]}
	r.Queue = w.queues[local]
	if r.Queue == "" {
		r.Queue = local.Name
	}
	job := w.jobs[g.key]
	if g.refused != "" {
		r.State, r.Text = Refused, g.refused
		return r
	}
	if job == nil {
		r.State = Missing
		return r
	}
	r.addPods(w.podsOf(g.key), job)
	r.State = stateOf(job, w.workloads[g.key], r)
	if r.State == Pending {
		r.Code, r.Text = reasonOf(w.workloads[g.key])
	}
	return r
}

// addPods counts the pods of the Job and names their nodes.
func (r *Row) addPods(pods []*corev1.Pod, job *batchv1.Job) {
	for _, pod := range pods {
		if !metav1.IsControlledBy(pod, job) {
			continue
		}
		ended := pod.Status.Phase == corev1.PodSucceeded
		if ended || pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			r.Pods++
		}
		if node := pod.Spec.NodeName; node != "" && !slices.Contains(r.Nodes, node) {
			r.Nodes = append(r.Nodes, node)
		}
	}
	slices.Sort(r.Nodes)
}

func stateOf(job *batchv1.Job, workload *kueue.Workload, r Row) State {
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			return Succeeded
		case batchv1.JobFailed:
			return Failed
		}
	}
	switch {
	case workload == nil || !metav1.IsControlledBy(workload, job):
		return Submitted
	case workload.Status.Admission != nil && meta.IsStatusConditionTrue(workload.Status.Conditions, kueue.WorkloadEvicted):
		return Stopping
	case workload.Status.Admission == nil && len(r.Nodes) > 0:
		return Stopping
	case workload.Status.Admission == nil:
		return Pending
	case r.Pods >= r.Wanted: // the Job's own counts lag behind its pods
		return Running
	default:
		return Admitted
	}
}

// reasonOf reads why a Workload waits: the reason of the condition, or the code
// with which its message begins.
func reasonOf(workload *kueue.Workload) (code, text string) {
	c := meta.FindStatusCondition(workload.Status.Conditions, kueue.WorkloadQuotaReserved)
	if c == nil || c.Status == metav1.ConditionTrue {
		return "", ""
	}
	code, rest, found := strings.Cut(c.Message, ": ")
	if found && isWord(code) {
		return code, rest
	}
	return c.Reason, c.Message
}

func isWord(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return s != ""
}

// unstructuredInt reads a whole number from a manifest, where a parser may have
// left it as a float.
func unstructuredInt(object map[string]any, path ...string) (int, bool, error) {
	var at any = object
	for _, key := range path {
		m, ok := at.(map[string]any)
		if !ok || m[key] == nil {
			return 0, false, nil
		}
		at = m[key]
	}
	switch n := at.(type) {
	case int64:
		return int(n), true, nil
	case float64:
		return int(n), true, nil
	default:
		return 0, false, fmt.Errorf("%s is %v, want a whole number", strings.Join(path, "."), at)
	}
}

// shortNodes writes node names with their common beginning once: gpu-{0,1,5}.
func shortNodes(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	prefix := names[0]
	for _, name := range names[1:] {
		for !strings.HasPrefix(name, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	prefix = prefix[:strings.LastIndexAny(prefix, "-.")+1]
	rest := make([]string, len(names))
	for i, name := range names {
		rest[i] = strings.TrimPrefix(name, prefix)
	}
	if prefix == "" {
		return strings.Join(rest, " ")
	}
	return prefix + "{" + strings.Join(rest, ",") + "}"
}
