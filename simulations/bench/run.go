package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Options say how a table is made.
type Options struct {
	Root string // of the repository
	Dir  string // for programs, servers and logs
	Out  io.Writer
	// Within bounds the measure of one manager.
	Within time.Duration
}

// Result is one row of a table.
type Result struct {
	Manager  string
	Took     time.Duration // from the first Workload until nothing is to come
	Admitted int
	Finished int
	Evicted  int
	Waited   map[string][]time.Duration // to admission, by class
	Over     []string                   // quotas that were broken
	Cost     Cost
	Writes   map[string]int
}

// Rate is the admissions in a second.
func (r Result) Rate() float64 { return float64(r.Admitted) / r.Took.Seconds() }

// Measure puts a shape's load on one manager.
func Measure(ctx context.Context, o Options, s Shape, m Manager) (result Result, err error) {
	dir := filepath.Join(o.Dir, m.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return result, err
	}
	program := filepath.Join(o.Dir, "bin", filepath.Base(m.Command))
	if err := Build(ctx, filepath.Join(o.Root, m.Module), m.Command, program, o.Out); err != nil {
		return result, err
	}
	server, err := StartServer(ctx, o.Root, filepath.Join(o.Dir, "bin"), filepath.Join(dir, "server"), o.Out)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, server.Reset(context.WithoutCancel(ctx))) }()
	c, err := connect(server.Kubeconfig)
	if err != nil {
		return result, err
	}
	if err := install(ctx, c, filepath.Join(o.Root, "deploy", "crd")); err != nil {
		return result, err
	}
	if err := s.prepare(ctx, c); err != nil {
		return result, err
	}
	r := newRunner(c, s)
	bounded, cancel := context.WithTimeout(ctx, o.Within)
	defer cancel()
	if s.Lasts() {
		if err := s.create(bounded, c); err != nil {
			return result, err
		}
	}
	there, w, err := watchWorkloads(bounded, c)
	if err != nil {
		return result, err
	}
	for i := range there {
		r.see(bounded, &there[i])
	}
	go r.watch(bounded, w)
	running, err := m.start(program, server.Kubeconfig, dir)
	if err != nil {
		return result, err
	}
	result, err = o.load(bounded, r, m)
	cancel()
	r.running.Wait()
	cost, stopped := running.stop(ctx)
	if err := errors.Join(err, stopped); err != nil {
		return result, err
	}
	result.Cost = cost
	result.Writes, err = server.Writes(filepath.Base(program))
	return result, err
}

// load follows the Workloads to their end; those that do not last it makes, once the
// manager is seen to work. Of a backlog the time begins with the first admission.
func (o Options) load(ctx context.Context, r *runner, m Manager) (Result, error) {
	created := make(chan error, 1)
	begin := time.Now()
	if !r.shape.Lasts() {
		if err := warm(ctx, r.client); err != nil {
			return Result{}, fmt.Errorf("%s admits nothing: %w", m.Name, err)
		}
		begin = time.Now()
		go func() { created <- r.shape.create(ctx, r.client) }()
	}
	for told := begin; !r.over(); {
		made, admitted, finished, failure := r.progress()
		if failure != nil {
			return Result{}, failure
		}
		if r.shape.Lasts() && admitted == 0 {
			begin = time.Now()
		}
		if time.Since(told) >= 10*time.Second {
			told = time.Now()
			fmt.Fprintf(o.Out, "%s  %-16s %d of %d made, %d admitted, %d over\n", told.Format("15:04:05"), m.Name, made, r.shape.Workloads(), admitted, finished)
		}
		select {
		case err := <-created:
			if err != nil {
				return Result{}, err
			}
		case <-ctx.Done():
			return Result{}, fmt.Errorf("%s: %d of %d admitted, %d over, after %v: %w", m.Name, admitted, r.shape.Workloads(), finished, o.Within, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	result := Result{
		Manager: m.Name, Took: time.Since(begin), Admitted: len(r.admitted), Finished: r.finished, Evicted: r.evicted,
		Waited: r.waited, Over: r.ledger.over,
	}
	if m.Counts && len(result.Over) > 0 {
		return result, fmt.Errorf("%s admitted more than there is: %v", m.Name, result.Over)
	}
	return result, nil
}

// watchWorkloads returns the Workloads there are and follows all their versions from
// then on. The API server ends the watch of one who is slow; it goes on where it was,
// and nothing is left out.
func watchWorkloads(ctx context.Context, c client.WithWatch) ([]kueue.Workload, watch.Interface, error) {
	var now kueue.WorkloadList
	if err := c.List(ctx, &now); err != nil {
		return nil, nil, err
	}
	w, err := watchtools.NewRetryWatcherWithContext(ctx, now.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, &kueue.WorkloadList{}, &client.ListOptions{Namespace: namespace, Raw: &o})
		},
	})
	return now.Items, w, err
}

// connect makes a client without limits.
func connect(kubeconfig string) (client.WithWatch, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.UserAgent = "load/1"
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, kueue.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}
