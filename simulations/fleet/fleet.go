package fleet

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// Fleet is the machines of one cluster.
type Fleet struct {
	hosts  []*Host
	config *rest.Config
	client client.Client
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// New makes the machines, whose nodes need not be there yet. config is that of
// somebody who may do what kubelets and their programs do.
func New(machines []Machine, config *rest.Config, log logr.Logger) (*Fleet, error) {
	own := rest.CopyConfig(config)
	own.QPS, own.Burst = 200, 400
	c, err := client.New(own, client.Options{Scheme: scheme()})
	if err != nil {
		return nil, err
	}
	f := &Fleet{config: own, client: c}
	for _, m := range machines {
		h, err := newHost(m, c, log)
		if err != nil {
			return nil, err
		}
		f.hosts = append(f.hosts, h)
	}
	return f, nil
}

// Run plays all machines until ctx ends.
func (f *Fleet) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, h := range f.hosts {
		all.Go(func() {
			h.run(ctx, f.as(h.Node))
		})
	}
	all.Wait()
}

// Host is the machine of the node, or nil.
func (f *Fleet) Host(node string) *Host {
	for _, h := range f.hosts {
		if h.Node == node {
			return h
		}
	}
	return nil
}

// Control does something to a machine: its node's name, then as Host.Control.
func (f *Fleet) Control(line string) error {
	node, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	h := f.Host(node)
	if h == nil {
		return fmt.Errorf("there is no machine %q", node)
	}
	return h.Control(rest)
}
