package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/cmd/sluice-controller/config"
)

// forBareServer are the settings for a cluster in which sluice was not installed:
// its namespace does not exist, so there is no place for certificates or a lease, no
// Service for webhooks, and no webhook configuration. The controller runs there all
// the same, as on an API server that has nothing but Kueue's CRDs. A URL for the
// webhooks says that somebody wants them.
func forBareServer(ctx context.Context, to *rest.Config, settings config.Configuration) (config.Configuration, error) {
	if settings.Webhook.URL != "" || !settings.Webhook.Enabled && !settings.LeaderElection.Enabled {
		return settings, nil
	}
	c, err := client.New(to, client.Options{})
	if err != nil {
		return settings, fmt.Errorf("make a client of the API server: %w", err)
	}
	err = c.Get(ctx, client.ObjectKey{Name: settings.Namespace}, &corev1.Namespace{})
	if !apierrors.IsNotFound(err) {
		return settings, client.IgnoreNotFound(err)
	}
	ctrl.Log.Info("sluice is not installed here: no webhooks, no leader election; a job that is not created suspended starts before it is stopped",
		"reason", "there is no namespace "+settings.Namespace)
	settings.Webhook.Enabled, settings.LeaderElection.Enabled = false, false
	return settings, nil
}
