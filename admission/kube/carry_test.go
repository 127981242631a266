package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/admission"
)

func TestResultOf(t *testing.T) {
	r := schema.GroupResource{Resource: "workloads"}
	for _, test := range []struct {
		err  error
		want admission.Result
	}{
		{nil, admission.Committed},
		{apierrors.NewConflict(r, "w", errors.New("moved on")), admission.Refused},
		{fmt.Errorf("patch: %w", apierrors.NewNotFound(r, "w")), admission.Refused},
		{apierrors.NewInvalid(schema.GroupKind{}, "w", nil), admission.Refused},
		{apierrors.NewForbidden(r, "w", errors.New("no")), admission.Refused},
		{apierrors.NewTooManyRequests("slow down", 1), admission.Refused},
		{notSent("gone"), admission.Refused},
		{apierrors.NewTimeoutError("slow", 1), admission.Unknown},
		{apierrors.NewServerTimeout(r, "patch", 1), admission.Unknown},
		{apierrors.NewInternalError(errors.New("etcd")), admission.Unknown},
		{context.DeadlineExceeded, admission.Unknown},
		{errors.New("connection refused"), admission.Unknown},
	} {
		if got := resultOf(test.err); got != test.want {
			t.Errorf("%v is result %d, want %d", test.err, got, test.want)
		}
	}
}

func TestReleasePatch(t *testing.T) {
	in := func(key string) []corev1.NodeSelectorRequirement {
		return []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpExists}}
	}
	terms := func(list ...corev1.NodeSelectorTerm) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: list}}}
	}
	here := `{"key":"metadata.name","operator":"In","values":["n0"]}`
	for _, test := range []struct {
		name     string
		affinity *corev1.Affinity
		want     string // "" is unplaceable
	}{
		{"none", nil, `[{"matchFields":[` + here + `]}]`},
		{"other affinity only", &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}, `[{"matchFields":[` + here + `]}]`},
		{
			"two terms", terms(corev1.NodeSelectorTerm{MatchExpressions: in("a")}, corev1.NodeSelectorTerm{MatchExpressions: in("b")}),
			`[{"matchExpressions":[{"key":"a","operator":"Exists"}],"matchFields":[` + here + `]},{"matchExpressions":[{"key":"b","operator":"Exists"}],"matchFields":[` + here + `]}]`,
		},
		{"fields", terms(corev1.NodeSelectorTerm{MatchFields: in("metadata.name")}), `[{"matchFields":[{"key":"metadata.name","operator":"Exists"},` + here + `]}]`},
		{
			"one term empty", terms(corev1.NodeSelectorTerm{}, corev1.NodeSelectorTerm{MatchExpressions: in("a")}),
			`[{},{"matchExpressions":[{"key":"a","operator":"Exists"}],"matchFields":[` + here + `]}]`,
		},
		{"every term empty", terms(corev1.NodeSelectorTerm{}), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &corev1.Pod{Spec: corev1.PodSpec{Affinity: test.affinity, SchedulingGates: []corev1.PodSchedulingGate{{Name: "other"}, {Name: gate}}}}
			before := p.DeepCopy()
			patch, err := releasePatch(p, &admission.Release{UID: "u", Node: "n0", Stamp: 5})
			if test.want == "" {
				if !errors.Is(err, errNotSent) {
					t.Errorf("patch %s, error %v", patch, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := `{"metadata":{"annotations":{"sluice.dev/admitted":"5","sluice.dev/node":"n0"},"uid":"u"},` +
				`"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":` + test.want + `}}},"schedulingGates":[{"name":"other"}]}}`
			if string(patch) != want {
				t.Errorf("patch\n%s\nwant\n%s", patch, want)
			}
			if a, b := text(before), text(p); a != b {
				t.Errorf("the pod was changed: %s", b)
			}
		})
	}
}

func text(x any) string {
	b, err := json.Marshal(x)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func at(v string) *kueue.Workload {
	wl := &kueue.Workload{}
	wl.UID, wl.ResourceVersion = "u", v
	return wl
}

// A decision holds for what our own writes made of the version it was made on, and
// for nothing else.
func TestOwnWrites(t *testing.T) {
	o := newOwn()
	seen := at("5")
	if o.basis("k", seen, 5) != seen || o.basis("k", seen, 4) != nil {
		t.Error("without own writes only the version itself is a basis")
	}
	six, seven := at("6"), at("7")
	o.wrote("k", 5, six)
	o.wrote("k", 6, seven)
	for based, want := range map[uint64]*kueue.Workload{4: nil, 5: seven, 6: seven, 7: seven, 8: nil} {
		if got := o.basis("k", seen, based); got != want {
			t.Errorf("basis of a decision on version %d is %v", based, got)
		}
	}
	if o.newest("k", seen) != seven {
		t.Error("the newest is not the last written")
	}
	o.wrote("k", 9, at("10")) // somebody else wrote 8 and 9 in between
	if o.basis("k", seen, 7) != nil || o.basis("k", seen, 9) == nil {
		t.Error("a chain goes through a version of somebody else")
	}
	o.seen("k", at("10"))
	if len(o.chains) != 0 {
		t.Error("what the watch has shown is remembered")
	}
}

func TestAlike(t *testing.T) {
	base := someWorkload()
	for _, test := range []struct {
		name   string
		change func(*kueue.Workload)
		want   bool
	}{
		{"a verdict", func(wl *kueue.Workload) {
			wl.ResourceVersion = "9"
			wl.Status.Conditions = []metav1.Condition{condition(kueue.WorkloadQuotaReserved, metav1.ConditionFalse, "Capacity")}
		}, true},
		{"a new spec", func(wl *kueue.Workload) { wl.Generation = 2 }, false},
		{"another UID", func(wl *kueue.Workload) { wl.UID = "other" }, false},
		{"an admission", admittedTo(map[string]int32{"h0": 4}), false},
		{"an eviction", func(wl *kueue.Workload) {
			wl.Status.Conditions = []metav1.Condition{condition(kueue.WorkloadEvicted, metav1.ConditionTrue, "Preempted")}
		}, false},
		{"a deletion", func(wl *kueue.Workload) { wl.DeletionTimestamp = &metav1.Time{} }, false},
		{"a label", func(wl *kueue.Workload) { wl.Labels = map[string]string{PreemptibleAnnotation: "false"} }, false},
	} {
		wl := base.DeepCopy()
		test.change(wl)
		if got := alike(base, wl); got != test.want {
			t.Errorf("%s: alike is %t", test.name, got)
		}
	}
}
