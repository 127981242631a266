package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/simulations/demo/process"
)

// fakeVariable makes this test program a controller: its value is the port on
// which it is ready, or "broken".
const fakeVariable = "SLUICE_DEMO_TEST_CONTROLLER"

func TestMain(m *testing.M) {
	switch port := os.Getenv(fakeVariable); port {
	case "":
		os.Exit(m.Run())
	case "broken":
		fmt.Println("cannot go on: there is no journal")
		os.Exit(1)
	default:
		http.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
		http.HandleFunc("/end", func(http.ResponseWriter, *http.Request) {
			fmt.Println("the end")
			os.Exit(0)
		})
		fmt.Println(http.ListenAndServe("127.0.0.1:"+port, nil))
		os.Exit(1)
	}
}

func newSupervisor(t *testing.T) *Supervisor {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	port, err := freePort(nil)
	if err != nil {
		t.Fatal(err)
	}
	st, err := loadState(filepath.Join(dir, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Supervisor{
		spec: process.Spec{
			Program: program, Dir: dir, Log: filepath.Join(dir, "controller.log"),
			Env: []string{fmt.Sprintf("%s=%d", fakeVariable, port)},
		},
		title: "fake", digest: "one", health: port, record: &st.Controller, state: st, say: t.Logf,
	}
	t.Cleanup(func() { _ = s.state.Controller.Kill(context.Background()) })
	return s
}

func ensure(t *testing.T, s *Supervisor) (reused bool) {
	t.Helper()
	reused, err := s.Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return reused
}

// keep runs Keep until the test ends.
func keep(t *testing.T, s *Supervisor) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Keep(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func waitFor(t *testing.T, what string, reached func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !reached(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestEnsureUsesARunningController(t *testing.T) {
	s := newSupervisor(t)
	if ensure(t, s) {
		t.Error("said to be reused, and there was none")
	}
	first := s.state.Controller
	again := newSupervisor(t) // as a later demo in the same folder
	again.state, again.record, again.spec, again.health = s.state, s.record, s.spec, s.health
	if !ensure(t, again) || again.state.Controller.Identity != first.Identity {
		t.Error("a good controller was not used again")
	}
	again.digest = "two" // other program, or other configuration
	if ensure(t, again) || again.state.Controller.Identity == first.Identity || first.Alive() {
		t.Error("a controller that is out of date was used again, or left running")
	}
	written, err := loadState(s.state.path)
	if err != nil || written.Controller.Identity != again.state.Controller.Identity {
		t.Errorf("the state file has %v (%v), want %v", written.Controller, err, again.state.Controller)
	}
}

func TestKeepRevivesAKilledController(t *testing.T) {
	s := newSupervisor(t)
	ensure(t, s)
	keep(t, s)
	before := s.Starts()
	if err := s.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "ready again", func() bool {
		a := s.Absences()
		return len(a) == 1 && !a[0].To.IsZero()
	})
	if s.Starts() != before+1 || s.Kills() != 1 || len(s.Ends()) != 0 {
		t.Errorf("%d starts, %d kills, ends %q", s.Starts()-before, s.Kills(), s.Ends())
	}
}

func TestKeepTellsOfAControllerThatEndsByItself(t *testing.T) {
	s := newSupervisor(t)
	ensure(t, s)
	keep(t, s)
	if response, err := http.Get("http://" + loopback(s.health) + "/end"); err == nil {
		_ = response.Body.Close()
	}
	waitFor(t, "it is told", func() bool { return len(s.Ends()) == 1 })
	if got := s.Ends()[0]; got != "the end" {
		t.Errorf("got %q, want the last line of the log", got)
	}
	waitFor(t, "ready again", func() bool {
		a := s.Absences()
		return len(a) == 1 && !a[0].To.IsZero()
	})
}

func TestStoppedStaysDown(t *testing.T) {
	s := newSupervisor(t)
	ensure(t, s)
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.revive(0); s.alive() {
		t.Fatal("what was stopped was started again")
	}
	if a := s.Absences(); len(a) != 1 || !a[0].To.IsZero() {
		t.Errorf("absences %v, want one that lasts", a)
	}
	ensure(t, s)
	if a := s.Absences(); len(a) != 1 || a[0].To.IsZero() {
		t.Errorf("absences %v, want one that is over", a)
	}
}

func TestEnsureGivesUpOnABrokenController(t *testing.T) {
	s := newSupervisor(t)
	s.spec.Env = []string{fakeVariable + "=broken"}
	_, err := s.Ensure(t.Context())
	if !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "there is no journal") || !strings.Contains(err.Error(), s.spec.Log) {
		t.Errorf("got %v, want the log's place and its end", err)
	}
	if s.Starts() != 3 {
		t.Errorf("%d attempts, want 3", s.Starts())
	}
}
