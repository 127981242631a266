package kube

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// fault is what is wrong with an object, as its condition or event says it.
type fault struct {
	reason, message string
}

func faultf(reason, format string, args ...any) *fault {
	return &fault{reason, fmt.Sprintf(format, args...)}
}

const (
	// reasonInvalid is for what Kueue has no reason for.
	reasonInvalid = "Invalid"
	// mostFlavors bounds the combinations of flavors of one queue.
	mostFlavors = 256
	// ample is the nominal of what a queue is not bounded in: more than hardware
	// has, and so little that sums of it stay in bounds.
	ample = int64(1) << 56
)

// thousandth is a weight in thousandths. nil is 1.
func thousandth(w *resource.Quantity) (int64, error) {
	if w == nil {
		return 1000, nil
	}
	if w.Sign() < 0 {
		return 0, fmt.Errorf("weight %s is negative", w.String())
	}
	if w.Cmp(*resource.NewQuantity(math.MaxInt32, resource.DecimalSI)) > 0 {
		return 0, fmt.Errorf("weight %s is larger than %d", w.String(), math.MaxInt32)
	}
	return w.MilliValue(), nil
}

// dimension is the name of the quota dimension of a resource on a flavor.
func dimension(flavor kueue.ResourceFlavorReference, name corev1.ResourceName) string {
	return string(flavor) + ":" + string(name)
}

// ofPods says that a dimension is a resource of pods, and not one of quota.
func ofPods(name string) bool { return !strings.Contains(name, ":") }

// limits are the bounds that resource groups declare, by dimension.
type limits struct {
	nominal, borrow, lend map[int]int64
}

// groupLimits reads the amounts of resource groups. Where they are spelled out is
// not checked again: the CRD does.
func groupLimits(space *quota.Space, groups []kueue.ResourceGroup) (limits, error) {
	l := limits{map[int]int64{}, map[int]int64{}, map[int]int64{}}
	for _, g := range groups {
		for _, f := range g.Flavors {
			for _, r := range f.Resources {
				d := space.Index(dimension(f.Name, r.Name))
				if _, twice := l.nominal[d]; twice {
					return l, fmt.Errorf("resource %s of flavor %s is given twice", r.Name, f.Name)
				}
				for _, x := range []struct {
					what string
					q    *resource.Quantity
					into map[int]int64
				}{{"nominalQuota", &r.NominalQuota, l.nominal}, {"borrowingLimit", r.BorrowingLimit, l.borrow}, {"lendingLimit", r.LendingLimit, l.lend}} {
					if x.q == nil {
						continue
					}
					v, err := amount(r.Name, *x.q)
					if err != nil {
						return l, fmt.Errorf("%s of flavor %s: %w", x.what, f.Name, err)
					}
					x.into[d] = v
				}
			}
		}
	}
	return l, nil
}

// clusterQueue is the ClusterQueue as the core sees it. One with a fault admits
// nothing, and keeps what can be read of it, so that what runs there is counted.
func (c *catalog) clusterQueue(space *quota.Space, cq *kueue.ClusterQueue) (*queue.Queue, *fault) {
	weight, err := thousandth(weightOf(cq.Spec.FairSharing))
	var bad *fault
	if err != nil {
		bad = faultf(reasonInvalid, "spec.fairSharing: %v", err)
	}
	l, err := groupLimits(space, cq.Spec.ResourceGroups)
	if err != nil {
		bad = faultf(reasonInvalid, "spec.resourceGroups: %v", err)
	}
	if wrong := c.checksFault(cq); wrong != nil {
		bad = wrong
	}
	flavors, missing := c.combine(space, cq.Spec.ResourceGroups)
	if missing != nil {
		bad = missing
	}
	q := &queue.Queue{
		Quota: quota.Queue{Name: cq.Name, Weight: weight, Nominal: l.nominal, Lendable: l.lend, Max: map[int]int64{}},
		// Kueue's default is to take nothing back.
		Within: queue.WithinNever, Reclaim: queue.ReclaimNever,
		Strict:  cq.Spec.QueueingStrategy == kueue.StrictFIFO,
		Closed:  stops(cq.Spec.StopPolicy) || cq.DeletionTimestamp != nil || bad != nil,
		Flavors: flavors,
	}
	if cq.Spec.CohortName != "" {
		q.Quota.Parent = cohortMark + string(cq.Spec.CohortName)
		for d, b := range l.borrow {
			q.Quota.Max[d] = quota.Sum(l.nominal[d], b)
		}
	} else { // nobody to borrow from
		maps.Copy(q.Quota.Max, l.nominal)
	}
	if p := cq.Spec.Preemption; p != nil {
		q.Within, q.Reclaim = within(p.WithinClusterQueue), reclaim(p.ReclaimWithinCohort)
	}
	// Kueue's default is to borrow in the first flavor, and to look at them all before
	// it takes somebody back.
	q.BorrowFirst = true
	if f := cq.Spec.FlavorFungibility; f != nil {
		q.BorrowFirst = f.WhenCanBorrow != kueue.TryNextFlavor
		q.PreemptFirst = f.WhenCanPreempt == kueue.MayStopSearch
	}
	c.countCards(space, q)
	exempt(space, q)
	if wrong := annotated(q, cq.Annotations, charged(space, q.Flavors)); wrong != nil {
		bad, q.Closed = wrong, true
	}
	return q, bad
}

func weightOf(f *kueue.FairSharing) *resource.Quantity {
	if f == nil {
		return nil
	}
	return f.Weight
}

func stops(p *kueue.StopPolicy) bool {
	return p != nil && (*p == kueue.Hold || *p == kueue.HoldAndDrain)
}

func drains(p *kueue.StopPolicy) bool { return p != nil && *p == kueue.HoldAndDrain }

func within(p kueue.PreemptionPolicy) queue.Within {
	switch p {
	case kueue.PreemptionPolicyLowerPriority:
		return queue.WithinLower
	case kueue.PreemptionPolicyLowerOrNewerEqualPriority:
		return queue.WithinNewer
	default:
		return queue.WithinNever
	}
}

func reclaim(p kueue.PreemptionPolicy) queue.Reclaim {
	switch p {
	case kueue.PreemptionPolicyLowerPriority:
		return queue.ReclaimLower
	case kueue.PreemptionPolicyAny:
		return queue.ReclaimAny
	default:
		return queue.ReclaimNever
	}
}

// exempt charges what the queue's flavors do not cover in dimensions of which it
// owns ample: a ClusterQueue bounds only what it lists.
func exempt(space *quota.Space, q *queue.Queue) {
	if len(q.Flavors) == 0 {
		q.Flavors = []queue.Flavor{{Name: DefaultFlavor}}
	}
	for i := range space.Len() {
		name := space.Name(i)
		if !ofPods(name) {
			continue
		}
		for k := range q.Flavors {
			f := &q.Flavors[k]
			if _, covered := f.Dims[i]; covered || f.Parts[i] > 0 {
				continue
			}
			if f.Dims == nil {
				f.Dims = map[int]int{}
			}
			d := space.Index(":" + name)
			f.Dims[i] = d
			q.Quota.Nominal[d] = ample
		}
	}
}

// combine makes the core's flavors of resource groups: one flavor of each group, in
// every combination, earlier flavors of earlier groups first. A flavor that does
// not exist is a fault, and counts as one without labels.
func (c *catalog) combine(space *quota.Space, groups []kueue.ResourceGroup) (list []queue.Flavor, bad *fault) {
	for n, g := range groups {
		if n == 0 {
			list = []queue.Flavor{{}}
		}
		if len(list)*len(g.Flavors) > mostFlavors {
			return list, faultf(reasonInvalid, "spec.resourceGroups: more than %d combinations of flavors", mostFlavors)
		}
		var next []queue.Flavor
		for _, have := range list {
			for _, f := range g.Flavors {
				rf := c.flavors[string(f.Name)]
				if rf == nil {
					bad = faultf(kueue.ClusterQueueActiveReasonFlavorNotFound, "there is no ResourceFlavor %s", f.Name)
					rf = &kueue.ResourceFlavor{}
					rf.Name = string(f.Name)
				}
				next = append(next, extend(space, have, c.placing(rf), g.CoveredResources))
			}
		}
		list = next
	}
	return list, bad
}

// placing is the flavor, without what it asks of nodes if there are none that it has
// to wait for.
func (c *catalog) placing(rf *kueue.ResourceFlavor) *kueue.ResourceFlavor {
	if !c.nodeless || rf.Spec.TopologyName != nil {
		return rf
	}
	free := rf.DeepCopy()
	free.Spec.NodeLabels = nil
	return free
}

// extend is the combination have with one more flavor, for the resources covered.
func extend(space *quota.Space, have queue.Flavor, rf *kueue.ResourceFlavor, covered []corev1.ResourceName) queue.Flavor {
	out := queue.Flavor{Name: rf.Name, All: slices.Clone(have.All), Tolerations: slices.Clone(have.Tolerations), Dims: map[int]int{}}
	if have.Name != "" {
		out.Name = have.Name + "," + rf.Name
	}
	maps.Copy(out.Dims, have.Dims)
	for _, key := range slices.Sorted(maps.Keys(rf.Spec.NodeLabels)) {
		out.All = append(out.All, gang.Requirement{Key: key, Op: gang.In, Values: []string{rf.Spec.NodeLabels[key]}})
	}
	out.Tolerations = append(out.Tolerations, tolerations(rf.Spec.Tolerations)...)
	for _, name := range covered {
		out.Dims[space.Index(string(name))] = space.Index(dimension(kueue.ResourceFlavorReference(rf.Name), name))
	}
	return out
}

// assigned is the flavor of every resource that pods ask for, under the core's
// flavor of that name: the one whose group covers it, else the first. A group of
// which nothing is asked is named by its first resource, since the plan heeds the
// labels and tolerations of its flavor too.
func assigned(cq *kueue.ClusterQueue, flavor string, asked corev1.ResourceList) map[corev1.ResourceName]kueue.ResourceFlavorReference {
	names := strings.Split(flavor, ",")
	out := map[corev1.ResourceName]kueue.ResourceFlavorReference{}
	for name := range asked {
		out[name] = kueue.ResourceFlavorReference(names[0])
	}
	if cq == nil {
		return out
	}
	for i, g := range cq.Spec.ResourceGroups {
		if i >= len(names) || len(g.CoveredResources) == 0 {
			continue
		}
		of := kueue.ResourceFlavorReference(names[i])
		named := false
		for _, name := range g.CoveredResources {
			if _, ok := asked[name]; ok {
				out[name], named = of, true
			}
		}
		if !named {
			out[g.CoveredResources[0]] = of
		}
	}
	return out
}

// covers says whether the queue bounds the resource.
func covers(cq *kueue.ClusterQueue, name corev1.ResourceName) bool {
	return cq != nil && slices.ContainsFunc(cq.Spec.ResourceGroups, func(g kueue.ResourceGroup) bool {
		return slices.Contains(g.CoveredResources, name)
	})
}

// flavorNamed is the name of the core's flavor that an admission was made with:
// the first of the queue that agrees with what the admission says. If the queue has
// changed so that none does, it is charged as the first: something must be.
func flavorNamed(cq *kueue.ClusterQueue, flavors []queue.Flavor, a *kueue.Admission) string {
	for i := range flavors {
		if agrees(cq, flavors[i].Name, a) {
			return flavors[i].Name
		}
	}
	return flavors[0].Name
}

func agrees(cq *kueue.ClusterQueue, flavor string, a *kueue.Admission) bool {
	for _, ps := range a.PodSetAssignments {
		asked := corev1.ResourceList{}
		for name := range ps.Flavors {
			asked[name] = resource.Quantity{}
		}
		if !maps.Equal(assigned(cq, flavor, asked), ps.Flavors) {
			return false
		}
	}
	return true
}
