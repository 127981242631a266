package e2e

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"sluice.dev/sluice/simulations/e2e/witness"
)

const apart = "apart"

// zones is in which zone each node of the demo is, for these tests.
var zones = map[string]string{"gpu-0": "a", "gpu-1": "a", "gpu-2": "a", "gpu-3": "a", "gpu-4": "b", "gpu-5": "c"}

func labelled(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// shuns has the pods keep off nodes with chosen pods.
func shuns(spec *corev1.PodSpec, chosen *metav1.LabelSelector) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
	}
	terms := &spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*terms = append(*terms, corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: chosen})
}

// band is a gang whose pods have a GPU each, carry a label, and run until it is deleted.
func band(name string, pods int32, change func(*corev1.PodSpec)) *batchv1.Job {
	j := job(apart, name, "main", pods, gpus(1))
	lasting(j)
	j.Spec.Template.Labels = map[string]string{"app": name}
	change(&j.Spec.Template.Spec)
	return j
}

// resident is a pod of nobody's on a node.
func resident(name, node string, each int64, labels map[string]string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: apart, Name: name, Labels: labels, Annotations: map[string]string{runFor: "1h"}}, Spec: podSpec(gpus(each))}
	p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	return p
}

// Gangs whose pods keep apart, from each other and from pods of others, or spread over
// zones, are planned so that the scheduler binds every pod where the plan has it.
func TestKeepsApart(t *testing.T) {
	s := onStage(t)
	s.namespace(t, apart, "team-b")
	for node, zone := range zones {
		s.setLabel(t, node, corev1.LabelTopologyZone, zone)
		defer s.setLabel(t, node, corev1.LabelTopologyZone, "")
	}
	s.watched(t, func(func(witness.Interval)) {
		web := resident("web", "gpu-0", 2, map[string]string{"tier": "online"})
		picky := resident("picky", "gpu-1", 5, nil)
		shuns(&picky.Spec, labelled("tier", "batch"))
		for _, p := range []*corev1.Pod{web, picky} {
			s.create(t, p)
			defer s.withdraw(t, p)
			eventually(t, p.Name+" runs", func() error { return s.runs(t, p) })
		}

		single := band("single", 5, func(spec *corev1.PodSpec) {
			shuns(spec, labelled("app", "single"))
			shuns(spec, labelled("tier", "online"))
		})
		s.create(t, single)
		s.allRun(t, single, 5, "gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-5")
		s.hold(t, single, func(by map[string]int) bool { return len(by) == 5 })

		// The fullest node is that of a pod which would not have this gang beside it.
		batch := band("batch", 2, func(*corev1.PodSpec) {})
		batch.Spec.Template.Labels["tier"] = "batch"
		s.create(t, batch)
		s.allRun(t, batch, 2, "gpu-0", "gpu-2", "gpu-3", "gpu-4", "gpu-5")

		crowd := band("crowd", 6, func(spec *corev1.PodSpec) {
			shuns(spec, labelled("app", "crowd"))
			shuns(spec, labelled("tier", "online"))
		})
		s.create(t, crowd)
		s.saysWhy(t, crowd, "5 of 6 pods find a place")
		s.withdraw(t, crowd)

		even := func(name string, pods, least int32) *batchv1.Job {
			return band(name, pods, func(spec *corev1.PodSpec) {
				c := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: labelled("app", name)}
				if least > 0 {
					c.MinDomains = ptr.To(least)
				}
				spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{c}
			})
		}
		spread, wide := even("spread", 7, 0), even("wide", 3, 3)
		for _, j := range []*batchv1.Job{spread, wide} {
			s.create(t, j)
			n := int(*j.Spec.Completions)
			s.allRun(t, j, n)
			s.hold(t, j, func(by map[string]int) bool {
				in := map[string]int{}
				for node, pods := range by {
					in[zones[node]] += pods
				}
				return len(in) == 3 && in["a"] >= n/3 && in["b"] >= n/3 && in["c"] >= n/3
			})
		}
		for _, j := range []*batchv1.Job{single, batch, spread, wide} {
			s.withdraw(t, j)
		}
	})
}

// hold fails the test if the pods are not on nodes as they should be.
func (s *stage) hold(t *testing.T, j *batchv1.Job, good func(by map[string]int) bool) {
	t.Helper()
	list, err := s.pods(t, j)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]int{}
	for _, p := range list {
		by[p.Spec.NodeName]++
	}
	if !good(by) {
		t.Errorf("%s is on %s", j.Name, fmt.Sprint(by))
	}
}
