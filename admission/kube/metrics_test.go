package kube

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
	"sluice.dev/sluice/quota"
)

// gathered are the series that are there now, as name{label=value,...}, with their values.
func gathered(t *testing.T) map[string]float64 {
	t.Helper()
	RegisterMetrics()
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				if l.GetName() != "replica_role" {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			v := m.GetGauge().GetValue() + m.GetCounter().GetValue()
			if h := m.GetHistogram(); h != nil {
				v = float64(h.GetSampleCount())
			}
			all[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = v
		}
	}
	return all
}

func measuredRunner(now time.Time) *runner {
	return newRunner(Options{Config: admission.DefaultConfig(), Clock: testclock.NewFakeClock(now)}, logr.Discard(), nil, nil, nil)
}

func queueForMetrics(name, cohort, nominal string) *kueue.ClusterQueue {
	return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ClusterQueueSpec{
		CohortName: kueue.CohortReference(cohort),
		ResourceGroups: []kueue.ResourceGroup{{
			CoveredResources: []corev1.ResourceName{"nvidia.com/gpu"},
			Flavors:          []kueue.FlavorQuotas{{Name: "h100", Resources: []kueue.ResourceQuota{{Name: "nvidia.com/gpu", NominalQuota: resource.MustParse(nominal)}}}},
		}},
	}}
}

// A queue has the series of Kueue's names with what it owns, moves them with its cohort,
// and takes all of them with it when it goes.
func TestSeriesOfQueues(t *testing.T) {
	r := measuredRunner(time.Unix(1_900_000_000, 0))
	cq := queueForMetrics("team-m", "lab", "16")
	r.measureClusterQueue(cq, &tally{pending: 3, inadmissible: 1, reserving: 2, admitted: 2}, true)
	evictions.WithLabelValues("team-m", string(admission.Reclaimed)).Inc()
	now := gathered(t)
	for series, want := range map[string]float64{
		"kueue_pending_workloads{cluster_queue=team-m,status=active}":                                             2,
		"kueue_pending_workloads{cluster_queue=team-m,status=inadmissible}":                                       1,
		"kueue_admitted_active_workloads{cluster_queue=team-m}":                                                   2,
		"kueue_cluster_queue_status{cluster_queue=team-m,status=active}":                                          1,
		"kueue_cluster_queue_status{cluster_queue=team-m,status=pending}":                                         0,
		"kueue_cluster_queue_nominal_quota{cluster_queue=team-m,cohort=lab,flavor=h100,resource=nvidia.com/gpu}":  16,
		"kueue_cluster_queue_resource_usage{cluster_queue=team-m,cohort=lab,flavor=h100,resource=nvidia.com/gpu}": 0,
		"sluice_evictions_total{cause=Reclaimed,cluster_queue=team-m}":                                            1,
	} {
		if got, ok := now[series]; !ok || got != want {
			t.Errorf("%s is %v (there: %t), want %v", series, got, ok, want)
		}
	}
	r.measureClusterQueue(queueForMetrics("team-m", "shop", "16"), &tally{}, true)
	for series := range gathered(t) {
		if strings.Contains(series, "team-m") && strings.Contains(series, "cohort=lab") {
			t.Errorf("%s stayed when its queue went to another cohort", series)
		}
	}
	r.forgetQueue("team-m")
	for series := range gathered(t) {
		if strings.Contains(series, "team-m") {
			t.Errorf("%s stayed when its queue was deleted", series)
		}
	}
}

// The share has Kueue's unit: thousandths of what the cohort lends, by weight.
func TestWeighted(t *testing.T) {
	for _, c := range []struct {
		share quota.Share
		want  float64
	}{
		{quota.Share{Above: 0, Lent: 8, Weight: 1000}, 0},
		{quota.Share{Above: 4, Lent: 8, Weight: 1000}, 500},
		{quota.Share{Above: 4, Lent: 8, Weight: 2000}, 250},
		{quota.Share{Above: 4, Lent: 8, Weight: 0}, math.NaN()},
	} {
		if got := weighted(c.share); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%+v: %v, want %v", c.share, got, c.want)
		}
	}
}

// A workload that was taken back three times within an hour flaps, and no more when
// that is long ago; what its owner stopped does not count.
func TestFlapping(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	r := measuredRunner(now)
	clock := r.clock.(*testclock.FakeClock)
	r.workloads["ml/a"] = &knownWorkload{seen: &kueue.Workload{}, queue: "team-f"}
	r.workloads["ml/b"] = &knownWorkload{seen: &kueue.Workload{}, queue: "team-f"}
	const series = "sluice_flapping_workloads{cluster_queue=team-f}"
	for range 3 {
		if v := gathered(t)[series]; v != 0 {
			t.Fatalf("it flaps %v before the third time", v)
		}
		r.tookBack(&admission.Eviction{Key: "ml/a", Cause: admission.Preempted})
		r.tookBack(&admission.Eviction{Key: "ml/b", Cause: admission.Stopped})
		clock.Step(time.Minute)
		r.measureFlapping(clock.Now())
	}
	if v := gathered(t)[series]; v != 1 {
		t.Errorf("%v workloads flap, want 1", v)
	}
	clock.Step(flapWindow)
	r.measureFlapping(clock.Now())
	if v, ok := gathered(t)[series]; ok || len(r.measures.taken) != 0 {
		t.Errorf("%v workloads flap an hour later; %d are remembered", v, len(r.measures.taken))
	}
	r.forgetQueue("team-f")
}

// What agents say is counted by kinds of a closed list.
func TestSeriesOfCards(t *testing.T) {
	r := measuredRunner(time.Unix(1_900_000_000, 0))
	r.agents.inventories["n1"] = &v1alpha1.SliceInventory{Report: v1alpha1.Report{
		Problems: []v1alpha1.Problem{{What: v1alpha1.ProblemStale}, {What: "somethingNew"}},
		Cards:    []v1alpha1.Card{{Health: &v1alpha1.Health{Xids: []v1alpha1.Xid{{Code: 79}, {Code: 79}}}}},
	}}
	r.agents.silent["n2"] = true
	r.measureCards()
	now := gathered(t)
	for series, want := range map[string]float64{
		"sluice_card_problems{problem=stale}": 1,
		"sluice_card_problems{problem=other}": 1,
		"sluice_cards_with_xid{xid=79}":       1,
		"sluice_silent_agents{}":              1,
	} {
		if got, ok := now[series]; !ok || got != want {
			t.Errorf("%s is %v (there: %t), want %v", series, got, ok, want)
		}
	}
	delete(r.agents.inventories, "n1")
	delete(r.agents.silent, "n2")
	r.measureCards()
	if _, still := gathered(t)["sluice_card_problems{problem=stale}"]; still {
		t.Error("a problem stays though nobody has it")
	}
}

// Gangs wait for days: the histograms of waiting tell eleven hours from twenty.
func TestWaitsBeyondElevenHours(t *testing.T) {
	if last := waitBuckets[len(waitBuckets)-1]; last < (5 * 24 * time.Hour).Seconds() {
		t.Errorf("the last bucket ends at %v s", last)
	}
	RegisterMetrics()
	descs := make(chan *prometheus.Desc, 1000)
	ctrlmetrics.Registry.(prometheus.Collector).Describe(descs)
	close(descs)
	n := 0
	for d := range descs {
		text := d.String()
		if !strings.Contains(text, `"sluice_`) && !strings.Contains(text, `"kueue_`) {
			continue
		}
		n++
		for _, label := range []string{"pod", "job", "uid", "workload"} {
			if strings.Contains(text, "{"+label+"}") || strings.Contains(text, "{"+label+",") || strings.Contains(text, ","+label+",") || strings.Contains(text, ","+label+"}") {
				t.Errorf("a series for each %s: %s", label, text)
			}
		}
	}
	if n < 30 {
		t.Errorf("%d metrics of ours are registered", n)
	}
}
