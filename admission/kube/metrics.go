package kube

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	kueuemetrics "sigs.k8s.io/kueue/pkg/metrics"

	"sluice.dev/sluice/admission"
)

// Metrics are Kueue's by their own names where they mean the same, so that boards go
// on working, and sluice's beside them. No label names a pod, a job or a UID: there
// are as many series as queues, resources and words of closed lists. A queue that is
// deleted takes its series with it. They are those of the replica that leads.

// waitBuckets reach from a second to a week: gangs wait for hours and for days.
var waitBuckets = append([]float64{1}, prometheus.ExponentialBuckets(2.5, 2, 19)...)

var (
	violations = gauge("invariant_violations",
		"Invariants of the admission state that did not hold at the last check. Anything above 0 is a bug.")
	leadingSince = gauge("leading_since_timestamp_seconds",
		"When the replica that leads began to.")
	unreserved = gauge("unreserved_claims",
		"Blocked claims that were due for a reservation when the last cycle had spent what it may on them.")
	silentAgents = gauge("silent_agents",
		"Nodes whose agent reported cards and is not heard of any more.")
	recutting = gauge("repartitioning_nodes",
		"Nodes on which the cutting of cards is under way.")

	devices     = newFamily("devices", "Devices that nodes offer.", "resource")
	freeDevices = newFamily("devices_free", "Devices that no pod and no plan holds, on any node.", "resource")
	oldest      = newFamily("oldest_pending_timestamp_seconds",
		"Since when the workload of the queue waits that waits longest. Absent if none does.", queueLabel)
	roomNoPlace = newFamily("pending_despite_free_workloads",
		"Workloads that wait for a place though as many devices are free as they ask for, by the reason that they are told.", queueLabel, "reason")
	pendingFor = newFamily("pending_workloads", "Workloads that wait, by the reason that they are told.", queueLabel, "reason")
	partial    = newFamily("partially_released_workloads",
		"Admitted workloads of which some pods have a node and some are held back.", queueLabel)
	flapping = newFamily("flapping_workloads", "Workloads that were taken back more than twice within the last hour.", queueLabel)
	drifted  = newFamily("drifted_nodes", "Nodes that say something else than their cards are, by what differs.", "about")
	xidCards = newFamily("cards_with_xid", "Cards on which an agent saw an error event of the driver since its start, by code.", "xid")
	problems = newFamily("card_problems", "What agents report as wrong with cards, by kind.", "problem")

	evictions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "sluice", Name: "evictions_total", Help: "Gangs that were taken back, by cause.",
	}, []string{queueLabel, "cause"})
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "sluice", Name: "writes_total", Help: "Writes to the API server that decisions asked for, by how they ended.",
	}, []string{"act", "result"})
	cycleTime = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: "sluice", Name: "cycle_seconds", Help: "How long a cycle took to decide, its entry in the journal included, its writes not.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 18),
	})
	writeTime = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: "sluice", Name: "carry_seconds", Help: "How long the writes of one decision took together.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 18),
	})
)

const queueLabel = "cluster_queue"

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "sluice", Name: name, Help: help})
}

// RegisterMetrics makes the metrics visible in controller-runtime's registry.
var RegisterMetrics = sync.OnceFunc(func() {
	longerWaits()
	kueuemetrics.Register()
	ctrlmetrics.Registry.MustRegister(
		violations, leadingSince, unreserved, silentAgents, recutting, evictions, writes, cycleTime, writeTime,
		devices.vec, freeDevices.vec, oldest.vec, roomNoPlace.vec, pendingFor.vec, partial.vec, flapping.vec, drifted.vec, problems.vec, xidCards.vec,
	)
})

// longerWaits has Kueue's histograms of waiting reach as far as ours: its own end at
// eleven hours and less. Names, labels and meanings stay.
func longerWaits() {
	longer := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "kueue", Name: name, Help: help, Buckets: waitBuckets},
			[]string{queueLabel, "priority_class", "replica_role"})
	}
	kueuemetrics.AdmissionWaitTime = longer("admission_wait_time_seconds", "The time from the creation of a workload to its admission, by queue.")
	kueuemetrics.QuotaReservedWaitTime = longer("quota_reserved_wait_time_seconds", "The time from the creation of a workload to its quota, by queue.")
}

// family is a gauge by labels whose series come and go together.
type family struct {
	vec  *prometheus.GaugeVec
	last map[series]bool
}

// series is the values of up to two labels.
type series [2]string

func newFamily(name, help string, labels ...string) *family {
	return &family{vec: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "sluice", Name: name, Help: help}, labels)}
}

// set makes the family these values and no others. It is called from one goroutine.
func (f *family) set(now map[series]float64, labels int) {
	for s := range f.last {
		if _, still := now[s]; !still {
			f.vec.DeleteLabelValues(s[:labels]...)
		}
	}
	f.last = map[series]bool{}
	for s, v := range now {
		f.vec.WithLabelValues(s[:labels]...).Set(v)
		f.last[s] = true
	}
}

// metricsEvery is how often what has to be counted is.
const metricsEvery = 5 * time.Second

// measured notes how long a step took and how its writes ended.
func (r *runner) measured(d *admission.Decision, took time.Duration) {
	cycleTime.Observe(max(0, took-r.carried.took).Seconds())
	if d.Acts() {
		writeTime.Observe(r.carried.took.Seconds())
	}
	unreserved.Set(float64(d.Unreserved))
	if d.Acts() || len(d.Verdicts) > 0 {
		r.measures.stale = true
	}
}

// wrote counts how the writes of a decision ended, and who was taken back.
func (r *runner) wrote(d *admission.Decision, results []admission.Outcome) {
	causes := map[string]*admission.Eviction{}
	for i := range d.Evict {
		causes[d.Evict[i].Key] = &d.Evict[i]
	}
	for _, o := range results {
		writes.WithLabelValues(actName(o.Act), resultName(o.Result)).Inc()
		if o.Act == admission.ActEvict && o.Result == admission.Committed {
			r.tookBack(causes[o.Key])
		}
	}
}

func resultName(r admission.Result) string {
	switch r {
	case admission.Committed:
		return "committed"
	case admission.Refused:
		return "refused"
	default:
		return "unanswered"
	}
}
