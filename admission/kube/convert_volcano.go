package kube

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

// volcanoRoot is the queue that stands for the cluster. It is no queue of the core.
const volcanoRoot = "root"

// volcanoQueue is the Volcano Queue as the core sees it. Without deserved it owns
// its part, by weight, of what its parent's other children do not own. One with a
// fault admits nothing; one whose name is taken is none at all.
func (c *catalog) volcanoQueue(space *quota.Space, v *volcano.Queue) (*queue.Queue, *fault) {
	if _, taken := c.clusterQueues[v.Name]; taken {
		return nil, faultf(reasonInvalid, "there is a ClusterQueue of this name, and it is the one that LocalQueues mean")
	}
	q := &queue.Queue{
		Quota: quota.Queue{
			Name: v.Name, Parent: c.volcanoParent(v), Weight: int64(v.Spec.Weight) * 1000,
		},
		Priority:  int64(v.Spec.Priority),
		Strict:    v.Spec.DequeueStrategy == volcano.DequeueStrategyFIFO,
		Within:    queue.WithinLower,
		Reclaim:   queue.ReclaimAny,
		Sheltered: v.Spec.Reclaimable != nil && !*v.Spec.Reclaimable,
		Closed:    v.Status.State != "" && v.Status.State != volcano.QueueStateOpen || v.DeletionTimestamp != nil,
	}
	bad := c.readVolcano(space, v, q)
	if bad != nil {
		q.Closed = true
		q.Quota.Weight = max(0, q.Quota.Weight)
	}
	return q, bad
}

// readVolcano fills in the amounts.
func (c *catalog) readVolcano(space *quota.Space, v *volcano.Queue, q *queue.Queue) *fault {
	if v.Spec.Weight < 0 {
		return faultf(reasonInvalid, "spec.weight %d is negative", v.Spec.Weight)
	}
	var err error
	if q.Quota.Max, err = amounts(space, v.Spec.Capability); err != nil {
		return faultf(reasonInvalid, "spec.capability: %v", err)
	}
	if len(v.Spec.Deserved) > 0 {
		if q.Quota.Nominal, err = amounts(space, v.Spec.Deserved); err != nil {
			return faultf(reasonInvalid, "spec.deserved: %v", err)
		}
	}
	if q.Quota.Lendable, err = volcanoLendable(space, v); err != nil {
		return faultf(reasonInvalid, "spec.guarantee: %v", err)
	}
	if named := c.namesCards(v); named != nil {
		q.Flavors = []queue.Flavor{c.ofCards(space, named)}
	}
	return annotated(q, v.Annotations, charged(space, q.Flavors))
}

// volcanoParent is the name of the parent in the core. One that does not exist is
// named as it is written, and the core says that it is missing.
func (c *catalog) volcanoParent(v *volcano.Queue) string {
	p := v.Spec.Parent
	if p == "" || p == volcanoRoot {
		return ""
	}
	if c.clusterQueues[p] != nil {
		return p + " (Volcano Queue)" // a queue of the other family is no parent
	}
	return p
}

// volcanoLendable is what the queue lends: what it deserves beyond its guarantee.
func volcanoLendable(space *quota.Space, v *volcano.Queue) (map[int]int64, error) {
	guarantee, err := amounts(space, v.Spec.Guarantee.Resource)
	if err != nil || len(guarantee) == 0 {
		return nil, err
	}
	deserved, err := amounts(space, v.Spec.Deserved)
	if err != nil {
		return nil, err
	}
	lend := map[int]int64{}
	for _, name := range sortedResources(v.Spec.Guarantee.Resource) {
		d := space.Index(string(name))
		if guarantee[d] > deserved[d] {
			return nil, fmt.Errorf("%s of %s is more than spec.deserved", name, quantityString(name, guarantee[d]))
		}
		lend[d] = deserved[d] - guarantee[d]
	}
	return lend, nil
}

func quantityString(name corev1.ResourceName, v int64) string {
	q := quantity(name, v)
	return q.String()
}
