package kube

import (
	"cmp"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kind is a kind of object that is watched, in the order in which changes of one
// batch are taken in: what others refer to comes first.
type kind int

const (
	flavorKind kind = iota
	checkKind
	classKind
	cohortKind
	clusterQueueKind
	volcanoQueueKind
	namespaceKind
	localQueueKind
	limitRangeKind
	inventoryKind
	leaseKind
	nodeKind
	workloadKind
	podKind
)

// object names an object.
type object struct {
	kind            kind
	namespace, name string
}

func (o object) key() string {
	if o.namespace == "" {
		return o.name
	}
	return o.namespace + "/" + o.name
}

// news is the newest that is known of an object.
type news struct {
	object
	now client.Object // nil: it is gone
}

// inbox holds what is new, the newest of each object once. Watches put in, the
// runner takes out.
type inbox struct {
	mu    sync.Mutex
	items map[object]client.Object
	ready chan struct{} // holds one token while something is in
}

func newInbox() *inbox {
	return &inbox{items: map[object]client.Object{}, ready: make(chan struct{}, 1)}
}

// put says what the object is now; nil says that it is gone.
func (b *inbox) put(o object, now client.Object) {
	b.mu.Lock()
	b.items[o] = now
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take empties the inbox. The order depends on what is in it alone.
func (b *inbox) take() []news {
	b.mu.Lock()
	items := b.items
	b.items = map[object]client.Object{}
	b.mu.Unlock()
	select {
	case <-b.ready:
	default:
	}
	list := make([]news, 0, len(items))
	for o, now := range items {
		list = append(list, news{o, now})
	}
	slices.SortFunc(list, func(a, b news) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	return list
}
