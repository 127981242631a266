package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/admission"
)

// slowestRead is the longest pause between two tries to read an object again.
const slowestRead = 5 * time.Second

// settle goes on from how the writes of a decision ended.
func (r *runner) settle(ctx context.Context) {
	for _, o := range r.carried.unknown {
		r.carried.progress = true // what it is now decides what to do next
		if o.Act == admission.ActRelease {
			r.readPod(ctx, o)
		} else {
			r.readWorkload(ctx, o.Key)
		}
	}
	for _, key := range r.carried.emptied {
		if known := r.workloads[key]; known != nil {
			r.sawWorkload(ctx, key, r.own.newest(key, known.seen), true)
		}
	}
}

// readWorkload reads a Workload until the API server answers, and tells the core
// what it is: whether the write took effect or not.
func (r *runner) readWorkload(ctx context.Context, key string) {
	known := r.workloads[key]
	if known == nil {
		return
	}
	now := &kueue.Workload{}
	switch found, ok := r.read(ctx, key, client.ObjectKeyFromObject(known.seen), now); {
	case !ok:
	case found:
		r.sawWorkload(ctx, key, now, true)
	default:
		r.own.seen(key, nil)
		r.view.index(key, known.seen, false)
		r.dropWorkload(key, known)
	}
}

// readPod reads a pod until the API server answers. If its gate is still there the
// release did not happen. Should it happen after all, a second release to another
// node is refused.
func (r *runner) readPod(ctx context.Context, o admission.Outcome) {
	known := r.pods[types.UID(o.Key)]
	if known == nil {
		return
	}
	name := client.ObjectKeyFromObject(known.seen)
	now := &corev1.Pod{}
	found, ok := r.read(ctx, o.Key, name, now)
	switch {
	case !ok:
	case !found || now.UID != known.seen.UID:
		r.dropPod(known.pod.Key, known.seen.UID)
	default:
		r.sawPod(known.pod.Key, now, true)
	}
}

// read gets the object from the API server, again and again until it says whether
// there is one. ok is false if ctx ended before.
func (r *runner) read(ctx context.Context, what string, name client.ObjectKey, into client.Object) (found, ok bool) {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, slowestRead) {
		limited, cancel := context.WithTimeout(ctx, writeTimeout)
		err := r.live.Get(limited, name, into)
		cancel()
		if err == nil || apierrors.IsNotFound(err) {
			return err == nil, true
		}
		if pause == 100*time.Millisecond {
			r.log.Info("waiting for the API server", "object", what, "reason", err.Error())
		}
		wait(ctx, r.clock, pause)
		if ctx.Err() != nil {
			return false, false
		}
	}
}
