package publish_test

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// applied writes an object as agents do.
func applied(t *testing.T, c client.Client, o client.Object, kind string) error {
	t.Helper()
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: u}
	switch kind {
	case "Lease":
		object.SetAPIVersion("coordination.k8s.io/v1")
	default:
		object.SetAPIVersion(v1alpha1.GroupVersion.String())
	}
	object.SetKind(kind)
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(v1alpha1.AgentName), client.ForceOwnership)
}

func lease(node string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HeartbeatNamespace, Name: node},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(node), RenewTime: ptr.To(metav1.NewMicroTime(time.Now()))},
	}
}

// Only the agent that runs on a node writes what that node has, whoever else holds
// the agents' service account.
func TestOnlyTheNodesOwnAgentWrites(t *testing.T) {
	s := apiServer(t)
	s.node(t, "identity-a")
	s.node(t, "identity-b")
	a, b := s.agent(t, "identity-a"), s.agent(t, "identity-b")
	unbound := s.withToken(t, nil)

	for _, kind := range []struct {
		name string
		make func(node string) client.Object
		// alter changes what the agent says, on an object as it was read.
		alter func(client.Object)
	}{
		{
			"SliceInventory", func(node string) client.Object { return inventory(node) },
			func(o client.Object) { o.(*v1alpha1.SliceInventory).Report.Message = "altered" },
		},
		{
			"Lease", func(node string) client.Object { return lease(node) },
			func(o client.Object) { o.(*coordinationv1.Lease).Spec.HolderIdentity = ptr.To("another") },
		},
	} {
		t.Run(kind.name, func(t *testing.T) {
			// Not there yet: nobody makes another's.
			refused(t, "A makes B's", applied(t, a, kind.make("identity-b"), kind.name), "the agent of node identity-a may not write")
			refused(t, "an unbound token makes B's", applied(t, unbound, kind.make("identity-b"), kind.name), "bound to no node")
			refused(t, "the administrator makes B's", applied(t, s, kind.make("identity-b"), kind.name), "only the agent of the node writes")
			nameless := kind.make("")
			nameless.SetGenerateName("identity-a")
			refused(t, "A makes one without a name", a.Create(t.Context(), nameless), "the agent of node identity-a may not write")

			// Its own, twice.
			for _, c := range []struct {
				client.Client
				node string
			}{{a, "identity-a"}, {b, "identity-b"}} {
				for range 2 {
					if err := applied(t, c, kind.make(c.node), kind.name); err != nil {
						t.Fatalf("the agent of %s writes its own: %v", c.node, err)
					}
				}
			}

			// There already: nobody changes another's.
			refused(t, "A changes B's", applied(t, a, kind.make("identity-b"), kind.name), "the agent of node identity-a may not write")
			refused(t, "an unbound token changes A's", applied(t, unbound, kind.make("identity-a"), kind.name), "bound to no node")
			there := kind.make("identity-a")
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(there), there); err != nil {
				t.Fatal(err)
			}
			altered := there.DeepCopyObject().(client.Object)
			kind.alter(altered)
			refused(t, "the administrator changes A's", s.Update(t.Context(), altered), "only the agent of the node writes")
			refused(t, "A deletes B's", a.Delete(t.Context(), kind.make("identity-b")), "cannot delete")

			// What leaves the agent's word alone is for those who may.
			there.SetAnnotations(map[string]string{"seen": "true"})
			if err := s.Update(t.Context(), there); err != nil {
				t.Errorf("the administrator annotates A's: %v", err)
			}
			if err := s.Delete(t.Context(), there); err != nil {
				t.Errorf("the administrator deletes A's: %v", err)
			}
		})
	}
}

// The status is the controller's, which the report is not.
func TestStatusIsNotTheAgents(t *testing.T) {
	s := apiServer(t)
	s.node(t, "status-a")
	a := s.agent(t, "status-a")
	mine := inventory("status-a")
	mine.Status.Conditions = []metav1.Condition{{Type: "Drift", Status: metav1.ConditionFalse, Reason: "SaidByMyself", LastTransitionTime: metav1.Now().Rfc3339Copy()}}
	if err := applied(t, a, mine, "SliceInventory"); err != nil {
		t.Fatal(err)
	}
	got := &v1alpha1.SliceInventory{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(mine), got); err != nil {
		t.Fatal(err)
	}
	if len(got.Status.Conditions) != 0 || got.Generation != 1 {
		t.Errorf("the agent wrote conditions %v, generation %d", got.Status.Conditions, got.Generation)
	}
	got.Status = mine.Status
	refused(t, "the agent writes the status", a.Status().Update(t.Context(), got), "cannot update")
	if err := s.Status().Update(t.Context(), got); err != nil {
		t.Errorf("the administrator, in place of the controller, writes the status: %v", err)
	}
	if got.Generation != 1 {
		t.Errorf("the status moved the generation to %d", got.Generation)
	}
	// What an agent may not read.
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.NodeList{}, &corev1.SecretList{}} {
		refused(t, "the agent lists", a.List(t.Context(), list), "cannot list")
	}
}
