package mock

import (
	"fmt"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
)

// Library is the node's driver as one process sees it. Between Init and Shutdown it
// is a session: what it found lost stays lost, its handles die with it.
type Library struct {
	*server.Server // panics with the name of what is not written here
	n              *Node
	session        int // 0: not started
	opened         int // the node's tick when it was
}

// Library is the driver for one process.
func (n *Node) Library() *Library {
	return &Library{Server: server.NewServerWithGPUs(DriverVersion, NVMLVersion, cudaVersion), n: n}
}

// Extensions looks up symbols here.
func (l *Library) Extensions() gonvml.ExtendedInterface { return l }

// LookupSymbol fails for those that the driver was told to lack.
func (l *Library) LookupSymbol(symbol string) error {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if l.n.lacks[symbol] {
		return fmt.Errorf("undefined symbol: %s", symbol)
	}
	return nil
}

// enter waits while the driver hangs, with the node locked. It says what the library
// answers before it looks at anything.
func (l *Library) enter(method string) gonvml.Return {
	n := l.n
	for n.silent && !n.closed {
		n.awake.Wait()
	}
	switch {
	case n.closed:
		return gonvml.ERROR_UNKNOWN
	case n.lacks["nvml"+method] || n.lacks["nvmlDevice"+method]:
		panic("symbol lookup error: undefined symbol: nvmlDevice" + method) // as the linker, which ends the process
	case l.session == 0:
		return gonvml.ERROR_UNINITIALIZED
	case n.driver != gonvml.SUCCESS:
		return n.driver
	default:
		return n.faults[method]
	}
}

// Init starts a session.
func (l *Library) Init() gonvml.Return {
	n := l.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.session != 0 {
		return gonvml.SUCCESS
	}
	n.tick++
	l.session, l.opened = n.tick, n.tick
	if ret := l.enter("Init"); ret != gonvml.SUCCESS {
		l.session = 0
		return ret
	}
	return gonvml.SUCCESS
}

// Shutdown ends the session and every handle of it.
func (l *Library) Shutdown() gonvml.Return {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if l.session == 0 {
		return gonvml.ERROR_UNINITIALIZED
	}
	l.session = 0
	return gonvml.SUCCESS
}

// SystemGetDriverVersion is DriverVersion.
func (l *Library) SystemGetDriverVersion() (string, gonvml.Return) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	return DriverVersion, l.enter("SystemGetDriverVersion")
}

// SystemGetNVMLVersion is NVMLVersion.
func (l *Library) SystemGetNVMLVersion() (string, gonvml.Return) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	return NVMLVersion, l.enter("SystemGetNVMLVersion")
}

// SystemGetCudaDriverVersion is 13.0.
func (l *Library) SystemGetCudaDriverVersion() (int, gonvml.Return) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	return cudaVersion, l.enter("SystemGetCudaDriverVersion")
}

// DeviceGetCount counts lost cards too.
func (l *Library) DeviceGetCount() (int, gonvml.Return) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if ret := l.enter("DeviceGetCount"); ret != gonvml.SUCCESS {
		return 0, ret
	}
	return len(l.n.listed()), gonvml.SUCCESS
}

// DeviceGetHandleByIndex fails for a lost card.
func (l *Library) DeviceGetHandleByIndex(index int) (gonvml.Device, gonvml.Return) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if ret := l.enter("DeviceGetHandleByIndex"); ret != gonvml.SUCCESS {
		return nil, ret
	}
	cards := l.n.listed()
	if index < 0 || index >= len(cards) {
		return nil, gonvml.ERROR_INVALID_ARGUMENT
	}
	h := l.handle(cards[index])
	if ret := h.state("DeviceGetHandleByIndex"); ret != gonvml.SUCCESS {
		return nil, ret
	}
	return h, gonvml.SUCCESS
}

// DeviceGetHandleByUUID finds cards and MIG devices. As hardware does, it fails if any
// card of the node is lost.
func (l *Library) DeviceGetHandleByUUID(uuid string) (gonvml.Device, gonvml.Return) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if ret := l.enter("DeviceGetHandleByUUID"); ret != gonvml.SUCCESS {
		return nil, ret
	}
	for _, c := range l.n.listed() {
		if l.lost(c) {
			return nil, gonvml.ERROR_GPU_IS_LOST
		}
	}
	for _, c := range l.n.listed() {
		if c.uuid == uuid {
			return l.handle(c), gonvml.SUCCESS
		}
		for _, ci := range c.slots {
			if ci != nil && ci.uuid == uuid {
				return l.migHandle(ci), gonvml.SUCCESS
			}
		}
	}
	return nil, gonvml.ERROR_NOT_FOUND
}

// lost says whether the session cannot reach the card. What was lost once since it
// began stays lost.
func (l *Library) lost(c *card) bool { return c.lost || c.gone || c.lostAt > l.opened }
