package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/queue"
)

// view is the cluster as it was seen last: the objects, and what the core was told
// of them. It belongs to the runner's goroutine. Objects in it are never changed.
type view struct {
	catalog   *catalog
	hosts     *hosts
	workloads map[string]*knownWorkload
	pods      map[types.UID]*knownPod
	podUIDs   map[string]types.UID // by namespace/name
	nodes     map[string]*knownNode
	agents    *agents
	classes   map[string]int32 // the values of WorkloadPriorityClasses
	offered   int              // plain dimensions of which anywhere was told

	// Indexes, by key of the Workload.
	byLocalQueue map[string]map[string]bool         // by namespace/name of the LocalQueue
	podsOf       map[string]map[types.UID]*knownPod // pods of a workload that have not ended
	unresolved   map[string]bool                    // its admission names a node that was never seen
	ending       map[string]bool                    // finished, and the core still counts pods of it
	loose        map[string]bool                    // nobody but sluice may have to end its eviction
	routes       map[string]resolution              // by namespace/name of the LocalQueue, as told
}

type knownWorkload struct {
	seen     *kueue.Workload
	workload *queue.Workload
	queue    string // the core's queue that it leads to
	admitted bool
	finished bool
	told     bool // the core knows it
}

type knownPod struct {
	seen *corev1.Pod
	pod  admission.Pod
	told bool // the core knows it
}

type knownNode struct {
	seen *corev1.Node
	node *gang.Node
}

func newView() view {
	return view{
		catalog: newCatalog(), hosts: newHosts(),
		workloads: map[string]*knownWorkload{}, pods: map[types.UID]*knownPod{}, podUIDs: map[string]types.UID{}, nodes: map[string]*knownNode{},
		classes:      map[string]int32{},
		agents:       newAgents(),
		byLocalQueue: map[string]map[string]bool{}, podsOf: map[string]map[types.UID]*knownPod{},
		unresolved: map[string]bool{}, ending: map[string]bool{}, loose: map[string]bool{}, routes: map[string]resolution{},
	}
}

func localQueueKey(wl *kueue.Workload) string {
	return wl.Namespace + "/" + queueOf(wl)
}

// index puts the workload into the indexes, or takes it out if on is false.
func (v *view) index(key string, wl *kueue.Workload, on bool) {
	lq := localQueueKey(wl)
	if on {
		if v.byLocalQueue[lq] == nil {
			v.byLocalQueue[lq] = map[string]bool{}
			v.routes[lq] = v.catalog.resolve(wl.Namespace, queueOf(wl))
		}
		v.byLocalQueue[lq][key] = true
		return
	}
	delete(v.byLocalQueue[lq], key)
	if len(v.byLocalQueue[lq]) == 0 {
		delete(v.byLocalQueue, lq)
		delete(v.routes, lq)
	}
}

// indexPod keeps podsOf in line with the pod.
func (v *view) indexPod(p *knownPod, on bool) {
	key := workloadOf(p.seen)
	if key == "" {
		return
	}
	if on && !ended(p.seen) {
		if v.podsOf[key] == nil {
			v.podsOf[key] = map[types.UID]*knownPod{}
		}
		v.podsOf[key][p.seen.UID] = p
		return
	}
	delete(v.podsOf[key], p.seen.UID)
	if len(v.podsOf[key]) == 0 {
		delete(v.podsOf, key)
	}
}
