package sandbox

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/simulations/sandbox/process"
)

// sleeper starts a process that has nothing to do with a sandbox.
func sleeper(t *testing.T) process.Identity {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	id, err := process.Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func newBox(t *testing.T) *Sandbox {
	t.Helper()
	return &Sandbox{Dir: filepath.Join(t.TempDir(), "box"), Out: io.Discard}
}

// After a reboot, or long enough, the pids in a state file belong to others.
func TestDownEndsItsOwnProcessesAndNobodyElses(t *testing.T) {
	s := newBox(t)
	own, other := sleeper(t), sleeper(t)
	st, err := loadState(s.statePath())
	if err != nil {
		t.Fatal(err)
	}
	st.Processes[etcdName] = Process{Identity: own}
	st.Processes[kwokName] = Process{Identity: process.Identity{PID: other.PID, Start: "an earlier boot/1"}}
	if err := st.save(s.statePath()); err != nil {
		t.Fatal(err)
	}
	if err := s.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if own.Alive() {
		t.Error("its own process still runs")
	}
	if !other.Alive() {
		t.Error("a process that has the pid of an earlier one was ended")
	}
	if st, err := loadState(s.statePath()); err != nil || len(st.Processes) != 0 {
		t.Errorf("still recorded: %v (%v)", st.Processes, err)
	}
}

// A sandbox may have been put into a folder that was there before.
func TestResetRemovesOnlyWhatTheSandboxMade(t *testing.T) {
	s := newBox(t)
	st, err := loadState(s.statePath())
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		s.Kubeconfig(): "k", s.LogPath(etcdName): "l", s.kwokConfigPath(): "c", filepath.Join(s.Dir, "thesis.txt"): "mine",
	} {
		if err := writeWhole(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.save(s.statePath()); err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(s.Dir + "/*")
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "thesis.txt" {
		t.Errorf("left are %v, want thesis.txt alone", left)
	}
	if err := s.Reset(t.Context()); err != nil {
		t.Errorf("a second reset: %v", err)
	}
}

func TestCommandsOnWhatIsNoSandboxLeaveNothingBehind(t *testing.T) {
	s := newBox(t)
	for name, err := range map[string]error{"down": s.Down(t.Context()), "reset": s.Reset(t.Context())} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"stop": s.Stop(t.Context(), "etcd", false), "start": s.Start(t.Context(), "etcd"), "stop by a wrong name": s.Stop(t.Context(), "kubelet", false),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if st, err := s.Status(t.Context()); err != nil || st.Healthy() {
		t.Errorf("status: healthy=%v, err=%v", st.Healthy(), err)
	}
	if _, err := os.Stat(s.Dir); err == nil {
		t.Errorf("there is a folder now: %s", s.Dir)
	}
}
