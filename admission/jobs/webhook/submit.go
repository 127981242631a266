package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"sluice.dev/sluice/admission/sense"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// submitPath is where Jobs and pods are looked at when they are submitted.
const submitPath = "/submit"

// submit tells the submitter what can be known of the devices that pods ask for. It
// never refuses for want of facts: an error of its own lets everything pass.
type submit struct {
	reader client.Reader // the manager's cache
	refuse bool          // what can never start is refused; else it is a warning too
}

// serveSubmit adds the handler to the manager's webhook server.
func serveSubmit(mgr ctrl.Manager, refuse bool) {
	mgr.GetWebhookServer().Register(submitPath, &webhook.Admission{Handler: &submit{reader: mgr.GetClient(), refuse: refuse}})
}

// Handle answers with a warning for each note.
func (s *submit) Handle(ctx context.Context, r admission.Request) admission.Response {
	sets, err := podSets(r.Kind.Kind, r.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	facts, err := s.facts(ctx)
	if err != nil {
		return admission.Allowed("").WithWarnings("sluice does not know the cluster's devices: " + err.Error())
	}
	response := admission.Allowed("")
	for _, n := range facts.Notes(sets) {
		if n.Never && s.refuse {
			return admission.Denied(n.Text)
		}
		response = response.WithWarnings("sluice: " + n.Text)
	}
	return response
}

// podSets are the pods that the object asks for.
func podSets(kind string, raw []byte) ([]sense.Pods, error) {
	switch kind {
	case "Job":
		job := &batchv1.Job{}
		if err := json.Unmarshal(raw, job); err != nil {
			return nil, fmt.Errorf("read the Job: %w", err)
		}
		n := ptr.Deref(job.Spec.Parallelism, 1)
		if c := job.Spec.Completions; c != nil {
			n = min(n, *c)
		}
		return []sense.Pods{{Name: "main", Count: int(n), Spec: &job.Spec.Template.Spec}}, nil
	case "Pod":
		pod := &corev1.Pod{}
		if err := json.Unmarshal(raw, pod); err != nil {
			return nil, fmt.Errorf("read the Pod: %w", err)
		}
		return []sense.Pods{{Name: "main", Count: 1, Spec: &pod.Spec}}, nil
	default:
		return nil, fmt.Errorf("nothing is known of pods of a %s", kind)
	}
}

// facts reads what nodes offer and agents report. A cluster without the kind of the
// reports has none.
func (s *submit) facts(ctx context.Context) (sense.Facts, error) {
	var nodes corev1.NodeList
	if err := s.reader.List(ctx, &nodes); err != nil {
		return sense.Facts{}, err
	}
	var reports v1alpha1.SliceInventoryList
	if err := s.reader.List(ctx, &reports); err != nil && !apimeta.IsNoMatchError(err) {
		return sense.Facts{}, err
	}
	return sense.Of(nodes.Items, reports.Items), nil
}
