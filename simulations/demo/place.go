package demo

import (
	"path/filepath"
)

// place is where the demo keeps what. All but the default sandbox lies in dir.
type place struct {
	dir string
	// sandbox are the flags that name the sandbox.
	sandbox []string
}

func placeOf(o Options) (place, error) {
	if o.Dir != "" {
		return place{dir: o.Dir, sandbox: []string{"--dir", filepath.Join(o.Dir, "sandbox")}}, nil
	}
	cache, err := CacheDir()
	if err != nil {
		return place{}, err
	}
	return place{dir: filepath.Join(cache, "demo"), sandbox: []string{"--name", "demo"}}, nil
}

func (p place) lock() string            { return filepath.Join(p.dir, "lock") }
func (p place) state() string           { return filepath.Join(p.dir, "state.json") }
func (p place) program(n string) string { return filepath.Join(p.dir, "bin", n) }
func (p place) nodes() string           { return filepath.Join(p.dir, "nodes.yaml") }
func (p place) controller() string      { return filepath.Join(p.dir, "controller") }
func (p place) standby() string         { return filepath.Join(p.dir, "standby") }
func (p place) kubeconfig() string      { return filepath.Join(p.controller(), "kubeconfig") }
func (p place) token() string           { return filepath.Join(p.controller(), "token") }
func (p place) fleet() string           { return filepath.Join(p.dir, "fleet.yaml") }
func (p place) fleetSocket() string     { return filepath.Join(p.dir, "fleet.sock") }
func (p place) fleetLog() string        { return filepath.Join(p.dir, "logs", "fleet.log") }
func (p place) controllerLog() string   { return filepath.Join(p.dir, "logs", "sluice-controller.log") }
func (p place) standbyLog() string      { return filepath.Join(p.dir, "logs", "standby.log") }

// contents are the names of all that the demo puts into its folder, but for the
// sandbox and the lock.
var contents = []string{"bin", "controller", "fleet.sock", "fleet.yaml", "logs", "nodes.yaml", "standby", "state.json"}
