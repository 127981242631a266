package plane

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// ErrNotBuilt says that there are no programs to run.
var ErrNotBuilt = errors.New("no control plane is built: run `go run ./cmd/sandbox build --only api` in simulations/sandbox")

// Plane is a running API server.
type Plane struct {
	Kubeconfig   string // a file
	Config       *rest.Config
	dir, sandbox string
}

// Start starts an API server. root is the repository's folder.
func Start(root string) (*Plane, error) {
	if !built() {
		return nil, ErrNotBuilt
	}
	dir, err := os.MkdirTemp("", "sluice-plane-")
	if err != nil {
		return nil, err
	}
	p := &Plane{dir: filepath.Join(dir, "box"), sandbox: filepath.Join(dir, "sandbox")}
	build := exec.Command("go", "build", "-o", p.sandbox, "./cmd/sandbox")
	build.Dir = filepath.Join(root, "simulations", "sandbox")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the sandbox: %w\n%s", err, out)
	}
	up := p.command("up", "--only", "api", "--nodes", "none")
	up.Stderr = os.Stderr
	out, err := up.Output()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the sandbox: %w", err), p.Stop())
	}
	p.Kubeconfig = strings.TrimSpace(string(out))
	if p.Config, err = clientcmd.BuildConfigFromFlags("", p.Kubeconfig); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	p.Config.QPS, p.Config.Burst = 500, 1000
	return p, nil
}

func (p *Plane) command(args ...string) *exec.Cmd {
	return exec.Command(p.sandbox, append(args, "--dir", p.dir)...)
}

// Stop ends the API server and removes its data.
func (p *Plane) Stop() error {
	out, err := p.command("reset").CombinedOutput()
	if err != nil {
		return fmt.Errorf("remove the sandbox: %w\n%s", err, out)
	}
	return os.RemoveAll(filepath.Dir(p.dir))
}

// built says whether there are programs to run.
func built() bool {
	if os.Getenv("KUBEBUILDER_ASSETS") != "" {
		return true
	}
	dir := os.Getenv("SLUICE_CACHE")
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return false
		}
		dir = filepath.Join(base, "sluice")
	}
	for _, program := range []string{"etcd-*/etcd", "kubernetes-*/kube-apiserver"} {
		if found, _ := filepath.Glob(filepath.Join(dir, "bin", program)); len(found) == 0 {
			return false
		}
	}
	return true
}

// Client is a client that knows the kinds of the scheme and whatever is served now.
func (p *Plane) Client(s *runtime.Scheme) (client.Client, error) {
	return client.New(rest.CopyConfig(p.Config), client.Options{Scheme: s})
}

// Install creates the CRDs in the files and waits until they are served.
func (p *Plane) Install(ctx context.Context, files ...string) error {
	s := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(s); err != nil {
		return err
	}
	c, err := p.Client(s)
	if err != nil {
		return err
	}
	var names []string
	for _, file := range files {
		objects, err := Read(file)
		if err != nil {
			return err
		}
		for _, u := range objects {
			if u.GetKind() != "CustomResourceDefinition" {
				continue
			}
			names = append(names, u.GetName())
			// A server that finds a conversion webhook asks it, and there is none.
			unstructured.RemoveNestedField(u.Object, "spec", "conversion")
			if err := c.Create(ctx, u); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	for _, name := range names {
		if err := p.served(ctx, c, name); err != nil {
			return err
		}
	}
	return nil
}

// served waits until the API server accepts objects of the CRD and names it among
// what it serves, which comes a moment later.
func (p *Plane) served(ctx context.Context, c client.Client, name string) error {
	d, err := discovery.NewDiscoveryClientForConfig(p.Config)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return err
		}
		if established(crd) && discovered(d, crd) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("CRD %s is not served: %+v", name, crd.Status.Conditions)
		}
	}
}

// discovered says that every served version is among the groups and among the
// resources, which are two lists of the API server.
func discovered(d discovery.DiscoveryInterface, crd *apiextensionsv1.CustomResourceDefinition) bool {
	groups, lists, err := d.ServerGroupsAndResources()
	if err != nil {
		return false
	}
	for _, v := range crd.Spec.Versions {
		version := crd.Spec.Group + "/" + v.Name
		inGroups, inLists := !v.Served, !v.Served
		for _, g := range groups {
			for _, known := range g.Versions {
				inGroups = inGroups || known.GroupVersion == version
			}
		}
		for _, l := range lists {
			for _, r := range l.APIResources {
				inLists = inLists || l.GroupVersion == version && r.Name == crd.Spec.Names.Plural
			}
		}
		if !inGroups || !inLists {
			return false
		}
	}
	return true
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
			return true
		}
	}
	return false
}

// Read is every object in a file of manifests.
func Read(file string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &u.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(u.Object) > 0 {
			all = append(all, u)
		}
	}
}
