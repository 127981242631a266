package podgroup_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"sluice.dev/sluice/admission/jobs/podgroup"
)

// A group of bare pods: it waits until it has its minimum, runs whole, and completes.
func TestPhases(t *testing.T) {
	w := newWorld(t, 1)
	w.group("gang", 3)
	w.reaches("gang", volcano.PodGroupInqueue) // it asks for nothing beforehand, as in Volcano
	w.pod("a", "gang", 2)
	w.pod("b", "gang", 2)
	pg := w.reaches("gang", volcano.PodGroupPending)
	w.eventually("it says what is missing", func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(pg), pg); err != nil {
			return err
		}
		if c := pg.Status.Conditions; len(c) != 1 || c[0].Type != volcano.PodGroupUnschedulableType || c[0].Reason != volcano.NotEnoughPodsReason || !strings.HasPrefix(c[0].Message, "2/3 tasks") || c[0].TransitionID == "" {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	w.havePods("a -, b -")
	w.pod("c", "gang", 2)
	w.reaches("gang", volcano.PodGroupRunning)
	w.havePods("a running, b running, c running")
	w.eventually("it is counted", func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(pg), pg); err != nil {
			return err
		}
		c := pg.Status.Conditions
		if pg.Status.Running != 3 || len(c) != 2 || c[0].Status != corev1.ConditionFalse || c[1].Type != volcano.PodGroupScheduled || c[1].Status != corev1.ConditionTrue {
			return fmt.Errorf("%+v", pg.Status)
		}
		return nil
	})
	w.queue("heavy", func(s volcano.QueueStatus) error {
		if s.Running != 1 || s.Pending+s.Inqueue+s.Unknown+s.Completed != 0 || s.State != volcano.QueueStateOpen || s.Allocated.Name("nvidia.com/gpu", resource.DecimalSI).Value() != 6 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	for i, p := range w.pods() {
		w.phase(&p, []corev1.PodPhase{corev1.PodSucceeded, corev1.PodSucceeded, corev1.PodFailed}[i])
	}
	pg = w.reaches("gang", volcano.PodGroupCompleted)
	if s := pg.Status; s.Running != 0 || s.Succeeded != 2 || s.Failed != 1 {
		t.Errorf("%+v", s)
	}
	w.queue("heavy", func(s volcano.QueueStatus) error {
		if s.Completed != 1 || s.Running != 0 || len(s.Allocated) != 0 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

// queue waits until the queue's status is right.
func (w *world) queue(name string, check func(volcano.QueueStatus) error) {
	w.Helper()
	w.eventually("the status of queue "+name, func() error {
		q := &volcano.Queue{}
		if err := w.Get(w.Context(), client.ObjectKey{Name: name}, q); err != nil {
			return err
		}
		return check(q.Status)
	})
}

// Two groups that cannot both fit: one runs whole, the other waits whole; when the
// first is gone the second runs.
func TestNeverHalf(t *testing.T) {
	w := newWorld(t, 2)
	for _, g := range []string{"one", "two"} {
		w.group(g, 3)
	}
	for i := range 3 { // in turns
		w.pod(fmt.Sprintf("one-%d", i), "one", 4)
		w.pod(fmt.Sprintf("two-%d", i), "two", 4)
	}
	var first, second string
	w.eventually("one of the two runs", func() error {
		switch w.drawPods() {
		case "one-0 running, one-1 running, one-2 running, two-0 -, two-1 -, two-2 -":
			first, second = "one", "two"
		case "one-0 -, one-1 -, one-2 -, two-0 running, two-1 running, two-2 running":
			first, second = "two", "one"
		default:
			return errors.New(w.drawPods())
		}
		return nil
	})
	w.reaches(first, volcano.PodGroupRunning)
	pg := w.reaches(second, volcano.PodGroupPending)
	w.eventually("the other says why it waits", func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(pg), pg); err != nil {
			return err
		}
		if c := pg.Status.Conditions; len(c) != 1 || c[0].Reason != volcano.NotEnoughResourcesReason || !strings.Contains(c[0].Message, "asks 12 nvidia.com/gpu") {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	for _, p := range w.pods() {
		if strings.HasPrefix(p.Name, first) {
			w.phase(&p, corev1.PodSucceeded)
		}
	}
	w.reaches(first, volcano.PodGroupCompleted)
	w.reaches(second, volcano.PodGroupRunning)
}

// A group with more pods than its minimum starts with as many as fit, and the others
// follow when there is room; pods that are made later join.
func TestMoreThanMinimum(t *testing.T) {
	w := newWorld(t, 1)
	w.group("elastic", 2)
	for i := range 4 {
		w.pod(fmt.Sprintf("p-%d", i), "elastic", 3)
	}
	w.reaches("elastic", volcano.PodGroupRunning)
	w.havePods("p-0 running, p-1 running, p-2 -, p-3 -")
	w.addNode("node-1")
	w.havePods("p-0 running, p-1 running, p-2 running, p-3 running")
	w.addNode("node-2")
	w.pod("q-0", "elastic", 3)
	w.pod("q-1", "elastic", 3)
	w.havePods("p-0 running, p-1 running, p-2 running, p-3 running, q-0 running, q-1 running")
	w.eventually("all are counted", func() error {
		if pg := w.reaches("elastic", volcano.PodGroupRunning); pg.Status.Running != 6 {
			return fmt.Errorf("%+v", pg.Status)
		}
		return nil
	})
}

// Surplus is taken back before whole groups: for one that has less than it deserves the
// elastic group shrinks to its minimum, and its pods that run beyond it are stopped.
func TestSurplusIsTakenBack(t *testing.T) {
	w := newWorld(t, 1)
	for _, q := range []string{"left", "right"} {
		w.create(&volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: q}, Spec: volcano.QueueSpec{Weight: 1, Deserved: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")}}})
	}
	w.group("elastic", 2, func(pg *volcano.PodGroup) { pg.Spec.Queue = "left" })
	for i := range 4 {
		w.pod(fmt.Sprintf("p-%d", i), "elastic", 2)
	}
	w.havePods("p-0 running, p-1 running, p-2 running, p-3 running")
	w.group("owner", 1, func(pg *volcano.PodGroup) { pg.Spec.Queue = "right" })
	w.pod("q", "owner", 4)
	w.reaches("owner", volcano.PodGroupRunning)
	n := 0
	for _, p := range w.pods() {
		if strings.HasPrefix(p.Name, "p-") && p.DeletionTimestamp == nil {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d pods are left of the elastic group: %s", n, w.drawPods())
	}
	w.reaches("elastic", volcano.PodGroupRunning)
}

// A group that is taken back: its pods are stopped, its admission is cleared when they
// are gone, and pods that are made for it again run when there is room.
func TestEviction(t *testing.T) {
	w := newWorld(t, 1)
	w.group("low", 2)
	for i := range 2 {
		w.pod(fmt.Sprintf("low-%d", i), "low", 4)
	}
	w.reaches("low", volcano.PodGroupRunning)
	wl := &kueue.Workload{}
	key := client.ObjectKey{Namespace: w.ns, Name: podgroup.WorkloadName("low")}
	if err := w.Get(t.Context(), key, wl); err != nil {
		t.Fatal(err)
	}
	next := wl.DeepCopy()
	next.Spec.Active = ptr.To(false)
	if err := w.Patch(t.Context(), next, client.MergeFrom(wl)); err != nil {
		t.Fatal(err)
	}
	w.havePods("")
	w.reaches("low", volcano.PodGroupPending)
	// Its controller makes the pods again; they wait.
	for i := range 2 {
		w.pod(fmt.Sprintf("again-%d", i), "low", 4)
	}
	w.havePods("again-0 -, again-1 -")
	w.eventually("it may go on", func() error {
		if err := w.Get(t.Context(), key, wl); client.IgnoreNotFound(err) != nil {
			return err
		}
		next := wl.DeepCopy()
		next.Spec.Active = ptr.To(true)
		return client.IgnoreNotFound(w.Patch(t.Context(), next, client.MergeFrom(wl)))
	})
	w.reaches("low", volcano.PodGroupRunning)
	w.havePods("again-0 running, again-1 running")
}

// Tasks of unlike pods are sets of their own, with minimums of their own.
func TestTasks(t *testing.T) {
	w := newWorld(t, 2)
	w.group("train", 3, func(pg *volcano.PodGroup) { pg.Spec.MinTaskMember = map[string]int32{"ps": 1, "worker": 2} })
	w.pod("w-0", "train", 4, task("worker"))
	w.pod("w-1", "train", 4, task("worker"))
	w.pod("w-2", "train", 4, task("worker"))
	pg := w.reaches("train", volcano.PodGroupPending)
	w.eventually("a task misses its pod", func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(pg), pg); err != nil {
			return err
		}
		if c := pg.Status.Conditions; len(c) != 1 || c[0].Reason != volcano.NotEnoughPodsOfTaskReason {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	w.pod("p-0", "train", 1, task("ps"))
	w.havePods("p-0 running, w-0 running, w-1 running, w-2 running")
	wl := &kueue.Workload{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: podgroup.WorkloadName("train")}, wl); err != nil {
		t.Fatal(err)
	}
	var sets []string
	for _, ps := range wl.Spec.PodSets {
		sets = append(sets, fmt.Sprintf("%s=%d", ps.Name, ps.Count))
	}
	if got := strings.Join(sets, " "); got != "worker=3 ps=1" && got != "ps=1 worker=3" {
		t.Errorf("pod sets %s", got)
	}
}

// Nine unlike kinds of pods are more than a Workload can have; the group says so.
func TestTooManyKinds(t *testing.T) {
	w := newWorld(t, 1)
	w.group("mixed", 9)
	for i := range 9 {
		w.pod(fmt.Sprintf("p-%d", i), "mixed", 1, task(fmt.Sprintf("t%d", i)))
	}
	w.event("mixed", podgroup.ReasonUnsupported, "9 unlike kinds")
	w.reaches("mixed", volcano.PodGroupPending)
}

// event waits for an event about the group.
func (w *world) event(group, reason, part string) {
	w.Helper()
	w.eventually("an event "+reason+" on "+group, func() error {
		var list corev1.EventList
		if err := w.List(w.Context(), &list, client.InNamespace(w.ns)); err != nil {
			return err
		}
		var all []string
		for _, e := range list.Items {
			if e.InvolvedObject.Name == group && e.Reason == reason && strings.Contains(e.Message, part) {
				return nil
			}
			all = append(all, e.InvolvedObject.Name+" "+e.Reason+" "+e.Message)
		}
		return fmt.Errorf("none of %q", all)
	})
}
