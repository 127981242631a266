package kube_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
)

// The tests here are public cases of other queue managers, by the numbers that the
// scenario files have too. Two of them have no premise here: a GPU that pods share
// through a DRA claim (B22), since claims are not read, so that a pod that takes its
// device by one is charged for none; and requests for an amount of GPU memory (B24),
// for which there is no resource.

// usage waits until the queue of the world is charged so many of its resource.
func (w *world) usage(name corev1.ResourceName, want string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("usage %s of %s", want, name), func() string {
		for _, f := range get(w, clusterQueue(w.ns, 1)).Status.FlavorsUsage {
			for _, r := range f.Resources {
				if r.Name == name {
					if r.Total.Cmp(resource.MustParse(want)) == 0 {
						return ""
					}
					return "it is " + r.Total.String()
				}
			}
		}
		return "no usage"
	})
}

// reclaim says what a job integration says when pods of the job have succeeded.
func (w *world) reclaim(wl *kueue.Workload, pods int) {
	w.t.Helper()
	w.eventually("reclaimable pods of "+wl.Name, func() string {
		wl = get(w, wl)
		old := wl.DeepCopy()
		wl.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: int32(pods)}}
		if err := w.Status().Patch(w.t.Context(), wl, client.MergeFrom(old)); err != nil {
			return err.Error()
		}
		return ""
	})
}

// B08: pods that are done give their share back at once, and the gang is not finished
// while two of it run.
func TestB08DoneGivesBack(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.addNode(node(fmt.Sprintf("n%d", i), 92))
	}
	w.queues(456)
	first := w.workload("first", 456, 1)
	w.create(first)
	first = w.admitted(first)
	w.usage(gpu, "456")
	next := w.workload("next", 100, 1)
	w.create(next)
	w.waits(next, "Quota")
	w.reclaim(first, 454)
	w.admitted(next)
	w.usage(gpu, "102")
	if first = get(w, first); workload.IsFinished(first) || workload.IsEvicted(first) {
		t.Errorf("two of its pods run, and it is %s", why(first))
	}
}

// B51: a succeeded pod counts toward the gang's minimum, a failed one does not.
func TestB51SucceededCounts(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.stop()
	w.config.RecoveryWindow = 300 * time.Millisecond
	w.start()
	w.queues(8)
	run := func(name string) (*kueue.Workload, []*corev1.Pod) {
		wl := w.workload(name, 4, 2, job)
		w.create(wl)
		wl = w.admitted(wl)
		pods := w.pods(wl, 4)
		for _, p := range pods {
			w.bind(p, w.released(p))
			w.phase(p, corev1.PodRunning)
		}
		return wl, pods
	}
	first, pods := run("first")
	for i, p := range pods[:3] {
		w.phase(p, corev1.PodSucceeded)
		w.reclaim(first, i+1)
		w.usage(gpu, fmt.Sprint(6-2*i))
	}
	// Longer than the window, seen by a gang that is taken back within it.
	for _, p := range pods[:3] {
		w.gone(p)
	}
	marker := w.workload("marker", 1, 2, job)
	w.create(marker)
	marker = w.admitted(marker)
	m := w.gatedPod(marker, 0)
	w.create(m)
	w.bind(m, w.released(m))
	w.phase(m, corev1.PodRunning)
	w.phase(m, corev1.PodFailed)
	w.evicted(marker, kueue.WorkloadEvictedDueToNodeFailures)
	if first = get(w, first); workload.IsEvicted(first) {
		t.Fatalf("its pods succeeded, and it is taken back: %s", why(first))
	}
	if err := w.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.gone(pods[3])
	w.gone(m)
	if err := w.Delete(t.Context(), marker); err != nil {
		t.Fatal(err)
	}

	second, pods := run("second")
	w.phase(pods[0], corev1.PodFailed)
	w.evicted(second, kueue.WorkloadEvictedDueToNodeFailures)
}

// B29: the overhead of a RuntimeClass is charged, whatever a template says itself.
func TestB29Overhead(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.create(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "b29"}, Handler: "b29", Overhead: &nodev1.Overhead{PodFixed: resources(map[corev1.ResourceName]string{"cpu": "250m", "memory": "200Mi"})}})
	w.queues(8, func(cq *kueue.ClusterQueue) {
		cq.Spec.ResourceGroups = []kueue.ResourceGroup{{
			CoveredResources: []corev1.ResourceName{"cpu", "memory"},
			Flavors: []kueue.FlavorQuotas{{Name: "gpu", Resources: []kueue.ResourceQuota{
				{Name: "cpu", NominalQuota: resource.MustParse("10")}, {Name: "memory", NominalQuota: resource.MustParse("4Gi")},
			}}},
		}}
	})
	asks := func(own string) func(*kueue.Workload) {
		return func(wl *kueue.Workload) {
			s := &wl.Spec.PodSets[0].Template.Spec
			s.RuntimeClassName = ptr.To("b29")
			s.Containers[0].Resources = corev1.ResourceRequirements{Requests: resources(map[corev1.ResourceName]string{"cpu": "1", "memory": "2Gi"})}
			if own != "" {
				s.Overhead = resources(map[corev1.ResourceName]string{"cpu": own})
			}
		}
	}
	first := w.workload("first", 1, 0, asks(""))
	w.create(first)
	w.admitted(first)
	w.usage("cpu", "1250m")
	w.usage("memory", "2248Mi")
	second := w.workload("second", 1, 0, asks("1m"))
	w.create(second)
	if text := w.waits(second, "Quota"); !strings.Contains(text, "2248") && !strings.Contains(text, "memory") {
		t.Errorf("it waits with %q", text)
	}
	if err := w.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.admitted(second)
	w.usage("cpu", "1250m")
}

// B65: Workloads follow the value of their WorkloadPriorityClass, those that wait and
// those that run, and the order is judged again. What was set by hand stays, also over
// a restart, and a class that is deleted leaves its last value in force.
func TestB65PriorityClasses(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.queues(8)
	class := func(name string, value int32) *kueue.WorkloadPriorityClass {
		return &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	}
	of := func(name string, value int32) func(*kueue.Workload) {
		return func(wl *kueue.Workload) {
			wl.Spec.PriorityClassRef, wl.Spec.Priority = kueue.NewWorkloadPriorityClassRef(name), ptr.To(value)
		}
	}
	w.create(class("c1", 1000), class("c2", 2000))
	runs := w.workload("job-2", 1, 8, of("c2", 2000))
	w.create(runs)
	w.admitted(runs)
	waits := w.workload("job-1", 1, 8, of("c1", 1000))
	byHand := w.workload("job-3", 1, 8, of("c1", 1000), func(wl *kueue.Workload) { wl.Spec.Priority = ptr.To[int32](1) })
	between := w.workload("job-4", 1, 8, func(wl *kueue.Workload) { wl.Spec.Priority = ptr.To[int32](1500) })
	w.create(waits, byHand, between)
	for _, wl := range []*kueue.Workload{waits, byHand, between} {
		w.waits(wl, "Quota")
	}
	change(w, class("c2", 0), func(c *kueue.WorkloadPriorityClass) { c.Value = 500 })
	change(w, class("c1", 0), func(c *kueue.WorkloadPriorityClass) { c.Value = 3000 })
	has := func(wl *kueue.Workload, want int32) {
		t.Helper()
		w.eventually(fmt.Sprintf("priority %d of %s", want, wl.Name), func() string {
			if p := get(w, wl).Spec.Priority; p != nil && *p == want {
				return ""
			}
			return fmt.Sprintf("%+v", wl.Spec.Priority)
		})
	}
	has(runs, 500)
	has(waits, 3000)
	w.stop()
	w.start()
	if err := w.Delete(t.Context(), class("c1", 0)); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), runs); err != nil {
		t.Fatal(err)
	}
	w.admitted(waits) // not job-4, which was before it
	has(waits, 3000)
	has(byHand, 1)
}

// B67: a queue that is deleted with work inside admits nothing new, says what is still
// in it, and goes when the last that runs has ended. Made again while that still runs,
// it begins with what runs.
func TestB67QueueDeletedWithWork(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.queues(8, func(cq *kueue.ClusterQueue) { cq.Finalizers = []string{kueue.ResourceInUseFinalizerName} })
	runs := w.workload("runs", 1, 6)
	w.create(runs)
	runs = w.admitted(runs)
	waiting := []*kueue.Workload{w.workload("w0", 1, 6), w.workload("w1", 1, 6)}
	for _, wl := range waiting {
		w.create(wl)
		w.waits(wl, "Quota")
	}
	if err := w.Delete(t.Context(), clusterQueue(w.ns, 8)); err != nil {
		t.Fatal(err)
	}
	activeIs(w, kueue.ClusterQueueActiveReasonTerminating)
	small := w.workload("small", 1, 1) // it would fit
	w.create(small)
	w.waits(small, "QueueClosed")
	w.eventually("what is still in it", func() string {
		s := get(w, clusterQueue(w.ns, 8)).Status
		if text := fmt.Sprint(s.Conditions); !strings.Contains(text, "1 running, 3 pending") {
			return text
		}
		if s.AdmittedWorkloads != 1 || s.PendingWorkloads != 3 {
			return fmt.Sprintf("%d admitted, %d pending", s.AdmittedWorkloads, s.PendingWorkloads)
		}
		return ""
	})
	// Gone without waiting, and made again: what runs is charged to it.
	change(w, clusterQueue(w.ns, 8), func(cq *kueue.ClusterQueue) { cq.Finalizers = nil })
	w.waits(waiting[0], "QueueMissing")
	again := clusterQueue(w.ns, 8, func(cq *kueue.ClusterQueue) { cq.Finalizers = []string{kueue.ResourceInUseFinalizerName} })
	w.create(again)
	w.usage(gpu, "7") // 6 that run, and the small one, which fits beside
	if err := w.Delete(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	for _, wl := range []*kueue.Workload{runs, small} {
		if err := w.Delete(t.Context(), wl); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually("the queue is gone", func() string {
		err := w.Get(t.Context(), client.ObjectKeyFromObject(again), again)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("%v %v", err, again.Finalizers)
	})
	if text := w.waits(waiting[1], "QueueMissing"); !strings.Contains(text, w.ns) {
		t.Errorf("the missing queue is not named: %q", text)
	}
}

// A name that is deleted and made again fifty times, with a restart now and then, is
// charged once.
func TestSameNameAgainAndAgain(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.queues(8)
	for i := range 50 {
		wl := w.workload("train", 1, 8)
		w.create(wl)
		if i%5 == 0 {
			w.admitted(wl)
		}
		if i%20 == 19 {
			w.stop()
			w.start()
		}
		if err := w.Delete(t.Context(), wl); err != nil {
			t.Fatal(err)
		}
		w.eventually("deletion", func() string {
			if get(w, w.workload("train", 1, 8)) == nil {
				return ""
			}
			return "still there"
		})
	}
	w.usage(gpu, "0")
	last := w.workload("train", 1, 8)
	w.create(last)
	w.admitted(last)
	w.usage(gpu, "8")
}
