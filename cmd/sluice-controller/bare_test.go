package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/admission/jobs"
	apiserver "sluice.dev/sluice/admission/jobs/plane"
)

// bare is an API server with Kueue's CRDs and nothing else: no namespace of sluice's,
// no node, no Volcano.
func bare(t *testing.T, crds string) (*apiserver.Plane, client.Client) {
	t.Helper()
	p, err := apiserver.Start("../..")
	if errors.Is(err, apiserver.ErrNotBuilt) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	files, err := filepath.Glob(filepath.Join("../../deploy/crd", crds))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs %s: %v", crds, err)
	}
	if err := p.Install(t.Context(), files...); err != nil {
		t.Fatal(err)
	}
	s := runtime.NewScheme()
	if err := jobs.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	c, err := p.Client(s)
	if err != nil {
		t.Fatal(err)
	}
	return p, c
}

// process is the controller as a process of its own, as people start it.
func process(t *testing.T, p *apiserver.Plane, args ...string) (metrics string) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "sluice-controller")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	metrics = fmt.Sprintf("127.0.0.1:%d", freePort(t))
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append([]string{
		"--kubeconfig", p.Kubeconfig, "--zap-log-level", "debug", "--metrics-bind-address", metrics,
		"--health-probe-bind-address", "0", "--journal", filepath.Join(dir, "journal.db"),
	}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		err := cmd.Wait()
		text, _ := os.ReadFile(log.Name())
		if err != nil || t.Failed() {
			lines := strings.Split(string(text), "\n")
			t.Errorf("the controller ended with %v; its log ends\n%s", err, strings.Join(lines[max(0, len(lines)-30):], "\n"))
		}
		if !strings.Contains(string(text), "\tDEBUG\t") && !strings.Contains(string(text), `"level":"debug"`) {
			t.Error("--zap-log-level debug made no line of that level")
		}
	})
	return metrics
}

func bareQueue(gpus string) *kueue.ClusterQueue {
	return &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: "team"},
		Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{"nvidia.com/gpu"},
				Flavors: []kueue.FlavorQuotas{{Name: "gpu", Resources: []kueue.ResourceQuota{{
					Name: "nvidia.com/gpu", NominalQuota: resource.MustParse(gpus),
				}}}},
			}},
		},
	}
}

// bareWorkload wants six cards.
func bareWorkload(name string) *kueue.Workload {
	spec := podSpec()
	spec.Containers[0].Resources.Limits["nvidia.com/gpu"] = resource.MustParse("6")
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: kueue.WorkloadSpec{QueueName: "main", PodSets: []kueue.PodSet{{
			Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: spec},
		}}},
	}
}

// With nothing but --kubeconfig, on a server that has nothing but Kueue's CRDs.
func TestBareAPIServer(t *testing.T) {
	p, c := bare(t, "kueue*.yaml")
	metrics := process(t, p)
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}},
		bareQueue("8"),
		&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "main"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "team"}},
		bareWorkload("first"), bareWorkload("second"),
	} {
		if err := client.IgnoreAlreadyExists(c.Create(t.Context(), o)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the queue is active", func() error {
		cq := &kueue.ClusterQueue{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "team"}, cq); err != nil {
			return err
		}
		if !apimeta.IsStatusConditionTrue(cq.Status.Conditions, kueue.ClusterQueueActive) {
			return fmt.Errorf("conditions %v", cq.Status.Conditions)
		}
		return nil
	})
	eventually(t, "every workload is admitted or told why not", func() error {
		return answered(t.Context(), c)
	})
	eventually(t, "metrics are served", func() error {
		request, err := http.Get("http://" + metrics + "/metrics")
		if err != nil {
			return err
		}
		defer request.Body.Close()
		if request.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", request.StatusCode)
		}
		return nil
	})

	t.Run("quota alone admits where there is no node", func(t *testing.T) {
		eventually(t, "one of two fits", func() error {
			var list kueue.WorkloadList
			if err := c.List(t.Context(), &list); err != nil {
				return err
			}
			admitted := 0
			for i := range list.Items {
				if a := list.Items[i].Status.Admission; a != nil && a.PodSetAssignments[0].TopologyAssignment == nil && *a.PodSetAssignments[0].Count == 1 {
					admitted++
				}
			}
			if admitted != 1 {
				return fmt.Errorf("%d of 2 are admitted", admitted)
			}
			return nil
		})
	})
}

func answered(ctx context.Context, c client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var list kueue.WorkloadList
	if err := c.List(ctx, &list); err != nil {
		return err
	}
	for _, wl := range list.Items {
		if apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved) == nil {
			return fmt.Errorf("%s: nothing is said: %v", wl.Name, wl.Status.Conditions)
		}
	}
	return nil
}
