// Command null admits every Workload at once with one write, and counts nothing. It is
// the ceiling for those who count.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
)

// null knows the cluster and nothing else.
type null struct{ client client.Client }

// Reconcile admits a Workload that is not.
func (n null) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	wl := &kueue.Workload{}
	if err := n.client.Get(ctx, request.NamespacedName, wl); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if wl.Status.Admission != nil || workload.IsFinished(wl) || wl.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	admission := &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(wl.Spec.QueueName)}
	for _, ps := range wl.Spec.PodSets {
		requests := ps.Template.Spec.Containers[0].Resources.Requests
		of := kueue.PodSetAssignment{Name: ps.Name, Count: ptr.To(ps.Count), ResourceUsage: requests, Flavors: make(map[corev1.ResourceName]kueue.ResourceFlavorReference)}
		for name := range requests {
			of.Flavors[name] = "default"
		}
		admission.PodSetAssignments = append(admission.PodSetAssignments, of)
	}
	err := workload.PatchAdmissionStatus(ctx, n.client, wl, clock.RealClock{}, func(wl *kueue.Workload) (bool, error) {
		workload.SetQuotaReservation(wl, admission, clock.RealClock{})
		workload.SyncAdmittedCondition(wl, time.Now())
		return true, nil
	})
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

func main() {
	ctrl.SetLogger(logr.Discard())
	workers := flag.Int("workers", 64, "writes under way at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *workers)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "null:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, workers int) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).For(&kueue.Workload{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(null{client: mgr.GetClient()})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
