package jobs

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind describes a kind of job that Kueue has no integration for: where in its
// objects the things are that a queue has to know. Paths are fields with dots
// between them, as spec.template.
type Kind struct {
	GVK      schema.GroupVersionKind
	Resource string // plural, as the API server's paths have it; "" is the kind in lower case and an s
	// Suspend is the path of a boolean: while it is true the kind's controller makes
	// no pods, and deletes those that there are.
	Suspend string
	PodSets []KindPodSet
	// Succeeded and Failed say when an object has ended. One at least is given.
	Succeeded, Failed []Match
	// Active is the path of the number of pods that run. "" counts the pods that
	// carry the name of the object's Workload.
	Active string
}

// KindPodSet says where the pods of one role, or of several, are described.
type KindPodSet struct {
	// Name of the pod set; "" is main. With Each it is the path, within an element,
	// of its name; "" is the key of a mapping.
	Name string
	// Each is the path of a list or mapping with one element a role; the other paths
	// then start at the element. "" is a single pod set.
	Each string
	// Template is the path of a pod template: metadata and spec of pods.
	Template string
	// Count is the path of a number of pods; "" or absent is one.
	Count string
	// MinCount is the path of how few pods are enough; "" or absent is all.
	MinCount string
}

// Match is a thing that an object's status says.
type Match struct {
	// Condition is the type of a condition in status.conditions that is True.
	Condition string
	// Path and Values: the field at the path has one of the values.
	Path   string
	Values []string
}

// name is what the framework calls the kind.
func (k Kind) name() string { return strings.ToLower(k.GVK.Group + "/" + k.GVK.Kind) }

// resource is the plural.
func (k Kind) resource() string {
	if k.Resource != "" {
		return k.Resource
	}
	return strings.ToLower(k.GVK.Kind) + "s"
}

// Framework is the kind as one of Frameworks.
func (k Kind) Framework() Framework {
	return Framework{Name: k.name(), GVK: k.GVK, Resource: k.resource()}
}

// validate says what is missing. Whoever reads a configuration has checked it with
// the lines of the file; this is for other callers.
func (k Kind) validate() error {
	switch {
	case k.GVK.Group == "" || k.GVK.Version == "" || k.GVK.Kind == "":
		return fmt.Errorf("kind %s: group, version and kind must be given", k.GVK)
	case k.Suspend == "":
		return fmt.Errorf("kind %s: no path for suspend", k.name())
	case len(k.PodSets) == 0:
		return fmt.Errorf("kind %s: no pod sets", k.name())
	case len(k.Succeeded)+len(k.Failed) == 0:
		return fmt.Errorf("kind %s: nothing says when it has ended", k.name())
	}
	for i, ps := range k.PodSets {
		if ps.Template == "" {
			return fmt.Errorf("kind %s: pod set %d has no path for template", k.name(), i+1)
		}
	}
	for _, f := range Frameworks() {
		if f.GVK == k.GVK {
			return fmt.Errorf("kind %s: there is an integration for it, %s", k.name(), f.Name)
		}
	}
	return nil
}
