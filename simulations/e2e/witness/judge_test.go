package witness

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/constants"
	utiltas "sigs.k8s.io/kueue/pkg/util/tas"
)

const gpu corev1.ResourceName = "nvidia.com/gpu"

// story builds a log, a record a second.
type story struct {
	log Log
	at  time.Time
	rv  uint64
}

// newStory has two nodes of 8 GPUs, a queue that owns 12 and may borrow 2, and
// the Job ml/train, whose Workload is not admitted.
func newStory() *story {
	s := &story{at: time.Unix(1000, 0)}
	for _, name := range []string{"a", "b"} {
		s.list(Nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{gpu: resource.MustParse("8"), corev1.ResourcePods: resource.MustParse("110")}},
		})
	}
	s.log.records[1].Objects = append(s.log.records[1].Objects, s.log.records[0].Objects...)
	s.list(Queues, &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: "team"},
		Spec: kueue.ClusterQueueSpec{CohortName: "all", ResourceGroups: []kueue.ResourceGroup{{
			Flavors: []kueue.FlavorQuotas{{Name: "f", Resources: []kueue.ResourceQuota{{
				Name: gpu, NominalQuota: resource.MustParse("12"), BorrowingLimit: ptr.To(resource.MustParse("2")),
			}}}},
		}}},
	})
	s.list(Jobs, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ml", Name: "train", UID: "job", Labels: map[string]string{constants.QueueLabel: "main"},
	}})
	s.list(Workloads, workload(nil))
	s.list(Pods)
	return s
}

func (s *story) record(verb Verb, kind Kind, objects ...client.Object) {
	s.rv++
	s.at = s.at.Add(time.Second)
	s.log.records = append(s.log.records, Record{Revision: s.rv, At: s.at, Verb: verb, Kind: kind, Objects: objects})
}

func (s *story) list(kind Kind, objects ...client.Object) { s.record(Listed, kind, objects...) }

func (s *story) admit(plan map[string]int32) { s.record(Changed, Workloads, workload(plan)) }

func (s *story) pod(p *corev1.Pod) { s.record(Changed, Pods, p.DeepCopy()) }

func (s *story) gone(p *corev1.Pod) { s.record(Deleted, Pods, p.DeepCopy()) }

// workload is ml/train's, admitted if there is a plan.
func workload(plan map[string]int32) *kueue.Workload {
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "job-train"}}
	if plan == nil {
		return w
	}
	ta := &utiltas.TopologyAssignment{Levels: []string{corev1.LabelHostname}}
	for _, node := range []string{"a", "b"} {
		if plan[node] > 0 {
			ta.Domains = append(ta.Domains, utiltas.TopologyDomainAssignment{Values: []string{node}, Count: plan[node]})
		}
	}
	w.Status.Admission = &kueue.Admission{ClusterQueue: "team", PodSetAssignments: []kueue.PodSetAssignment{{
		Name: "main", Count: ptr.To(plan["a"] + plan["b"]), TopologyAssignment: utiltas.V1Beta2From(ta),
	}}}
	w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadAdmitted, Status: metav1.ConditionTrue}}
	return w
}

// waiting is a gated pod of ml/train.
func waiting(name string, gpus int64) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ml", Name: name, UID: types.UID(name), Annotations: map[string]string{kueue.WorkloadAnnotation: "job-train"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "train", UID: "job", Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: kueue.TopologySchedulingGate}},
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)},
			}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

func released(p *corev1.Pod, node string) *corev1.Pod {
	p = p.DeepCopy()
	p.Spec.SchedulingGates = nil
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		}}}},
	}}}
	return p
}

func bound(p *corev1.Pod, node string) *corev1.Pod {
	p = released(p, node)
	p.Spec.NodeName = node
	return p
}

func succeeded(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	p.Status.Phase = corev1.PodSucceeded
	return p
}

func unschedulable(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes are available",
	}}
	return p
}

func TestRules(t *testing.T) {
	one, two, three := waiting("one", 7), waiting("two", 7), waiting("three", 7)
	ab := map[string]int32{"a": 1, "b": 1}
	for name, test := range map[string]struct {
		tell func(s *story)
		want string // RULE SUBJECT of each violation
	}{
		"a whole life": {func(s *story) {
			s.admit(ab)
			s.pod(one)
			s.pod(two)
			s.pod(released(one, "a"))
			s.pod(released(two, "b"))
			s.pod(bound(one, "a"))
			s.pod(bound(two, "b"))
			s.pod(succeeded(bound(one, "a")))
			s.pod(succeeded(bound(two, "b")))
			s.gone(two)
		}, ""},
		"the next gang follows at once": {func(s *story) {
			s.admit(ab)
			s.pod(one)
			s.pod(released(one, "a"))
			s.pod(bound(one, "a"))
			s.pod(succeeded(bound(one, "a")))
			s.pod(two)
			s.pod(released(two, "a"))
		}, ""},
		"a gated pod is not said to be unschedulable": {func(s *story) {
			p := unschedulable(one)
			p.Status.Conditions[0].Reason = corev1.PodReasonSchedulingGated
			s.pod(p)
		}, ""},
		"unschedulable": {func(s *story) {
			s.admit(ab)
			s.pod(one)
			s.pod(released(one, "a"))
			s.pod(unschedulable(released(one, "a")))
			s.pod(bound(one, "a"))
		}, "Unschedulable ml/one one"},
		"released without admission": {func(s *story) {
			s.pod(one)
			s.pod(released(one, "a"))
		}, "Unadmitted ml/one one"},
		"released after admission was taken back": {func(s *story) {
			s.admit(ab)
			s.pod(one)
			s.admit(nil)
			s.pod(released(one, "a"))
		}, "Unadmitted ml/one one"},
		"released before": {func(s *story) {
			s.list(Pods, bound(one, "a"))
			s.pod(succeeded(bound(one, "a")))
		}, ""},
		"created without a gate": {func(s *story) {
			p := one.DeepCopy()
			p.Spec.SchedulingGates, p.Annotations = nil, nil
			s.pod(p)
		}, "Unmanaged ml/one one"},
		"a labelled pod without a gate": {func(s *story) {
			p := one.DeepCopy()
			p.Spec.SchedulingGates, p.Annotations, p.OwnerReferences = nil, nil, nil
			p.Labels = map[string]string{constants.QueueLabel: "main"}
			s.pod(p)
		}, "Unmanaged ml/one one"},
		"a pod that nobody queued": {func(s *story) {
			p := one.DeepCopy()
			p.Spec.SchedulingGates, p.Annotations, p.OwnerReferences = nil, nil, nil
			s.pod(p)
			s.pod(unschedulable(p))
		}, ""},
		"out of reach": {func(s *story) {
			p := one.DeepCopy()
			p.Namespace, p.Spec.SchedulingGates, p.Annotations, p.OwnerReferences = "kube-system", nil, nil, nil
			p.Labels = map[string]string{constants.QueueLabel: "main"}
			s.pod(p)
		}, ""},
		"bound outside of the plan": {func(s *story) {
			s.admit(map[string]int32{"a": 1})
			s.pod(one)
			s.pod(released(one, "a"))
			s.pod(bound(one, "b"))
		}, "Elsewhere ml/one one"},
		"one more on a node than planned": {func(s *story) {
			small, other := waiting("one", 1), waiting("two", 1)
			s.admit(ab)
			s.pod(small)
			s.pod(other)
			s.pod(released(small, "a"))
			s.pod(released(other, "a"))
			s.pod(bound(small, "a"))
			s.pod(bound(other, "a"))
		}, "Elsewhere ml/two two"},
		"an admission without nodes": {func(s *story) {
			w := workload(ab)
			w.Status.Admission.PodSetAssignments[0].TopologyAssignment = nil
			s.record(Changed, Workloads, w)
			s.pod(one)
			s.pod(released(one, "a"))
			s.pod(bound(one, "a"))
		}, "Elsewhere ml/one one"},
		"released onto a full node": {func(s *story) {
			s.admit(map[string]int32{"a": 2})
			s.pod(one)
			s.pod(two)
			s.pod(released(one, "a"))
			s.pod(released(two, "a"))
		}, "NodeOver a nvidia.com/gpu"},
		"beside one that still stops": {func(s *story) {
			s.admit(ab)
			s.pod(one)
			s.pod(released(one, "a"))
			s.pod(bound(one, "a"))
			stopping := bound(one, "a")
			stopping.DeletionTimestamp = &metav1.Time{Time: s.at}
			s.pod(stopping)
			s.pod(two)
			s.pod(released(two, "a"))
		}, "NodeOver a nvidia.com/gpu"},
		"beyond what the queue may borrow": {func(s *story) {
			s.admit(map[string]int32{"a": 1, "b": 2})
			for _, p := range []*corev1.Pod{one, two, three} {
				s.pod(p)
			}
			s.pod(released(one, "a"))
			s.pod(released(two, "b"))
			s.pod(released(waiting("three", 1), "b"))
		}, "QueueOver team nvidia.com/gpu"},
		"half for too long": {func(s *story) {
			s.admit(ab)
			s.pod(one)
			s.pod(two)
			s.pod(released(one, "a"))
			s.at = s.at.Add(5 * time.Second)
			s.pod(released(two, "b"))
		}, "HalfReleased ml/job-train"},
		"half to the end": {func(s *story) {
			s.admit(ab)
			s.pod(one)
			s.pod(two)
			s.pod(released(one, "a"))
			s.at = s.at.Add(5 * time.Second)
			s.pod(bound(one, "a"))
		}, "HalfReleased ml/job-train"},
		"half, and taken back": {func(s *story) {
			s.admit(ab)
			s.pod(one)
			s.pod(two)
			s.pod(released(one, "a"))
			s.admit(nil)
			s.at = s.at.Add(6 * time.Second)
			s.pod(bound(one, "a"))
		}, "HalfReleased ml/job-train"},
		"one pod too many": {func(s *story) {
			s.admit(ab)
			s.pod(one)
			s.pod(two)
			s.pod(released(one, "a"))
			s.pod(released(two, "b"))
			s.pod(three)
			s.at = s.at.Add(time.Minute)
			s.gone(three)
		}, ""},
		"half because the follower of a failed pod waits": {func(s *story) {
			s.admit(ab)
			s.pod(one)
			s.pod(two)
			s.pod(released(one, "a"))
			s.pod(released(two, "b"))
			failed := bound(two, "b")
			failed.Status.Phase = corev1.PodFailed
			s.pod(failed)
			s.pod(three)
			s.at = s.at.Add(time.Minute)
			s.gone(three)
		}, "HalfReleased ml/job-train"},
		"half for a moment, twice": {func(s *story) {
			s.admit(ab)
			s.pod(one)
			s.pod(two)
			s.pod(released(one, "a"))
			s.at = s.at.Add(3 * time.Second)
			s.pod(released(two, "b"))
			failed := bound(two, "b")
			failed.Status.Phase = corev1.PodFailed
			s.pod(failed)
			s.pod(three)
			s.at = s.at.Add(3 * time.Second)
			s.gone(three)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			test.tell(s)
			got := Judge(&s.log, Terms{HalfFor: 5 * time.Second, OutOfReach: []string{"kube-system"}})
			var told []string
			for _, v := range got.Violations {
				told = append(told, fmt.Sprintf("%s %s", v.Rule, v.Subject))
			}
			if joined := strings.Join(told, "; "); joined != test.want {
				t.Fatalf("got  %v\nwant %s", got.Violations, test.want)
			}
		})
	}
}

// A half release is excused for as long as nobody could have ended it.
func TestExcusedHalf(t *testing.T) {
	one, two := waiting("one", 1), waiting("two", 1)
	s := newStory()
	s.admit(map[string]int32{"a": 1, "b": 1})
	s.pod(one)
	s.pod(two)
	s.pod(released(one, "a"))
	begin := s.at
	s.at = s.at.Add(9 * time.Second)
	s.pod(released(two, "b")) // 10 s later

	for name, test := range map[string]struct {
		excused []Interval
		broken  bool
	}{
		"not":              {nil, true},
		"enough":           {[]Interval{{begin.Add(1 * time.Second), begin.Add(7 * time.Second)}}, false},
		"too little":       {[]Interval{{begin.Add(1 * time.Second), begin.Add(4 * time.Second)}}, true},
		"twice the same":   {[]Interval{{begin, begin.Add(3 * time.Second)}, {begin, begin.Add(3 * time.Second)}}, true},
		"outside":          {[]Interval{{begin.Add(-time.Hour), begin}}, true},
		"still lasts":      {[]Interval{{From: begin.Add(2 * time.Second)}}, false},
		"in several parts": {[]Interval{{begin.Add(5 * time.Second), begin.Add(9 * time.Second)}, {begin, begin.Add(2 * time.Second)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(&s.log, Terms{HalfFor: 5 * time.Second, Excused: test.excused})
			if broken := len(got.Violations) > 0; broken != test.broken {
				t.Fatalf("got %v, broken should be %v", got.Violations, test.broken)
			}
			if got.LongestHalf != 10*time.Second {
				t.Errorf("longest %v, want 10s", got.LongestHalf)
			}
		})
	}
}

// Watches deliver each kind at its own pace; what happened first counts.
func TestOrderIsThatOfRevisions(t *testing.T) {
	one := waiting("one", 1)
	s := newStory()
	s.pod(one)
	s.admit(map[string]int32{"a": 1})
	s.pod(released(one, "a"))
	n := len(s.log.records)
	s.log.records[n-1], s.log.records[n-2] = s.log.records[n-2], s.log.records[n-1]
	got := Judge(&s.log, Terms{})
	if len(got.Violations) > 0 || got.Released != 1 || got.Gangs != 1 {
		t.Fatalf("%v, %v", got, got.Violations)
	}
}

// What happened while a watch was broken is not judged, and what came of it is
// no surprise.
func TestBlindTimes(t *testing.T) {
	one, two := waiting("one", 1), waiting("two", 1)
	s := newStory()
	s.pod(one)
	begin := s.at
	s.pod(two)
	s.pod(released(two, "a")) // its workload is not admitted as far as we know
	s.list(Workloads, workload(map[string]int32{"a": 2}))
	s.list(Pods, bound(one, "a"), bound(two, "a"))
	s.log.Blind(Pods, Interval{begin.Add(time.Millisecond), s.at})
	s.pod(succeeded(bound(one, "a")))
	got := Judge(&s.log, Terms{HalfFor: time.Second})
	if len(got.Violations) > 0 || got.Unjudged != 4 {
		t.Fatalf("%v, %v", got, got.Violations)
	}
}

func TestHoldingCountsReleasedPods(t *testing.T) {
	one, two := waiting("one", 1), waiting("two", 1)
	s := newStory()
	s.admit(map[string]int32{"a": 1, "b": 1})
	s.pod(one)
	s.pod(two)
	s.pod(released(one, "a"))
	s.pod(released(two, "b"))
	s.pod(succeeded(bound(one, "a")))
	s.gone(two)
	var counts []int
	Replay(&s.log, func(w *World, r Record) {
		if r.Kind == Pods && r.Verb != Listed {
			counts = append(counts, w.Holding()[client.ObjectKey{Namespace: "ml", Name: "job-train"}])
		}
	})
	if got, want := fmt.Sprint(counts), "[0 0 1 2 1 0]"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}
