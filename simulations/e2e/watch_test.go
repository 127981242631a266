package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/simulations/e2e/witness"
)

// halfFor is the promise: no gang stays partly released for longer.
const halfFor = 5 * time.Second

// watched runs something while the witness watches, and fails the test for each
// broken rule, also if the test has failed already. It returns the log and the
// verdict, for more questions.
func (s *stage) watched(t *testing.T, during func(excuse func(witness.Interval))) (log *witness.Log, verdict witness.Verdict) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log = &witness.Log{}
	wait, err := witness.Watch(ctx, s.Cluster().Config, log)
	if err != nil {
		t.Fatal(err)
	}
	var excused []witness.Interval
	defer func() {
		cancel()
		wait()
		verdict = s.judge(t, log, excused)
	}()
	during(func(i witness.Interval) { excused = append(excused, i) })
	s.delivered(t, log)
	return log, verdict
}

// judge fails the test for each rule that was broken.
func (s *stage) judge(t *testing.T, log *witness.Log, excused []witness.Interval) witness.Verdict {
	t.Helper()
	for _, a := range s.Supervisor().Absences() {
		excused = append(excused, witness.Interval(a))
	}
	verdict := witness.Judge(log, witness.Terms{
		HalfFor: halfFor, Excused: excused, OutOfReach: []string{metav1.NamespaceSystem, "sluice-system"},
	})
	tell(t, "the witness: %v", verdict)
	for i, v := range verdict.Violations {
		if i == 20 {
			t.Errorf("and %d more", len(verdict.Violations)-i)
			break
		}
		t.Error(v)
	}
	if t.Failed() {
		s.keep(t, log)
	}
	return verdict
}

// keep writes down what the witness saw, beside the controller's log.
func (s *stage) keep(t *testing.T, log *witness.Log) {
	t.Helper()
	path := filepath.Join(filepath.Dir(s.ControllerLog()), "witness-"+strings.ReplaceAll(t.Name(), "/", "-")+".log")
	file, err := os.Create(path)
	if err != nil {
		t.Error(err)
		return
	}
	if err := errors.Join(log.Write(file), file.Close()); err != nil {
		t.Error(err)
	}
	t.Logf("what the witness saw: %s; the controller's log: %s", path, s.ControllerLog())
}

// delivered returns when the witness has seen every pod as it is now.
func (s *stage) delivered(t *testing.T, log *witness.Log) {
	t.Helper()
	var newest uint64
	eventually(t, "list the pods", func() error {
		var pods corev1.PodList
		if err := s.Cluster().List(t.Context(), &pods); err != nil {
			return err
		}
		for _, p := range pods.Items {
			n, err := strconv.ParseUint(p.ResourceVersion, 10, 64)
			if err != nil {
				return err
			}
			newest = max(newest, n)
		}
		return nil
	})
	eventually(t, "the witness has seen all pods", func() error {
		if seen := log.Newest(witness.Pods); seen < newest {
			return fmt.Errorf("seen up to revision %d of %d", seen, newest)
		}
		return nil
	})
}
