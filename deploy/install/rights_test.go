package install

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// unasked are rights that the installed controller has and that the story of
// TestInstall need not use, each with what uses it. A right that was neither asked for
// nor is here is one too many. To read is one right: whether an informer lists or only
// watches is the client's affair.
var unasked = map[string]string{
	"create coordination.k8s.io/leases":          "leader election, with more than one replica",
	"update coordination.k8s.io/leases":          "the same",
	"create events.k8s.io/events":                "whoever records through the newer API",
	"patch events.k8s.io/events":                 "an event that comes again",
	"patch /events":                              "the same",
	"create kueue.x-k8s.io/resourceflavors":      "the flavor of Volcano queues",
	"patch kueue.x-k8s.io/resourceflavors":       "the same, and finalizers that Kueue's controllers left",
	"patch kueue.x-k8s.io/clusterqueues":         "finalizers that Kueue's controllers left",
	"read kueue.x-k8s.io/topologies":             "ClusterQueues with a topology",
	"read kueue.x-k8s.io/admissionchecks":        "ClusterQueues with admission checks",
	"read apps/replicasets":                      "pods whose Deployment is queued",
	"read apps/deployments":                      "the same",
	"update apps/statefulsets/finalizers":        "Workloads of StatefulSets, which block their owner's deletion",
	"update batch/jobs/finalizers":               "the same, of Jobs",
	"update /pods/finalizers":                    "the same, of pods",
	"update /pods":                               "groups of plain pods: gate and finalizer",
	"delete /pods":                               "groups of plain pods that are taken back",
	"patch /pods/status":                         "the same: why",
	"update batch/jobs":                          "Jobs that are stopped",
	"update batch/jobs/status":                   "the same: the start that they had is taken back",
	"patch batch/jobs/status":                    "the same",
	"delete kueue.x-k8s.io/workloads":            "Workloads whose job is gone or has changed",
	"update kueue.x-k8s.io/workloads":            "Workloads whose job has changed",
	"patch kueue.x-k8s.io/workloads":             "the same, by the newer call",
	"update kueue.x-k8s.io/workloads/finalizers": "Workloads that own others",
	"update kueue.x-k8s.io/workloads/status":     "the integrations, where they do not patch",
	"update kueue.x-k8s.io/clusterqueues/status": "the other call for a status",
	"update kueue.x-k8s.io/localqueues/status":   "the same",
	"update kueue.x-k8s.io/cohorts/status":       "the same",
	"patch kueue.x-k8s.io/cohorts/status":        "Cohorts",
	"update scheduling.volcano.sh/queues/status": "the other call for a status",
	"patch scheduling.volcano.sh/queues/status":  "Volcano queues",
	"create scheduling.volcano.sh/podgroups":     "pods of Volcano's that name no group",
	"patch scheduling.volcano.sh/podgroups":      "the status of PodGroups",
	"patch scheduling.volcano.sh/queues":         "queues that were closed with their parent",
	"update sluice.dev/sliceinventories/status":  "the other call for a status",
	"patch sluice.dev/sliceinventories/status":   "nodes with an agent",
}

// checkRights compares what the rules grant with what was asked of the API server
// through the gates. What was refused TestInstall says itself. Of kinds whose CRD is not
// installed nothing can be asked.
func checkRights(t *testing.T, asked map[act]bool) {
	t.Helper()
	served := map[string]bool{}
	for _, o := range build(t, "../crd") {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &crd); err == nil {
			served[crd.Spec.Group] = true
		}
	}
	used, granted := map[string]bool{}, map[string]bool{}
	for a := range asked {
		used[right(a)] = true
	}
	for _, o := range build(t, "../base") {
		var role rbacv1.ClusterRole // a Role has the same rules
		if kind := o.GetKind(); kind != "ClusterRole" && kind != "Role" {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		for a := range acts(role.Rules) {
			if served[a.group] || builtIn(a.group) {
				granted[right(a)] = true
			}
		}
	}
	var extra []string
	for _, r := range slices.Sorted(maps.Keys(granted)) {
		if !used[r] && unasked[r] == "" {
			extra = append(extra, r)
		}
	}
	if len(extra) > 0 {
		t.Errorf("rights that nothing asked for and nobody explains:\n%s", strings.Join(extra, "\n"))
	}
	for r, why := range unasked {
		if !granted[r] {
			t.Errorf("%s (%s) is explained but not granted", r, why)
		}
	}
}

// builtIn says whether the API server itself serves a group.
func builtIn(group string) bool {
	return group == "" || group == "apps" || group == "batch" || group == "events.k8s.io" ||
		slices.Contains([]string{"coordination", "admissionregistration", "scheduling", "node", "rbac.authorization"}, strings.TrimSuffix(group, ".k8s.io")) && strings.HasSuffix(group, ".k8s.io")
}

func right(a act) string {
	if slices.Contains([]string{"get", "list", "watch"}, a.verb) {
		a.verb = "read"
	}
	return fmt.Sprintf("%s %s/%s", a.verb, a.group, a.resource)
}
