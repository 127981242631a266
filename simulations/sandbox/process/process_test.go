package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary plays the programs that are started.
func TestMain(m *testing.M) {
	switch os.Getenv("PLAY") {
	case "":
		os.Exit(m.Run())
	case "obedient":
		_, _ = os.Stdout.WriteString("ready\n")
		time.Sleep(time.Minute)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		_, _ = os.Stdout.WriteString("ready\n")
		time.Sleep(time.Minute)
	}
}

func play(t *testing.T, role string) (Identity, <-chan struct{}) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "logs", "log")
	id, ended, err := Start(Spec{Program: os.Args[0], Env: []string{"PLAY=" + role}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = id.Kill(context.Background()) })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if text, _ := os.ReadFile(log); strings.Contains(string(text), "ready") {
			return id, ended
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s never said that it is ready", role)
		}
	}
}

func TestObedientProcessIsStoppedNotKilled(t *testing.T) {
	id, ended := play(t, "obedient")
	if !id.Alive() {
		t.Fatal("a process that just said it is ready is not alive")
	}
	killed, err := id.Stop(t.Context(), time.Minute)
	if err != nil || killed {
		t.Fatalf("killed=%v, err=%v", killed, err)
	}
	<-ended
	if id.Alive() {
		t.Fatal("alive after Stop")
	}
}

func TestStubbornProcessIsKilled(t *testing.T) {
	id, ended := play(t, "stubborn")
	killed, err := id.Stop(t.Context(), 50*time.Millisecond)
	if err != nil || !killed {
		t.Fatalf("killed=%v, err=%v", killed, err)
	}
	<-ended
}

// A state file may outlive the process by far. Whoever has its pid by then
// must not feel it.
func TestAnotherProcessWithTheSamePidIsLeftAlone(t *testing.T) {
	id, _ := play(t, "obedient")
	stale := Identity{PID: id.PID, Start: id.Start + "0"}
	if stale.Alive() {
		t.Error("an identity with another start time counts as alive")
	}
	if err := stale.Signal(syscall.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("signal: got %v, want ErrGone", err)
	}
	if killed, err := stale.Stop(t.Context(), time.Minute); err != nil || killed {
		t.Errorf("stop: killed=%v, err=%v", killed, err)
	}
	if err := stale.Kill(t.Context()); err != nil {
		t.Errorf("kill: %v", err)
	}
	if !id.Alive() {
		t.Fatal("the process that has the pid now was ended")
	}
	if err := (Identity{}).Signal(syscall.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("signal to no identity: got %v, want ErrGone", err)
	}
}

// In a container nobody may reap the orphans of an earlier command.
func TestUnreapedProcessIsNotAlive(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{"PLAY=obedient"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if !id.Alive() {
		t.Fatal("not alive before it was killed")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := id.wait(t.Context()); err != nil { // nobody called Wait yet
		t.Fatal(err)
	}
	if _, err := Of(id.PID); !errors.Is(err, ErrGone) {
		t.Errorf("Of: got %v, want ErrGone", err)
	}
	_ = cmd.Wait()
}

func TestStartSaysWhyItFails(t *testing.T) {
	_, _, err := Start(Spec{Program: "/no/such/program", Log: filepath.Join(t.TempDir(), "log")})
	if err == nil || !strings.Contains(err.Error(), "program") {
		t.Fatalf("got %v", err)
	}
}

func TestLargeLogIsPutAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, rotateAt); err != nil {
		t.Fatal(err)
	}
	f, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("the new log starts with %v bytes (err %v)", info.Size(), err)
	}
	if info, err := os.Stat(path + ".old"); err != nil || info.Size() != rotateAt {
		t.Errorf("the old log was not kept: %v", err)
	}
}
