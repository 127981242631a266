package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// version is one of a Workload of a class, admitted to a queue or, with none, not.
func version(uid, class, queue string, finished bool) *kueue.Workload {
	wl := workloadOf(Class{Name: class}, queueName(0, 0), 0)
	wl.UID = types.UID(uid)
	if queue != "" {
		wl.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(queue)}
	}
	if finished {
		wl.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue}}
	}
	return wl
}

// The ledger tells of a queue over its maximum and of a cohort over what it owns, and
// of nothing else.
func TestLedger(t *testing.T) {
	s := Shape{Cohorts: 1, Queues: 2, Nominal: 5, Borrow: 3, Classes: []Class{{Name: "a", Request: 4}, {Name: "b", Request: 5}}}
	for _, c := range []struct {
		name string
		seen []*kueue.Workload
		over string
	}{
		{"borrowed", []*kueue.Workload{version("1", "a", "cq-0-0", false), version("2", "a", "cq-0-0", false)}, ""},
		{"over the queue", []*kueue.Workload{version("1", "b", "cq-0-0", false), version("2", "a", "cq-0-0", false)}, "cq-0-0: 9 of 8"},
		{"over the cohort", []*kueue.Workload{version("1", "a", "cq-0-0", false), version("2", "a", "cq-0-0", false), version("3", "a", "cq-0-1", false)}, "cohort-0: 12 of 10"},
		{"said twice", []*kueue.Workload{version("1", "b", "cq-0-0", false), version("1", "b", "cq-0-0", false)}, ""},
		{"ended", []*kueue.Workload{version("1", "b", "cq-0-0", false), version("1", "b", "cq-0-0", true), version("2", "a", "cq-0-0", false)}, ""},
		{"given back", []*kueue.Workload{version("1", "b", "cq-0-0", false), version("1", "b", "", false), version("2", "a", "cq-0-0", false)}, ""},
	} {
		l := newLedger(s)
		for _, wl := range c.seen {
			l.see(wl)
		}
		if got := strings.Join(l.over, "; "); !strings.HasPrefix(got, c.over) || (c.over == "") != (got == "") {
			t.Errorf("%s: told %q, want %q", c.name, got, c.over)
		}
	}
}

func TestCountWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	lines := `{"userAgent":"null/v0 (linux)","objectRef":{"resource":"workloads","subresource":"status"}}
{"userAgent":"nullable/v0","objectRef":{"resource":"workloads","subresource":"status"}}
{"userAgent":"null/v0 (linux)","objectRef":{"resource":"events"}}
`
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	if err := countWrites(path, "null", counts); err != nil {
		t.Fatal(err)
	}
	if len(counts) != 2 || counts["workloads/status"] != 1 || counts["events"] != 1 {
		t.Errorf("counted %v", counts)
	}
}

func TestByName(t *testing.T) {
	s, err := ByName("baseline", 100)
	if err != nil || s.Workloads() != 5*6*(3+1+1) {
		t.Errorf("a hundredth of the baseline has %d Workloads (%v)", s.Workloads(), err)
	}
	if whole := Shapes["baseline"]; whole.Workloads() != 15_000 {
		t.Errorf("the baseline has %d Workloads", whole.Workloads())
	}
	if _, err := ByName("none", 1); err == nil || !strings.Contains(err.Error(), "backlog, baseline, large") {
		t.Errorf("a shape that is not there: %v", err)
	}
}

// On a real API server sluice admits a backlog with one write of status each, and
// writes the status of a queue once a second at most.
func TestBacklog(t *testing.T) {
	if os.Getenv("SLUICE_E2E") != "1" {
		t.Skip("it needs the control plane, which takes ten minutes to build the first time; SLUICE_E2E=1 runs it")
	}
	s, err := ByName("backlog", 10)
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	result, err := Measure(t.Context(), Options{Root: root, Dir: t.TempDir(), Out: os.Stderr, Within: 10 * time.Minute}, s, Managers[1])
	if err != nil {
		t.Fatal(err)
	}
	if result.Admitted != s.Workloads() || result.Writes["workloads/status"] != s.Workloads() {
		t.Errorf("%d of %d admitted, with %d writes of their status", result.Admitted, s.Workloads(), result.Writes["workloads/status"])
	}
	seconds := int(result.Took.Seconds()) + 1
	if n, most := result.Writes["clusterqueues/status"], s.Queues*(seconds+10); n > most { // it began some seconds before
		t.Errorf("%d writes of the status of %d queues in about %d s", n, s.Queues, seconds)
	}
}
