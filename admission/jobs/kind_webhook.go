package jobs

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
)

// register adds the kind to the table of integrations of this process.
func (k Kind) register() error {
	if _, there := jobframework.GetIntegration(k.name()); there {
		return nil // by an earlier Setup
	}
	var reader client.Reader // of the manager, once there is one
	fresh := func() jobframework.GenericJob { return newKindJob(&k, reader) }
	made := jobframework.NewGenericReconcilerFactory(fresh)
	return jobframework.RegisterIntegration(k.name(), jobframework.IntegrationCallbacks{
		NewJob:  fresh,
		GVK:     k.GVK,
		JobType: newKindJob(&k, nil).object,
		NewReconciler: func(ctx context.Context, c client.Client, i client.FieldIndexer, r record.EventRecorder, opts ...jobframework.Option) (jobframework.JobReconcilerInterface, error) {
			reader = c
			return made(ctx, c, i, r, opts...)
		},
		SetupWebhook: func(mgr ctrl.Manager, opts ...jobframework.Option) error { return k.serve(mgr, opts...) },
		SetupIndexes: func(ctx context.Context, i client.FieldIndexer) error {
			return jobframework.SetupWorkloadOwnerIndex(ctx, i, k.GVK)
		},
	})
}

// webhookPath is where the kind's handler listens, after /mutate or /validate.
func (f Framework) webhookPath() string {
	return "-" + strings.ReplaceAll(f.GVK.Group, ".", "-") + "-" + f.GVK.Version + "-" + strings.ToLower(f.GVK.Kind)
}

// MutatePath is where the API server asks about new objects of the kind.
func (f Framework) MutatePath() string { return "/mutate" + f.webhookPath() }

// ValidatePath is where the API server asks whether an object may be as it is.
func (f Framework) ValidatePath() string { return "/validate" + f.webhookPath() }

// serve adds the kind's handlers to the webhook server. They are asked twice where a
// kind comes late; the second time they are there.
func (k Kind) serve(mgr ctrl.Manager, opts ...jobframework.Option) error {
	options := jobframework.ProcessOptions(opts...)
	server, f := mgr.GetWebhookServer(), k.Framework()
	for path, h := range map[string]admission.HandlerFunc{
		f.MutatePath():   k.mutate(mgr.GetClient(), options),
		f.ValidatePath(): k.validator(mgr.GetClient(), options),
	} {
		if mux := server.WebhookMux(); mux != nil {
			request, err := http.NewRequest(http.MethodPost, path, nil)
			if err != nil {
				return err
			}
			if _, there := mux.Handler(request); there == path {
				continue
			}
		}
		server.Register(path, &admission.Webhook{Handler: h})
	}
	return nil
}

func (k Kind) decode(reader client.Reader, raw []byte) (*kindJob, error) {
	j := newKindJob(&k, reader)
	return j, j.object.UnmarshalJSON(raw)
}

// mutate suspends a queued object at its creation.
func (k Kind) mutate(c client.Client, o jobframework.Options) admission.HandlerFunc {
	return func(ctx context.Context, request admission.Request) admission.Response {
		j, err := k.decode(c, request.Object.Raw)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if err := jobframework.ApplyDefaultForSuspend(ctx, j, c, o.ManageJobsWithoutQueueName, o.ManagedJobsNamespaceSelector); err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		text, err := json.Marshal(j.object)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return admission.PatchResponseFromRaw(request.Object.Raw, text)
	}
}

// validator refuses what could not be queued, and changes of a queue while it runs.
func (k Kind) validator(c client.Client, o jobframework.Options) admission.HandlerFunc {
	return func(ctx context.Context, request admission.Request) admission.Response {
		j, err := k.decode(c, request.Object.Raw)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		var wrong field.ErrorList
		if request.Operation == admissionv1.Update {
			old, err := k.decode(c, request.OldObject.Raw)
			if err != nil {
				return admission.Errored(http.StatusBadRequest, err)
			}
			wrong = jobframework.ValidateJobOnUpdate(old, j, o.Queues.DefaultLocalQueueExist)
		} else {
			wrong = jobframework.ValidateJobOnCreate(j)
		}
		if _, err := j.PodSets(ctx); err != nil && jobframework.QueueName(j) != "" {
			wrong = append(wrong, field.Invalid(field.NewPath("spec"), j.object.GetName(), err.Error()))
		}
		if len(wrong) > 0 {
			return admission.Denied(wrong.ToAggregate().Error())
		}
		return admission.Allowed("")
	}
}
