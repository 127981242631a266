package witness

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// again is how long a watch that broke waits before it is tried again.
const again = 100 * time.Millisecond

// Kind is a kind of object that the rules speak of.
type Kind string

// The kinds that are watched.
const (
	Nodes     Kind = "Node"
	Queues    Kind = "ClusterQueue"
	Jobs      Kind = "Job"
	Workloads Kind = "Workload"
	Pods      Kind = "Pod"
)

var watched = []struct {
	kind   Kind
	object client.Object
	list   func() client.ObjectList
}{
	{Nodes, &corev1.Node{}, func() client.ObjectList { return &corev1.NodeList{} }},
	{Queues, &kueue.ClusterQueue{}, func() client.ObjectList { return &kueue.ClusterQueueList{} }},
	{Jobs, &batchv1.Job{}, func() client.ObjectList { return &batchv1.JobList{} }},
	{Workloads, &kueue.Workload{}, func() client.ObjectList { return &kueue.WorkloadList{} }},
	{Pods, &corev1.Pod{}, func() client.ObjectList { return &corev1.PodList{} }},
}

// Watch writes all that happens into the log until ctx ends. It returns once
// every kind has been listed, with a function that waits for the end.
func Watch(ctx context.Context, config *rest.Config, log *Log) (wait func(), err error) {
	config = rest.CopyConfig(config)
	config.Timeout = 0 // a watch has no end of its own
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kueue.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	var running sync.WaitGroup
	for _, w := range watched {
		s := &sink{log: log, kind: w.kind, listed: make(chan struct{})}
		reflector := cache.NewReflectorWithOptions(s.listerWatcher(c, w.list), w.object, s, cache.ReflectorOptions{})
		running.Go(func() {
			for ctx.Err() == nil {
				_ = reflector.ListAndWatchWithContext(ctx) // an error is a broken watch; it is begun again
				select {
				case <-ctx.Done():
				case <-time.After(again):
				}
			}
		})
		select {
		case <-s.listed:
		case <-ctx.Done():
			return nil, fmt.Errorf("watch the cluster: %w", ctx.Err())
		}
	}
	return running.Wait, nil
}

// sink is where the watch of one kind delivers.
type sink struct {
	log    *Log
	kind   Kind
	listed chan struct{}

	mu     sync.Mutex
	once   bool
	broken time.Time // since when nothing is known for sure; zero while a watch delivers
}

var _ cache.ReflectorStore = (*sink)(nil)

func (s *sink) add(verb Verb, object any) error {
	o, ok := object.(client.Object)
	if !ok {
		return fmt.Errorf("unexpected %T", object)
	}
	s.mu.Lock()
	s.broken = time.Time{}
	s.mu.Unlock()
	return s.log.Add(verb, s.kind, o.GetResourceVersion(), o)
}

// Add is a new object.
func (s *sink) Add(object any) error { return s.add(Changed, object) }

// Update is a new version.
func (s *sink) Update(object any) error { return s.add(Changed, object) }

// Delete is an object's last version.
func (s *sink) Delete(object any) error { return s.add(Deleted, object) }

// Resync has no meaning here.
func (s *sink) Resync() error { return nil }

// Replace is a list of all objects: the first, or one after a break.
func (s *sink) Replace(objects []any, revision string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []client.Object
	for _, object := range objects {
		o, ok := object.(client.Object)
		if !ok {
			return fmt.Errorf("unexpected %T in a list of %ss", object, s.kind)
		}
		all = append(all, o)
	}
	if s.once && !s.broken.IsZero() {
		s.log.Blind(s.kind, Interval{From: s.broken, To: time.Now()})
	}
	s.broken = time.Time{}
	if err := s.log.Add(Listed, s.kind, revision, all...); err != nil {
		return err
	}
	if !s.once {
		s.once = true
		close(s.listed)
	}
	return nil
}

func (s *sink) listerWatcher(c client.WithWatch, list func() client.ObjectList) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			l := list()
			return l, reach(ctx, func() error { return c.List(ctx, l, &client.ListOptions{Raw: &o}) })
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			var w watch.Interface
			err := reach(ctx, func() (err error) {
				w, err = c.Watch(ctx, list(), &client.ListOptions{Raw: &o})
				return err
			})
			if err != nil {
				return nil, err
			}
			return &noticed{Interface: w, sink: s}, nil
		},
	}
}

// reach asks again while there is no API server to ask. The reflector would wait
// longer and longer, and see late what the others do when it is back.
func reach(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if !utilnet.IsConnectionRefused(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(again):
		}
	}
}

// noticed is a watch whose end is noticed.
type noticed struct {
	watch.Interface
	sink *sink
}

// Stop ends the watch.
func (n *noticed) Stop() {
	n.sink.mu.Lock()
	if n.sink.broken.IsZero() { // else an earlier watch delivered last
		n.sink.broken = time.Now()
	}
	n.sink.mu.Unlock()
	n.Interface.Stop()
}
