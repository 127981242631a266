package podgroup

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func podOf(name, task, gpus string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon), Annotations: map[string]string{taskKey: task}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)},
		}}}},
	}
}

func groupOfMinimum(minMember int32, tasks map[string]int32) *volcano.PodGroup {
	return &volcano.PodGroup{Spec: volcano.PodGroupSpec{MinMember: minMember, MinTaskMember: tasks}}
}

func TestSetsOfPods(t *testing.T) {
	pods := []*corev1.Pod{podOf("a", "Worker_1", "2"), podOf("b", "Worker_1", "2"), podOf("c", "Worker_1", "1"), podOf("d", "", "1")}
	for name, test := range map[string]struct {
		minMember int32
		tasks     map[string]int32
		done      map[string]int
		want      string
	}{
		"no minimum":                 {0, nil, nil, "worker-1=0..2,worker-1-2=0..1,main=0..1,total=1"},
		"of the group":               {3, nil, nil, "worker-1=0..2,worker-1-2=0..1,main=0..1,total=3"},
		"of a task of unlike pods":   {2, map[string]int32{"Worker_1": 3}, nil, "worker-1=2..2,worker-1-2=1..1,main=0..1,total=3"},
		"some have succeeded":        {5, map[string]int32{"Worker_1": 4}, map[string]int{"Worker_1": 3}, "worker-1=1..2,worker-1-2=0..1,main=0..1,total=2"},
		"too few":                    {5, nil, nil, "NotEnoughTasks: 4/5 tasks in gang: pod group is not ready, 5 minAvailable"},
		"too few of a task":          {1, map[string]int32{"Worker_1": 5}, nil, "NotEnoughPodsOfTask: task Worker_1 misses 2 of its 5 pods"},
		"a task that does not exist": {1, map[string]int32{"ps": 1}, nil, "NotEnoughPodsOfTask: task ps misses 1 of its 1 pods"},
	} {
		g, bad := ofPods(groupOfMinimum(test.minMember, test.tasks), pods, test.done)
		got := g.sizes()
		if bad != nil {
			got = bad.reason + ": " + bad.message
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	g, _ := ofPods(groupOfMinimum(2, nil), pods[:2], nil)
	if got := g.sizes(); got != "worker-1=2..2,total=2" {
		t.Errorf("one set: %s", got)
	}
	if s := g.setOf(pods[2]); s != nil {
		t.Errorf("a pod that asks for less is of set %s", s.name)
	}
	// What the release put on a pod makes it no other.
	gone := podOf("e", "Worker_1", "2")
	gone.Spec.NodeName = "n"
	gone.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"n"}}}}},
	}}}
	if s := g.setOf(gone); s == nil || s.name != "worker-1" {
		t.Errorf("a pod that was released is of set %v", s)
	}
}

func TestSetsOfOwner(t *testing.T) {
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main"}}}}
	job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"tasks": []any{
		map[string]any{"name": "head", "template": template},
		map[string]any{"replicas": int64(4), "template": template},
		map[string]any{"name": "none", "replicas": int64(0), "template": template},
	}}}}
	g, bad := ofOwner(groupOfMinimum(3, map[string]int32{"head": 1}), job, map[string]int{"default1": 1})
	if bad != nil || g.sizes() != "head=1..1,default1=0..3,total=2" {
		t.Errorf("%+v %+v", g, bad)
	}
	for name, spec := range map[string]any{
		"no tasks":     map[string]any{},
		"no template":  map[string]any{"tasks": []any{map[string]any{"name": "a"}}},
		"no container": map[string]any{"tasks": []any{map[string]any{"name": "a", "template": map[string]any{"spec": map[string]any{}}}}},
		"not a task":   map[string]any{"tasks": []any{"a"}},
	} {
		job.Object["spec"] = spec
		if _, bad := ofOwner(groupOfMinimum(1, nil), job, nil); bad == nil || bad.reason != ReasonUnsupported {
			t.Errorf("%s: %+v", name, bad)
		}
	}
}

func TestSetOfMinimum(t *testing.T) {
	if g := ofMinimum(groupOfMinimum(3, nil)); g != nil {
		t.Errorf("a group that says nothing asks for %s", g.sizes())
	}
	pg := groupOfMinimum(3, nil)
	pg.Spec.MinResources = &corev1.ResourceList{
		"requests.cpu": resource.MustParse("1"), "limits.cpu": resource.MustParse("9"), "memory": resource.MustParse("10Mi"),
		"requests.nvidia.com/gpu": resource.MustParse("4"), "pods": resource.MustParse("3"), "count/pods": resource.MustParse("3"),
	}
	g := ofMinimum(pg)
	r := g.sets[0].template.Spec.Containers[0].Resources
	got := fmt.Sprintf("%s cpu=%v memory=%v gpu=%v of %d, gpu limit %v", g.sizes(), r.Requests.Cpu(), r.Requests.Memory().Value(), r.Requests.Name("nvidia.com/gpu", ""), len(r.Requests), r.Limits.Name("nvidia.com/gpu", ""))
	if want := "main=3..3,total=3 cpu=334m memory=3495254 gpu=2 of 3, gpu limit 2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestGroupOf(t *testing.T) {
	p := podOf("p", "", "1")
	p.UID = "own"
	if got := groupOf(p); got != "podgroup-own" {
		t.Errorf("alone: %s", got)
	}
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{UID: "owner", Controller: &yes}}
	if got := groupOf(p); got != "podgroup-owner" {
		t.Errorf("owned: %s", got)
	}
	p.Annotations[volcano.VolcanoGroupNameAnnotationKey] = "second"
	if got := groupOf(p); got != "second" {
		t.Errorf("one spelling: %s", got)
	}
	p.Annotations[volcano.KubeGroupNameAnnotationKey] = "first"
	if got := groupOf(p); got != "first" {
		t.Errorf("both spellings: %s", got)
	}
}
