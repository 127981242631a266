package kubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// DefaultSocket is where a kubelet serves the podresources API, unless its root
// directory is set otherwise.
const DefaultSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"

// What of the kubelet's answers concerns GPUs.
const (
	vendor    = "nvidia.com/"
	draDriver = "gpu.nvidia.com"
)

const (
	answerTime = 10 * time.Second // the kubelet asks its own managers, which may be busy
	answerSize = 16 << 20         // bytes; the kubelet's own bound for its clients
)

// Holding is the devices of one resource that one container was given.
type Holding struct {
	Namespace, Pod, Container string
	// Resource is the name asked for, or, for a DRA claim, "claim/" and its name.
	Resource string
	Devices  []Device // by ID and replica
	// Unread are device ids of no known form, which count as taken too.
	Unread []string
}

// Offered is the devices of one resource that the plugin has told the kubelet of,
// healthy or not, taken or not.
type Offered struct {
	Resource string
	Devices  []Device
	Unread   []string
}

// PodResources asks one kubelet over its podresources socket. It keeps no
// connection: a kubelet that was started anew is asked like any other.
type PodResources struct {
	Socket string // a path; DefaultSocket if empty
}

// Holdings is which container of an active pod holds which GPU, by namespace, pod,
// container and resource. The error, if any, is a *SocketError.
func (p PodResources) Holdings(ctx context.Context) ([]Holding, error) {
	var list *podresources.ListPodResourcesResponse
	err := p.ask(ctx, "list pods", func(ctx context.Context, c podresources.PodResourcesListerClient) (err error) {
		list, err = c.List(ctx, &podresources.ListPodResourcesRequest{})
		return err
	})
	if err != nil {
		return nil, err
	}
	var all []Holding
	for _, pod := range list.GetPodResources() {
		for _, c := range pod.GetContainers() {
			all = append(all, holdingsOf(pod, c)...)
		}
	}
	slices.SortFunc(all, func(a, b Holding) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Pod, b.Pod),
			strings.Compare(a.Container, b.Container), strings.Compare(a.Resource, b.Resource))
	})
	return all, nil
}

// Offered is what device plugins for GPUs have registered, by resource. The error,
// if any, is a *SocketError. Kubelets before 1.23 do not tell.
func (p PodResources) Offered(ctx context.Context) ([]Offered, error) {
	var known *podresources.AllocatableResourcesResponse
	err := p.ask(ctx, "list devices", func(ctx context.Context, c podresources.PodResourcesListerClient) (err error) {
		known, err = c.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
		return err
	})
	if err != nil {
		return nil, err
	}
	var all []Offered
	for name, ids := range byResource(known.GetDevices()) {
		devices, unread := readIDs(ids)
		all = append(all, Offered{Resource: name, Devices: devices, Unread: unread})
	}
	slices.SortFunc(all, func(a, b Offered) int { return strings.Compare(a.Resource, b.Resource) })
	return all, nil
}

func holdingsOf(pod *podresources.PodResources, c *podresources.ContainerResources) []Holding {
	var all []Holding
	at := Holding{Namespace: pod.GetNamespace(), Pod: pod.GetName(), Container: c.GetName()}
	for name, ids := range byResource(c.GetDevices()) {
		h := at
		h.Resource = name
		h.Devices, h.Unread = readIDs(ids)
		all = append(all, h)
	}
	for _, claim := range c.GetDynamicResources() {
		h := at
		h.Resource = "claim/" + claim.GetClaimName()
		for _, r := range claim.GetClaimResources() {
			if r.GetDriverName() != draDriver {
				continue
			}
			d, err := ParseDRADevice(r.GetDeviceName())
			if err != nil {
				h.Unread = append(h.Unread, r.GetDeviceName())
				continue
			}
			h.Devices = append(h.Devices, d)
		}
		if len(h.Devices)+len(h.Unread) > 0 {
			h.sort()
			all = append(all, h)
		}
	}
	return all
}

// byResource gathers the ids of each GPU resource. The kubelet lists a resource
// once for each NUMA node.
func byResource(devices []*podresources.ContainerDevices) map[string][]string {
	all := map[string][]string{}
	for _, d := range devices {
		name := d.GetResourceName()
		if gpuResource(name) && len(d.GetDeviceIds()) > 0 {
			all[name] = append(all[name], d.GetDeviceIds()...)
		}
	}
	return all
}

// gpuResource says whether a resource counts GPUs or parts of them. NVIDIA's plugins
// also offer other things under the same prefix, such as IMEX channels.
func gpuResource(name string) bool {
	rest, ok := strings.CutPrefix(name, vendor)
	return ok && (rest == "gpu" || rest == "gpu.shared" || strings.HasPrefix(rest, "mig-"))
}

func readIDs(ids []string) (devices []Device, unread []string) {
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if d, err := ParseDevice(id); err != nil {
			unread = append(unread, id)
		} else {
			devices = append(devices, d)
		}
	}
	h := Holding{Devices: devices, Unread: unread}
	h.sort()
	return h.Devices, h.Unread
}

func (h *Holding) sort() {
	slices.SortFunc(h.Devices, func(a, b Device) int { return cmp.Or(strings.Compare(a.ID, b.ID), a.Replica-b.Replica) })
	slices.Sort(h.Unread)
}

// Why is in which way the kubelet could not be asked.
type Why string

// The ways.
const (
	NoSocket     Why = "no socket"      // nothing at the path: no kubelet, or the folder is not mounted
	NoPermission Why = "no permission"  // the agent may not open it
	NobodyThere  Why = "nobody listens" // a socket that a kubelet left behind
	OldAPI       Why = "old API"        // a kubelet without this call
	NoAnswer     Why = "no answer"      // it took too long
	Failed       Why = "failed"         // it answered with an error
)

// SocketError is why the kubelet could not be asked.
type SocketError struct {
	Socket, Asked string
	Why           Why
	Err           error
}

func (e *SocketError) Error() string {
	return fmt.Sprintf("ask the kubelet at %s to %s: %s: %v", e.Socket, e.Asked, e.Why, e.Err)
}

func (e *SocketError) Unwrap() error { return e.Err }

// ask makes one call on a connection of its own.
func (p PodResources) ask(ctx context.Context, what string, call func(context.Context, podresources.PodResourcesListerClient) error) error {
	path := cmp.Or(p.Socket, DefaultSocket)
	// The connection is made here and not by grpc, which says only that it failed.
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return &SocketError{Socket: path, Asked: what, Why: whyNotDialed(err), Err: err}
	}
	hand := make(chan net.Conn, 1)
	hand <- conn
	client, err := grpc.NewClient("passthrough:///kubelet",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(answerSize)),
		grpc.WithDisableServiceConfig(), grpc.WithAuthority("localhost"),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			select {
			case c := <-hand:
				return c, nil
			default:
				return nil, errors.New("the kubelet ended the connection")
			}
		}))
	if err != nil {
		_ = conn.Close()
		return &SocketError{Socket: path, Asked: what, Why: Failed, Err: err}
	}
	defer func() {
		_ = client.Close()
		_ = conn.Close() // if grpc never took it
	}()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := call(ctx, podresources.NewPodResourcesListerClient(client)); err != nil {
		return &SocketError{Socket: path, Asked: what, Why: whyNotAnswered(err), Err: err}
	}
	return nil
}

func whyNotDialed(err error) Why {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return NoSocket
	case errors.Is(err, fs.ErrPermission):
		return NoPermission
	case errors.Is(err, syscall.ECONNREFUSED):
		return NobodyThere
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return NoAnswer
	default:
		return Failed
	}
}

func whyNotAnswered(err error) Why {
	switch status.Code(err) {
	case codes.Unimplemented:
		return OldAPI
	case codes.DeadlineExceeded, codes.Canceled:
		return NoAnswer
	default:
		return Failed
	}
}
