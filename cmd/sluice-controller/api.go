package main

import (
	"context"
	"net"
	"sync"
	"time"

	authn "k8s.io/api/authentication/v1"
	authz "k8s.io/api/authorization/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"sluice.dev/sluice/admission/api"
	"sluice.dev/sluice/admission/kube"
	"sluice.dev/sluice/cmd/sluice-controller/config"
)

// setupAPI adds the server that answers questions, and returns what the loop gives
// copies of its state to; nil if nothing is served.
func setupAPI(mgr ctrl.Manager, settings config.Configuration, records api.Records) (kube.Copies, error) {
	address := settings.API.BindAddress
	if address == "0" {
		return nil, nil
	}
	if err := authn.AddToScheme(mgr.GetScheme()); err != nil {
		return nil, err
	}
	if err := authz.AddToScheme(mgr.GetScheme()); err != nil {
		return nil, err
	}
	desk := api.NewDesk(time.Now)
	handler := api.New(desk, api.Reviews(mgr.GetClient(), time.Now), time.Now)
	handler.Remember(records)
	return desk, mgr.Add(&apiServer{address: address, namespace: settings.Namespace, handler: handler})
}

// apiServer answers on every replica; only the one that leads has a state to
// answer from.
type apiServer struct {
	address   string
	namespace string
	handler   *api.Handler
}

// NeedLeaderElection lets a replica say that it does not lead.
func (s *apiServer) NeedLeaderElection() bool { return false }

// Start serves until ctx ends.
func (s *apiServer) Start(ctx context.Context) error {
	cert, err := api.SelfSigned(time.Now(), "localhost", "sluice-api", "sluice-api."+s.namespace+".svc")
	if err != nil {
		return err
	}
	var follower sync.WaitGroup
	follower.Go(func() { s.handler.Follow(ctx) })
	defer follower.Wait()
	return api.Serve(ctx, s.address, s.handler, cert, func(a net.Addr) { ctrl.Log.Info("answering questions", "address", a.String()) })
}
