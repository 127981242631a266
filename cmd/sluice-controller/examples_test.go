package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	arv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"

	"sluice.dev/sluice/admission/jobs/notice"
	apiserver "sluice.dev/sluice/admission/jobs/plane"
	"sluice.dev/sluice/admission/jobs/webhook"
)

// expectation is the annotation of an example's object: Admitted, Pending/REASON, the
// reason of an event; of a PodGroup, or of a Job of Volcano's by that of its PodGroup,
// the phase and how many pods run.
const expectation = "example.sluice.dev/expect"

// Manifests as people have them who come from Kueue or Volcano, applied unchanged to a
// cluster of 16 nodes of 8 GPUs, two to a rack, with the controller as a process.
func TestExamplesFromOthers(t *testing.T) {
	p, c := bare(t, "*_*.yaml")
	config := installed(t, p, c)
	process(t, p, "--config", config)
	eventually(t, "the webhooks are in place", func() error {
		m := &arv1.MutatingWebhookConfiguration{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: webhook.ConfigurationName}, m); err != nil {
			return err
		}
		if n := len(m.Webhooks); n == 0 || len(m.Webhooks[n-1].ClientConfig.CABundle) == 0 {
			return fmt.Errorf("%d hooks", n)
		}
		return nil
	})
	for i := range 16 {
		addNode(t, c, fmt.Sprintf("node-%02d", i), fmt.Sprintf("rack-%d", i/2))
	}
	files, err := filepath.Glob("../../deploy/examples/from-*/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), ".yaml"), func(t *testing.T) {
			objects, err := apiserver.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range objects {
				eventually(t, "make "+u.GetKind()+" "+u.GetName(), func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), u)) })
				if u.GetKind() == "Namespace" {
					account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: u.GetName(), Name: "default"}}
					if err := c.Create(t.Context(), account); err != nil {
						t.Fatal(err)
					}
				}
				if u.GetAPIVersion() == "batch/v1" { // those of one second have no order but their UIDs'
					eventually(t, u.GetName()+" is decided on", func() error { return decided(t.Context(), c, u) })
				}
			}
			expects := 0
			for _, u := range objects {
				if want := u.GetAnnotations()[expectation]; want != "" {
					expects++
					eventually(t, u.GetKind()+" "+u.GetName()+": "+want, func() error {
						if u.GroupVersionKind().Group == "batch.volcano.sh" {
							if err := volcanoJob(t.Context(), c, u); err != nil {
								return err
							}
						}
						return errors.Join(runReleased(t.Context(), c, u.GetNamespace()), cameOut(t.Context(), c, u, want))
					})
				}
			}
			if expects == 0 {
				t.Error("nothing in it says how it should come out")
			}
		})
	}
}

func addNode(t *testing.T, c client.Client, name, rack string) {
	t.Helper()
	list := corev1.ResourceList{}
	for r, n := range map[corev1.ResourceName]string{"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"} {
		list[r] = resource.MustParse(n)
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, "example.com/rack": rack, "example.com/pool": "gpu",
		}},
		Status: corev1.NodeStatus{Allocatable: list, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	if err := c.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	// Every new node gets a taint that only its kubelet's reports would take off.
	eventually(t, "node "+name+" has no taint", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		node.Spec.Taints = nil
		return c.Update(t.Context(), node)
	})
}

// decided is nil once the Job waits for a reason, or is admitted.
func decided(ctx context.Context, c client.Client, u *unstructured.Unstructured) error {
	err := cameOut(ctx, c, u, "Admitted")
	if err != nil && strings.HasPrefix(err.Error(), "Pending/") {
		return nil
	}
	return err
}

// cameOut says how the object differs from what is expected of it.
func cameOut(ctx context.Context, c client.Client, u *unstructured.Unstructured, want string) error {
	if want == notice.ReasonFieldIgnored {
		var events corev1.EventList
		if err := c.List(ctx, &events, client.InNamespace(u.GetNamespace())); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.UID == u.GetUID() && e.Reason == want {
				return nil
			}
		}
		return fmt.Errorf("none of %d events says so", len(events.Items))
	}
	if strings.HasSuffix(u.GroupVersionKind().Group, ".volcano.sh") {
		return phaseIs(ctx, c, u, want)
	}
	var list kueue.WorkloadList
	if err := c.List(ctx, &list, client.InNamespace(u.GetNamespace())); err != nil {
		return err
	}
	for i := range list.Items {
		if wl := &list.Items[i]; metav1.IsControlledBy(wl, u) {
			got := "Admitted"
			if !workload.IsAdmitted(wl) {
				c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
				if c == nil {
					return errors.New("its Workload is told nothing")
				}
				got = "Pending/" + c.Reason + ": " + c.Message
			}
			if before, _, _ := strings.Cut(got, ":"); before != want {
				return errors.New(got)
			}
			return nil
		}
	}
	return fmt.Errorf("none of %d Workloads is its own", len(list.Items))
}
