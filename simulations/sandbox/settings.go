package sandbox

import "fmt"

// Mode says how much of a control plane runs.
type Mode string

const (
	// All is a whole control plane: pods are made, scheduled, run and end.
	All Mode = "all"
	// API is etcd and kube-apiserver alone. Objects are stored, validated and
	// watched, and nothing acts on them. It starts faster and is enough to test
	// what reads and writes objects.
	API Mode = "api"
)

// Settings are what a sandbox can be told about how it should run. It
// remembers them until it is reset.
type Settings struct {
	Mode Mode `json:"mode"`
	// Audit makes the API server log each write to workloads, jobs and pods.
	Audit bool `json:"audit"`
	// ControllerQPS and SchedulerQPS bound the requests a second of
	// kube-controller-manager and kube-scheduler. Their own defaults, 20 and 50,
	// let a job of 512 pods take half a minute.
	ControllerQPS int `json:"controllerQPS"`
	SchedulerQPS  int `json:"schedulerQPS"`
}

// DefaultSettings are those of a sandbox that was told nothing.
func DefaultSettings() Settings {
	return Settings{Mode: All, ControllerQPS: 2000, SchedulerQPS: 2000}
}

func (m Mode) validate() error {
	if m != All && m != API {
		return fmt.Errorf("mode %q is neither %q nor %q", m, All, API)
	}
	return nil
}

// Validate says what is wrong with the settings, if anything is.
func (s Settings) Validate() error {
	if err := s.Mode.validate(); err != nil {
		return err
	}
	if s.ControllerQPS < 1 || s.SchedulerQPS < 1 {
		return fmt.Errorf("requests a second must be positive: controllers %d, scheduler %d", s.ControllerQPS, s.SchedulerQPS)
	}
	return nil
}
