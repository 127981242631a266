package kube

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// What the annotation says goes before the counts of the pod sets, also while the
// workload is admitted with fewer pods.
func TestGangAnnotation(t *testing.T) {
	wl := someWorkload()
	wl.Spec.PodSets[0].MinCount = ptr.To[int32](1)
	wl.Annotations = map[string]string{GangAnnotation: FormatGang([]SetSize{{"main", 2, 9}}, 3)}
	admittedTo(map[string]int32{"h0": 3})(wl)
	seen, _ := newReader().workload(wl)
	if ps := seen.Workload.Spec.PodSets[0]; ps.Count != 9 || ps.Min != 2 || seen.Workload.Spec.MinTotal != 3 || seen.Workload.Invalid != "" {
		t.Errorf("%+v, in all %d, %q", ps, seen.Workload.Spec.MinTotal, seen.Workload.Invalid)
	}
	for _, text := range []string{"", "main=1..2", "main=2..1,total=1", "main=1,total=1", "=1..2,total=1", "main=a..2,total=1", "main=1..2,total=-1"} {
		wl.Annotations[GangAnnotation] = text
		if seen, _ := newReader().workload(wl); !strings.Contains(seen.Workload.Invalid, GangAnnotation) {
			t.Errorf("%q is taken as %+v", text, seen.Workload.Spec)
		}
	}
}

// A Workload that was made for what waits longer has that place, until it is put behind.
func TestQueuedAtAnnotation(t *testing.T) {
	wl := someWorkload()
	wl.Annotations = map[string]string{QueuedAtAnnotation: "2026-01-01T00:00:00Z"}
	before := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if seen, _ := newReader().workload(wl); !seen.Workload.Queued.Equal(before) {
		t.Errorf("queued at %s", seen.Workload.Queued)
	}
	wl.Status.Conditions = []metav1.Condition{condition(kueue.WorkloadEvicted, metav1.ConditionTrue, kueue.WorkloadEvictedByPodsReadyTimeout)}
	if seen, _ := newReader().workload(wl); !seen.Workload.Queued.Equal(epoch.Add(time.Minute)) {
		t.Errorf("put behind, queued at %s", seen.Workload.Queued)
	}
	wl.Status.Conditions, wl.Annotations[QueuedAtAnnotation] = nil, "long ago"
	if seen, _ := newReader().workload(wl); !seen.Workload.Queued.Equal(epoch) {
		t.Errorf("unreadable, queued at %s", seen.Workload.Queued)
	}
}

// A Workload without a LocalQueue may name a Volcano Queue, and nothing else.
func TestVolcanoQueueNamedDirectly(t *testing.T) {
	for name, test := range map[string]struct{ queue, invalid string }{
		"heavy": {"heavy", ""},
		"cq":    {"Volcano Queue cq", ""},
		"root":  {"root", "whole cluster"},
		"":      {"", "spec.queueName is empty"},
	} {
		r := newReader()
		r.catalog.volcanoQueues["heavy"] = &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: "heavy"}, Spec: volcano.QueueSpec{Weight: 1}}
		wl := someWorkload()
		wl.Spec.QueueName, wl.Annotations = "", map[string]string{VolcanoQueueAnnotation: name}
		seen, _ := r.workload(wl)
		if w := seen.Workload; w.Queue != test.queue || (w.Invalid == "") != (test.invalid == "") || !strings.Contains(w.Invalid, test.invalid) {
			t.Errorf("%q leads to %q, invalid %q", name, w.Queue, w.Invalid)
		}
	}
}
