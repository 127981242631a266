package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// patience bounds each step that only waits for a cluster.
const patience = 5 * time.Minute

// Demo is one demo in its folder. Open gives it out to one process at a time.
type Demo struct {
	o      Options
	place  place
	lock   *lock
	state  *state
	screen *screen

	box        *box // nil with a given cluster
	cluster    *Cluster
	supervisor *Supervisor // nil without a controller of its own
	standby    *Supervisor // nil unless the options ask for one
	gangs      []*gang
	needs      []*unstructured.Unstructured
}

// Open takes the demo's folder. Close gives it back; what was started goes on.
func Open(o Options) (*Demo, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	p, err := placeOf(o)
	if err != nil {
		return nil, err
	}
	d := &Demo{o: o, place: p, screen: newScreen(o.Out)}
	if d.gangs, d.needs, err = readGangs(o.Gangs); err != nil {
		return nil, err
	}
	if d.lock, err = acquire(p.lock()); err != nil {
		return nil, err
	}
	if d.state, err = loadState(p.state()); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Close gives the folder back.
func (d *Demo) Close() { d.lock.release() }

func (d *Demo) say(format string, args ...any) { d.screen.say(format, args...) }

// Cluster is the client of the person who runs the demo. It is there after Up.
func (d *Demo) Cluster() *Cluster { return d.cluster }

// Supervisor holds the controller. It is there after Up.
func (d *Demo) Supervisor() *Supervisor { return d.supervisor }

// Standby holds the second controller. It is there after Up, if the options ask
// for it.
func (d *Demo) Standby() *Supervisor { return d.standby }

// ControllerProgram and ControllerLog are paths.
func (d *Demo) ControllerProgram() string { return d.place.program("sluice-controller") }

// ControllerLog is the path of the log of every controller in this folder.
func (d *Demo) ControllerLog() string { return d.place.controllerLog() }

// Answers is where the controller answers questions, over TLS.
func (d *Demo) Answers() string { return "https://" + loopback(d.port(d.first(), answersPort)) }

// Sandbox runs a command of the sandbox's command line on the demo's sandbox,
// as `stop kube-apiserver`, and returns what it prints.
func (d *Demo) Sandbox(ctx context.Context, args ...string) (string, error) {
	if d.box == nil {
		return "", errors.New("the demo runs on a given cluster, not on a sandbox")
	}
	return d.box.run(ctx, args...)
}

// Up makes everything run that the gangs need, and returns when the controller
// is ready and the queues are there.
func (d *Demo) Up(ctx context.Context) error {
	begin := time.Now()
	if err := d.reach(ctx); err != nil {
		return err
	}
	if !d.o.NoController {
		d.say("building sluice-controller")
		if err := d.buildController(ctx); err != nil {
			return err
		}
		if err := d.startController(ctx); err != nil {
			return err
		}
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if d.box != nil {
		if err := d.startFleet(bounded); err != nil {
			return err
		}
	}
	if err := d.applyAll(bounded, d.needs); err != nil {
		return err
	}
	d.say("ready after %v", time.Since(begin).Round(10*time.Millisecond))
	return nil
}

// Apply makes the objects of a folder's manifests what these say. It needs Up.
func (d *Demo) Apply(ctx context.Context, folder string) error {
	objects, err := readFolder(folder)
	if err != nil {
		return err
	}
	return d.applyAll(ctx, objects)
}

// reach connects to the given cluster, or to the sandbox once that runs.
func (d *Demo) reach(ctx context.Context) (err error) {
	if d.o.Kubeconfig != "" { // a mistake in its name must not stop what runs
		if _, err := connect(d.o.Kubeconfig); err != nil {
			return err
		}
	}
	if d.state.Kubeconfig != d.o.Kubeconfig && d.state.Controller.Alive() {
		d.say("sluice-controller: stopping pid %d, which serves another cluster", d.state.Controller.PID)
		if err := d.state.Controller.Stop(ctx, stopGrace); err != nil {
			return err
		}
	}
	d.state.Kubeconfig = d.o.Kubeconfig
	if err := d.state.save(); err != nil {
		return err
	}
	kubeconfig := d.o.Kubeconfig
	if kubeconfig == "" {
		if d.box, err = newBox(ctx, d.o.Root, d.place, d.o.Out); err != nil {
			return err
		}
		if kubeconfig, err = d.box.up(ctx, d.place.nodes()); err != nil {
			return err
		}
	}
	d.cluster, err = connect(kubeconfig)
	return err
}

// startController installs sluice and makes the controller run under its own
// service account.
func (d *Demo) startController(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var cluster string
	err := eventually(bounded, d.say, "ask the API server", func() (err error) {
		cluster, err = d.cluster.identity(bounded)
		return err
	})
	if err != nil {
		return err
	}
	if err := d.install(bounded); err != nil {
		return err
	}
	if err := d.writeCredentials(bounded); err != nil {
		return err
	}
	if d.supervisor, err = d.start(bounded, d.first(), cluster); err != nil || !d.o.Standby {
		return err
	}
	d.standby, err = d.start(bounded, d.second(), cluster)
	return err
}

// start makes one controller run and says so.
func (d *Demo) start(ctx context.Context, r replica, cluster string) (*Supervisor, error) {
	s, err := d.supervise(r, cluster)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	reused, err := s.Ensure(ctx)
	if err != nil {
		return nil, err
	}
	if reused {
		d.say("%s: runs already, pid %d", r.title, r.record.PID)
	} else {
		d.say("%s: ready after %v, pid %d, as %s/%s", r.title, time.Since(begin).Round(10*time.Millisecond),
			r.record.PID, controllerNamespace, controllerAccount)
	}
	if d.o.Started != nil {
		d.o.Started(s)
	}
	return s, nil
}

// Down stops what runs and removes all that the demo made: the sandbox and the
// folder. In a given cluster it removes the gangs, their queues and sluice's own
// objects; the CRDs and the namespaces of the teams, which others may use, stay.
func (d *Demo) Down(ctx context.Context) error {
	if d.state.Kubeconfig != "" {
		if err := d.leave(ctx); err != nil {
			return err
		}
	}
	for _, r := range []replica{d.second(), d.first()} {
		if !r.record.Alive() {
			continue
		}
		pid := r.record.PID
		if err := r.record.Stop(ctx, stopGrace); err != nil {
			return err
		}
		d.say("%s: stopped pid %d", r.title, pid)
	}
	if d.state.Fleet.Alive() {
		pid := d.state.Fleet.PID
		if err := d.state.Fleet.Stop(ctx, stopGrace); err != nil {
			return err
		}
		d.say("machines: stopped pid %d", pid)
	}
	if d.state.Kubeconfig != "" {
		for _, folder := range []string{"agent", "base"} {
			if err := d.deleteFolder(ctx, folder); err != nil {
				return err
			}
		}
	} else if err := d.resetSandbox(ctx); err != nil {
		return err
	}
	for _, name := range contents {
		if err := os.RemoveAll(filepath.Join(d.place.dir, name)); err != nil {
			return fmt.Errorf("remove the demo: %w", err)
		}
	}
	d.lock.remove()
	_ = os.Remove(d.place.dir) // stays if something else is in it
	d.say("removed the demo in %s", d.place.dir)
	return nil
}

func (d *Demo) resetSandbox(ctx context.Context) (err error) {
	if d.box == nil {
		if d.box, err = newBox(ctx, d.o.Root, d.place, d.o.Out); err != nil {
			return err
		}
	}
	return d.box.reset(ctx)
}

// Places are where a person finds what the demo left, one a line.
func (d *Demo) Places() []string {
	lines := []string{"logs of sluice-controller   " + d.ControllerLog()}
	if d.o.NoController {
		lines = nil
	}
	if d.box != nil && d.cluster != nil {
		if dir := d.sandboxDir(); dir != "" {
			lines = append(lines,
				"logs of the control plane   "+filepath.Join(dir, "logs"),
				"kubeconfig                  "+filepath.Join(dir, "kubeconfig"))
		}
	}
	return lines
}

func (d *Demo) sandboxDir() string {
	if d.place.sandbox[0] == "--dir" {
		return d.place.sandbox[1]
	}
	cache, err := CacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "sandbox", d.place.sandbox[1])
}

// Left says what an interrupted demo leaves behind.
func (d *Demo) Left() string {
	var parts []string
	if d.o.Kubeconfig == "" {
		if _, err := os.Stat(filepath.Join(d.sandboxDir(), "state.json")); !errors.Is(err, fs.ErrNotExist) {
			parts = append(parts, "the sandbox")
		}
	}
	if d.state.Controller.Alive() {
		parts = append(parts, fmt.Sprintf("sluice-controller (pid %d)", d.state.Controller.PID))
	}
	if d.state.Fleet.Alive() {
		parts = append(parts, fmt.Sprintf("the machines (pid %d)", d.state.Fleet.PID))
	}
	if len(parts) == 0 {
		return "nothing is left running"
	}
	return strings.Join(parts, " and ") + " may still run; the demo uses them again, and its command down removes all"
}
