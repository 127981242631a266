package kube

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	kueuemetrics "sigs.k8s.io/kueue/pkg/metrics"
)

// violations is how many invariants of the state did not hold when last checked.
var violations = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "sluice_invariant_violations",
	Help: "Invariants of the admission state that did not hold at the last check. Anything above 0 is a bug.",
})

// registerMetrics makes the metrics visible, Kueue's by their own names where they
// mean the same.
var registerMetrics = sync.OnceFunc(func() {
	kueuemetrics.Register()
	ctrlmetrics.Registry.MustRegister(violations)
})
