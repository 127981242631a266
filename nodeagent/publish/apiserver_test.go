package publish_test

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
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// The tests in this file and its neighbours run against etcd and kube-apiserver,
// started by simulations/sandbox, with deploy/crd, deploy/base and deploy/agent.

// patience is how long a state may take to be reached. It is no measure of speed.
const patience = 30 * time.Second

var root = filepath.Join("..", "..")

type server struct {
	dir, sandbox string
	config       *rest.Config
	client.Client
}

var theServer struct {
	sync.Once
	*server
	err  error
	skip string
}

func apiServer(t testing.TB) *server {
	t.Helper()
	theServer.Do(func() { theServer.server, theServer.skip, theServer.err = startServer() })
	if theServer.skip != "" {
		t.Skip(theServer.skip)
	}
	if theServer.err != nil {
		t.Fatal(theServer.err)
	}
	return theServer.server
}

func (s *server) command(args ...string) *exec.Cmd {
	return exec.Command(s.sandbox, append(args, "--dir", s.dir)...)
}

// stop ends the server and removes what it left.
func (s *server) stop() error {
	out, err := s.command("reset").CombinedOutput()
	if err != nil {
		return fmt.Errorf("remove the sandbox: %w\n%s", err, out)
	}
	return os.RemoveAll(filepath.Dir(s.dir))
}

func startServer() (s *server, skip string, err error) {
	if !built() {
		return nil, "no control plane is built: run `go run ./cmd/sandbox build --only api` in simulations/sandbox", nil
	}
	dir, err := os.MkdirTemp("", "sluice-publish-test-")
	if err != nil {
		return nil, "", err
	}
	s = &server{dir: filepath.Join(dir, "box"), sandbox: filepath.Join(dir, "sandbox")}
	build := exec.Command("go", "build", "-o", s.sandbox, "./cmd/sandbox")
	build.Dir = filepath.Join(root, "simulations", "sandbox")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("build the sandbox: %w\n%s", err, out)
	}
	up := s.command("up", "--only", "api", "--nodes", "none")
	up.Stderr = os.Stderr
	out, err := up.Output()
	if err != nil {
		return s, "", fmt.Errorf("start the sandbox: %w", err)
	}
	if s.config, err = clientcmd.BuildConfigFromFlags("", strings.TrimSpace(string(out))); err != nil {
		return s, "", err
	}
	s.config.QPS, s.config.Burst = 500, 1000
	if s.Client, err = newClient(s.config); err != nil {
		return s, "", err
	}
	return s, "", s.install()
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

func newClient(config *rest.Config) (client.Client, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return client.New(config, client.Options{Scheme: s})
}

// install applies the manifests and waits until inventories are served and the
// policies act.
func (s *server) install() error {
	ctx := context.Background()
	files := []string{
		"crd/sluice.dev_sliceinventories.yaml", "base/namespace.yaml", "agent/service-account.yaml", "agent/cluster-role.yaml",
		"agent/cluster-role-binding.yaml", "agent/role.yaml", "agent/role-binding.yaml", "agent/policy.yaml",
	}
	for _, file := range files {
		if err := s.apply(ctx, filepath.Join(root, "deploy", file)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	// Mapped anew until the kind is there.
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		c, err := newClient(s.config)
		if err == nil {
			if err = c.List(ctx, &v1alpha1.SliceInventoryList{}); err == nil {
				s.Client = c
				break
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("inventories are not served: %w", err)
		}
	}
	// The administrator is no agent either.
	probe := inventory("policy-probe")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HeartbeatNamespace, Name: "policy-probe"}}
	for _, o := range []client.Object{probe, lease} {
		for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
			err := s.Create(ctx, o, client.DryRunAll)
			if err != nil && strings.Contains(err.Error(), "only the agent of the node writes") {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("the policy for %T does not act: %w", o, err)
			}
			o.SetResourceVersion("")
			o.SetUID("")
		}
	}
	return nil
}

func (s *server) apply(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			return err
		}
		if err := s.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"), client.ForceOwnership); err != nil {
			return err
		}
	}
}

// inventory is one that the API server accepts.
func inventory(node string) *v1alpha1.SliceInventory {
	return &v1alpha1.SliceInventory{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Report:     v1alpha1.Report{State: v1alpha1.NoDriver, Summary: v1alpha1.Summary{Cards: "0/0", Taken: "0/0"}, Changed: metav1.Now().Rfc3339Copy()},
	}
}

// node creates a node, removed with the test.
func (s *server) node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := s.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		for _, o := range []client.Object{
			n, &v1alpha1.SliceInventory{ObjectMeta: metav1.ObjectMeta{Name: name}},
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HeartbeatNamespace, Name: name}},
		} {
			if err := s.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	})
	return n
}

// agent is a client with the token that the kubelet would give an agent's pod on
// that node.
func (s *server) agent(t *testing.T, node string) client.Client {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HeartbeatNamespace, Name: "agent-" + node},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: v1alpha1.AgentName, Containers: []corev1.Container{{Name: "agent", Image: "sluice-agent"}},
			TerminationGracePeriodSeconds: ptr.To(int64(0)), Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
	if err := s.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Delete(context.Background(), pod, client.GracePeriodSeconds(0)); err != nil {
			t.Error(err)
		}
	})
	return s.withToken(t, &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID})
}

// withToken is a client of the agents' service account.
func (s *server) withToken(t *testing.T, bound *authenticationv1.BoundObjectReference) client.Client {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(600)), BoundObjectRef: bound}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HeartbeatNamespace, Name: v1alpha1.AgentName}}
	if err := s.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(s.config)
	config.BearerToken = request.Status.Token
	c, err := newClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// refused fails the test unless err is a refusal that says so.
func refused(t *testing.T, what string, err error, says string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: got %v, want a refusal that says %q", what, err, says)
	}
}
