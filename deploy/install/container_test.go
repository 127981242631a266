package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// container runs a pod's container without a container runtime: the static program
// in a root folder that holds nothing but the pod's volumes, as the pod's user, with
// the pod's arguments and the token that a kubelet would give it. What the manifests
// leave out is missing here too.
type container struct {
	cmd    *exec.Cmd
	out    output
	ended  chan struct{}
	err    error // once ended
	health string
}

// output is what was written so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// controllerProgram is the controller without any C library, as it is in the image.
// The image's other flags would have every package compiled once more.
var controllerProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(thePlane.tmp, "sluice-controller")
	compile := exec.Command("go", "build", "-o", path, "./cmd/sluice-controller")
	compile.Dir = root
	compile.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := compile.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the controller: %w\n%s", err, out)
	}
	return path, nil
})

// start runs the one container of a pod that the API server has. It reaches the API
// server through the gate.
func (p *plane) start(t *testing.T, pod *corev1.Pod, gate *gate) *container {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("changing the root folder and the user needs root")
	}
	rootFolder := t.TempDir()
	for folder := rootFolder; folder != os.TempDir() && folder != "/"; folder = filepath.Dir(folder) {
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := controllerProgram()
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, program, filepath.Join(rootFolder, "sluice-controller"), 0o755)
	spec := pod.Spec.Containers[0]
	volumes := map[string]corev1.Volume{}
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = v
	}
	for _, mount := range spec.VolumeMounts {
		p.mount(t, pod, gate, volumes[mount.Name], filepath.Join(rootFolder, mount.MountPath))
	}
	security := pod.Spec.SecurityContext
	host, port, err := net.SplitHostPort(gate.address)
	if err != nil {
		t.Fatal(err)
	}
	c := &container{ended: make(chan struct{})}
	c.cmd = exec.Command("/sluice-controller", spec.Args...)
	c.cmd.Dir = "/"
	c.cmd.Env = []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.out
	c.cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot:     rootFolder,
		Credential: &syscall.Credential{Uid: uint32(*security.RunAsUser), Gid: uint32(*security.RunAsGroup), NoSetGroups: false},
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.ended
		if t.Failed() {
			t.Logf("the controller said:\n%s", tail(c.out.String()))
		}
	})
	for _, port := range spec.Ports {
		if port.Name == spec.ReadinessProbe.HTTPGet.Port.StrVal {
			c.health = "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port.ContainerPort))) + spec.ReadinessProbe.HTTPGet.Path
		}
	}
	return c
}

func tail(text string) string { return text[max(0, len(text)-6000):] }

// mount makes a volume as the kubelet does.
func (p *plane) mount(t *testing.T, pod *corev1.Pod, gate *gate, v corev1.Volume, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	switch {
	case v.EmptyDir != nil:
		if err := os.Chown(path, int(*pod.Spec.SecurityContext.RunAsUser), int(*pod.Spec.SecurityContext.FSGroup)); err != nil {
			t.Fatal(err)
		}
	case v.ConfigMap != nil:
		var m corev1.ConfigMap
		if err := p.Get(t.Context(), client.ObjectKey{Namespace: pod.Namespace, Name: v.ConfigMap.Name}, &m); err != nil {
			t.Fatal(err)
		}
		files = m.Data
	case v.Secret != nil:
		var s corev1.Secret
		if err := p.Get(t.Context(), client.ObjectKey{Namespace: pod.Namespace, Name: v.Secret.SecretName}, &s); err != nil {
			t.Fatal(err)
		}
		for name, content := range s.Data {
			files[name] = string(content)
		}
	case v.Projected != nil: // the service account's
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		}}
		account := &corev1.ServiceAccount{}
		account.Namespace, account.Name = pod.Namespace, pod.Spec.ServiceAccountName
		if err := p.SubResource("token").Create(t.Context(), account, request); err != nil {
			t.Fatal(err)
		}
		files = map[string]string{"token": request.Status.Token, "ca.crt": string(gate.authority), "namespace": pod.Namespace}
	default:
		t.Fatalf("volume %s is of a kind that this test does not know: %+v", v.Name, v.VolumeSource)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(path, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, mode)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// ready waits until the readiness probe passes.
func (c *container) ready(t *testing.T) {
	t.Helper()
	eventually(t, "the controller is ready", func() error {
		select {
		case <-c.ended:
			t.Fatalf("the controller ended: %v", c.err)
		default:
		}
		response, err := http.Get(c.health + "?verbose")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		if response.StatusCode != http.StatusOK {
			return errors.New(string(text))
		}
		return nil
	})
}

// stop ends the container as the kubelet does.
func (c *container) stop(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	select {
	case <-c.ended:
		if c.err != nil {
			t.Errorf("stopped, the controller ended with %v", c.err)
		}
	case <-ctx.Done():
		t.Fatal("the controller does not stop")
	}
}

// freePort finds a port that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
