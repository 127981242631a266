package e2e

import (
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/simulations/demo"
	"sluice.dev/sluice/simulations/e2e/witness"
)

// play plays the demo and fails the test unless every gang came out as its
// manifest says.
func (s *stage) play(t *testing.T, kills demo.Kills) demo.Result {
	t.Helper()
	result, err := s.Play(t.Context(), kills)
	if err != nil {
		t.Fatal(err)
	}
	for _, surprise := range result.Surprises() {
		t.Error(surprise)
	}
	return result
}

// The demo comes out as its manifests say, and while it runs nothing that is
// promised is broken.
func TestDemo(t *testing.T) {
	s := onStage(t)
	starts := s.Supervisor().Starts()
	_, verdict := s.watched(t, func(func(witness.Interval)) {
		result := s.play(t, demo.Kills{})
		tell(t, "the gangs took %v", result.Took.Round(100*time.Millisecond))
	})
	if verdict.Gangs != 4 || verdict.Released != 27 {
		t.Errorf("the witness saw %d pods of %d gangs released, want 27 of 4", verdict.Released, verdict.Gangs)
	}
	if again := s.Supervisor().Starts(); again != starts {
		t.Errorf("the controller ended by itself %d times", again-starts)
	}
}

// A second run uses what is there.
func TestDemoAgain(t *testing.T) {
	s := onStage(t)
	starts, begin := s.Supervisor().Starts(), time.Now()
	if err := s.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.play(t, demo.Kills{})
	tell(t, "the second run took %v; the promise is 60s", time.Since(begin).Round(100*time.Millisecond))
	if again := s.Supervisor().Starts(); again > starts {
		t.Errorf("the controller was started %d times more", again-starts)
	}
}

// kills is how often the controller is killed.
const kills = 10

// Killed at any moment, the controller goes on where it was, and nothing comes
// out otherwise.
func TestDemoWithKills(t *testing.T) {
	s := onStage(t)
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("SLUICE_E2E_SEED"); given != "" {
		n, err := strconv.ParseUint(given, 10, 64)
		if err != nil {
			t.Fatalf("SLUICE_E2E_SEED: %v", err)
		}
		seed = n
	}
	tell(t, "SLUICE_E2E_SEED=%d repeats the instants", seed)
	s.watched(t, func(func(witness.Interval)) {
		ends := len(s.Supervisor().Ends())
		defer func() {
			for _, last := range s.Supervisor().Ends()[ends:] {
				t.Errorf("a controller ended by itself: %s", last)
			}
		}()
		for done := 0; done < kills; {
			result := s.play(t, demo.Kills{Every: 1600 * time.Millisecond, Times: kills - done, Seed: seed + uint64(done)})
			done += result.Kills
			tell(t, "killed %d times of %d; the gangs took %v", done, kills, result.Took.Round(100*time.Millisecond))
			if t.Failed() {
				return
			}
		}
	})
}

// outage is how long the API server is gone.
const outage = 30 * time.Second

// Without its API server the controller waits, and then goes on.
func TestDemoWithoutAPIServer(t *testing.T) {
	s := onStage(t)
	starts := s.Supervisor().Starts()
	s.watched(t, func(excuse func(witness.Interval)) {
		played := make(chan error, 1)
		go func() {
			result, err := s.Play(t.Context(), demo.Kills{})
			for _, surprise := range result.Surprises() {
				err = errors.Join(err, errors.New(surprise))
			}
			played <- err
		}()
		eventually(t, "a gang runs", func() error { return s.somePodRuns(t) })
		gone := witness.Interval{From: time.Now()}
		if _, err := s.Sandbox(t.Context(), "stop", "kube-apiserver"); err != nil {
			t.Fatal(err)
		}
		tell(t, "the API server is gone for %v", outage)
		time.Sleep(outage)
		if _, err := s.Sandbox(t.Context(), "start", "kube-apiserver"); err != nil {
			t.Fatal(err)
		}
		gone.To = time.Now()
		excuse(gone)
		if err := <-played; err != nil {
			t.Fatal(err)
		}
	})
	if again := s.Supervisor().Starts(); again != starts {
		t.Errorf("the controller ended %d times instead of waiting", again-starts)
	}
}

func (s *stage) somePodRuns(t *testing.T) error {
	var pods corev1.PodList
	if err := s.Cluster().List(t.Context(), &pods); err != nil {
		return err
	}
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			return nil
		}
	}
	return errors.New("none yet")
}
