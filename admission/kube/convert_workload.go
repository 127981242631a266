package kube

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// reader is what a conversion looks things up in.
type reader struct {
	space   *quota.Space
	catalog *catalog
	hosts   *hosts
	groups  *groups // who minds whom; nil if nobody else is known
	userKey string  // the label or annotation that names a user; "" is UserAnnotation
}

// workload is what the core is told of a Workload. adjusted is the Workload with
// the requests that its pods will have: limits, LimitRanges and RuntimeClasses
// worked in. resolved says whether every node of its admission is known by name.
func (r *reader) workload(adjusted *kueue.Workload) (seen admission.WorkloadSeen, resolved bool) {
	wl := adjusted
	to := r.catalog.resolve(wl.Namespace, queueOf(wl))
	w := &queue.Workload{
		Key: wl.Namespace + "/" + wl.Name, UID: string(wl.UID), Queue: to.queue,
		Priority: int64(priorityOf(wl)),
		Queued:   queuedAt(wl),
		Limit:    limitOf(wl),
		MaxRun:   maxRunOf(wl),
		Pinned:   wl.Labels[PreemptibleAnnotation] == "false" || wl.Annotations[PreemptibleAnnotation] == "false",
		Held:     !workload.IsActive(wl),
		Invalid:  to.invalid,
		Gate:     to.gate,
		After:    triedAfter(wl),
		User:     userOf(wl, r.userKey),
	}
	protects, bad := minRuntimeOf(wl)
	w.MinRuntime = protects
	if w.Invalid == "" {
		w.Invalid = bad
	}
	seen = admission.WorkloadSeen{
		Workload: w, Version: version(wl.ResourceVersion),
		Finished: workload.IsFinished(wl),
		Done:     done(wl),
		StopsFor: stopsFor(wl),
	}
	seen.Admission, resolved = r.admission(wl)
	seen.Stopping = wl.DeletionTimestamp != nil || workload.IsEvicted(wl) && wl.Status.Admission != nil
	if seen.Admission != nil && to.drain != "" {
		w.Held = true // the queue takes back what runs; its own word is Stopped
	}
	if w.Gate == "" {
		w.Gate = gateOf(wl)
	}
	if why := r.spec(wl, &w.Spec, seen.Admission); why != "" && w.Invalid == "" {
		w.Invalid = why
	}
	return seen, resolved
}

func priorityOf(wl *kueue.Workload) int32 {
	if wl.Spec.Priority == nil {
		return 0
	}
	return *wl.Spec.Priority
}

// queuedAt is since when it waits: a preempted workload keeps its place, one whose
// pods did not get ready in time goes to the end.
func queuedAt(wl *kueue.Workload) time.Time {
	order := workload.Ordering{PodsReadyRequeuingTimestamp: config.EvictionTimestamp}
	return queuedSince(wl, order.GetQueueOrderTimestamp(wl).Time)
}

// limitOf is how long it still runs at most: to others a promise, to itself a bound.
// What it ran before counts.
func limitOf(wl *kueue.Workload) time.Duration {
	if wl.Spec.MaximumExecutionTimeSeconds == nil {
		return 0
	}
	seconds := *wl.Spec.MaximumExecutionTimeSeconds
	if past := wl.Status.AccumulatedPastExecutionTimeSeconds; past != nil {
		seconds -= *past
	}
	return time.Duration(max(1, seconds)) * time.Second
}

// maxRunOf is how long after its reservation it is taken back for good; 0 is never. The
// time in which it waited for its admission checks does not count, since it did not run.
func maxRunOf(wl *kueue.Workload) time.Duration {
	limit := limitOf(wl)
	if limit == 0 || !workload.HasQuotaReservation(wl) {
		return limit
	}
	c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadAdmitted)
	if c == nil || c.Status != metav1.ConditionTrue {
		return 0
	}
	return limit + max(0, c.LastTransitionTime.Sub(reservedAt(wl)))
}

func triedAfter(wl *kueue.Workload) time.Time {
	if s := wl.Status.RequeueState; s != nil && s.RequeueAt != nil {
		return s.RequeueAt.Time
	}
	return time.Time{}
}

func done(wl *kueue.Workload) map[string]int {
	if len(wl.Status.ReclaimablePods) == 0 {
		return nil
	}
	m := map[string]int{}
	for _, p := range wl.Status.ReclaimablePods {
		m[string(p.Name)] = int(p.Count)
	}
	return m
}

// requeuedByUs are the reasons of Requeued=False that need nobody to end them: what
// they wait for is seen elsewhere, in spec.active, the queues or requeueAt.
var requeuedByUs = []string{
	kueue.WorkloadDeactivated, kueue.WorkloadEvictedByClusterQueueStopped, kueue.WorkloadEvictedByLocalQueueStopped,
	kueue.WorkloadEvictedByPodsReadyTimeout, kueue.WorkloadEvictedByAdmissionCheck,
}

// gateOf is what has to happen to the Workload itself before it is tried, or "".
func gateOf(wl *kueue.Workload) string {
	if wl.DeletionTimestamp != nil {
		return "its deletion to end"
	}
	c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadRequeued)
	if c == nil || c.Status != metav1.ConditionFalse {
		return ""
	}
	for _, known := range requeuedByUs {
		if c.Reason == known || known == kueue.WorkloadDeactivated && len(c.Reason) > len(known) && c.Reason[:len(known)] == known {
			return ""
		}
	}
	return fmt.Sprintf("its condition Requeued to become True; it is False with reason %s", c.Reason)
}

// spec fills in what the gang asks for and returns why it can never be admitted as
// it is written, or "". Of an invalid one as much is filled in as can be counted.
// A gang that is admitted keeps the size it was admitted with, since its job cannot be
// resized while it runs; but for one whose sizes are said by GangAnnotation.
func (r *reader) spec(wl *kueue.Workload, s *gang.Spec, a *admission.Admission) (invalid string) {
	note := func(format string, args ...any) {
		if invalid == "" {
			invalid = fmt.Sprintf(format, args...)
		}
	}
	sizes, total, err := gangSizes(wl)
	if err != nil {
		note("%v", err)
	}
	s.MinTotal = total
	seen := map[kueue.PodSetReference]bool{}
	for i := range wl.Spec.PodSets {
		ps := &wl.Spec.PodSets[i]
		if seen[ps.Name] {
			note("two pod sets are called %s", ps.Name)
			continue
		}
		seen[ps.Name] = true
		out, problems := r.podSet(ps)
		for _, p := range problems {
			note("pod set %s: %s", ps.Name, p)
		}
		if !out.resize(sizes) && a != nil {
			out.shrink(admittedSize(wl, a, out.Name))
		}
		s.PodSets = append(s.PodSets, out.PodSet)
	}
	if why := groupLevel(wl, s); why != "" {
		note("%s", why)
	}
	if !r.catalog.nodeless && len(s.PodSets) == len(wl.Spec.PodSets) {
		r.rules(wl, s, note)
	}
	return invalid
}

type podSet struct{ gang.PodSet }

func (p *podSet) shrink(count int) {
	p.Count = min(p.Count, count)
	p.Min = min(p.Min, p.Count)
}

// admittedSize is how many pods of the set were admitted: what the admission says, and
// where it does not say, the places that it has for them.
func admittedSize(wl *kueue.Workload, a *admission.Admission, name string) int {
	for i := range wl.Status.Admission.PodSetAssignments {
		if ps := &wl.Status.Admission.PodSetAssignments[i]; string(ps.Name) == name && ps.Count != nil {
			return int(*ps.Count)
		}
	}
	return planned(a, name)
}

// planned is how many pods of the set the admission has places for.
func planned(a *admission.Admission, name string) int {
	n := 0
	for _, set := range a.Plan.Sets {
		if set.Name == name {
			for _, slot := range set.Slots {
				n += slot.Count
			}
		}
	}
	return n
}

func (r *reader) podSet(ps *kueue.PodSet) (out podSet, problems []string) {
	spec := &ps.Template.Spec
	out.Name, out.Count, out.Min = string(ps.Name), int(ps.Count), int(ps.Count)
	if ps.Count < 0 {
		problems = append(problems, fmt.Sprintf("count %d is negative", ps.Count))
		out.Count, out.Min = 0, 0
	}
	if ps.MinCount != nil {
		out.Min = int(*ps.MinCount)
		if out.Min < 1 || out.Min > out.Count {
			problems = append(problems, fmt.Sprintf("minCount %d is not between 1 and count %d", *ps.MinCount, ps.Count))
			out.Min = out.Count
		}
	}
	request, errs := vector(r.space, perPod(ps))
	for _, err := range errs {
		problems = append(problems, "a request for "+err.Error())
	}
	request.Set(quota.Pods, 1)
	out.Request = request
	out.Filter = filter(spec)
	free := r.catalog.nodeless && (ps.TopologyRequest == nil || ps.TopologyRequest.Required == nil)
	if free {
		out.Filter = gang.Filter{}
	}
	var unsupported string
	var odd string
	if out.Sharing, odd = sharingOf(&ps.Template.ObjectMeta); odd != "" {
		problems = append(problems, odd)
	}
	out.Level, unsupported = level(ps.TopologyRequest)
	if free {
		out.Level = gang.Level{}
	}
	if unsupported == "" {
		unsupported = unplannable(spec)
	}
	if unsupported != "" {
		problems = append(problems, unsupported)
	}
	return out, problems
}

// perPod is what one pod of the set takes: the larger of its init containers and
// its containers together, and its overhead.
func perPod(ps *kueue.PodSet) corev1.ResourceList {
	return resourcehelper.PodRequests(&corev1.Pod{Spec: ps.Template.Spec}, resourcehelper.PodResourcesOptions{})
}

// unplannable names what the pod asks that a plan cannot promise, or is "". Admitting
// it could leave it pending for ever.
func unplannable(spec *corev1.PodSpec) string {
	if spec.NodeName != "" {
		return "its template sets nodeName, so its pods cannot be held"
	}
	return ""
}

// level is the domain that the pods of a set want to share.
func level(t *kueue.PodSetTopologyRequest) (l gang.Level, unsupported string) {
	switch {
	case t == nil:
		return gang.Level{}, ""
	case t.PodSetSliceRequiredTopology != nil || len(t.PodsetSliceRequiredTopologyConstraints) > 0:
		unsupported = "topology for slices of a pod set is not supported"
	}
	switch {
	case t.Required != nil:
		l = gang.Level{Key: *t.Required, Required: true}
	case t.Preferred != nil:
		l = gang.Level{Key: *t.Preferred}
	}
	return l, unsupported
}

// groupLevel moves the level of pod sets that form one group to the gang, if the
// group is all of it. It returns why that cannot be done, or "".
func groupLevel(wl *kueue.Workload, s *gang.Spec) string {
	groups := map[string]int{}
	for _, ps := range wl.Spec.PodSets {
		if ps.TopologyRequest != nil && ps.TopologyRequest.PodSetGroupName != nil {
			groups[*ps.TopologyRequest.PodSetGroupName]++
		}
	}
	for name, n := range groups {
		if n == 1 {
			continue
		}
		if n < len(s.PodSets) {
			return fmt.Sprintf("pod set group %s is a part of the pod sets, which is not supported", name)
		}
		s.Level = s.PodSets[0].Level
		for i := range s.PodSets {
			s.PodSets[i].Level = gang.Level{}
		}
	}
	return ""
}

// filter is which nodes the pod may use.
func filter(spec *corev1.PodSpec) gang.Filter {
	f := gang.Filter{Tolerations: tolerations(spec.Tolerations)}
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		f.All = append(f.All, gang.Requirement{Key: key, Op: gang.In, Values: []string{spec.NodeSelector[key]}})
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return f
	}
	required := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return f
	}
	f.Any = [][]gang.Requirement{}
	for _, term := range required.NodeSelectorTerms {
		var all []gang.Requirement
		for _, e := range slices.Concat(term.MatchExpressions, term.MatchFields) {
			all = append(all, gang.Requirement{Key: e.Key, Op: gang.Operator(e.Operator), Values: e.Values})
		}
		f.Any = append(f.Any, all)
	}
	return f
}

func tolerations(list []corev1.Toleration) []gang.Toleration {
	var out []gang.Toleration
	for _, t := range list {
		switch t.Operator {
		case corev1.TolerationOpExists, corev1.TolerationOpEqual, "":
			out = append(out, gang.Toleration{Key: t.Key, Exists: t.Operator == corev1.TolerationOpExists, Value: t.Value, Effect: gang.Effect(t.Effect)})
		}
	}
	return out
}
