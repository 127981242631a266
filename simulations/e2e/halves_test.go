package e2e

import (
	"fmt"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/simulations/e2e/witness"
)

// Two gangs that each need every node, submitted together, run one after the
// other. They never hold half each.
func TestTwoGangsOfAllNodes(t *testing.T) {
	s := onStage(t)
	for round := range 5 {
		pair := []*batchv1.Job{
			job("team-a", fmt.Sprintf("left-%d", round), "main", 6, gpus(8)),
			job("team-b", fmt.Sprintf("right-%d", round), "main", 6, gpus(8)),
		}
		log, verdict := s.watched(t, func(func(witness.Interval)) {
			errs := make([]error, len(pair))
			var together sync.WaitGroup
			for i := range pair {
				together.Go(func() { errs[i] = s.Cluster().Create(t.Context(), pair[i]) })
			}
			together.Wait()
			for i, j := range pair {
				if errs[i] != nil {
					t.Fatal(errs[i])
				}
				s.succeeds(t, j)
			}
		})
		if verdict.Released != 12 {
			t.Errorf("round %d: the witness saw %d pods released, want 12", round, verdict.Released)
		}
		if both := bothHold(log, pair[0].Name, pair[1].Name); both != "" {
			t.Errorf("round %d: %s", round, both)
		}
		for _, j := range pair {
			s.withdraw(t, j)
		}
	}
}

// bothHold says when two Jobs held pods at the same time; empty means never.
func bothHold(log *witness.Log, one, other string) (when string) {
	witness.Replay(log, func(w *witness.World, r witness.Record) {
		held := make(map[string]int)
		for gang, pods := range w.Holding() {
			if workload := w.Workloads[gang]; workload != nil {
				if owner := metav1.GetControllerOf(workload); owner != nil {
					held[owner.Name] += pods
				}
			}
		}
		if when == "" && held[one] > 0 && held[other] > 0 {
			when = fmt.Sprintf("at revision %d, %s held %d pods and %s %d", r.Revision, one, held[one], other, held[other])
		}
	})
	return when
}
