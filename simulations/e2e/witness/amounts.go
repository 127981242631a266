package witness

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func add(sum corev1.ResourceList, more corev1.ResourceList) {
	for name, amount := range more {
		total := sum[name]
		total.Add(amount)
		sum[name] = total
	}
}

// onNodes adds up what the pods on each node ask for: those bound to it and
// those released to it.
func (w *World) onNodes() map[string]corev1.ResourceList {
	sums := make(map[string]corev1.ResourceList)
	for _, p := range w.Pods {
		node := p.Node()
		if node == "" || p.Ended() {
			continue
		}
		if sums[node] == nil {
			sums[node] = make(corev1.ResourceList)
		}
		add(sums[node], p.Requests())
		add(sums[node], corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)})
	}
	return sums
}

// inQueues adds up what the released pods of each ClusterQueue ask for.
func (w *World) inQueues() map[string]corev1.ResourceList {
	sums := make(map[string]corev1.ResourceList)
	for _, p := range w.Pods {
		if p.Gated || p.Ended() || p.Plan == nil {
			continue
		}
		queue := string(p.Plan.ClusterQueue)
		if sums[queue] == nil {
			sums[queue] = make(corev1.ResourceList)
		}
		add(sums[queue], p.Requests())
	}
	return sums
}

// maximum is what a queue may use at most, of the resources that it covers: what
// it owns and may borrow. All flavors are taken together.
func (w *World) maximum(q *kueue.ClusterQueue) corev1.ResourceList {
	limit := owned(q)
	if q.Spec.CohortName == "" {
		return limit
	}
	var free []corev1.ResourceName // borrowed without a bound of its own
	for _, group := range q.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			for _, r := range flavor.Resources {
				if r.BorrowingLimit == nil {
					free = append(free, r.Name)
					continue
				}
				add(limit, corev1.ResourceList{r.Name: *r.BorrowingLimit})
			}
		}
	}
	for _, name := range free {
		for _, other := range w.Queues {
			if other.Name != q.Name && other.Spec.CohortName == q.Spec.CohortName {
				add(limit, corev1.ResourceList{name: owned(other)[name]})
			}
		}
	}
	return limit
}

func owned(q *kueue.ClusterQueue) corev1.ResourceList {
	sum := make(corev1.ResourceList)
	for _, group := range q.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			for _, r := range flavor.Resources {
				add(sum, corev1.ResourceList{r.Name: r.NominalQuota})
			}
		}
	}
	return sum
}
