package kube

import (
	"slices"
	"strconv"
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueuemetrics "sigs.k8s.io/kueue/pkg/metrics"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/nodeagent/api/v1alpha1"
	"sluice.dev/sluice/quota"
)

const (
	// flapsAfter is how many evictions within flapWindow are more than bad luck.
	flapsAfter = 2
	flapWindow = time.Hour
)

// measures is what metrics need to remember.
type measures struct {
	stale  bool                   // something may count differently
	next   time.Time              // when to count again at the earliest
	shapes map[string]string      // by ClusterQueue, of which flavors and resources there are series
	taken  map[string][]time.Time // by workload, its last evictions within flapWindow
}

func newMeasures() measures {
	return measures{shapes: map[string]string{}, taken: map[string][]time.Time{}}
}

// due is when to count again; zero is never.
func (m *measures) due() time.Time {
	if !m.stale {
		return time.Time{}
	}
	return m.next
}

// tookBack notes an eviction, for metrics.
func (r *runner) tookBack(e *admission.Eviction) {
	known := r.workloads[e.Key]
	if known == nil {
		return
	}
	queue := known.queue
	if a := known.seen.Status.Admission; a != nil {
		queue = string(a.ClusterQueue)
	}
	evictions.WithLabelValues(queue, string(e.Cause)).Inc()
	if reason, ok := preemptedBy[e.Cause]; ok {
		if by := r.workloads[e.For]; by != nil {
			kueuemetrics.ReportPreemption(kueue.ClusterQueueReference(by.queue), reason, kueue.ClusterQueueReference(queue), nil, nil)
		}
	}
	if e.Cause != admission.Stopped && e.Cause != admission.Expired {
		times := append(r.measures.taken[e.Key], r.clock.Now())
		r.measures.taken[e.Key] = times[max(0, len(times)-flapsAfter-1):]
	}
}

// measure counts what nobody keeps count of, every few seconds.
func (r *runner) measure() {
	now := r.clock.Now()
	if !r.measures.stale || now.Before(r.measures.next) {
		return
	}
	r.measures.stale, r.measures.next = false, now.Add(metricsEvery)
	free := r.measureDevices()
	r.measureWorkloads(free)
	r.measureFlapping(now)
	r.measureCards()
}

// measureDevices counts the devices of all nodes and returns what is free, by dimension.
func (r *runner) measureDevices() quota.Resources {
	inv := r.state.Inventory()
	free := quota.Resources{}
	for _, name := range inv.Names() {
		for d, v := range inv.Free(name) {
			if v > 0 {
				free.Set(d, quota.Sum(free.At(d), v))
			}
		}
	}
	all, left := map[series]float64{}, map[series]float64{}
	total := inv.Total()
	for d := quota.Pods + 1; d < len(total); d++ {
		if name := r.state.Space.Name(d); total[d] > 0 && ofDevices(name) {
			all[series{name}], left[series{name}] = float64(total[d]), float64(free.At(d))
		}
	}
	devices.set(all, 1)
	freeDevices.set(left, 1)
	return free
}

// ofDevices says whether the dimension is of an extended resource, which are the ones
// with a domain in their name, and not of a flavor's quota or of pods in a group.
func ofDevices(name string) bool {
	slash, colon := slices.Index([]byte(name), '/'), slices.Index([]byte(name), ':')
	return slash > 0 && colon < 0 && name[0] != '('
}

func (r *runner) measureWorkloads(free quota.Resources) {
	waits, since, despite, parts := map[series]float64{}, map[series]float64{}, map[series]float64{}, map[series]float64{}
	for key, known := range r.workloads {
		if known.finished {
			continue
		}
		queue := known.queue
		if a := known.seen.Status.Admission; a != nil {
			queue = string(a.ClusterQueue)
		}
		if r.catalog.told[queue] == nil {
			continue // of a queue that is not there: as many names as people mistype
		}
		if known.admitted {
			if r.partly(key) {
				parts[series{queue}]++
			}
			continue
		}
		v, ok := r.state.View(key)
		if !ok || v.Phase != admission.Waiting {
			continue
		}
		at := float64(known.workload.Queued.Unix())
		if was, ok := since[series{queue}]; v.Reason.Code != admission.Held && (!ok || at < was) {
			since[series{queue}] = at
		}
		waits[series{queue, string(v.Reason.Code)}]++
		if p := v.Reason.Places; p != nil && p.Asked > 0 {
			if d, ok := r.state.Space.Lookup(p.Resource); ok && free.At(d) >= p.Asked {
				despite[series{queue, string(v.Reason.Code)}]++
			}
		}
	}
	pendingFor.set(waits, 2)
	oldest.set(since, 1)
	roomNoPlace.set(despite, 2)
	partial.set(parts, 1)
}

// partly says whether some pods of an admitted workload have a node while some are
// still held back.
func (r *runner) partly(key string) bool {
	gated, placed := false, false
	for _, p := range r.podsOf[key] {
		gated = gated || p.pod.Phase == admission.PodGated
		placed = placed || p.pod.Phase == admission.PodPlaced
	}
	return gated && placed
}

func (r *runner) measureFlapping(now time.Time) {
	flaps := map[series]float64{}
	for key, times := range r.measures.taken {
		times = slices.DeleteFunc(times, func(t time.Time) bool { return now.Sub(t) > flapWindow })
		known := r.workloads[key]
		if len(times) == 0 || known == nil {
			delete(r.measures.taken, key)
			continue
		}
		r.measures.taken[key] = times
		if len(times) > flapsAfter {
			flaps[series{known.queue}]++
			r.measures.stale = true // until it was long ago
		}
	}
	flapping.set(flaps, 1)
}

func (r *runner) measureCards() {
	about, wrong, cutting := map[series]float64{}, map[series]float64{}, 0
	for _, known := range r.nodes {
		if known.node == nil {
			continue
		}
		seen := map[string]bool{}
		for _, d := range known.node.Drift {
			if !seen[string(d.About)] {
				seen[string(d.About)] = true
				about[series{string(d.About)}]++
			}
		}
		if s := known.seen.Labels[v1alpha1.LabelMIGState]; s == "pending" || s == "rebooting" {
			cutting++
		}
	}
	xids := map[series]float64{}
	for _, inv := range r.agents.inventories {
		for i := range inv.Report.Cards {
			if h := inv.Report.Cards[i].Health; h != nil {
				seen := map[int64]bool{}
				for _, x := range h.Xids {
					if !seen[x.Code] {
						seen[x.Code] = true
						xids[series{strconv.FormatInt(x.Code, 10)}]++
					}
				}
			}
		}
		for _, p := range inv.Report.Problems {
			what := p.What
			if v1alpha1.Gravity(what) == unknownGravity {
				what = "other"
			}
			wrong[series{what}]++
		}
	}
	drifted.set(about, 1)
	problems.set(wrong, 1)
	xidCards.set(xids, 1)
	recutting.Set(float64(cutting))
	silentAgents.Set(float64(len(r.agents.silent)))
}

// unknownGravity is that of a problem that this version has no word for.
var unknownGravity = v1alpha1.Gravity("")
