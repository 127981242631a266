package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"sluice.dev/sluice/admission/jobs/podgroup"
)

// takeOverPath is where pods are looked at that ask for Volcano's scheduler.
const takeOverPath = "/take-over-volcano-pod"

// serveTakeOver adds the handler to the manager's webhook server.
func serveTakeOver(mgr ctrl.Manager) {
	mgr.GetWebhookServer().Register(takeOverPath, &webhook.Admission{Handler: admission.HandlerFunc(takeOver)})
}

// takeOver has a pod of Volcano's wait for sluice.
func takeOver(_ context.Context, r admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(r.Object.Raw, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("read the Pod: %w", err))
	}
	if !podgroup.TakeOver(pod) {
		return admission.Allowed("")
	}
	// Only what was changed is written: the rest may have fields that this program does
	// not know.
	whole, changed := map[string]any{}, map[string]any{}
	fields, err := json.Marshal(pod)
	if err == nil {
		err = errors.Join(json.Unmarshal(r.Object.Raw, &whole), json.Unmarshal(fields, &changed))
	}
	if err == nil {
		err = carry(whole, changed, []string{"metadata", "annotations"}, []string{"spec", "schedulerName"}, []string{"spec", "schedulingGates"})
	}
	text, bad := json.Marshal(whole)
	if err = errors.Join(err, bad); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("write the Pod: %w", err))
	}
	return admission.PatchResponseFromRaw(r.Object.Raw, text)
}

// carry copies the fields at the paths.
func carry(to, from map[string]any, paths ...[]string) error {
	for _, path := range paths {
		v, found, err := unstructured.NestedFieldCopy(from, path...)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if err := unstructured.SetNestedField(to, v, path...); err != nil {
			return err
		}
	}
	return nil
}
