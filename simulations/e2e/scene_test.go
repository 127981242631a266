package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// scene is a queue of its own with room for everything, so that only hardware and
// labels decide.
const scene = "scene"

func (s *stage) setScene(t *testing.T) (clear func()) {
	t.Helper()
	cq := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: scene}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{},
		ResourceGroups: []kueue.ResourceGroup{{
			CoveredResources: []corev1.ResourceName{"sluice.dev/gpu"},
			Flavors: []kueue.FlavorQuotas{{Name: "gpu", Resources: []kueue.ResourceQuota{{
				Name: "sluice.dev/gpu", NominalQuota: resource.MustParse("100"),
			}}}},
		}},
	}}
	if err := client.IgnoreAlreadyExists(s.Cluster().Create(t.Context(), cq)); err != nil {
		t.Fatal(err)
	}
	s.namespace(t, scene, scene)
	return func() { s.withdraw(t, cq) }
}

// act is one gang of the scene: what is broken, what it must say, what mends it.
type act struct {
	name     string
	pods     int32
	asks     string // RESOURCE
	each     int64
	selector map[string]string
	code     string
	says     []string
	mend     func()
}

func (s *stage) machine(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if err := s.Control(t.Context(), line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

func (s *stage) setLabel(t *testing.T, node, key, value string) {
	t.Helper()
	v := "null"
	if value != "" {
		v = fmt.Sprintf("%q", value)
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	body := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, key, v)
	if err := s.Cluster().Patch(t.Context(), n, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		t.Fatal(err)
	}
}

// The scene that sluice was made for: cards are free, nothing starts, and each gang
// says why. What it says is the true cause, and mending that starts it.
func TestScene(t *testing.T) {
	s := onStage(t)
	defer s.setScene(t)()
	const product = "NVIDIA-A100-SXM4-40GB"
	// A label is lost and nobody puts it back; a card is cut otherwise and the device
	// plugin has not seen it; a card is lost; an agent is silent.
	s.machine(t, "mig-0 discovery freeze", "mig-0 plugin freeze")
	s.setLabel(t, "mig-0", v1alpha1.LabelProduct, "")
	s.machine(t, "mig-0 clear 1", "mig-0 cut 1 7g.40gb", "gpu-0 lose 3", "shared-0 agent silence")
	defer func() {
		s.machine(t, "mig-0 clear 1", "mig-0 cut 1 3g.20gb@4 3g.20gb@0", "mig-0 plugin follow", "mig-0 discovery follow", "gpu-0 return 3", "shared-0 agent speak")
	}()
	// What the controller has not heard of yet it cannot heed.
	s.drifts(t, "mig-0", v1alpha1.LabelProduct+" is missing, should be "+product, "nvidia.com/mig-7g.40gb: the node offers 0, its cards are 1")
	s.drifts(t, "gpu-0", "card 3 is lost")
	acts := []act{
		{
			name: "wants-the-label", pods: 1, asks: "nvidia.com/mig-2g.10gb", each: 1, selector: map[string]string{v1alpha1.LabelProduct: product},
			code: "Labels", says: []string{v1alpha1.LabelProduct, product, "mig-0"},
			mend: func() { s.setLabel(t, "mig-0", v1alpha1.LabelProduct, product) },
		},
		{
			name: "wants-the-new-cut", pods: 1, asks: "nvidia.com/mig-7g.40gb", each: 1,
			code: "Hardware", says: []string{"mig-0", "the device plugin claims 0, its cards are 1"},
			mend: func() { s.machine(t, "mig-0 plugin follow") },
		},
		{
			name: "wants-the-lost-card", pods: 1, asks: "nvidia.com/gpu", each: 8, selector: map[string]string{corev1.LabelHostname: "gpu-0"},
			code: "Hardware", says: []string{"gpu-0", "card 3"},
			mend: func() { s.machine(t, "gpu-0 return 3") },
		},
		{
			name: "wants-the-old-cut", pods: 3, asks: "nvidia.com/mig-3g.20gb", each: 1,
			code: "Layout", says: []string{"the cards of mig-0 would hold it"},
			mend: func() { s.machine(t, "mig-0 clear 1", "mig-0 cut 1 3g.20gb@4 3g.20gb@0") },
		},
	}
	jobs := make([]*batchv1.Job, len(acts))
	for i, a := range acts {
		jobs[i] = job(scene, a.name, "main", a.pods, corev1.ResourceList{corev1.ResourceName(a.asks): *resource.NewQuantity(a.each, resource.DecimalSI)})
		jobs[i].Spec.Template.Spec.NodeSelector = a.selector
		s.create(t, jobs[i])
		defer s.withdraw(t, jobs[i])
	}
	for i, a := range acts {
		s.tellsWhy(t, jobs[i], a.code, a.says)
	}
	s.shareWaits(t)
	for i, a := range acts {
		begin := time.Now()
		a.mend()
		s.succeeds(t, jobs[i])
		tell(t, "%s was complete %v after it was mended", a.name, time.Since(begin).Round(100*time.Millisecond))
	}
}

// drifts waits until the drift of a node is said in the given words.
func (s *stage) drifts(t *testing.T, node string, says ...string) {
	t.Helper()
	eventually(t, "the drift of "+node+" is said", func() error {
		inv := &v1alpha1.SliceInventory{}
		if err := s.Cluster().Get(t.Context(), client.ObjectKey{Name: node}, inv); err != nil {
			return err
		}
		text := ""
		for _, c := range inv.Status.Conditions {
			text += c.Message
		}
		for _, want := range says {
			if !strings.Contains(text, want) {
				return fmt.Errorf("want %q in: %s", want, text)
			}
		}
		return nil
	})
}

// tellsWhy waits until the Job waits for the given reason in the given words.
func (s *stage) tellsWhy(t *testing.T, j *batchv1.Job, code string, says []string) {
	t.Helper()
	eventually(t, j.Name+" says "+code, func() error {
		w, err := s.workload(t, j)
		if err != nil || w == nil {
			return errors.Join(err, errors.New("there is no Workload"))
		}
		text := waits(w)
		for _, want := range append([]string{code}, says...) {
			if !strings.Contains(text, want) {
				return fmt.Errorf("want %q in: %s", want, text)
			}
		}
		return nil
	})
}

// shareWaits shows the silent agent: what it said last is no room once its heartbeat
// is over, and is again when it speaks.
func (s *stage) shareWaits(t *testing.T) {
	t.Helper()
	j := job(scene, "wants-a-share", "main", 2, gpus(1))
	j.Spec.Template.Annotations["sluice.dev/sharing"] = "shared"
	j.Spec.BackoffLimit = ptr.To[int32](6)
	s.drifts(t, "shared-0", "its agent has not reported in time")
	s.create(t, j)
	defer s.withdraw(t, j)
	s.tellsWhy(t, j, "Hardware", []string{"shared-0", "its agent reports nothing"})
	s.machine(t, "shared-0 agent speak")
	s.succeeds(t, j)
}
