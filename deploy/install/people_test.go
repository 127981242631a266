package install

import (
	"context"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

const someNamespace = "people"

// people installs the roles and binds one person to each: anna the admin, lea who
// leads vision, uwe a user and vera a viewer of one namespace, edda who has the built-in
// role edit there, and both, who leads and is an admin too.
func people(t *testing.T) *plane {
	t.Helper()
	p := onPlane(t)
	roles := build(t, "../people")
	p.apply(t, append(build(t, "../crd"), roles...))
	t.Cleanup(func() { p.cleanUp(t) })
	var made []client.Object
	put := func(objects ...client.Object) {
		for _, o := range objects {
			if err := p.Create(t.Context(), o); err != nil {
				t.Fatalf("%T %s: %v", o, o.GetName(), err)
			}
			made = append(made, o)
		}
	}
	t.Cleanup(func() {
		for _, o := range append(roles, unstructuredOf(made)...) {
			if err := client.IgnoreNotFound(p.Delete(context.Background(), o)); err != nil {
				t.Error(err)
			}
		}
		p.gone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: someNamespace}})
	})
	put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: someNamespace}})
	everywhere := func(role string, users ...string) {
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "test-" + role}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
		for _, u := range users {
			b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: u})
		}
		put(b)
	}
	inside := func(role, user string) {
		put(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: someNamespace, Name: role}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		})
	}
	everywhere("sluice-batch-admin", "anna", "both")
	everywhere("sluice-team-lead", "lea", "both")
	put(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "leads-vision"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"sluice.dev"}, Resources: []string{"teams"}, ResourceNames: []string{"vision"}, Verbs: []string{"lead"},
	}}})
	everywhere("leads-vision", "lea")
	inside("sluice-batch-user", "uwe")
	inside("sluice-viewer", "vera")
	inside("edit", "edda")

	own := clusterQueue("vision-train", "gpu")
	own.Labels = map[string]string{"sluice.dev/team": "vision"}
	others := clusterQueue("speech-train", "gpu")
	others.Labels = map[string]string{"sluice.dev/team": "speech"}
	nobodys := clusterQueue("vision", "gpu")
	put(
		own, others, nobodys,
		&kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: "vision-all", Labels: map[string]string{"sluice.dev/team": "vision"}}},
		&volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: "vision-volcano", Labels: map[string]string{"sluice.dev/team": "vision"}}, Spec: volcano.QueueSpec{Weight: 1}},
		&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: someNamespace, Name: "main"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "vision"}},
		&kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: someNamespace, Name: "w"}, Spec: kueue.WorkloadSpec{PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: podSpec("1")}}}}},
	)
	// Rights and policies reach the API server's own caches a moment later.
	eventually(t, "the policy holds", func() error {
		err := p.patch(t, "lea", others, `{"metadata":{"annotations":{"x":"y"}}}`)
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "sluice-weights") {
			return nil
		}
		return context.DeadlineExceeded
	})
	eventually(t, "the built-in role has joined", func() error {
		return p.as(t, "edda").Get(t.Context(), client.ObjectKey{Namespace: someNamespace, Name: "main"}, &kueue.LocalQueue{})
	})
	return p
}

// patch merges a change into an object in somebody's name, as a dry run.
func (p *plane) patch(t *testing.T, user string, o client.Object, change string) error {
	t.Helper()
	return p.as(t, user).Patch(t.Context(), o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(change)), client.DryRunAll)
}

// Who may do what, each act asked of the API server in that person's name. want is ""
// for what is allowed, else a part of the refusal.
func TestPeople(t *testing.T) {
	p := people(t)
	cq := func(name string) client.Object { return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	cohort := &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: "vision-all"}}
	vq := &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: "vision-volcano"}}
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: someNamespace, Name: "w"}}
	lq := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: someNamespace, Name: "main"}}
	const weight, rights = `{"spec":{"fairSharing":{"weight":"3"}}}`, "cannot"
	for _, c := range []struct {
		user   string
		object client.Object
		change string
		want   string
	}{
		{"lea", cq("vision-train"), weight, ""},
		{"lea", cohort, weight, ""},
		{"lea", vq, `{"spec":{"weight":3}}`, ""},
		{"lea", cq("speech-train"), weight, "of team speech, which you do not lead"},
		{"lea", cq("vision"), weight, "labelled with no team"},
		{"lea", cq("vision-train"), `{"spec":{"cohortName":"other"}}`, "the weight only"},
		{"lea", cq("vision-train"), `{"spec":{"stopPolicy":"Hold"}}`, "the weight only"},
		{"lea", cq("vision-train"), `{"spec":{"fairSharing":{"weight":"3"},"resourceGroups":null}}`, "the weight only"},
		{"lea", cohort, `{"spec":{"parentName":"top"}}`, "the weight only"},
		{"lea", vq, `{"spec":{"weight":3,"capability":{"cpu":"99"}}}`, "the weight only"},
		{"lea", vq, `{"spec":{"reclaimable":false}}`, "the weight only"},
		{"lea", cq("vision-train"), `{"metadata":{"labels":{"sluice.dev/team":"speech"}}}`, "neither labels"},
		{"lea", cq("vision-train"), `{"metadata":{"annotations":{"a":"b"}}}`, "neither labels"},
		{"lea", cq("vision-train"), `{"metadata":{"finalizers":["example.com/stay"]}}`, "neither labels"},
		{"lea", w, `{"spec":{"active":false}}`, rights},
		{"lea", lq, `{"spec":{"stopPolicy":"Hold"}}`, rights},
		{"both", cq("speech-train"), `{"spec":{"stopPolicy":"Hold"},"metadata":{"labels":{"a":"b"}}}`, ""},
		{"anna", cq("speech-train"), `{"spec":{"stopPolicy":"Hold"}}`, ""},
		{"anna", vq, `{"spec":{"weight":3}}`, ""},
		{"anna", lq, `{"spec":{"stopPolicy":"Hold"}}`, ""},
		{"anna", w, `{"spec":{"active":false}}`, ""},
		{"uwe", cq("vision-train"), weight, rights},
		{"uwe", lq, `{"spec":{"stopPolicy":"Hold"}}`, rights},
		{"uwe", w, `{"spec":{"active":false}}`, rights},
		{"vera", cq("vision-train"), weight, rights},
		{"vera", w, `{"spec":{"active":false}}`, rights},
		{"edda", w, `{"spec":{"active":false}}`, rights},
		{"edda", cq("vision-train"), weight, rights},
	} {
		judge(t, c.user+" patches "+c.object.GetName()+" with "+c.change, p.patch(t, c.user, c.object, c.change), c.want)
	}

	gang := func() *batchv1.Job { return gangOf(someNamespace, "theirs", 1, queued) }
	elsewhere := gangOf("default", "theirs", 1, queued)
	for _, c := range []struct {
		user string
		act  string
		do   func(client.Client) error
		want string
	}{
		{"anna", "makes a queue", func(c client.Client) error {
			return c.Create(t.Context(), clusterQueue("new", "gpu"), client.DryRunAll)
		}, ""},
		{"anna", "removes a queue", func(c client.Client) error { return c.Delete(t.Context(), cq("speech-train"), client.DryRunAll) }, ""},
		{"anna", "forges an admission", forge(t), rights},
		{"anna", "reads secrets", func(c client.Client) error { return c.List(t.Context(), &corev1.SecretList{}) }, rights},
		{"lea", "makes a queue", func(c client.Client) error {
			return c.Create(t.Context(), clusterQueue("new", "gpu"), client.DryRunAll)
		}, rights},
		{"lea", "removes a queue", func(c client.Client) error { return c.Delete(t.Context(), cq("vision-train"), client.DryRunAll) }, rights},
		{"lea", "reads all queues", func(c client.Client) error { return c.List(t.Context(), &kueue.ClusterQueueList{}) }, ""},
		{"uwe", "submits", func(c client.Client) error { return c.Create(t.Context(), gang(), client.DryRunAll) }, ""},
		{"uwe", "submits elsewhere", func(c client.Client) error { return c.Create(t.Context(), elsewhere, client.DryRunAll) }, rights},
		{"uwe", "reads own Workloads", func(c client.Client) error {
			return c.List(t.Context(), &kueue.WorkloadList{}, client.InNamespace(someNamespace))
		}, ""},
		{"uwe", "reads all Workloads", func(c client.Client) error { return c.List(t.Context(), &kueue.WorkloadList{}) }, rights},
		{"uwe", "forges an admission", forge(t), rights},
		{"edda", "submits", func(c client.Client) error { return c.Create(t.Context(), gang(), client.DryRunAll) }, ""},
		{"edda", "reads own Workloads", func(c client.Client) error {
			return c.List(t.Context(), &kueue.WorkloadList{}, client.InNamespace(someNamespace))
		}, ""},
		{"edda", "forges an admission", forge(t), rights},
		{"vera", "reads Workloads", func(c client.Client) error {
			return c.List(t.Context(), &kueue.WorkloadList{}, client.InNamespace(someNamespace))
		}, ""},
		{"vera", "reads elsewhere", func(c client.Client) error {
			return c.List(t.Context(), &kueue.WorkloadList{}, client.InNamespace("default"))
		}, rights},
		{"vera", "submits", func(c client.Client) error { return c.Create(t.Context(), gang(), client.DryRunAll) }, rights},
	} {
		judge(t, c.user+" "+c.act, c.do(p.as(t, c.user)), c.want)
	}
}

// forge writes the status of a Workload, where its admission is.
func forge(t *testing.T) func(client.Client) error {
	return func(c client.Client) error {
		w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: someNamespace, Name: "w"}}
		return c.Status().Patch(t.Context(), w, client.RawPatch(types.MergePatchType, []byte(`{"status":{"requeueState":{"count":1}}}`)),
			&client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}})
	}
}

func judge(t *testing.T, what string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v, want it allowed", what, err)
	case want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: %v, want it forbidden with %q", what, err, want)
	}
}
