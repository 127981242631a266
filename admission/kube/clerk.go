package kube

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
)

// clerk does what may wait: each errand has a name, and a newer one of the same
// name takes the place of one that has not begun. One that fails is tried again
// with a growing delay, unless a newer one came.
type clerk struct {
	queue   workqueue.TypedRateLimitingInterface[string]
	pace    *rate.Limiter
	mu      sync.Mutex
	errands map[string]errand
	log     logr.Logger
}

type errand func(ctx context.Context) error

func newClerk(name string, log logr.Logger, perSecond float64) *clerk {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](200*time.Millisecond, 30*time.Second)
	return &clerk{
		queue:   workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[string]{Name: name}),
		pace:    rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond))),
		errands: map[string]errand{},
		log:     log,
	}
}

// send has the errand done soon.
func (c *clerk) send(name string, e errand) {
	c.mu.Lock()
	c.errands[name] = e
	c.mu.Unlock()
	c.queue.Add(name)
}

// recall forgets an errand that has not begun.
func (c *clerk) recall(name string) {
	c.mu.Lock()
	delete(c.errands, name)
	c.mu.Unlock()
}

// work does errands until ctx ends.
func (c *clerk) work(ctx context.Context, workers int) {
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	wg.Wait()
}

func (c *clerk) next(ctx context.Context) bool {
	name, shut := c.queue.Get()
	if shut {
		return false
	}
	defer c.queue.Done(name)
	if c.pace.Wait(ctx) != nil {
		return false
	}
	c.mu.Lock()
	e, ok := c.errands[name]
	delete(c.errands, name)
	c.mu.Unlock()
	if !ok {
		c.queue.Forget(name)
		return true
	}
	limited, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := e(limited)
	if err == nil {
		c.queue.Forget(name)
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	c.log.V(1).Info("will try again", "errand", name, "reason", err.Error())
	c.mu.Lock()
	if _, newer := c.errands[name]; !newer {
		c.errands[name] = e
	}
	c.mu.Unlock()
	c.queue.AddRateLimited(name)
	return true
}
