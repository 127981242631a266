// Command kueue runs Kueue's scheduler and core controllers, as its own performance
// test does: no webhooks, no job integrations, no leader election.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueuealpha "sigs.k8s.io/kueue/apis/kueue/v1alpha1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	queuecache "sigs.k8s.io/kueue/pkg/cache/queue"
	schedulercache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/constants"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
)

func main() {
	ctrl.SetLogger(logr.Discard())
	unlimited := flag.Bool("unlimited", false, "no limit on its requests; else those of Kueue's default configuration, 50 a second and 100 at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	config, err := ctrl.GetConfig()
	if err == nil {
		config.QPS, config.Burst = 50, 100
		if *unlimited {
			config.QPS = -1
		}
		err = run(ctx, config)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kueue:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, config *rest.Config) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kueue.AddToScheme, kueuealpha.AddToScheme, configapi.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		// The numbers of its default configuration.
		Controller: ctrlconfig.Controller{GroupKindConcurrency: map[string]int{
			"Workload.kueue.x-k8s.io": 5, "LocalQueue.kueue.x-k8s.io": 1, "ClusterQueue.kueue.x-k8s.io": 1, "ResourceFlavor.kueue.x-k8s.io": 1,
		}},
	})
	if err != nil {
		return err
	}
	if err := indexer.Setup(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("indexes: %w", err)
	}
	expected := expectations.New()
	requeuer := queuecache.NewRequeuer()
	cache := schedulercache.New(mgr.GetClient())
	queues := queuecache.NewManager(mgr.GetClient(), cache, requeuer, queuecache.WithPreemptionExpectations(expected))
	if failed, err := core.SetupControllers(mgr, queues, cache, &configapi.Configuration{}, nil, expected, nil); err != nil {
		return fmt.Errorf("controller %s: %w", failed, err)
	}
	if err := mgr.Add(requeuer); err != nil {
		return err
	}
	//nolint:staticcheck // it is what Kueue's scheduler takes
	recorder := mgr.GetEventRecorderFor(constants.AdmissionName)
	if err := mgr.Add(scheduler.New(queues, cache, mgr.GetClient(), recorder, scheduler.WithPreemptionExpectations(expected))); err != nil {
		return err
	}
	go queues.CleanUpOnContext(ctx)
	go cache.CleanUpOnContext(ctx)
	return mgr.Start(ctx)
}
