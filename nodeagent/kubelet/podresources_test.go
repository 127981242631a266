package kubelet

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeKubelet answers as it is told.
type fakeKubelet struct {
	podresources.UnimplementedPodResourcesListerServer
	list    func(context.Context) (*podresources.ListPodResourcesResponse, error)
	devices []*podresources.ContainerDevices
}

func (f *fakeKubelet) List(ctx context.Context, _ *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	return f.list(ctx)
}

func (f *fakeKubelet) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	if f.devices == nil {
		return nil, status.Error(codes.Unimplemented, "not in this version")
	}
	return &podresources.AllocatableResourcesResponse{Devices: f.devices}, nil
}

// serve starts a grpc server at a new socket; register may add the service.
func serve(t *testing.T, register func(*grpc.Server)) PodResources {
	t.Helper()
	path := socket(t)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return PodResources{Socket: path}
}

// socket is a path short enough for one.
func socket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pr") //nolint:usetesting // a test's own folder has too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "k.sock")
}

func answers(pods ...*podresources.PodResources) func(context.Context) (*podresources.ListPodResourcesResponse, error) {
	return func(context.Context) (*podresources.ListPodResourcesResponse, error) {
		return &podresources.ListPodResourcesResponse{PodResources: pods}, nil
	}
}

func devices(resource string, ids ...string) *podresources.ContainerDevices {
	return &podresources.ContainerDevices{ResourceName: resource, DeviceIds: ids}
}

func pod(name string, containers ...*podresources.ContainerResources) *podresources.PodResources {
	return &podresources.PodResources{Namespace: "ml", Name: name, Containers: containers}
}

func read(t *testing.T, ids ...string) []Device {
	t.Helper()
	var all []Device
	for _, id := range ids {
		d, err := ParseDevice(id)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

func TestHoldings(t *testing.T) {
	claim := &podresources.DynamicResource{ClaimName: "train-gpu", ClaimNamespace: "ml", ClaimResources: []*podresources.ClaimResource{
		{DriverName: "gpu.nvidia.com", PoolName: "n1", DeviceName: "gpu-1-mig-1g24gb-19-0"},
		{DriverName: "dra.example.com", PoolName: "n1", DeviceName: "nic-0"},
	}}
	fake := &fakeKubelet{
		// Out of order, a resource twice because of NUMA, and things that are no GPUs.
		list: answers(
			pod("train-1", &podresources.ContainerResources{Name: "main", Devices: []*podresources.ContainerDevices{
				devices("nvidia.com/gpu", card+"::10"), devices("example.com/nic", "eth1"), devices("nvidia.com/gpu", card+"::9"),
				devices("nvidia.com/imex-channel", "channel0"),
			}}),
			pod("idle", &podresources.ContainerResources{Name: "main"}),
			pod("train-0",
				&podresources.ContainerResources{Name: "side", Devices: []*podresources.ContainerDevices{devices("nvidia.com/mig-1g.5gb.me", slice)}},
				&podresources.ContainerResources{Name: "main", Devices: []*podresources.ContainerDevices{devices("nvidia.com/gpu", "a-form-of-next-year")}},
				&podresources.ContainerResources{Name: "dra", DynamicResources: []*podresources.DynamicResource{claim}}),
		),
		devices: []*podresources.ContainerDevices{devices("nvidia.com/mig-1g.5gb.me", slice), devices("nvidia.com/gpu", card), devices("cpu", "1")},
	}
	p := serve(t, func(s *grpc.Server) { podresources.RegisterPodResourcesListerServer(s, fake) })
	got, err := p.Holdings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dra, err := ParseDRADevice("gpu-1-mig-1g24gb-19-0")
	if err != nil {
		t.Fatal(err)
	}
	want := []Holding{
		{Namespace: "ml", Pod: "train-0", Container: "dra", Resource: "claim/train-gpu", Devices: []Device{dra}},
		{Namespace: "ml", Pod: "train-0", Container: "main", Resource: "nvidia.com/gpu", Unread: []string{"a-form-of-next-year"}},
		{Namespace: "ml", Pod: "train-0", Container: "side", Resource: "nvidia.com/mig-1g.5gb.me", Devices: read(t, slice)},
		{Namespace: "ml", Pod: "train-1", Container: "main", Resource: "nvidia.com/gpu", Devices: read(t, card+"::9", card+"::10")},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	offered, err := p.Offered(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := []Offered{{Resource: "nvidia.com/gpu", Devices: read(t, card)}, {Resource: "nvidia.com/mig-1g.5gb.me", Devices: read(t, slice)}}; !reflect.DeepEqual(offered, want) {
		t.Errorf("got  %+v\nwant %+v", offered, want)
	}
}

// Each way in which the kubelet can fail is told from the others.
func TestSocketErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		why  Why
		make func(t *testing.T) PodResources
	}{
		{"no socket", NoSocket, func(t *testing.T) PodResources { return PodResources{Socket: socket(t)} }},
		{"left behind", NobodyThere, func(t *testing.T) PodResources {
			path := socket(t)
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			l.SetUnlinkOnClose(false)
			_ = l.Close()
			return PodResources{Socket: path}
		}},
		{"kubelet before v1", OldAPI, func(t *testing.T) PodResources { return serve(t, func(*grpc.Server) {}) }},
		{"an error", Failed, func(t *testing.T) PodResources {
			return serve(t, func(s *grpc.Server) {
				podresources.RegisterPodResourcesListerServer(s, &fakeKubelet{list: func(context.Context) (*podresources.ListPodResourcesResponse, error) {
					return nil, status.Error(codes.ResourceExhausted, "rejected by rate limit")
				}})
			})
		}},
		{"something else at the socket", Failed, func(t *testing.T) PodResources {
			path := socket(t)
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = c.Write([]byte("220 mail\r\n"))
					_ = c.Close()
				}
			}()
			t.Cleanup(func() { _ = l.Close(); <-done })
			return PodResources{Socket: path}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.make(t)
			_, err := p.Holdings(t.Context())
			var socketError *SocketError
			if !errors.As(err, &socketError) || socketError.Why != c.why {
				t.Fatalf("got %v, want %q", err, c.why)
			}
			if !strings.Contains(err.Error(), p.Socket) {
				t.Errorf("%v does not name the socket", err)
			}
		})
	}
}

func TestWhyNotDialed(t *testing.T) {
	// Root may open any socket, so that this one cannot be shown by trying.
	if got := whyNotDialed(&net.OpError{Op: "dial", Err: os.ErrPermission}); got != NoPermission {
		t.Errorf("got %q, want %q", got, NoPermission)
	}
}

// A kubelet that hangs is left alone when the asker's time is over.
func TestNoAnswer(t *testing.T) {
	p := serve(t, func(s *grpc.Server) {
		podresources.RegisterPodResourcesListerServer(s, &fakeKubelet{list: func(ctx context.Context) (*podresources.ListPodResourcesResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := p.Holdings(ctx)
	var socketError *SocketError
	if !errors.As(err, &socketError) || socketError.Why != NoAnswer {
		t.Fatalf("got %v, want %q", err, NoAnswer)
	}
}

// An older kubelet lists pods but not devices: one call's failure is not the other's.
func TestOldKubelet(t *testing.T) {
	fake := &fakeKubelet{list: answers(pod("a", &podresources.ContainerResources{Name: "main", Devices: []*podresources.ContainerDevices{devices("nvidia.com/gpu", card)}}))}
	p := serve(t, func(s *grpc.Server) { podresources.RegisterPodResourcesListerServer(s, fake) })
	if got, err := p.Holdings(t.Context()); err != nil || len(got) != 1 {
		t.Errorf("got %+v, %v, want one holding", got, err)
	}
	_, err := p.Offered(t.Context())
	var socketError *SocketError
	if !errors.As(err, &socketError) || socketError.Why != OldAPI {
		t.Errorf("got %v, want %q", err, OldAPI)
	}
}
