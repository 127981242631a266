package kube

import (
	"hash/fnv"
	"sync"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// own remembers what our own writes made of Workloads, until the watch shows it.
// Each chain is an unbroken run of our writes, so what was decided on any version
// in it still holds for the last.
type own struct {
	mu     sync.Mutex
	chains map[string]chain
	locks  [256]sync.Mutex
}

type chain struct {
	from uint64 // the version before our first write
	last *kueue.Workload
}

func newOwn() *own { return &own{chains: map[string]chain{}} }

// lock keeps our own writers of one Workload apart.
func (o *own) lock(key string) (unlock func()) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	l := &o.locks[h.Sum32()%uint32(len(o.locks))]
	l.Lock()
	return l.Unlock
}

// wrote says that a write to version base made the Workload now.
func (o *own) wrote(key string, base uint64, now *kueue.Workload) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c, ok := o.chains[key]
	if !ok || c.last.UID != now.UID || version(c.last.ResourceVersion) != base {
		c.from = base
	}
	c.last = now
	o.chains[key] = c
}

// seen says that the watch has come to a version; what is older is forgotten.
func (o *own) seen(key string, now *kueue.Workload) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c, ok := o.chains[key]; ok && (now == nil || c.last.UID != now.UID || version(c.last.ResourceVersion) <= version(now.ResourceVersion)) {
		delete(o.chains, key)
	}
}

// newest is the newer of what was seen and what our own writes made of it.
func (o *own) newest(key string, seen *kueue.Workload) *kueue.Workload {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c, ok := o.chains[key]; ok && c.last.UID == seen.UID && version(c.last.ResourceVersion) > version(seen.ResourceVersion) {
		return c.last
	}
	return seen
}

// basis is the Workload that a decision on the version based is written to: that
// version, or what our own writes made of it since. nil if somebody else wrote.
func (o *own) basis(key string, seen *kueue.Workload, based uint64) *kueue.Workload {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c, ok := o.chains[key]; ok && c.last.UID == seen.UID && c.from <= based && based <= version(c.last.ResourceVersion) {
		return c.last
	}
	if version(seen.ResourceVersion) == based {
		return seen
	}
	return nil
}
