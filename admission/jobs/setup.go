package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	"sigs.k8s.io/kueue/pkg/metrics"
	preemptexpectations "sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
	"sigs.k8s.io/kueue/pkg/webhooks"
)

// Options says which jobs are queued, and when that may begin.
type Options struct {
	// Frameworks are the names of the integrations to enable, of those that
	// Frameworks lists.
	Frameworks []string
	// Kinds are further kinds, enabled as well.
	Kinds []Kind
	// ExcludedNamespaces are left alone whatever their objects are labelled.
	ExcludedNamespaces []string
	// CopyLabels are further labels of jobs that their Workloads get.
	CopyLabels []string
	// Ready is closed once the webhooks are in place. Until then no integration
	// acts: each of its writes to a labelled object would be refused. Nil means
	// that there are no webhooks to wait for.
	Ready <-chan struct{}
}

// PreemptibleLabel on a job, with the value "false", says that nobody may take its
// gang back. It is copied to the job's Workload, where admission/kube reads it.
const PreemptibleLabel = "sluice.dev/preemptible"

// Setup adds the integrations to a manager that has not started: their
// indexes, their controllers, and on the manager's webhook server their
// handlers. The scheme must have what AddToScheme adds.
//
// The indexes of Kueue's core are included, because workload.AdjustResources,
// which admission/kube calls, reads LimitRanges through one of them.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	if err := gateFeatures(o.Frameworks); err != nil {
		return fmt.Errorf("open feature gates: %w", err)
	}
	for _, k := range o.Kinds {
		if err := k.register(); err != nil {
			return fmt.Errorf("register kind %s: %w", k.name(), err)
		}
	}
	options, err := o.framework(mgr)
	if err != nil {
		return err
	}
	if err := indexer.Setup(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index workloads: %w", err)
	}
	if err := jobframework.SetupIndexes(ctx, mgr.GetFieldIndexer(), options...); err != nil {
		return fmt.Errorf("index jobs: %w", err)
	}
	if err := warm(ctx, mgr.GetCache()); err != nil {
		return err
	}
	if kind, err := webhooks.Setup(mgr, nil); err != nil {
		return fmt.Errorf("serve the webhook of %s: %w", kind, err)
	}
	if o.Ready != nil {
		mgr = gated{Manager: mgr, ready: o.Ready}
	}
	if err := jobframework.SetupControllers(ctx, mgr, mgr.GetLogger().WithName("jobs"), options...); err != nil {
		return fmt.Errorf("set up job integrations: %w", err)
	}
	return nil
}

func (o Options) validate() error {
	linked := frameworkNames()
	if len(o.Frameworks) == 0 {
		return errors.New("no job framework is enabled")
	}
	for _, name := range o.Frameworks {
		if !slices.Contains(linked, name) {
			return fmt.Errorf("unknown job framework %q, want one of %s", name, strings.Join(linked, ", "))
		}
	}
	for _, k := range o.Kinds {
		if err := k.validate(); err != nil {
			return err
		}
	}
	for _, f := range Frameworks() {
		if f.Serving && slices.Contains(o.Frameworks, f.Name) && !slices.Contains(o.Frameworks, FrameworkPod) {
			return fmt.Errorf("job framework %s queues the pods of its objects, so %s must be enabled too", f.Name, FrameworkPod)
		}
	}
	return nil
}

// framework returns the options of Kueue's job framework.
func (o Options) framework(mgr ctrl.Manager) ([]jobframework.Option, error) {
	namespaces, err := metav1.LabelSelectorAsSelector(ExceptNamespaces(o.ExcludedNamespaces))
	if err != nil {
		return nil, fmt.Errorf("exclude namespaces: %w", err)
	}
	cache, queues := inert(mgr)
	enabled := slices.Clone(o.Frameworks)
	for _, k := range o.Kinds {
		enabled = append(enabled, k.name())
	}
	return []jobframework.Option{
		jobframework.WithEnabledFrameworks(enabled),
		jobframework.WithManagerName("sluice"),
		jobframework.WithLabelKeysToCopy(append([]string{PreemptibleLabel}, o.CopyLabels...)),
		jobframework.WithManagedJobsNamespaceSelector(namespaces),
		jobframework.WithCache(cache),
		jobframework.WithQueues(queues),
	}, nil
}

// inert builds the scheduler cache and queue manager that the webhooks call
// into. Nil would panic there; these answer that nothing exists. Local queue
// metrics are switched off by name, since an absent setting means on.
func inert(mgr ctrl.Manager) (*schdcache.Cache, *qcache.Manager) {
	off := &metrics.LocalQueueMetricsConfig{Enabled: false}
	cache := schdcache.New(mgr.GetClient(), schdcache.WithLocalQueueMetrics(off))
	queues := qcache.NewManager(mgr.GetClient(), cache, qcache.NewRequeuer(),
		qcache.WithPreemptionExpectations(preemptexpectations.New()),
		qcache.WithLocalQueueMetrics(off))
	return cache, queues
}

// ExceptNamespaces selects every namespace but those named.
func ExceptNamespaces(names []string) *metav1.LabelSelector {
	if len(names) == 0 {
		return &metav1.LabelSelector{}
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: names,
	}}}
}
