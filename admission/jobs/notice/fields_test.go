package notice

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestMessages(t *testing.T) {
	for name, test := range map[string]struct{ kind, text, want string }{
		"nothing set":      {"ClusterQueue", "spec: {cohortName: all, preemption: {withinClusterQueue: LowerPriority}}", ""},
		"the default":      {"ClusterQueue", "spec: {preemption: {borrowWithinCohort: {policy: Never}}}", ""},
		"one":              {"ClusterQueue", "spec: {admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}}", "spec.admissionScope.admissionMode has no effect in sluice"},
		"two":              {"ClusterQueue", "spec: {preemption: {borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 0}}}", "spec.preemption.borrowWithinCohort.policy, spec.preemption.borrowWithinCohort.maxPriorityThreshold have no effect in sluice"},
		"within a list":    {"Queue", "spec: {extendClusters: [{}, {name: far}]}", "spec.extendClusters.name has no effect in sluice"},
		"kind is not read": {"PodGroup", "spec: {minMember: 2}", "sluice does not read a PodGroup: it has no effect; integrations.volcano in the controller's configuration changes that"},
	} {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(test.text), &object); err != nil {
			t.Fatal(err)
		}
		for _, i := range All() {
			if i.GVK.Kind == test.kind {
				if got := i.Message(object); !strings.EqualFold(got, test.want) {
					t.Errorf("%s: %q, want %q", name, got, test.want)
				}
			}
		}
	}
}
