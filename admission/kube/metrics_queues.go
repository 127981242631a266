package kube

import (
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueuemetrics "sigs.k8s.io/kueue/pkg/metrics"

	"sluice.dev/sluice/quota"
)

// measureClusterQueue reports what Kueue's metrics say of a ClusterQueue.
func (r *runner) measureClusterQueue(cq *kueue.ClusterQueue, t *tally, active bool) {
	name := kueue.ClusterQueueReference(cq.Name)
	measureTally(name, t)
	status := kueuemetrics.CQStatusPending
	switch {
	case cq.DeletionTimestamp != nil:
		status = kueuemetrics.CQStatusTerminating
	case active:
		status = kueuemetrics.CQStatusActive
	}
	kueuemetrics.ReportClusterQueueStatus(name, status, nil, nil)
	r.measureQuotas(cq)
	if id, ok := r.state.Ledger().Tree().ID(cq.Name); ok {
		kueuemetrics.ReportClusterQueueWeightedShare(name, cq.Spec.CohortName, weighted(r.state.Ledger().Share(id)), nil, nil)
	}
}

func measureTally(name kueue.ClusterQueueReference, t *tally) {
	kueuemetrics.ReportPendingWorkloads(name, int(t.pending-t.inadmissible), int(t.inadmissible), nil, nil)
	kueuemetrics.ReportReservingActiveWorkloads(name, int(t.reserving), nil, nil)
	kueuemetrics.ReportAdmittedActiveWorkloads(name, int(t.admitted), nil, nil)
}

func measureLocalQueue(lq *kueue.LocalQueue, t *tally, active metav1.ConditionStatus) {
	ref := kueuemetrics.LocalQueueReference{Name: kueue.LocalQueueName(lq.Name), Namespace: lq.Namespace}
	kueuemetrics.ReportLocalQueuePendingWorkloads(ref, int(t.pending-t.inadmissible), int(t.inadmissible), nil, nil)
	kueuemetrics.ReportLocalQueueReservingActiveWorkloads(ref, int(t.reserving), nil, nil)
	kueuemetrics.ReportLocalQueueAdmittedActiveWorkloads(ref, int(t.admitted), nil, nil)
	kueuemetrics.ReportLocalQueueStatus(ref, active, nil, nil)
}

func forgetLocalQueue(namespace, name string) {
	ref := kueuemetrics.LocalQueueReference{Name: kueue.LocalQueueName(name), Namespace: namespace}
	kueuemetrics.ClearLocalQueueMetrics(ref)
	kueuemetrics.ClearLocalQueueCacheMetrics(ref)
}

// weighted is a share in Kueue's unit: thousandths of what the cohort lends, by weight.
func weighted(s quota.Share) float64 {
	switch {
	case s.Above <= 0:
		return 0
	case s.Weight <= 0:
		return math.NaN()
	default:
		return float64(s.Above) / float64(max(s.Lent, 1)) * 1000 / (float64(s.Weight) / 1000)
	}
}

// measureQuotas reports what the queue owns, may borrow and lend, and is charged, by
// flavor and resource. Series of what the queue no longer names go first.
func (r *runner) measureQuotas(cq *kueue.ClusterQueue) {
	cohort := cq.Spec.CohortName
	shape := string(cohort)
	for _, g := range cq.Spec.ResourceGroups {
		for _, f := range g.Flavors {
			for _, res := range f.Resources {
				shape += " " + string(f.Name) + ":" + string(res.Name)
			}
		}
	}
	if was, known := r.measures.shapes[cq.Name]; known && was != shape {
		forgetQuotas(cq.Name)
	}
	r.measures.shapes[cq.Name] = shape
	used := r.state.Usage(cq.Name)
	for _, g := range cq.Spec.ResourceGroups {
		for _, f := range g.Flavors {
			for _, res := range f.Resources {
				flavor, resource := string(f.Name), string(res.Name)
				borrowing, lending := math.NaN(), math.NaN()
				if q := res.BorrowingLimit; q != nil {
					borrowing = q.AsApproximateFloat64()
				}
				if q := res.LendingLimit; q != nil {
					lending = q.AsApproximateFloat64()
				}
				kueuemetrics.ReportClusterQueueQuotas(cohort, cq.Name, flavor, resource, res.NominalQuota.AsApproximateFloat64(), borrowing, lending, nil, nil)
				usage := 0.0
				if d, ok := r.state.Space.Lookup(dimension(f.Name, res.Name)); ok {
					q := quantity(res.Name, used.At(d))
					usage = q.AsApproximateFloat64()
				}
				kueuemetrics.ReportClusterQueueResourceUsage(cohort, cq.Name, flavor, resource, usage, nil, nil)
				kueuemetrics.ReportClusterQueueResourceReservations(cohort, cq.Name, flavor, resource, usage, nil, nil)
			}
		}
	}
}

func forgetQuotas(queue string) {
	kueuemetrics.ClearClusterQueueResourceMetrics(queue)
	kueuemetrics.ClearClusterQueueMetricsOnLabelChange(kueue.ClusterQueueReference(queue))
}

// forgetQueue drops the series of a queue that is gone.
func (r *runner) forgetQueue(name string) {
	kueuemetrics.ClearClusterQueueMetrics(kueue.ClusterQueueReference(name))
	kueuemetrics.ClearCacheMetrics(name)
	forgetQuotas(name)
	evictions.DeletePartialMatch(map[string]string{queueLabel: name})
	delete(r.measures.shapes, name)
}

// sawFinish counts a workload that was seen to end.
func (r *runner) sawFinish(key string, known *knownWorkload) {
	queue := known.queue
	if a := known.seen.Status.Admission; a != nil {
		queue = string(a.ClusterQueue)
	}
	if queue != "" && r.catalog.told[queue] != nil {
		kueuemetrics.IncrementFinishedWorkloadTotal(kueue.ClusterQueueReference(queue), priorityClassOf(known.seen), nil, nil)
	}
	delete(r.measures.taken, key)
}

// priorityClassOf is the label of metrics.
func priorityClassOf(wl *kueue.Workload) string {
	if wl.Spec.PriorityClassRef == nil {
		return ""
	}
	return wl.Spec.PriorityClassRef.Name
}
