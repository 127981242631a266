package demo

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// ExpectAnnotation says on a Job how it should come out: Succeeded, Failed, or
// Pending/REASON.
const ExpectAnnotation = "demo.sluice.dev/expect"

// gang is one Job of the example.
type gang struct {
	key      client.ObjectKey
	manifest *unstructured.Unstructured
	expect   string
	// refused is the API server's answer, if that was no.
	refused string
}

// readGangs reads an example: the Jobs, and the queues and namespaces that they
// need.
func readGangs(folder string) (gangs []*gang, needs []*unstructured.Unstructured, err error) {
	objects, err := readFolder(folder)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range objects {
		if o.GroupVersionKind().GroupKind() != batchv1.SchemeGroupVersion.WithKind("Job").GroupKind() {
			needs = append(needs, o)
			continue
		}
		if o.GetNamespace() == "" {
			return nil, nil, fmt.Errorf("read %s in %s: want a metadata.namespace", describe(o), folder)
		}
		expect := o.GetAnnotations()[ExpectAnnotation]
		if expect == "" {
			return nil, nil, fmt.Errorf("read %s in %s: want the annotation %s", describe(o), folder, ExpectAnnotation)
		}
		gangs = append(gangs, &gang{key: client.ObjectKeyFromObject(o), manifest: o, expect: expect})
	}
	if len(gangs) == 0 {
		return nil, nil, fmt.Errorf("there is no Job in %s", folder)
	}
	return gangs, needs, nil
}

// submit creates the Job. A refusal is an outcome; whatever passes by itself,
// as a controller that has just been killed, is waited for.
func (d *Demo) submit(ctx context.Context, g *gang) error {
	err := eventually(ctx, d.say, "submit "+g.key.String(), func() error {
		err := d.cluster.Create(ctx, g.manifest.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			return nil // an earlier try was answered too late
		}
		return err
	})
	if err != nil && refuses(err) {
		g.refused = err.Error()
		return nil
	}
	if err != nil {
		return fmt.Errorf("submit %s: %w", g.key, err)
	}
	return nil
}

// withdraw deletes what an earlier run left of the gangs and returns when their
// Jobs, pods and Workloads are gone.
func (d *Demo) withdraw(ctx context.Context, gangs []*gang) error {
	found := 0
	for _, g := range gangs {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: g.key.Namespace, Name: g.key.Name}}
		err := eventually(ctx, d.say, "delete the earlier "+g.key.String(), func() error {
			return d.cluster.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))
		})
		switch {
		case err == nil:
			found++
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("delete the earlier %s: %w", g.key, err)
		}
	}
	if found > 0 {
		d.say("deleting %d gangs of an earlier run", found)
	}
	begin := time.Now()
	err := eventually(ctx, d.say, "the earlier gangs are gone", func() error { return d.remains(ctx, gangs) })
	if err == nil && found > 0 {
		d.say("they are gone after %v", time.Since(begin).Round(10*time.Millisecond))
	}
	return err
}

// remains returns nil when nothing of the gangs is left.
func (d *Demo) remains(ctx context.Context, gangs []*gang) error {
	w, err := d.look(ctx, gangs)
	if err != nil {
		return err
	}
	for _, g := range gangs {
		if job := w.jobs[g.key]; job != nil {
			return fmt.Errorf("job %s is still there, finalizers %v: %w", g.key, job.Finalizers, errNotYet)
		}
		if pods := w.podsOf(g.key); len(pods) > 0 {
			return fmt.Errorf("%d pods of %s are still there: %w", len(pods), g.key, errNotYet)
		}
		if workload := w.workloads[g.key]; workload != nil {
			return fmt.Errorf("workload %s is still there, finalizers %v: %w", workload.Name, workload.Finalizers, errNotYet)
		}
	}
	return nil
}

// world is what the API shows of the gangs at about one moment.
type world struct {
	jobs      map[client.ObjectKey]*batchv1.Job
	workloads map[client.ObjectKey]*kueue.Workload // by their Job
	pods      map[client.ObjectKey][]*corev1.Pod   // by their Job
	queues    map[client.ObjectKey]string          // LocalQueue → ClusterQueue
}

func (w *world) podsOf(job client.ObjectKey) []*corev1.Pod { return w.pods[job] }

// look reads the world of the gangs' namespaces.
func (d *Demo) look(ctx context.Context, gangs []*gang) (*world, error) {
	w := &world{
		jobs: make(map[client.ObjectKey]*batchv1.Job), workloads: make(map[client.ObjectKey]*kueue.Workload),
		pods: make(map[client.ObjectKey][]*corev1.Pod), queues: make(map[client.ObjectKey]string),
	}
	seen := make(map[string]bool)
	for _, g := range gangs {
		if seen[g.key.Namespace] {
			continue
		}
		seen[g.key.Namespace] = true
		if err := w.read(ctx, d.cluster, g.key.Namespace); err != nil {
			return nil, fmt.Errorf("read namespace %s: %w", g.key.Namespace, err)
		}
	}
	return w, nil
}

func (w *world) read(ctx context.Context, c client.Reader, namespace string) error {
	var jobs batchv1.JobList
	var workloads kueue.WorkloadList
	var pods corev1.PodList
	var queues kueue.LocalQueueList
	for _, list := range []client.ObjectList{&jobs, &workloads, &pods, &queues} {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
	}
	for i := range jobs.Items {
		w.jobs[client.ObjectKeyFromObject(&jobs.Items[i])] = &jobs.Items[i]
	}
	for i := range workloads.Items {
		owner := metav1.GetControllerOf(&workloads.Items[i])
		if owner != nil && owner.Kind == "Job" {
			w.addWorkload(client.ObjectKey{Namespace: namespace, Name: owner.Name}, &workloads.Items[i])
		}
	}
	for i := range pods.Items {
		if owner := metav1.GetControllerOf(&pods.Items[i]); owner != nil && owner.Kind == "Job" {
			key := client.ObjectKey{Namespace: namespace, Name: owner.Name}
			w.pods[key] = append(w.pods[key], &pods.Items[i])
		}
	}
	for i := range queues.Items {
		w.queues[client.ObjectKeyFromObject(&queues.Items[i])] = string(queues.Items[i].Spec.ClusterQueue)
	}
	return nil
}

// addWorkload keeps the Workload of the Job that exists now. That of an earlier
// Job of the name may still be on its way out.
func (w *world) addWorkload(job client.ObjectKey, workload *kueue.Workload) {
	if j, had := w.jobs[job], w.workloads[job]; had != nil && (j == nil || metav1.IsControlledBy(had, j)) {
		return
	}
	w.workloads[job] = workload
}
