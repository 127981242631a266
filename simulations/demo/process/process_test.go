//go:build unix

package process

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T, script string) (Identity, string) {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh")
	}
	log := filepath.Join(t.TempDir(), "logs", "it.log")
	i, err := Start(Spec{Program: sh, Args: []string{"-c", script}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Kill(context.Background()) })
	return i, log
}

func TestStopEndsTheProcess(t *testing.T) {
	i, _ := start(t, "sleep 600")
	if !i.Alive() {
		t.Fatal("started and not alive")
	}
	if err := i.Stop(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if i.Alive() {
		t.Fatal("alive after Stop")
	}
	if err := i.Kill(t.Context()); err != nil {
		t.Fatalf("kill what is gone: %v", err)
	}
}

// What does not care about SIGTERM is killed.
func TestStopKillsTheStubborn(t *testing.T) {
	i, log := start(t, "trap '' TERM; echo deaf; while :; do sleep 1; done")
	for text := ""; !strings.Contains(text, "deaf"); time.Sleep(5 * time.Millisecond) {
		read, _ := os.ReadFile(log)
		text = string(read)
	}
	if err := i.Stop(t.Context(), 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if i.Alive() {
		t.Fatal("alive after Stop")
	}
}

// Another process that has the pid now is not the one that was written down,
// and survives what is done to that one.
func TestAnotherProcessWithThePid(t *testing.T) {
	i, _ := start(t, "sleep 600")
	earlier := Identity{PID: i.PID, Start: "earlier"}
	if earlier.Alive() {
		t.Error("an earlier process of this pid counts as alive")
	}
	if err := earlier.Kill(t.Context()); err != nil {
		t.Error(err)
	}
	if err := earlier.Stop(t.Context(), time.Second); err != nil {
		t.Error(err)
	}
	if !i.Alive() {
		t.Fatal("the process was ended in place of another")
	}
	if (Identity{}).Alive() {
		t.Error("nobody is alive")
	}
}
