package sandbox

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"sluice.dev/sluice/simulations/sandbox/certs"
	"sluice.dev/sluice/simulations/sandbox/kube"
	"sluice.dev/sluice/simulations/sandbox/process"
)

const (
	// startTimeout bounds the wait for one component. On a busy machine an API
	// server needs far longer than its usual five seconds.
	startTimeout = 3 * time.Minute
	healthEvery  = 50 * time.Millisecond
	// startAttempts bounds how often a component is started anew because
	// somebody else took its port first.
	startAttempts = 3
)

// runner works on one sandbox while it holds its lock.
type runner struct {
	box   *Sandbox
	st    *State
	built map[string]string // artifact → path
	ca    *certs.Authority
	trust *tls.Config
}

// newRunner builds what the settings need and is missing, and makes the
// certificates.
func newRunner(ctx context.Context, s *Sandbox, st *State) (*runner, error) {
	names, err := Artifacts(st.Settings.Mode)
	if err != nil {
		return nil, err
	}
	built, err := s.Builder.Ensure(ctx, names...)
	if err != nil {
		return nil, err
	}
	ca, err := certs.Open(s.pkiPath())
	if err != nil {
		return nil, err
	}
	if err := ca.Server(serverCert, serviceIP); err != nil {
		return nil, err
	}
	for _, u := range users {
		if err := ca.Client(u); err != nil {
			return nil, err
		}
	}
	if err := ca.KeyPair(tokenKey); err != nil {
		return nil, err
	}
	trust, err := adminTLS(ca)
	if err != nil {
		return nil, err
	}
	return &runner{box: s, st: st, built: built, ca: ca, trust: trust}, nil
}

// api is a client of the API server as its administrator.
func (r *runner) api() *kube.Client {
	return kube.New("https://"+hostPort(r.st.Ports[apiserverName]), r.trust)
}

// writeFiles writes what the components read, from the settings and ports as
// they are now.
func (r *runner) writeFiles() error {
	server := "https://" + hostPort(r.st.Ports[apiserverName])
	for _, u := range users {
		text, err := kubeconfig(r.ca, u.Name, server, "sandbox")
		if err != nil {
			return err
		}
		if err := writeWhole(r.box.kubeconfigPath(u.Name), text); err != nil {
			return err
		}
	}
	if err := writeWhole(r.box.auditPolicyPath(), auditPolicy); err != nil {
		return err
	}
	if r.st.Settings.Mode == API {
		return nil
	}
	text, err := kwokConfig(r.built)
	if err != nil {
		return err
	}
	return writeWhole(r.box.kwokConfigPath(), text)
}

// digest tells whether a component runs as it should: its program, arguments
// and the files it reads.
func (r *runner) digest(c component) (string, error) {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s\n%q\n", r.built[c.name], c.args(r))
	if c.reads != nil {
		for _, path := range c.reads(r) {
			text, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			h.Write(text)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// started is a component that was just started, or was running before.
type started struct {
	ended <-chan struct{} // nil when it was running before
	logAt int64           // where its log stood before the start
}

// ensure makes a component run as it should. What runs so already is left
// alone; what runs with other arguments is stopped first.
func (r *runner) ensure(ctx context.Context, c component) (started, error) {
	if p, recorded := r.st.Processes[c.name]; recorded && p.Alive() {
		if err := r.writeFiles(); err != nil {
			return started{}, err
		}
		want, err := r.digest(c)
		if err != nil {
			return started{}, err
		}
		if p.Digest == want {
			return started{}, nil
		}
		r.box.say("%s: settings changed, starting it anew", c.name)
		if err := r.box.stop(ctx, r.st, c, false); err != nil {
			return started{}, err
		}
	}
	return r.start(ctx, c)
}

// start starts a component and writes its process down.
func (r *runner) start(ctx context.Context, c component) (started, error) {
	if err := assignPorts(r.st.Ports, c.ports); err != nil {
		return started{}, err
	}
	if err := r.writeFiles(); err != nil {
		return started{}, err
	}
	if err := os.MkdirAll(r.box.etcdPath(), 0o700); err != nil {
		return started{}, err
	}
	if c.name == kwokName {
		if err := prepareKWOK(ctx, r.api()); err != nil {
			return started{}, err
		}
	}
	digest, err := r.digest(c)
	if err != nil {
		return started{}, err
	}
	var s started
	if info, err := os.Stat(r.box.LogPath(c.name)); err == nil {
		s.logAt = info.Size()
	}
	identity, ended, err := process.Start(process.Spec{
		Program: r.built[c.name], Args: c.args(r), Dir: r.box.Dir, Log: r.box.LogPath(c.name),
		// Nothing of the caller's environment, such as a proxy, leads the
		// components elsewhere. KWOK reads its defaults from the home folder.
		Env: []string{"HOME=" + r.box.Dir, "PATH=/usr/bin:/bin"},
	})
	if err != nil {
		return started{}, err
	}
	s.ended = ended
	r.st.Processes[c.name] = Process{Identity: identity, Digest: digest, Since: time.Now().Round(0)}
	return s, r.st.save(r.box.statePath())
}

// startStage makes the components run and returns when all are healthy.
func (r *runner) startStage(ctx context.Context, cs []component) error {
	begun := make([]started, len(cs))
	for i, c := range cs {
		var err error
		if begun[i], err = r.ensure(ctx, c); err != nil {
			return fmt.Errorf("start %s: %w", c.name, err)
		}
	}
	for i, c := range cs {
		if err := r.healthy(ctx, c, begun[i]); err != nil {
			return fmt.Errorf("start %s: %w", c.name, err)
		}
	}
	return nil
}

// errEnded says that a component ended instead of becoming healthy.
var errEnded = errors.New("it ended")

// healthy returns when a component is well. If it ended because its port was
// taken between choosing and using it, it is started again on another.
func (r *runner) healthy(ctx context.Context, c component, s started) error {
	for attempt := 1; ; attempt++ {
		err := r.waitHealthy(ctx, c, s)
		if err == nil {
			if s.ended != nil {
				p := r.st.Processes[c.name]
				r.box.say("%s: healthy after %v, pid %d, port %d", c.name,
					time.Since(p.Since).Round(10*time.Millisecond), p.PID, r.st.Ports[c.name])
			}
			return nil
		}
		if !errors.Is(err, errEnded) {
			return err
		}
		if attempt == startAttempts || r.portsFree(c) {
			return fmt.Errorf("%w; the end of %s:\n%s", err, r.box.LogPath(c.name), r.box.logTail(c.name, s.logAt))
		}
		r.box.say("%s: its port was taken by somebody else, trying another", c.name)
		if s, err = r.start(ctx, c); err != nil {
			return err
		}
	}
}

func (r *runner) portsFree(c component) bool {
	for _, name := range c.ports {
		if !isFree(r.st.Ports[name]) {
			return false
		}
	}
	return true
}

func (r *runner) waitHealthy(ctx context.Context, c component, s started) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tell := time.NewTicker(10 * time.Second)
	defer tell.Stop()
	p := r.st.Processes[c.name]
	for {
		err := probe(ctx, c, r.st.Ports[c.name], r.trust)
		if err == nil && p.Alive() {
			return nil
		}
		if !p.Alive() {
			return errEnded
		}
		select {
		case <-s.ended: // nil for what was running before
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("not healthy: %w: %w; see %s", err, ctx.Err(), r.box.LogPath(c.name))
		case now := <-tell.C:
			r.box.say("%s: waiting until it is healthy, %v", c.name, now.Sub(p.Since).Round(time.Second))
		case <-time.After(healthEvery):
		}
	}
}
