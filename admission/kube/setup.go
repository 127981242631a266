package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// Journal is what the loop needs of a journal. Package admission/journal has one.
type Journal interface {
	admission.Journal
	// Replay returns the decisions that were appended and not settled, oldest first.
	Replay() ([]admission.Decision, error)
	// Usage returns what queues used of late, or nil.
	Usage() (*admission.Past, error)
	Close() error
}

// Options says how the loop runs.
type Options struct {
	Config admission.Config
	// OpenJournal opens the journal. It is called once this process leads, since
	// only one process may have the file.
	OpenJournal func() (Journal, error)
	// Namespace is where sluice itself lives. Events about sluice are there.
	Namespace string
	// UserKey is the label or annotation that names the user of a Workload;
	// "" is UserAnnotation.
	UserKey string
	// Labels are labels that nodes should have.
	Labels []LabelPolicy
	// PodGroups says that admission/jobs/podgroup is set up: it writes the counts of
	// PodGroups and the state in the status of Volcano Queues.
	PodGroups bool
	// Copies is given a copy of the state when it asks for one, if it is not nil.
	Copies Copies
	// Clock is the real one if nil.
	Clock clock.Clock
	// CheckEvery is how often the state is checked against itself; 0 is every minute.
	CheckEvery time.Duration
	// Workers is how many writes to the API server are under way at once; 0 is 64.
	Workers int
}

// Setup adds the loop to a manager that has not started. It runs on the leader
// only. The manager must have the index of LimitRanges that Kueue's
// core/indexer.Setup makes; jobs.Setup does.
func Setup(mgr ctrl.Manager, o Options) error {
	if o.OpenJournal == nil {
		return errors.New("no journal: Options.OpenJournal is nil")
	}
	if err := AddToScheme(mgr.GetScheme()); err != nil {
		return fmt.Errorf("add kinds to the scheme: %w", err)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers == 0 {
		o.Workers = 64
	}
	if o.CheckEvery == 0 {
		o.CheckEvery = time.Minute
	}
	RegisterMetrics()
	log := mgr.GetLogger().WithName("admission")
	// Kueue's eviction call takes a recorder of the older kind.
	recorder := mgr.GetEventRecorderFor("sluice") //nolint:staticcheck // SA1019: see above
	r := newRunner(o, log, mgr.GetClient(), mgr.GetAPIReader(), recorder)
	if err := r.watch(mgr); err != nil {
		return err
	}
	return mgr.Add(r)
}

// OnlyOurs bounds what a manager's cache holds to what is read here: of Leases those
// of the agents.
func OnlyOurs() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{v1alpha1.HeartbeatNamespace: {}}},
	}
}

// watched is one kind of object with where its news come from.
type watched struct {
	kind    kind
	example client.Object
	// optional says that its CRD may be absent: what it would declare is not there then.
	optional bool
	// with is a kind without which it means nothing, so that it is not watched either.
	with     kind
	informer cache.Informer
}

func kinds() []watched {
	return []watched{
		{kind: flavorKind, example: &kueue.ResourceFlavor{}},
		{kind: classKind, example: &kueue.WorkloadPriorityClass{}, optional: true},
		{kind: checkKind, example: &kueue.AdmissionCheck{}, optional: true},
		{kind: cohortKind, example: &kueue.Cohort{}, optional: true},
		{kind: clusterQueueKind, example: &kueue.ClusterQueue{}},
		{kind: volcanoQueueKind, example: &volcano.Queue{}, optional: true},
		{kind: namespaceKind, example: &corev1.Namespace{}},
		{kind: localQueueKind, example: &kueue.LocalQueue{}},
		{kind: limitRangeKind, example: &corev1.LimitRange{}},
		{kind: inventoryKind, example: &v1alpha1.SliceInventory{}, optional: true},
		{kind: leaseKind, example: &coordinationv1.Lease{}, with: inventoryKind},
		{kind: nodeKind, example: &corev1.Node{}},
		{kind: workloadKind, example: &kueue.Workload{}},
		{kind: podKind, example: &corev1.Pod{}},
	}
}

// watch has the manager's cache follow every kind, so that the caches are full
// before the loop starts.
func (r *runner) watch(mgr ctrl.Manager) error {
	for _, w := range kinds() {
		gvk, err := apiutil.GVKForObject(w.example, mgr.GetScheme())
		if err != nil {
			return err
		}
		if w.optional {
			if _, err := mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); apimeta.IsNoMatchError(err) {
				r.log.Info("kind is not installed; nothing of it is watched", "kind", gvk.String())
				continue
			}
		}
		if w.with != 0 && !slices.ContainsFunc(r.watches, func(x watched) bool { return x.kind == w.with }) {
			continue
		}
		w.informer, err = mgr.GetCache().GetInformer(context.Background(), w.example, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %s: %w", gvk.Kind, err)
		}
		r.watches = append(r.watches, w)
	}
	return nil
}
