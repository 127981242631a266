package main

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"sluice.dev/sluice/admission/jobs"
	"sluice.dev/sluice/admission/jobs/notice"
	"sluice.dev/sluice/admission/jobs/podgroup"
	"sluice.dev/sluice/admission/jobs/webhook"
	"sluice.dev/sluice/admission/kube"
	"sluice.dev/sluice/cmd/sluice-controller/config"
)

// run starts the controller and returns when ctx ends or a part of it fails.
func run(ctx context.Context, rest *rest.Config, settings config.Configuration) error {
	// The limiter is one per kind of object, so this bounds the patches of pods
	// and the writes of status each by itself.
	rest.QPS, rest.Burst = settings.Client.QPS, settings.Client.Burst
	bePatient(rest)
	if err := waitForAPIServer(ctx, rest); err != nil {
		return err
	}
	settings, err := forBareServer(ctx, rest, settings)
	if err != nil {
		return fmt.Errorf("look for namespace %s: %w", settings.Namespace, err)
	}
	putFence(rest, settings)
	mgr, err := newManager(rest, settings)
	if err != nil {
		return fmt.Errorf("create manager: %w", err)
	}
	if err := notice.Await(ctx, mgr.GetAPIReader(), settings.Integrations.Volcano, mgr.GetLogger().WithName("notice")); err != nil {
		return fmt.Errorf("look for other schedulers: %w", err)
	}
	if err := setup(ctx, mgr, settings); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// waitForAPIServer returns when the API server answers, so that the two may
// start in any order. It says once what it waits for.
func waitForAPIServer(ctx context.Context, rest *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(rest)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	for said := false; ; said = true {
		_, err := client.ServerVersion()
		if err == nil {
			return nil
		}
		if !said {
			ctrl.Log.Info("waiting for the API server", "host", rest.Host, "reason", err.Error())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the API server: %w", err)
		case <-time.After(time.Second):
		}
	}
}

func newManager(rest *rest.Config, settings config.Configuration) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := jobs.AddToScheme(scheme); err != nil {
		return nil, err
	}
	server := webhook.Disabled()
	if settings.Webhook.Enabled {
		server = webhook.NewServer(webhookOptions(settings))
	}
	return ctrl.NewManager(rest, ctrl.Options{
		Scheme:                        scheme,
		WebhookServer:                 server,
		Metrics:                       metricsserver.Options{BindAddress: settings.Metrics.BindAddress},
		HealthProbeBindAddress:        settings.Health.BindAddress,
		LeaderElection:                settings.LeaderElection.Enabled,
		LeaderElectionID:              settings.LeaderElection.ResourceName,
		LeaderElectionNamespace:       settings.Namespace,
		LeaseDuration:                 &settings.LeaderElection.LeaseDuration,
		RenewDeadline:                 &settings.LeaderElection.RenewDeadline,
		RetryPeriod:                   &settings.LeaderElection.RetryPeriod,
		LeaderElectionReleaseOnCancel: true, // The process ends when run returns.
		// Nobody here reads managedFields, and they are up to half of an object.
		Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: kube.OnlyOurs()},
		Controller: ctrlconfig.Controller{
			// Names are unique but in a test that starts a second manager.
			SkipNameValidation: ptr.To(true),
			GroupKindConcurrency: map[string]int{
				batchv1.SchemeGroupVersion.WithKind("Job").GroupKind().String(): 5,
				corev1.SchemeGroupVersion.WithKind("Pod").GroupKind().String():  5,
			},
		},
	})
}

// setup adds every part to the manager.
func setup(ctx context.Context, mgr ctrl.Manager, settings config.Configuration) error {
	var ready <-chan struct{}
	if settings.Webhook.Enabled {
		hooks, err := webhook.Setup(ctx, mgr, webhookOptions(settings))
		if err != nil {
			return fmt.Errorf("set up webhooks: %w", err)
		}
		if err := mgr.AddReadyzCheck("webhooks", hooks.Check); err != nil {
			return err
		}
		ready = hooks.Ready()
	} else if err := webhook.Withdraw(ctx, mgr.GetAPIReader(), mgr.GetClient()); err != nil {
		return fmt.Errorf("switch webhooks off: %w", err)
	}
	if err := jobs.Setup(ctx, mgr, jobs.Options{
		Frameworks:         settings.Integrations.Frameworks,
		Kinds:              jobKinds(settings.Integrations.Kinds),
		ExcludedNamespaces: excludedNamespaces(settings),
		CopyLabels:         []string{settings.Policy.UserKey},
		Ready:              ready,
	}); err != nil {
		return fmt.Errorf("set up job integrations: %w", err)
	}
	if settings.Integrations.Volcano {
		if err := podgroup.Setup(ctx, mgr, ready); err != nil {
			return fmt.Errorf("set up Volcano's PodGroups: %w", err)
		}
	}
	if err := notice.Setup(mgr, settings.Integrations.Volcano); err != nil {
		return fmt.Errorf("set up notices: %w", err)
	}
	if err := notice.Watch(mgr, settings.Integrations.Volcano); err != nil {
		return err
	}
	book := &openBook{}
	copies, err := setupAPI(mgr, settings, book.history)
	if err != nil {
		return fmt.Errorf("set up answers: %w", err)
	}
	if err := setupAdmission(mgr, settings, copies, book); err != nil {
		return fmt.Errorf("set up admission: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("ping", healthz.Ping)
}

// excludedNamespaces are never queued: a cluster must be able to start its own
// parts, and sluice itself, without sluice.
func excludedNamespaces(settings config.Configuration) []string {
	if settings.Namespace == metav1.NamespaceSystem {
		return []string{metav1.NamespaceSystem}
	}
	return []string{metav1.NamespaceSystem, settings.Namespace}
}

func webhookOptions(settings config.Configuration) webhook.Options {
	w := settings.Webhook
	return webhook.Options{
		Namespace: settings.Namespace, Host: w.Host, Port: w.Port, CertDir: w.CertDir,
		Rotate: w.RotateCertificates, URL: w.URL, ServiceName: w.Service.Name, ServicePort: w.Service.Port,
		Submit: settings.Submit != config.SubmitSilent, Refuse: settings.Submit == config.SubmitRefuse,
		Frameworks: settings.Integrations.Frameworks, Kinds: jobKinds(settings.Integrations.Kinds), Volcano: settings.Integrations.Volcano,
		ExcludedNamespaces: excludedNamespaces(settings),
	}
}
