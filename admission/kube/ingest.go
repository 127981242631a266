package kube

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// ingest takes in what is new and tells the core what of it matters: queues first,
// then nodes, workloads and pods, since each refers to those before.
func (r *runner) ingest(ctx context.Context, list []news) {
	anew := map[string]bool{} // workloads to convert once more
	at := 0
	for ; at < len(list) && list[at].kind < inventoryKind; at++ {
		r.sawDeclared(list[at], anew)
	}
	r.refreshQueues(anew)
	for ; at < len(list) && list[at].kind < nodeKind; at++ {
		r.sawAgent(list[at])
	}
	for ; at < len(list) && list[at].kind == nodeKind; at++ {
		r.sawNode(list[at].name, as[*corev1.Node](list[at].now), anew)
	}
	r.convertNodes(r.agents.due(r.clock.Now()))
	r.settleNodeless(anew)
	r.refreshQueues(anew)
	for ; at < len(list) && list[at].kind == workloadKind; at++ {
		key := list[at].key()
		delete(anew, key)
		r.sawWorkload(ctx, key, as[*kueue.Workload](list[at].now), false)
	}
	r.convertAnew(ctx, anew)
	for ; at < len(list); at++ {
		r.sawPod(list[at].key(), as[*corev1.Pod](list[at].now), false)
	}
	// What was just read may have brought resources that no queue knew of.
	clear(anew)
	r.refreshQueues(anew)
	r.settleNodeless(anew)
	r.convertAnew(ctx, anew)
	r.settleGroups(ctx)
	r.forgetEnded()
	if len(list) > 0 {
		r.changed, r.measures.stale = true, true
	}
}

// as is the object in its own type; an absent one stays nil.
func as[T client.Object](o client.Object) (t T) {
	if o != nil {
		t = o.(T)
	}
	return t
}

func (r *runner) convertAnew(ctx context.Context, keys map[string]bool) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if known := r.workloads[key]; known != nil {
			r.sawWorkload(ctx, key, known.seen, false)
		}
	}
}

// sawDeclared takes in an object that says something about queues.
func (r *runner) sawDeclared(n news, anew map[string]bool) {
	c := r.catalog
	switch n.kind {
	case flavorKind:
		keep(c.flavors, n.name, as[*kueue.ResourceFlavor](n.now))
	case classKind:
		r.sawClass(n.name, as[*kueue.WorkloadPriorityClass](n.now))
		return
	case checkKind:
		keep(c.checks, n.name, as[*kueue.AdmissionCheck](n.now))
	case cohortKind:
		keep(c.cohorts, n.name, as[*kueue.Cohort](n.now))
	case clusterQueueKind:
		if n.now == nil {
			r.forgetQueue(n.name)
		}
		keep(c.clusterQueues, n.name, as[*kueue.ClusterQueue](n.now))
	case volcanoQueueKind:
		if n.now == nil {
			r.forgetQueue(n.name)
		}
		keep(c.volcanoQueues, n.name, as[*volcano.Queue](n.now))
	case localQueueKind:
		if n.now == nil {
			forgetLocalQueue(n.namespace, n.name)
		}
		keep(c.localQueues, n.key(), as[*kueue.LocalQueue](n.now))
	case namespaceKind:
		if ns := as[*corev1.Namespace](n.now); ns == nil {
			delete(c.namespaces, n.name)
		} else if maps.Equal(c.namespaces[n.name], labels.Set(ns.Labels)) && c.namespaces[n.name] != nil {
			return
		} else {
			c.namespaces[n.name] = labels.Merge(ns.Labels, nil)
		}
	case limitRangeKind:
		// It changes what pods of the namespace will ask for.
		for key, known := range r.workloads {
			if known.seen.Namespace == n.namespace && !known.admitted && !known.finished {
				anew[key] = true
			}
		}
		return
	case inventoryKind, leaseKind, nodeKind, workloadKind, podKind:
		panic(fmt.Sprintf("kube: %s declares no queue", kindName(n.kind)))
	}
	c.dirty = true
}

func keep[T interface {
	comparable
	client.Object
}](m map[string]T, key string, now T) {
	var none T
	if now == none {
		delete(m, key)
	} else {
		m[key] = now
	}
}

// refreshQueues works out the queues anew if need be, and which workloads lead
// elsewhere now or are counted in a queue that changed.
func (r *runner) refreshQueues(anew map[string]bool) {
	dirty := r.catalog.dirty
	events := r.catalog.refresh(r.state.Space)
	r.loop.Observe(events...)
	if len(events) == 0 && !dirty {
		return
	}
	r.sayFaults()
	changed := map[string]bool{}
	for _, e := range events {
		if q, ok := e.(admission.QueueSeen); ok {
			changed[q.Queue.Quota.Name] = true
		}
	}
	for lq, keys := range r.byLocalQueue {
		var route resolution
		for key := range keys {
			wl := r.workloads[key].seen
			route = r.catalog.resolve(wl.Namespace, queueOf(wl))
			break
		}
		if route != r.routes[lq] {
			r.routes[lq] = route
			for key := range keys {
				anew[key] = true
			}
		}
	}
	for key, known := range r.workloads {
		if a := known.seen.Status.Admission; a != nil && changed[string(a.ClusterQueue)] {
			anew[key] = true
		}
		r.heedChecks(key, known.seen)
	}
}

func (r *runner) sawNode(name string, n *corev1.Node, anew map[string]bool) {
	host := ""
	if n != nil {
		host = n.Labels[hostname]
		r.nodes[name] = &knownNode{seen: n, node: nodeOf(r.nodes[name])}
	}
	touched := r.hosts.set(name, host)
	if n == nil {
		delete(r.nodes, name)
		r.loop.Observe(admission.NodeGone{Name: name})
	} else {
		touched = append(touched, name)
	}
	r.agents.sawNode(name, n)
	r.convertNodes(touched)
	if host != "" {
		maps.Copy(anew, r.unresolved)
	}
}

// convertNodes tells the core of those of the nodes that are other than it was told.
func (r *runner) convertNodes(names []string) {
	for _, name := range names {
		known := r.nodes[name]
		if known == nil {
			continue
		}
		deck, expected := r.agents.cards(r.cards, known.seen)
		node := convertNode(r.state.Space, known.seen, r.hosts.collision(name), deck, expected)
		if n := r.agents.cardsOf(known.seen); n > 0 {
			node.Offer.Set(r.state.Space.Index(quota.Cards), n)
		}
		node.Drift = append(node.Drift, missing(r.policies, known.seen)...)
		if !reflect.DeepEqual(node, known.node) {
			known.node = node
			r.loop.Observe(admission.NodeSeen{Node: node})
			r.sayDrift(name)
			r.putBack(known.seen)
		}
	}
}

// sawWorkload takes in a Workload; nil is gone. fresh says that it was read after
// every write to it had ended.
func (r *runner) sawWorkload(ctx context.Context, key string, wl *kueue.Workload, fresh bool) {
	old := r.workloads[key]
	if old != nil && wl != nil && old.seen.UID == wl.UID && version(wl.ResourceVersion) < version(old.seen.ResourceVersion) {
		return // the watch is behind what was read
	}
	r.own.seen(key, wl)
	if old != nil {
		r.view.index(key, old.seen, false)
	}
	delete(r.unresolved, key)
	if wl == nil {
		r.dropWorkload(key, old)
		return
	}
	r.meetGang(key, wl)
	seen, resolved := (&reader{r.state.Space, r.catalog, r.hosts, r.groups, r.userKey}).workload(r.adjusted(ctx, wl))
	known := &knownWorkload{
		seen: wl, workload: seen.Workload, queue: seen.Workload.Queue,
		admitted: wl.Status.Admission != nil, finished: seen.Finished,
		told: old != nil && old.told,
	}
	r.workloads[key] = known
	r.view.index(key, wl, true)
	if !resolved {
		r.unresolved[key] = true
	}
	r.loose[key] = loose(wl)
	if !r.loose[key] {
		delete(r.loose, key)
	}
	if old != nil && old.seen.UID != wl.UID {
		delete(r.lastTold, key)
		known.told = false
	}
	if seen.Finished {
		delete(r.later, key)
		if old != nil && !old.finished && old.seen.UID == wl.UID {
			r.sawFinish(key, known)
		}
		if !known.told {
			return // it ended before this process began; its pods count by themselves
		}
		r.ending[key] = true
	}
	r.heedChecks(key, wl)
	seen.Fresh = fresh
	known.told = true
	r.loop.Observe(seen)
}

func (r *runner) dropWorkload(key string, old *knownWorkload) {
	r.groups.drop(gangID(key))
	delete(r.workloads, key)
	delete(r.later, key)
	delete(r.lastTold, key)
	delete(r.ending, key)
	delete(r.loose, key)
	delete(r.measures.taken, key)
	r.verdicts.recall(key)
	if old != nil && old.told {
		r.loop.Observe(admission.WorkloadGone{Key: key})
	}
}

// forgetEnded has the core forget finished workloads of which no pod takes room.
func (r *runner) forgetEnded() {
	for key := range r.ending {
		v, ok := r.state.View(key)
		if ok && len(v.Nodes) > 0 {
			continue
		}
		delete(r.ending, key)
		r.workloads[key].told = false
		r.loop.Observe(admission.WorkloadGone{Key: key})
	}
}

// sawPod takes in a pod; nil is gone. A pod of the same name with another UID is
// another pod. fresh says that it was read after every write to it had ended.
func (r *runner) sawPod(key string, p *corev1.Pod, fresh bool) {
	if uid, ok := r.podUIDs[key]; ok && (p == nil || p.UID != uid) {
		r.dropPod(key, uid)
	}
	if p == nil {
		return
	}
	old := r.pods[p.UID]
	if old != nil && version(p.ResourceVersion) < version(old.seen.ResourceVersion) {
		return
	}
	if !matters(p) {
		if old != nil {
			r.dropPod(key, p.UID)
		}
		return
	}
	known := &knownPod{seen: p, pod: r.meetPod(p)}
	if old != nil {
		r.indexPod(old, false)
		if old.told && old.pod.Workload != known.pod.Workload {
			r.loop.Observe(admission.PodGone{UID: known.pod.UID})
			old = nil
		}
	}
	r.pods[p.UID], r.podUIDs[key] = known, p.UID
	r.indexPod(known, true)
	if old != nil && old.told && settledPod(&known.pod) && samePod(old.pod, known.pod) {
		known.told = true
		return
	}
	if w := r.workloads[known.pod.Workload]; ended(p) && known.pod.Workload != "" && (w == nil || !w.told) {
		// The core does not know its workload, and it takes no room.
		if old != nil && old.told {
			r.loop.Observe(admission.PodGone{UID: known.pod.UID})
		}
		return
	}
	known.told = true
	r.loop.Observe(admission.PodSeen{Pod: known.pod, Fresh: fresh})
}

func (r *runner) dropPod(key string, uid types.UID) {
	if known := r.pods[uid]; known != nil {
		r.indexPod(known, false)
		if known.told {
			r.loop.Observe(admission.PodGone{UID: string(uid)})
		}
	}
	r.groups.drop(podID(string(uid)))
	delete(r.pods, uid)
	delete(r.podUIDs, key)
}

// settledPod says that nothing we decide changes what the core holds of the pod.
func settledPod(p *admission.Pod) bool { return p.Phase != admission.PodGated }

func samePod(a, b admission.Pod) bool {
	a.Version, b.Version = 0, 0
	return reflect.DeepEqual(a, b)
}

// nodeOf is what the core was told of the node, or nil.
func nodeOf(k *knownNode) (n *gang.Node) {
	if k != nil {
		n = k.node
	}
	return n
}
