package main

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"sluice.dev/sluice/cmd/sluice-controller/config"
)

// setupAdmission adds the deciding half: admission/kube, its loop and the
// journal. It is called after jobs.Setup, whose indexes it may use, and before
// the manager starts. Without it Workloads are made and wait.
func setupAdmission(_ context.Context, _ ctrl.Manager, _ config.Configuration) error {
	return nil
}
