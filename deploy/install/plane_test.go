package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// plane is a whole control plane, started by simulations/sandbox for this package's
// tests, with two simulated nodes of eight GPUs.
type plane struct {
	client.Client
	config            *rest.Config
	kubeconfig        string
	sandbox, dir, tmp string
}

var thePlane struct {
	sync.Once
	*plane
	err  error
	skip string
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	if p := thePlane.plane; p != nil {
		if out, err := p.command("reset").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "remove the sandbox: %v\n%s", err, out)
			code = max(code, 1)
		}
		_ = os.RemoveAll(p.tmp)
	}
	os.Exit(code)
}

func (p *plane) command(args ...string) *exec.Cmd {
	return exec.Command(p.sandbox, append(args, "--dir", p.dir)...)
}

// onPlane brings the control plane up, once for all tests, or skips the test where it
// is not built.
func onPlane(t *testing.T) *plane {
	t.Helper()
	thePlane.Do(func() { thePlane.plane, thePlane.skip, thePlane.err = newPlane() })
	if thePlane.skip != "" {
		t.Skip(thePlane.skip)
	}
	if thePlane.err != nil {
		t.Fatal(thePlane.err)
	}
	return thePlane.plane
}

func newPlane() (*plane, string, error) {
	if missing := missingProgram(); missing != "" {
		return nil, fmt.Sprintf("the control plane is not built (no %s): run `make sandbox`", missing), nil
	}
	tmp, err := os.MkdirTemp("", "sluice-install-")
	if err != nil {
		return nil, "", err
	}
	p := &plane{tmp: tmp, dir: filepath.Join(tmp, "box"), sandbox: filepath.Join(tmp, "sandbox")}
	compile := exec.Command("go", "build", "-o", p.sandbox, "./cmd/sandbox")
	compile.Dir = filepath.Join(root, "simulations", "sandbox")
	if out, err := compile.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("build the sandbox: %w\n%s", err, out)
	}
	nodes := filepath.Join(tmp, "nodes.yaml")
	if err := os.WriteFile(nodes, []byte("- {name: gpu, count: 2, gpus: 8}\n"), 0o644); err != nil {
		return nil, "", err
	}
	up := p.command("up", "--nodes", nodes)
	up.Stderr = os.Stderr
	out, err := up.Output()
	if err != nil {
		return p, "", fmt.Errorf("start the sandbox: %w", err)
	}
	p.kubeconfig = strings.TrimSpace(string(out))
	if p.config, err = clientcmd.BuildConfigFromFlags("", p.kubeconfig); err != nil {
		return p, "", err
	}
	p.config.QPS, p.config.Burst = 500, 1000
	p.Client, err = client.New(p.config, client.Options{Scheme: scheme()})
	return p, "", err
}

func missingProgram() string {
	dir := os.Getenv("SLUICE_CACHE")
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "cache folder"
		}
		dir = filepath.Join(base, "sluice")
	}
	for _, program := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"} {
		if _, err := os.Stat(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), program)); err == nil && os.Getenv("KUBEBUILDER_ASSETS") != "" {
			continue
		}
		if found, _ := filepath.Glob(filepath.Join(dir, "bin", "*", program)); len(found) == 0 {
			return program
		}
	}
	return ""
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, kueue.AddToScheme, volcano.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// as is a client of somebody else, by name and groups.
func (p *plane) as(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	config := rest.CopyConfig(p.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	c, err := client.New(config, client.Options{Scheme: scheme(), Mapper: p.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// apply applies objects as `kubectl apply --server-side` does: namespaces and CRDs
// first, the rest once those are served.
func (p *plane) apply(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	early := func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Namespace" || o.GetKind() == "CustomResourceDefinition"
	}
	for _, first := range []bool{true, false} {
		for _, o := range objects {
			if early(o) != first {
				continue
			}
			if err := p.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("install-test"), client.ForceOwnership); err != nil {
				t.Fatalf("apply %s: %v", name(o), err)
			}
		}
		p.established(t)
	}
}

// established waits until every CRD is served.
func (p *plane) established(t *testing.T) {
	t.Helper()
	eventually(t, "CRDs are served", func() error {
		var list apiextensionsv1.CustomResourceDefinitionList
		if err := p.List(t.Context(), &list); err != nil {
			return err
		}
		for _, crd := range list.Items {
			served := false
			for _, c := range crd.Status.Conditions {
				served = served || c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			}
			if !served {
				return fmt.Errorf("%s is not", crd.Name)
			}
		}
		return nil
	})
}

// gone waits until an object is not there.
func (p *plane) gone(t *testing.T, o client.Object) {
	t.Helper()
	eventually(t, fmt.Sprintf("%T %s is gone", o, o.GetName()), func() error {
		err := p.Get(context.Background(), client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
}

// teamSpace makes a namespace with the LocalQueue main of a ClusterQueue that owns every
// GPU, and removes it all when the test ends.
func (p *plane) teamSpace(t *testing.T, team string) {
	t.Helper()
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}},
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: team}},
		clusterQueue(team, team),
		&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "main"}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(team)}},
	}
	for _, o := range objects {
		if err := p.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { p.removeTeam(t, team, objects) })
	eventually(t, "pods can be created in "+team, func() error {
		return p.Get(t.Context(), client.ObjectKey{Namespace: team, Name: "default"}, &corev1.ServiceAccount{})
	})
}

// removeTeam takes off the finalizers that only a controller would.
func (p *plane) removeTeam(t *testing.T, team string, objects []client.Object) {
	ctx := context.Background()
	for _, o := range objects {
		if err := client.IgnoreNotFound(p.Delete(ctx, o)); err != nil {
			t.Error(err)
		}
	}
	namespaceIs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}
	eventually(t, "namespace "+team+" is gone", func() error {
		for _, list := range []client.ObjectList{&kueue.WorkloadList{}, &corev1.PodList{}} {
			if err := p.List(ctx, list, client.InNamespace(team)); err != nil {
				return err
			}
			switch l := list.(type) {
			case *kueue.WorkloadList:
				for i := range l.Items {
					l.Items[i].Finalizers = nil
					_ = p.Update(ctx, &l.Items[i])
				}
			case *corev1.PodList:
				for i := range l.Items {
					l.Items[i].Finalizers = nil
					_ = p.Update(ctx, &l.Items[i])
				}
			}
		}
		err := p.Get(ctx, client.ObjectKeyFromObject(namespaceIs), namespaceIs)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
}

// patience bounds the wait for a state that must come. Nothing is measured.
const patience = 2 * time.Minute

func eventually(t *testing.T, what string, reached func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := reached()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// unstructuredOf names objects, for their removal.
func unstructuredOf(objects []client.Object) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, o := range objects {
		u := &unstructured.Unstructured{}
		kinds, _, err := scheme().ObjectKinds(o)
		if err != nil {
			panic(err)
		}
		u.SetGroupVersionKind(kinds[0])
		u.SetNamespace(o.GetNamespace())
		u.SetName(o.GetName())
		all = append(all, u)
	}
	return all
}
