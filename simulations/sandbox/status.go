package sandbox

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"sluice.dev/sluice/simulations/sandbox/certs"
	"sluice.dev/sluice/simulations/sandbox/nodes"
)

// ComponentStatus is one line of a Status.
type ComponentStatus struct {
	Name string `json:"name"`
	PID  int    `json:"pid,omitempty"`
	Port int    `json:"port,omitempty"`
	// Health is nil when the component is well.
	Health error     `json:"-"`
	Since  time.Time `json:"since,omitzero"`
	Log    string    `json:"log"`
}

// Status is how a sandbox stands.
type Status struct {
	Settings   Settings
	Components []ComponentStatus
	// Nodes counts the simulated nodes and NotReady those that are not ready.
	// NodesError says why they could not be counted.
	Nodes, NotReady int
	NodesError      error
}

// Healthy reports whether every component of the mode is well.
func (s Status) Healthy() bool {
	for _, c := range s.Components {
		if c.Health != nil {
			return false
		}
	}
	return true
}

var (
	errNotRunning = errors.New("not running")
	errEndedAway  = errors.New("ended by itself")
)

// Status asks every component how it is. It changes nothing and does not wait
// for other commands.
func (s *Sandbox) Status(ctx context.Context) (Status, error) {
	st, err := loadState(s.statePath())
	if err != nil {
		return Status{}, err
	}
	status := Status{Settings: st.Settings}
	trust, err := s.trust()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Status{}, err
	}
	var wg sync.WaitGroup
	for _, c := range components {
		if c.in(st.Settings.Mode) {
			status.Components = append(status.Components, ComponentStatus{Name: c.name, Log: s.LogPath(c.name)})
		}
	}
	for i := range status.Components {
		wg.Go(func() { status.Components[i].ask(ctx, st, trust) })
	}
	wg.Wait()
	if st.Settings.Mode == All && trust != nil {
		client, err := s.Client()
		if err != nil {
			return Status{}, err
		}
		if status.Healthy() {
			total, waiting, err := nodes.Applier{API: client}.Readiness(ctx)
			status.Nodes, status.NotReady, status.NodesError = total, len(waiting), err
		}
	}
	return status, nil
}

func (cs *ComponentStatus) ask(ctx context.Context, st *State, trust *tls.Config) {
	c, err := lookup(cs.Name)
	if err != nil {
		cs.Health = err
		return
	}
	p, recorded := st.Processes[c.name]
	if !recorded {
		cs.Health = errNotRunning
		return
	}
	cs.PID, cs.Port, cs.Since = p.PID, st.Ports[c.name], p.Since
	if !p.Alive() {
		cs.Health = errEndedAway
		return
	}
	cs.Health = probe(ctx, c, cs.Port, trust)
}

// trust reads the certificates, without making any.
func (s *Sandbox) trust() (*tls.Config, error) {
	if _, err := os.Stat(s.pkiPath()); err != nil {
		return nil, err
	}
	ca, err := certs.Open(s.pkiPath())
	if err != nil {
		return nil, err
	}
	return adminTLS(ca)
}
