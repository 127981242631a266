package webhook

import (
	"cmp"
	"slices"
	"strings"

	arv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/kueue/pkg/controller/constants"
	podconstants "sigs.k8s.io/kueue/pkg/controller/jobs/pod/constants"

	"sluice.dev/sluice/admission/jobs"
	"sluice.dev/sluice/admission/jobs/podgroup"
)

// timeoutSeconds is how long a labelled object waits for an answer. The
// handlers only read caches; what takes longer is a server that is not there.
const timeoutSeconds = 5

// hook is one entry of a configuration, before it is spelled out.
type hook struct {
	name       string
	path       string
	group      string
	version    string
	resource   string
	scope      arv1.ScopeType
	operations []arv1.OperationType
	failure    arv1.FailurePolicyType
	conditions []arv1.MatchCondition
	// label is what an object must carry to be asked about; "" is the queue's.
	label string
	// unlabelled drops the label selector; everywhere drops that and the namespaces'.
	unlabelled bool
	everywhere bool
}

// aside lets the cluster's own controllers update labelled Jobs while sluice is
// down: the garbage collector takes a finalizer off a Job that is deleted. Our
// handlers have nothing to say to them.
var aside = arv1.MatchCondition{
	Name: "not-the-clusters-own-controllers",
	Expression: `request.operation == "CREATE" || !("system:serviceaccounts:kube-system" in request.userInfo.groups ||` +
		` request.userInfo.username == "system:kube-controller-manager")`,
}

// alive leaves objects that are being deleted alone: whoever takes a finalizer off
// must not be stopped by a mistake in the rest of the object.
var alive = arv1.MatchCondition{
	Name:       "not-being-deleted",
	Expression: `!has(object.metadata.deletionTimestamp)`,
}

// changed asks us about an update only if it changes what was asked for or the
// queue. A kind's own controller puts finalizers and annotations on its objects,
// and must be able to while sluice is down.
var changed = arv1.MatchCondition{
	Name: "spec-or-labels-change",
	Expression: `request.operation == "CREATE" || object.spec != oldObject.spec ||` +
		` has(object.metadata.labels) != has(oldObject.metadata.labels) ||` +
		` has(object.metadata.labels) && object.metadata.labels != oldObject.metadata.labels`,
}

// suspendedByParent picks the pods of queued StatefulSets and LeaderWorkerSets.
// They carry an annotation that their template was given, and no queue label yet.
var suspendedByParent = arv1.MatchCondition{
	Name: "its-parent-is-queued",
	Expression: `has(object.metadata.annotations) && "` + podconstants.SuspendedByParentAnnotation + `" in object.metadata.annotations &&` +
		` !(has(object.metadata.labels) && "` + constants.QueueLabel + `" in object.metadata.labels)`,
}

// The labels that the controllers of StatefulSets and LeaderWorkerSets put on
// every pod of theirs.
const (
	statefulSetPodLabel  = "statefulset.kubernetes.io/pod-name"
	leaderWorkerSetLabel = "leaderworkerset.sigs.k8s.io/name"
)

// volcanoPod picks the pods that ask for Volcano's scheduler.
var volcanoPod = arv1.MatchCondition{
	Name:       "for-volcano",
	Expression: `object.spec.schedulerName == "` + podgroup.Scheduler + `"`,
}

var (
	create = []arv1.OperationType{arv1.Create}
	both   = []arv1.OperationType{arv1.Create, arv1.Update}
)

// enabled are the integrations that are switched on, pods aside.
func (o Options) enabled() []jobs.Framework {
	list := slices.DeleteFunc(jobs.Frameworks(), func(f jobs.Framework) bool {
		return f.Name == jobs.FrameworkPod || !slices.Contains(o.Frameworks, f.Name)
	})
	for _, k := range o.Kinds {
		list = append(list, k.Framework())
	}
	return list
}

// hookName is unique: a described kind may be called as one of Kueue's.
func hookName(f jobs.Framework) string {
	name := strings.ToLower(f.GVK.Kind)
	if strings.Contains(f.Name, "/") && !slices.ContainsFunc(jobs.Frameworks(), func(known jobs.Framework) bool { return known.GVK == f.GVK }) {
		name += "." + f.GVK.Group
	}
	return name + ".jobs.sluice.dev"
}

// of is the hook of a kind of job, without its name's prefix.
func of(f jobs.Framework) hook {
	return hook{
		name:  hookName(f),
		group: f.GVK.Group, version: f.GVK.Version, resource: f.Resource, scope: arv1.NamespacedScope,
		failure: arv1.Fail,
	}
}

// mutating suspends jobs and gates pods at creation, and takes pods over that ask for
// Volcano's scheduler. Failing closed is what
// makes "no pod before admission" hold: while nobody answers, an object that
// asks to be queued is refused, and its owner is told, rather than started.
func (o Options) mutating() []hook {
	var hooks []hook
	for _, f := range o.enabled() {
		h := of(f)
		h.name, h.path, h.operations = "m"+h.name, f.MutatePath(), create
		if f.Serving {
			h.operations, h.conditions = both, []arv1.MatchCondition{aside, alive, changed}
		}
		hooks = append(hooks, h)
	}
	if slices.Contains(o.Frameworks, jobs.FrameworkPod) {
		pod := hook{
			name: "mpod.jobs.sluice.dev", path: "/mutate--v1-pod",
			version: "v1", resource: "pods", scope: arv1.NamespacedScope,
			operations: create, failure: arv1.Fail,
		}
		hooks = append(hooks, pod)
		for _, parent := range []struct{ framework, name, label string }{
			{jobs.FrameworkStatefulSet, "mstatefulsetpod.jobs.sluice.dev", statefulSetPodLabel},
			{jobs.FrameworkLeaderWorkerSet, "mleaderworkersetpod.jobs.sluice.dev", leaderWorkerSetLabel},
		} {
			if slices.Contains(o.Frameworks, parent.framework) {
				h := pod
				h.name, h.label, h.conditions = parent.name, parent.label, []arv1.MatchCondition{suspendedByParent}
				hooks = append(hooks, h)
			}
		}
	}
	if o.Volcano {
		hooks = append(hooks, hook{
			name: "mvolcanopod.jobs.sluice.dev", path: takeOverPath,
			version: "v1", resource: "pods", scope: arv1.NamespacedScope,
			operations: create, failure: arv1.Fail, conditions: []arv1.MatchCondition{volcanoPod}, unlabelled: true,
		})
	}
	return hooks
}

// validating refuses what the integrations could not carry out.
//
//   - Jobs of every kind, and pods at creation: closed on failure, as above. For a
//     job's updates this also means that a waiting job cannot be unsuspended behind
//     the back of a sluice that is down.
//   - Updates of pods: open on failure. A network plugin writes its result on
//     the pod, the Job controller takes its finalizer off; a gang that was
//     admitted must be able to start and end without us.
//   - Jobs and pods as they are submitted, for what can be known of devices: open on
//     failure, since it is advice.
//   - Queues and flavors: open on failure. A typing error is told to the person
//     who makes it; whatever slips through is found again when the object is
//     converted. Workloads are left out: the integrations make them, the CRD's
//     rules hold for them, and every admission would pay a round trip.
//
// Kueue's mutating webhooks for its own kinds are left out as well. They put a
// finalizer on queues and flavors which only Kueue's own controllers remove.
func (o Options) validating() []hook {
	var hooks []hook
	for _, f := range o.enabled() {
		h := of(f)
		h.name, h.path, h.operations = "v"+h.name, f.ValidatePath(), both
		h.conditions = []arv1.MatchCondition{aside, alive}
		if f.Name != jobs.FrameworkJob {
			h.conditions = append(h.conditions, changed)
		}
		hooks = append(hooks, h)
	}
	if slices.Contains(o.Frameworks, jobs.FrameworkPod) {
		pod := hook{
			path: "/validate--v1-pod", version: "v1", resource: "pods", scope: arv1.NamespacedScope,
		}
		created, updated := pod, pod
		created.name, created.operations, created.failure = "vpod.jobs.sluice.dev", create, arv1.Fail
		updated.name, updated.operations, updated.failure = "vpodupdate.jobs.sluice.dev", []arv1.OperationType{arv1.Update}, arv1.Ignore
		hooks = append(hooks, created, updated)
	}
	if o.Submit {
		for _, at := range []hook{
			{name: "submitjob.jobs.sluice.dev", group: "batch", version: "v1", resource: "jobs"},
			{name: "submitpod.jobs.sluice.dev", version: "v1", resource: "pods"},
		} {
			at.path, at.scope, at.operations, at.failure = submitPath, arv1.NamespacedScope, create, arv1.Ignore
			hooks = append(hooks, at)
		}
	}
	for _, kind := range []struct{ singular, plural string }{
		{"clusterqueue", "clusterqueues"},
		{"cohort", "cohorts"},
		{"resourceflavor", "resourceflavors"},
	} {
		hooks = append(hooks, hook{
			name: "v" + kind.singular + ".queues.sluice.dev", path: "/validate-kueue-x-k8s-io-v1beta2-" + kind.singular,
			group: "kueue.x-k8s.io", version: "v1beta2", resource: kind.plural, scope: arv1.ClusterScope,
			operations: both, failure: arv1.Ignore,
			conditions: []arv1.MatchCondition{alive}, everywhere: true,
		})
	}
	return hooks
}

func (o Options) clientConfig(path string) arv1.WebhookClientConfig {
	if o.URL != "" {
		return arv1.WebhookClientConfig{URL: ptr.To(o.endpoint(path))}
	}
	return arv1.WebhookClientConfig{Service: &arv1.ServiceReference{
		Namespace: o.Namespace, Name: o.ServiceName, Path: &path, Port: ptr.To(int32(o.ServicePort)),
	}}
}

func (h hook) rules() []arv1.RuleWithOperations {
	return []arv1.RuleWithOperations{{
		Operations: h.operations,
		Rule: arv1.Rule{
			APIGroups: []string{h.group}, APIVersions: []string{h.version}, Resources: []string{h.resource}, Scope: &h.scope,
		},
	}}
}

// selectors are the objects and the namespaces of the hook. Both a Job that
// loses the label by an update and one that gains it are selected.
func (h hook) selectors(o Options) (object, namespace *metav1.LabelSelector) {
	if h.everywhere {
		return &metav1.LabelSelector{}, &metav1.LabelSelector{}
	}
	if h.unlabelled {
		return &metav1.LabelSelector{}, jobs.ExceptNamespaces(o.ExcludedNamespaces)
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: cmp.Or(h.label, constants.QueueLabel), Operator: metav1.LabelSelectorOpExists,
	}}}, jobs.ExceptNamespaces(o.ExcludedNamespaces)
}

// MutatingWebhooks are the entries of the MutatingWebhookConfiguration, complete
// but for the caBundle. Every field that the API server would default is set,
// so that what is wanted can be compared with what is there.
func (o Options) MutatingWebhooks() []arv1.MutatingWebhook {
	var entries []arv1.MutatingWebhook
	for _, h := range o.mutating() {
		object, namespace := h.selectors(o)
		entries = append(entries, arv1.MutatingWebhook{
			Name:                    h.name,
			ClientConfig:            o.clientConfig(h.path),
			Rules:                   h.rules(),
			FailurePolicy:           ptr.To(h.failure),
			MatchPolicy:             ptr.To(arv1.Equivalent),
			ObjectSelector:          object,
			NamespaceSelector:       namespace,
			SideEffects:             ptr.To(arv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To(int32(timeoutSeconds)),
			AdmissionReviewVersions: []string{"v1"},
			ReinvocationPolicy:      ptr.To(arv1.NeverReinvocationPolicy),
			MatchConditions:         h.conditions,
		})
	}
	return entries
}

// ValidatingWebhooks are the entries of the ValidatingWebhookConfiguration, as
// MutatingWebhooks are those of the other.
func (o Options) ValidatingWebhooks() []arv1.ValidatingWebhook {
	var entries []arv1.ValidatingWebhook
	for _, h := range o.validating() {
		object, namespace := h.selectors(o)
		entries = append(entries, arv1.ValidatingWebhook{
			Name:                    h.name,
			ClientConfig:            o.clientConfig(h.path),
			Rules:                   h.rules(),
			FailurePolicy:           ptr.To(h.failure),
			MatchPolicy:             ptr.To(arv1.Equivalent),
			ObjectSelector:          object,
			NamespaceSelector:       namespace,
			SideEffects:             ptr.To(arv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To(int32(timeoutSeconds)),
			AdmissionReviewVersions: []string{"v1"},
			MatchConditions:         h.conditions,
		})
	}
	return entries
}
