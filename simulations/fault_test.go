package simulations

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// once is a fault that strikes the nth write and no other.
func once(n int, fate Fate) func() Fault {
	return func() Fault {
		return func(w Write) Fate {
			if w.N == n {
				return fate
			}
			return Done
		}
	}
}

// TestKilledAfterEveryWrite lets the controller die after its Nth write, for
// every N of every scenario: what the file expects still holds.
func TestKilledAfterEveryWrite(t *testing.T) {
	for _, file := range scenarioFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := load(t, file)
			for n := range runOnce(s, Options{}).Writes {
				r := runOnce(s, Options{Fault: once(n+1, Fatal)})
				for _, l := range r.Lines() {
					t.Errorf("killed after write %d: %s", n+1, l)
				}
			}
		})
	}
}

// TestEveryWriteMayFail refuses each write in turn, or loses it, or its answer:
// no promise is broken, and in the end all is as it would have been.
func TestEveryWriteMayFail(t *testing.T) {
	s := load(t, "testdata/scenarios/writes.yaml")
	for name, fate := range map[string]Fate{"refused": Refused, "lost": Lost, "unanswered": Unanswered} {
		t.Run(name, func(t *testing.T) {
			for n := range runOnce(s, Options{}).Writes {
				r := runOnce(s, Options{Fault: once(n+1, fate)})
				for _, l := range r.Lines() {
					t.Errorf("write %d %s: %s", n+1, name, l)
				}
			}
		})
	}
}

// TestAPIGone lets no write through for half a minute, again and again: nothing
// is lost, and all that was due is done soon after.
func TestAPIGone(t *testing.T) {
	s := load(t, "testdata/scenarios/writes.yaml")
	for name, fate := range map[string]Fate{"refused": Refused, "lost": Lost} {
		t.Run(name, func(t *testing.T) {
			gone := func() Fault {
				return func(w Write) Fate {
					if w.At%(5*time.Minute) < 30*time.Second {
						return fate
					}
					return Done
				}
			}
			for seed := range uint64(3) {
				for _, l := range Run(s, Options{Seed: seed, Fault: gone}).Lines() {
					t.Error(l)
				}
			}
		})
	}
}

func scenarioFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/scenarios/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	return files
}

func load(t *testing.T, file string) *Scenario {
	t.Helper()
	s, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if uses := Unsupported(s); len(uses) > 0 {
		t.Fatal(fmt.Sprint(file, " uses what is not supported yet: ", uses))
	}
	return s
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
