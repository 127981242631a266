package kube

import (
	"maps"
	"strings"
	"testing"
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/queue"
	"sluice.dev/sluice/quota"
)

func TestUserOf(t *testing.T) {
	both := map[string]string{UserAnnotation: "ann", "team/user": "bob"}
	for name, c := range map[string]struct {
		set  func(*kueue.Workload)
		key  string
		want string
	}{
		"nobody":        {func(*kueue.Workload) {}, "", ""},
		"a label":       {func(wl *kueue.Workload) { wl.Labels = both }, "", "ann"},
		"an annotation": {func(wl *kueue.Workload) { wl.Annotations = both }, "", "ann"},
		"its pods":      {func(wl *kueue.Workload) { wl.Spec.PodSets[0].Template.Annotations = both }, "", "ann"},
		"another key":   {func(wl *kueue.Workload) { wl.Spec.PodSets[0].Template.Labels = both }, "team/user", "bob"},
		"its own word before pods'": {func(wl *kueue.Workload) {
			wl.Labels = map[string]string{UserAnnotation: "eve"}
			wl.Spec.PodSets[0].Template.Labels = both
		}, "", "eve"},
	} {
		t.Run(name, func(t *testing.T) {
			r, wl := newReader(), someWorkload()
			r.userKey = c.key
			c.set(wl)
			if seen, _ := r.workload(wl); seen.Workload.User != c.want || seen.Workload.Invalid != "" {
				t.Errorf("user %q (%s), want %q", seen.Workload.User, seen.Workload.Invalid, c.want)
			}
		})
	}
}

func TestMinRuntimeOf(t *testing.T) {
	for text, want := range map[string]time.Duration{"10m": 10 * time.Minute, "0s": 0, "soon": -1, "-1m": -1, "": -1} {
		r, wl := newReader(), someWorkload()
		wl.Annotations = map[string]string{MinRuntimeAnnotation: text}
		seen, _ := r.workload(wl)
		if w := seen.Workload; want < 0 && !strings.Contains(w.Invalid, MinRuntimeAnnotation) || want >= 0 && (w.Invalid != "" || w.MinRuntime != want) {
			t.Errorf("%q: protects %v, invalid %q", text, w.MinRuntime, w.Invalid)
		}
	}
}

// What annotations say of a queue holds in each of its flavors.
func TestAnnotatedQueue(t *testing.T) {
	c, space := newCatalog(), quota.NewSpace()
	c.dirty = true
	c.flavors["a"], c.flavors["b"] = rf("a", nil), rf("b", nil)
	g := group("a", quotaOf("gpu", "8"))
	g.Flavors = append(g.Flavors, kueue.FlavorQuotas{Name: "b", Resources: []kueue.ResourceQuota{quotaOf("gpu", "8")}})
	cq := cqNamed("cq", kueue.ClusterQueueSpec{ResourceGroups: []kueue.ResourceGroup{g}})
	cq.Annotations = map[string]string{
		TurnsAnnotation: "true", UserMaxAnnotation: "gpu=4, cpu=500m", PriorityAnnotation: "7", ReclaimableAnnotation: "false",
		PlacementAnnotation: "spread",
	}
	c.clusterQueues["cq"] = cq
	q := seenQueues(c.refresh(space))["cq"]
	if !q.Turns || q.Priority != 7 || !q.Sheltered || q.Closed {
		t.Errorf("turns %t, priority %d, sheltered %t, closed %t", q.Turns, q.Priority, q.Sheltered, q.Closed)
	}
	for _, f := range q.Flavors {
		if !f.Roomy {
			t.Errorf("flavor %s is packed", f.Name)
		}
	}
	got := map[string]int64{}
	for d, v := range q.UserMax {
		got[space.Name(d)] = v
	}
	if want := (map[string]int64{"a:gpu": 4, "b:gpu": 4, ":cpu": 500}); !maps.Equal(got, want) {
		t.Errorf("one user may have %v, want %v", got, want)
	}
}

// A mistake in an annotation closes the queue and is told with its key and value.
func TestAnnotationsThatCannotBeRead(t *testing.T) {
	for key, texts := range map[string][]string{
		TurnsAnnotation:       {"yes", ""},
		ReclaimableAnnotation: {"False"},
		PriorityAnnotation:    {"high", "1.5", "99999999999"},
		PlacementAnnotation:   {"", "binpack"},
		UserMaxAnnotation:     {"gpu", "=4", "gpu=many", "gpu=-1", "gpu=1,gpu=2"},
	} {
		for _, text := range texts {
			q := &queue.Queue{}
			space := quota.NewSpace()
			bad := annotated(q, map[string]string{key: text}, charged(space, nil))
			if bad == nil || !strings.Contains(bad.message, key) {
				t.Errorf("%s=%q is taken: %+v", key, text, bad)
			}
		}
	}
}

// A queue without flavors that spreads has one, of all nodes.
func TestSpreadWithoutFlavors(t *testing.T) {
	for text, want := range map[string]int{"spread": 1, "pack": 0} {
		q := &queue.Queue{}
		if bad := annotated(q, map[string]string{PlacementAnnotation: text}, charged(quota.NewSpace(), nil)); bad != nil || len(q.Flavors) != want {
			t.Errorf("%s: %+v, flavors %+v", text, bad, q.Flavors)
		}
	}
}
