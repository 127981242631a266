package webhook

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	arv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sluice.dev/sluice/admission/jobs"
)

func options() Options {
	return Options{
		Namespace: "sluice-system", Rotate: true, ServiceName: "sluice-webhook", ServicePort: 443,
		Frameworks: []string{"batch/job", "pod"}, ExcludedNamespaces: []string{"kube-system", "sluice-system"},
	}
}

// entry is what both kinds of configuration have in common.
type entry struct {
	name      string
	client    arv1.WebhookClientConfig
	rule      arv1.RuleWithOperations
	failure   arv1.FailurePolicyType
	object    *metav1.LabelSelector
	namespace *metav1.LabelSelector
	timeout   int32
}

func entries(o Options) []entry {
	var all []entry
	for _, w := range o.MutatingWebhooks() {
		all = append(all, entry{w.Name, w.ClientConfig, w.Rules[0], *w.FailurePolicy, w.ObjectSelector, w.NamespaceSelector, *w.TimeoutSeconds})
	}
	for _, w := range o.ValidatingWebhooks() {
		all = append(all, entry{w.Name, w.ClientConfig, w.Rules[0], *w.FailurePolicy, w.ObjectSelector, w.NamespaceSelector, *w.TimeoutSeconds})
	}
	return all
}

func draw(all []entry) string {
	var b strings.Builder
	for _, e := range all {
		where := ""
		if e.client.URL != nil {
			where = *e.client.URL
		} else {
			s := e.client.Service
			where = fmt.Sprintf("%s.%s:%d%s", s.Name, s.Namespace, *s.Port, *s.Path)
		}
		fmt.Fprintf(&b, "%s %v %v %s %s\n", e.name, e.rule.Resources, e.rule.Operations, e.failure, where)
	}
	return b.String()
}

func TestEntries(t *testing.T) {
	const want = `
mjob.jobs.sluice.dev [jobs] [CREATE] Fail sluice-webhook.sluice-system:443/mutate-batch-v1-job
mpod.jobs.sluice.dev [pods] [CREATE] Fail sluice-webhook.sluice-system:443/mutate--v1-pod
vjob.jobs.sluice.dev [jobs] [CREATE UPDATE] Fail sluice-webhook.sluice-system:443/validate-batch-v1-job
vpod.jobs.sluice.dev [pods] [CREATE] Fail sluice-webhook.sluice-system:443/validate--v1-pod
vpodupdate.jobs.sluice.dev [pods] [UPDATE] Ignore sluice-webhook.sluice-system:443/validate--v1-pod
vclusterqueue.queues.sluice.dev [clusterqueues] [CREATE UPDATE] Ignore sluice-webhook.sluice-system:443/validate-kueue-x-k8s-io-v1beta2-clusterqueue
vcohort.queues.sluice.dev [cohorts] [CREATE UPDATE] Ignore sluice-webhook.sluice-system:443/validate-kueue-x-k8s-io-v1beta2-cohort
vresourceflavor.queues.sluice.dev [resourceflavors] [CREATE UPDATE] Ignore sluice-webhook.sluice-system:443/validate-kueue-x-k8s-io-v1beta2-resourceflavor
`
	if got := "\n" + draw(entries(options())); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// A framework that is off leaves no entry behind: its kind is never asked about.
func TestEntriesFollowFrameworks(t *testing.T) {
	o := options()
	o.Frameworks = []string{"batch/job"}
	for _, e := range entries(o) {
		if e.rule.Resources[0] == "pods" {
			t.Errorf("%s is there though the pod framework is off", e.name)
		}
	}
	if len(o.MutatingWebhooks()) != 1 {
		t.Errorf("mutating webhooks: %d, want the one of jobs", len(o.MutatingWebhooks()))
	}
}

func TestURLReplacesService(t *testing.T) {
	o := options()
	o.URL = "https://localhost:19443/"
	for _, e := range entries(o) {
		if e.client.Service != nil || !strings.HasPrefix(*e.client.URL, "https://localhost:19443/") || strings.Contains(*e.client.URL, "9443//") {
			t.Errorf("%s: %+v", e.name, e.client)
		}
	}
}

// The promise that nothing else breaks while sluice is down: whatever may be
// refused then carries the label and is outside the cluster's own namespaces.
func TestOnlyLabelledObjectsCanBeRefused(t *testing.T) {
	for _, e := range entries(options()) {
		if e.timeout > 5 {
			t.Errorf("%s: an object may wait %d s for an answer", e.name, e.timeout)
		}
		if e.failure == arv1.Ignore {
			continue
		}
		object, err := metav1.LabelSelectorAsSelector(e.object)
		if err != nil {
			t.Fatal(err)
		}
		namespace, err := metav1.LabelSelectorAsSelector(e.namespace)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			labels    labels.Set
			namespace string
			asked     bool
		}{
			{labels.Set{"kueue.x-k8s.io/queue-name": "main"}, "team-a", true},
			{labels.Set{"kueue.x-k8s.io/queue-name": ""}, "team-a", true},
			{labels.Set{}, "team-a", false},
			{labels.Set{"app": "web"}, "team-a", false},
			// The pods that a queued Job makes carry these, and not the first.
			{labels.Set{"kueue.x-k8s.io/podset": "main", "kueue.x-k8s.io/local-queue-name": "main"}, "team-a", false},
			{labels.Set{"kueue.x-k8s.io/queue-name": "main"}, "kube-system", false},
			{labels.Set{"kueue.x-k8s.io/queue-name": "main"}, "sluice-system", false},
		} {
			asked := object.Matches(test.labels) && namespace.Matches(labels.Set{"kubernetes.io/metadata.name": test.namespace})
			if asked != test.asked {
				t.Errorf("%s: asked about %v in %s: %v, want %v", e.name, test.labels, test.namespace, asked, test.asked)
			}
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range entries(options()) {
		if seen[e.name] {
			t.Errorf("%s is there twice", e.name)
		}
		seen[e.name] = true
	}
}

// With every framework on: names stay unique, and who may be refused carries the
// queue's label, or is a pod whose parent was told that it is queued.
func TestEntriesOfAllFrameworks(t *testing.T) {
	o := options()
	o.Frameworks = nil
	for _, f := range jobs.Frameworks() {
		o.Frameworks = append(o.Frameworks, f.Name)
	}
	o.Kinds = []jobs.Kind{{GVK: schema.GroupVersionKind{Group: "studio.example.com", Version: "v1", Kind: "Job"}}}
	seen := map[string]bool{}
	for _, e := range entries(o) {
		if seen[e.name] {
			t.Errorf("%s is there twice", e.name)
		}
		seen[e.name] = true
	}
	if !seen["mjob.jobs.sluice.dev"] || !seen["mjob.studio.example.com.jobs.sluice.dev"] || !seen["vleaderworkerset.jobs.sluice.dev"] {
		t.Errorf("entries %v", seen)
	}
	for _, w := range o.MutatingWebhooks() {
		if len(w.ObjectSelector.MatchExpressions) == 0 {
			t.Fatalf("%s asks about every object", w.Name)
		}
		byParent := slices.ContainsFunc(w.MatchConditions, func(c arv1.MatchCondition) bool { return c.Name == suspendedByParent.Name })
		if key := w.ObjectSelector.MatchExpressions[0].Key; key != "kueue.x-k8s.io/queue-name" && !byParent {
			t.Errorf("%s asks about whatever has the label %s", w.Name, key)
		}
	}
}
