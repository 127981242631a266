package kube_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Whatever is wrong is told on the object, and the rest goes on.
func TestBadInputIsTold(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	w.queues(8)
	w.create(
		clusterQueue("negative-weight", 8, func(cq *kueue.ClusterQueue) {
			cq.Spec.CohortName = "other"
			cq.Spec.FairSharing = &kueue.FairSharing{Weight: ptr.To(resource.MustParse("-1"))}
		}),
		clusterQueue("no-flavor", 8, func(cq *kueue.ClusterQueue) { cq.Spec.ResourceGroups[0].Flavors[0].Name = "absent" }),
		clusterQueue("no-namespace", 8, func(cq *kueue.ClusterQueue) { cq.Spec.NamespaceSelector = nil }),
		clusterQueue("huge", 8, func(cq *kueue.ClusterQueue) {
			cq.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = resource.MustParse("10E")
		}),
		volcanoQueue("negative-capability", "-4"),
	)
	for _, name := range []string{"negative-weight", "no-flavor", "no-namespace", "huge", "negative-capability", "absent-queue"} {
		w.create(w.localQueue(name, name))
	}
	in := func(lq string) func(*kueue.Workload) {
		return func(wl *kueue.Workload) { wl.Spec.QueueName = kueue.LocalQueueName(lq) }
	}
	for _, test := range []struct {
		name   string
		change func(*kueue.Workload)
		code   string
		says   string
	}{
		{"unknown-local-queue", in("nowhere"), "QueueMissing", w.ns + "/nowhere"},
		{"unknown-queue", in("absent-queue"), "QueueMissing", "ClusterQueue or Volcano Queue absent-queue, to which LocalQueue"},
		{"in-negative-weight", in("negative-weight"), "Invalid", "weight -1 is negative"},
		{"in-no-flavor", in("no-flavor"), "Invalid", "no ResourceFlavor absent"},
		{"in-no-namespace", in("no-namespace"), "Invalid", "namespaceSelector"},
		{"in-huge", in("huge"), "Invalid", "more than can be counted"},
		{"in-negative-capability", in("negative-capability"), "Invalid", "is negative"},
		{"beyond-int64", func(wl *kueue.Workload) {
			wl.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{gpu: resource.MustParse("9223372036854775808")}
		}, "Invalid", "pod set main: a request for nvidia.com/gpu of 9223372036854775808"},
		{"beyond-in-sum", func(wl *kueue.Workload) {
			wl.Spec.PodSets[0].Count = 1 << 30
			wl.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{gpu: resource.MustParse("9223372036854775807")}
		}, "NeverFits", "than anything holds"},
		{"wrong-selector", func(wl *kueue.Workload) {
			wl.Spec.PodSets[0].Template.Spec.NodeSelector = map[string]string{"gpu": "h100"}
		}, "Labels", "gpu=h100"},
		{"bound", func(wl *kueue.Workload) { wl.Spec.PodSets[0].Template.Spec.NodeName = "somewhere" }, "Invalid", "nodeName"},
	} {
		wl := w.workload(test.name, 1, 1, test.change)
		w.create(wl)
		if text := w.waits(wl, test.code); !strings.Contains(text, test.says) {
			t.Errorf("%s: %q does not say %q", test.name, text, test.says)
		}
	}
	w.eventually("the event about the Volcano Queue", func() string {
		if text := w.events("negative-capability"); strings.Contains(text, "spec.capability: nvidia.com/gpu of -4 is negative") {
			return ""
		} else {
			return text
		}
	})
	for name, reason := range map[string]string{"negative-weight": "Invalid", "no-flavor": "FlavorNotFound", "huge": "Invalid"} {
		w.active(clusterQueue(name, 8), metav1.ConditionFalse, reason)
	}

	good := w.workload("good", 1, 8)
	w.create(good)
	w.admitted(good)
	w.eventually("the event about a workload", func() string {
		if text := w.events("wrong-selector"); strings.Contains(text, "Warning Pending: Labels: ") {
			return ""
		} else {
			return text
		}
	})

	// What was wrong is mended, and its workload goes.
	w.create(flavor("absent"))
	w.active(clusterQueue("no-flavor", 8), metav1.ConditionTrue, "Ready")
	w.waits(w.workload("in-no-flavor", 1, 1), "Capacity")
}

func (w *world) active(cq *kueue.ClusterQueue, status metav1.ConditionStatus, reason string) {
	w.t.Helper()
	w.eventually(cq.Name+" is "+reason, func() string {
		c := apimeta.FindStatusCondition(get(w, cq).Status.Conditions, kueue.ClusterQueueActive)
		if c != nil && c.Status == status && c.Reason == reason {
			return ""
		}
		return why(&kueue.Workload{Status: kueue.WorkloadStatus{Conditions: cq.Status.Conditions}})
	})
}

// Two pod sets of one name are refused by the API server itself.
func TestTwoPodSetsOfOneName(t *testing.T) {
	w := newWorld(t)
	wl := w.workload("twice", 1, 1)
	wl.Spec.PodSets = append(wl.Spec.PodSets, wl.Spec.PodSets[0])
	if err := w.Create(t.Context(), wl); err == nil || !strings.Contains(err.Error(), "spec.podSets[1]") {
		t.Errorf("created with %v", err)
	}
}

// Queues say what they hold.
func TestStatusOfQueues(t *testing.T) {
	w := newWorld(t, node("n0", 8))
	borrows := func(cq *kueue.ClusterQueue) { cq.Spec.CohortName = "all" }
	w.queues(4, borrows)
	w.create(clusterQueue("lender", 4, borrows))
	for _, wl := range []*kueue.Workload{w.workload("runs", 1, 6), w.workload("waits", 1, 8)} {
		w.create(wl)
		if wl.Name == "runs" {
			w.admitted(wl)
		}
	}
	w.eventually("status of the ClusterQueue", func() string {
		s := get(w, clusterQueue(w.ns, 4)).Status
		if len(s.FlavorsUsage) == 1 && s.PendingWorkloads == 1 && s.ReservingWorkloads == 1 && s.AdmittedWorkloads == 1 {
			if u := s.FlavorsUsage[0].Resources[0]; u.Total.Value() == 6 && u.Borrowed.Value() == 2 {
				return ""
			}
		}
		return resourceText(s)
	})
	w.eventually("status of the LocalQueue", func() string {
		s := get(w, w.localQueue("main", w.ns)).Status
		if len(s.FlavorsUsage) == 1 && s.PendingWorkloads == 1 && s.AdmittedWorkloads == 1 && s.FlavorsUsage[0].Resources[0].Total.Value() == 6 &&
			apimeta.IsStatusConditionTrue(s.Conditions, kueue.LocalQueueActive) {
			return ""
		}
		return resourceText(s)
	})
}
