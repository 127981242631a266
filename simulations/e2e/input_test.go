package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/simulations/e2e/witness"
)

// What is wrong is told on the object that is wrong, and the rest goes on.
func TestBadInput(t *testing.T) {
	s := onStage(t)
	starts := s.Supervisor().Starts()
	s.namespace(t, "bad-input", "team-a")
	s.watched(t, func(func(witness.Interval)) {
		t.Run("a Job with an unknown queue", func(t *testing.T) {
			j := job("bad-input", "unknown-queue", "nowhere", 2, gpus(1))
			s.create(t, j)
			defer s.withdraw(t, j)
			s.saysWhy(t, j, "QueueMissing", "nowhere")
		})
		t.Run("a request beyond int64", func(t *testing.T) {
			j := job("bad-input", "beyond", "main", 2, corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("16Ei")})
			s.create(t, j)
			defer s.withdraw(t, j)
			s.saysWhy(t, j, "memory")
		})
		t.Run("requests whose sum is beyond int64", func(t *testing.T) {
			j := job("bad-input", "sum-beyond", "main", 8, corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Ei")})
			s.create(t, j)
			defer s.withdraw(t, j)
			s.saysWhy(t, j, "memory")
		})
		t.Run("a Workload with two pod sets of one name", func(t *testing.T) { twins(t, s) })
		t.Run("a queue with a negative weight", func(t *testing.T) { negativeWeight(t, s) })
		t.Run("the rest goes on", func(t *testing.T) {
			j := job("bad-input", "good", "main", 3, gpus(4))
			s.create(t, j)
			defer s.withdraw(t, j)
			s.succeeds(t, j)
		})
	})
	if again := s.Supervisor().Starts(); again != starts {
		t.Errorf("the controller was started %d times more", again-starts)
	}
}

func twins(t *testing.T, s *stage) {
	set := kueue.PodSet{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: podSpec(gpus(1))}}
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bad-input", Name: "twins"},
		Spec:       kueue.WorkloadSpec{QueueName: "main", PodSets: []kueue.PodSet{set, set}},
	}
	err := s.Cluster().Create(t.Context(), w)
	if err == nil {
		t.Fatal("accepted")
	}
	if !strings.Contains(err.Error(), "podSets") || !strings.Contains(err.Error(), "main") {
		t.Errorf("the answer does not name the pod set: %v", err)
	}
}

func negativeWeight(t *testing.T, s *stage) {
	q := &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: "negative"},
		Spec:       kueue.ClusterQueueSpec{FairSharing: &kueue.FairSharing{Weight: ptr.To(resource.MustParse("-1"))}},
	}
	err := s.Cluster().Create(t.Context(), q)
	if err == nil {
		s.withdraw(t, q)
		t.Fatal("accepted")
	}
	if !strings.Contains(err.Error(), "fairSharing") {
		t.Errorf("the answer does not name the weight: %v", err)
	}
}

// A queue that slipped in while nobody looked is told of its fault on itself,
// and what waits in it is told as well.
func TestNegativeWeightThatSlippedIn(t *testing.T) {
	s := onStage(t)
	if err := s.Supervisor().Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	q := &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: "negative"},
		Spec:       kueue.ClusterQueueSpec{NamespaceSelector: &metav1.LabelSelector{}, FairSharing: &kueue.FairSharing{Weight: ptr.To(resource.MustParse("-1"))}},
	}
	s.create(t, q)
	defer s.withdraw(t, q)
	if _, err := s.Supervisor().Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the queue says what is wrong with it", func() error {
		if err := s.Cluster().Get(t.Context(), client.ObjectKeyFromObject(q), q); err != nil {
			return err
		}
		c := meta.FindStatusCondition(q.Status.Conditions, kueue.ClusterQueueActive)
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "weight") {
			return fmt.Errorf("condition %+v", c)
		}
		tell(t, "%s: %s", c.Reason, c.Message)
		return nil
	})
	s.namespace(t, "slipped", "negative")
	j := job("slipped", "train", "main", 1, gpus(1))
	s.create(t, j)
	s.saysWhy(t, j, "negative")
	s.withdraw(t, j)
	good := job("team-a", "beside", "main", 1, gpus(1))
	s.create(t, good)
	s.succeeds(t, good)
	s.withdraw(t, good)
}

// A configuration file that is wrong is refused with its line.
func TestMalformedConfiguration(t *testing.T) {
	s := onStage(t)
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	text := "apiVersion: config.sluice.dev/v1alpha1\nkind: Configuration\npolicy:\n  reserveAfter: 5\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.ControllerProgram(), "--config="+file, "--journal="+filepath.Join(t.TempDir(), "j.db"))
	var said bytes.Buffer
	cmd.Stderr = &said
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("it ended with %v, want an exit code; it said:\n%s", err, &said)
	}
	if want := file + ":4: "; !strings.Contains(said.String(), want) {
		t.Errorf("it said %q, want %q in it", said.String(), want)
	}
}
