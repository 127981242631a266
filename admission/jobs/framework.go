package jobs

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	_ "sigs.k8s.io/kueue/pkg/controller/jobs" // registers every integration
	"sigs.k8s.io/kueue/pkg/features"
)

// The integrations that others refer to, by the names that Kueue gives them.
const (
	FrameworkJob             = "batch/job"
	FrameworkPod             = "pod"
	FrameworkDeployment      = "deployment"
	FrameworkStatefulSet     = "statefulset"
	FrameworkLeaderWorkerSet = "leaderworkerset.x-k8s.io/leaderworkerset"
	frameworkSpark           = "sparkoperator.k8s.io/sparkapplication"
)

// Framework is an integration: a kind of object that can be queued.
type Framework struct {
	Name     string // as the configuration calls it
	GVK      schema.GroupVersionKind
	Resource string // plural, as the API server's paths have it
	// Serving objects have no end and no suspend field: their pods are gated one by
	// one instead. What makes that so is put on their pod templates at every update.
	Serving bool
}

// Frameworks are all integrations of Kueue, by name. Each is linked; which are enabled is
// for the configuration to say. One whose CRD is absent waits for it.
func Frameworks() []Framework {
	var list []Framework
	_ = jobframework.ForEachIntegration(func(name string, cb jobframework.IntegrationCallbacks) error {
		if _, described := cb.JobType.(*unstructured.Unstructured); described {
			return nil
		}
		f := Framework{Name: name, GVK: cb.GVK}
		if cb.NewJob != nil {
			f.GVK = cb.NewJob().GVK()
		}
		f.Resource = strings.ToLower(f.GVK.Kind) + "s"
		f.Serving = slices.Contains([]string{FrameworkDeployment, FrameworkStatefulSet, FrameworkLeaderWorkerSet}, name)
		list = append(list, f)
		return nil
	})
	slices.SortFunc(list, func(a, b Framework) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// frameworkNames are the names of Frameworks.
func frameworkNames() []string {
	var names []string
	for _, f := range Frameworks() {
		names = append(names, f.Name)
	}
	return names
}

// gateFeatures switches on what Kueue holds back and an enabled integration needs:
// for SparkApplications there is a feature gate of their own, off by default.
func gateFeatures(frameworks []string) error {
	if !slices.Contains(frameworks, frameworkSpark) {
		return nil
	}
	return utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{string(features.SparkApplicationIntegration): true})
}
