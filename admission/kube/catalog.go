package kube

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// catalog is everything that is declared about queues, and what was told of it to
// the core. Objects in it are never changed.
type catalog struct {
	flavors       map[string]*kueue.ResourceFlavor
	checks        map[string]*kueue.AdmissionCheck
	cohorts       map[string]*kueue.Cohort
	clusterQueues map[string]*kueue.ClusterQueue
	volcanoQueues map[string]*volcano.Queue
	localQueues   map[string]*kueue.LocalQueue // by namespace/name
	namespaces    map[string]labels.Set
	parts         map[corev1.ResourceName]int64 // of a card, in thousandths, that a device is

	told     map[string]*queue.Queue // by the core's name
	nodeless bool                    // there are no nodes

	faults map[object]*fault
	dirty  bool
	plain  int // dimensions of pods when the queues were worked out last
}

func newCatalog() *catalog {
	return &catalog{
		flavors: map[string]*kueue.ResourceFlavor{}, checks: map[string]*kueue.AdmissionCheck{}, cohorts: map[string]*kueue.Cohort{},
		clusterQueues: map[string]*kueue.ClusterQueue{}, volcanoQueues: map[string]*volcano.Queue{},
		localQueues: map[string]*kueue.LocalQueue{}, namespaces: map[string]labels.Set{},
		told: map[string]*queue.Queue{}, faults: map[object]*fault{},
	}
}

// refresh works out the queues anew if something about them may have changed, and
// returns what the core has to be told.
func (c *catalog) refresh(space *quota.Space) []admission.Event {
	if n := plainDimensions(space); n != c.plain {
		c.plain, c.dirty = n, true
	}
	if !c.dirty {
		return nil
	}
	c.dirty = false
	clear(c.faults)
	now := map[string]*queue.Queue{}
	for _, q := range c.queues(space) {
		now[q.Quota.Name] = q
	}
	var events []admission.Event
	for _, name := range slices.Sorted(maps.Keys(c.told)) {
		if now[name] == nil {
			events = append(events, admission.QueueGone{Name: name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if !reflect.DeepEqual(c.told[name], now[name]) {
			events = append(events, admission.QueueSeen{Queue: now[name]})
		}
	}
	c.told = now
	c.plain = plainDimensions(space)
	return events
}

// plainDimensions counts the dimensions that are resources of pods.
func plainDimensions(space *quota.Space) int {
	n := 0
	for i := range space.Len() {
		if ofPods(space.Name(i)) {
			n++
		}
	}
	return n
}

// queues converts every queue, in a fixed order. What is wrong goes to faults.
func (c *catalog) queues(space *quota.Space) []*queue.Queue {
	var list []*queue.Queue
	// First every resource that some queue names, so that each queue knows all that
	// it does not cover.
	for _, name := range slices.Sorted(maps.Keys(c.clusterQueues)) {
		for _, g := range c.clusterQueues[name].Spec.ResourceGroups {
			for _, r := range g.CoveredResources {
				space.Index(string(r))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.volcanoQueues)) {
		if name == volcanoRoot {
			continue
		}
		q, bad := c.volcanoQueue(space, c.volcanoQueues[name])
		if bad != nil {
			c.faults[object{volcanoQueueKind, "", name}] = bad
		}
		if q != nil {
			list = append(list, q)
		}
	}
	var members []*queue.Queue
	for _, name := range slices.Sorted(maps.Keys(c.clusterQueues)) {
		q, bad := c.clusterQueue(space, c.clusterQueues[name])
		if bad != nil {
			c.faults[object{clusterQueueKind, "", name}] = bad
		}
		members = append(members, q)
	}
	return slices.Concat(list, c.cohortQueues(space, members), members)
}

// resolution is where a LocalQueue leads, and what keeps its workloads from it.
type resolution struct {
	queue   string // name of the core's queue, or of what is missing
	invalid string // why nothing can be admitted through it as things are written
	gate    string // what has to happen first
	drain   string // why admitted workloads are taken back: a reason of Kueue's
}

// resolve follows what queueOf says: a LocalQueue to a ClusterQueue or, if there is
// none of that name, to a Volcano Queue.
func (c *catalog) resolve(namespace, name string) resolution {
	if name == "" {
		return resolution{invalid: "spec.queueName is empty"}
	}
	if volcano, ok := strings.CutPrefix(name, volcanoMark); ok {
		return c.resolveVolcano(volcano)
	}
	lq := c.localQueues[namespace+"/"+name]
	if lq == nil {
		return resolution{queue: "LocalQueue " + namespace + "/" + name}
	}
	target := string(lq.Spec.ClusterQueue)
	r := resolution{queue: target}
	if stops(lq.Spec.StopPolicy) {
		r.gate = fmt.Sprintf("LocalQueue %s/%s to be resumed (its stopPolicy is %s)", namespace, name, *lq.Spec.StopPolicy)
		if drains(lq.Spec.StopPolicy) {
			r.drain = kueue.WorkloadEvictedByLocalQueueStopped
		}
	}
	switch {
	case c.clusterQueues[target] != nil:
		cq := c.clusterQueues[target]
		if bad := c.faults[object{clusterQueueKind, "", target}]; bad != nil {
			r.invalid = fmt.Sprintf("ClusterQueue %s: %s", target, bad.message)
		} else if why := c.excludes(cq, namespace); why != "" {
			r.invalid = why
		}
		if drains(cq.Spec.StopPolicy) {
			r.drain = kueue.WorkloadEvictedByClusterQueueStopped
		}
	case target == volcanoRoot, c.volcanoQueues[target] != nil:
		r.invalid = c.resolveVolcano(target).invalid
	default:
		r.queue = fmt.Sprintf("ClusterQueue or Volcano Queue %s, to which LocalQueue %s/%s leads,", target, namespace, name)
	}
	return r
}

// excludes says why the ClusterQueue takes nothing from the namespace, or "".
func (c *catalog) excludes(cq *kueue.ClusterQueue, namespace string) string {
	if cq.Spec.NamespaceSelector == nil {
		return fmt.Sprintf("ClusterQueue %s has no namespaceSelector, so it takes workloads of no namespace; {} takes all", cq.Name)
	}
	selector, err := metav1.LabelSelectorAsSelector(cq.Spec.NamespaceSelector)
	if err != nil {
		return fmt.Sprintf("ClusterQueue %s: spec.namespaceSelector: %v", cq.Name, err)
	}
	if !selector.Matches(c.namespaces[namespace]) {
		return fmt.Sprintf("ClusterQueue %s takes nothing from namespace %s: its namespaceSelector is %s", cq.Name, namespace, selector)
	}
	return ""
}

// clusterQueueOf is the ClusterQueue behind a queue of the core, or nil.
func (c *catalog) clusterQueueOf(name string) *kueue.ClusterQueue { return c.clusterQueues[name] }

// flavorsOf are the flavors of a queue of the core, as told.
func (c *catalog) flavorsOf(name string) []queue.Flavor {
	if q := c.told[name]; q != nil {
		return q.Flavors
	}
	return nil
}
