package install

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

var queued = map[string]string{"kueue.x-k8s.io/queue-name": "main"}

// clusterQueue owns sixteen GPUs of a flavor.
func clusterQueue(name, flavor string) *kueue.ClusterQueue {
	return &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			FairSharing:       &kueue.FairSharing{Weight: ptr.To(resource.MustParse("1"))},
			ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{"nvidia.com/gpu"},
				Flavors: []kueue.FlavorQuotas{{
					Name:      kueue.ResourceFlavorReference(flavor),
					Resources: []kueue.ResourceQuota{{Name: "nvidia.com/gpu", NominalQuota: resource.MustParse("16")}},
				}},
			}},
		},
	}
}

func podSpec(gpus string) corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "main", Image: "busybox", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)},
		}}},
	}
}

// gangOf is a Job of some pods of four GPUs each, which runs until it is deleted.
func gangOf(namespace, name string, pods int32, labels map[string]string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       batchv1.JobSpec{Parallelism: ptr.To(pods), Completions: ptr.To(pods), Template: corev1.PodTemplateSpec{Spec: podSpec("4")}},
	}
}

// runs waits until every pod of a Job is on a node and runs.
func (p *plane) runs(t *testing.T, job *batchv1.Job) {
	t.Helper()
	eventually(t, "Job "+job.Name+" runs", func() error {
		var pods corev1.PodList
		if err := p.List(t.Context(), &pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
			return err
		}
		running := 0
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodRunning && pod.Spec.NodeName != "" {
				running++
			}
		}
		if want := int(*job.Spec.Parallelism); running != want {
			return fmt.Errorf("%d of %d pods run; %s", running, want, p.saidOf(t, job))
		}
		return nil
	})
}

// workload is the one of a Job.
func (p *plane) workload(t *testing.T, job *batchv1.Job) *kueue.Workload {
	t.Helper()
	var list kueue.WorkloadList
	if err := p.List(t.Context(), &list, client.InNamespace(job.Namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		for _, owner := range list.Items[i].OwnerReferences {
			if owner.Name == job.Name {
				return &list.Items[i]
			}
		}
	}
	return nil
}

// saidOf is what a Job's Workload says while it waits.
func (p *plane) saidOf(t *testing.T, job *batchv1.Job) string {
	w := p.workload(t, job)
	if w == nil {
		return "it has no Workload"
	}
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	if c == nil {
		return "its Workload says nothing"
	}
	return fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
}
