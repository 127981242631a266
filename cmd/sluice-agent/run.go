package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/nodeagent"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
	"sluice.dev/sluice/nodeagent/publish"
)

// looker looks at a node's devices: nodeagent/nvml's Probe.
type looker interface {
	// Run looks until the context ends and calls report after each look.
	Run(ctx context.Context, report func(*nodeagent.Report)) error
	// Look looks once.
	Look() *nodeagent.Report
	// Yield lets the driver go, so that others can reset or cut its cards, until it is
	// called with "".
	Yield(why string)
	Close()
}

const (
	// labelsEvery is how old labels may be. Feature discovery changes them once a minute.
	labelsEvery = 30 * time.Second
	// farewell is how long a driver call may still take when the agent has to end.
	farewell = 3 * time.Second
)

// agent joins the parts.
type agent struct {
	driver     looker
	neighbours publish.Neighbourhood
	cluster    publish.Cluster
	version    string
	log        logr.Logger
	options    publish.Options

	state string // as logged last
}

// connect is the cluster as the agent of the node sees it. Nothing is asked yet: an API
// server that is away is waited for.
func connect(node string) (publish.Cluster, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	config.UserAgent = v1alpha1.AgentName
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	c, err := client.New(config, client.Options{Scheme: s})
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	return publish.Node{Client: c, Name: node}, nil
}

// run publishes until ctx ends. Nothing that a driver, a kubelet or an API server
// answers ends it before.
func (a *agent) run(ctx context.Context) error {
	labels := publish.Labels(a.cluster, clock.RealClock{}, labelsEvery)
	a.neighbours.Labels = func(ctx context.Context) (map[string]string, error) {
		l, err := labels(ctx)
		a.driver.Yield(yields(l))
		return l, err
	}
	a.options.Log = a.log
	publisher := publish.New(a.cluster, a.options)
	published := make(chan struct{})
	go func() {
		defer close(published)
		publisher.Run(ctx)
	}()
	looked := make(chan error, 1)
	go func() {
		looked <- a.driver.Run(ctx, func(r *nodeagent.Report) {
			a.say(r)
			publisher.See(publish.Seen{Report: r, Neighbours: a.neighbours.Look(ctx), AgentVersion: a.version})
		})
	}()
	<-ctx.Done()
	<-published
	select {
	case err := <-looked:
		return err
	case <-time.After(farewell):
		a.log.Info("a call of the driver does not return, ending without it")
		return nil
	}
}

// say logs when the node is found in another state than before.
func (a *agent) say(r *nodeagent.Report) {
	text := string(r.State) + ": " + r.Message
	if text == a.state {
		return
	}
	a.state = text
	a.log.Info("looked at the devices", "state", r.State, "reason", r.Message, "cards", len(r.Cards), "driver", r.Driver.Version)
}

// yields is why the driver has to be let go, by the node's labels, or "": nobody can
// switch the MIG mode of a card that a program holds open.
func yields(labels map[string]string) string {
	switch state := labels[v1alpha1.LabelMIGState]; state {
	case "pending", "rebooting":
		return fmt.Sprintf("the label %s is %s", v1alpha1.LabelMIGState, state)
	}
	if labels[v1alpha1.LabelPluginPaused] == v1alpha1.PausedForMIG {
		return fmt.Sprintf("the label %s is %s", v1alpha1.LabelPluginPaused, v1alpha1.PausedForMIG)
	}
	return ""
}
