package mock

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
)

// Versions that the driver of every mock node says.
const (
	DriverVersion = "580.65.06"
	NVMLVersion   = "13.580.65.06"
	cudaVersion   = 13000
)

// Node is a machine with cards and their driver. All of it is safe for use by several
// goroutines at once.
type Node struct {
	Name string

	mu      sync.Mutex
	awake   *sync.Cond // the driver answers, or the node is closed
	cards   []*card
	driver  gonvml.Return   // what Init answers
	lacks   map[string]bool // symbols
	silent  bool
	closed  bool
	boot    int // how often it was booted
	made    int // counts what gets a name
	tick    int // counts what happens, so that one can be before another
	sets    []*eventSet
	sharing sharing
	faults  map[string]gonvml.Return // of the library, by method
}

// card is one of its cards, whoever asks for it.
type card struct {
	node    *Node
	model   *Model
	base    *server.Device
	at      int    // its place on the bus, for ever
	uuid    string // for ever
	numa    int
	lost    bool
	gone    bool // not even counted
	lostAt  int
	current int // MIG mode
	pending int

	instances []*instance
	slots     []*compute // MIG devices by index; nil is a hole

	recovery  int // below 0: the driver is too old to say
	ecc       [3]uint64
	eccOff    bool
	remap     [4]int // corrected, uncorrected, pending, failed
	clocks    uint64
	fabric    gonvml.GpuFabricInfo
	links     int  // active NVLinks
	switched  bool // over switches
	faults    map[string]gonvml.Return
	malformed bool // the driver lists a profile of a number that nobody knows
}

// New returns a node with a card of each model, in this order, none of them cut. The
// names of its cards follow from its own. Models: see Models.
func New(name string, models ...string) (*Node, error) {
	n := &Node{Name: name, lacks: map[string]bool{}, faults: map[string]gonvml.Return{}, boot: 1}
	n.awake = sync.NewCond(&n.mu)
	for i, key := range models {
		m, err := model(key)
		if err != nil {
			return nil, err
		}
		c := &card{
			node: n, model: m, base: server.NewDeviceFromConfig(m.config(), i), at: i,
			uuid: "GPU-" + named(name, "card", i), numa: i * 2 / max(len(models), 2),
			faults: map[string]gonvml.Return{}, slots: make([]*compute, m.MaxDevices),
		}
		if len(models) > 1 && m.Architecture != "blackwell" || m.Key == "B200-180GB" {
			c.links, c.switched = links[m.Key], true
		}
		n.cards = append(n.cards, c)
	}
	return n, nil
}

// links are the NVLinks of boards that stand on a switched base board.
var links = map[string]int{"A100-40GB": 12, "A100-80GB": 12, "H100-80GB-SXM": 18, "H200-141GB": 18, "B200-180GB": 18}

// Alike are n models of one name, for New.
func Alike(n int, model string) []string { return slices.Repeat([]string{model}, n) }

// named is a UUID that follows from what it is for.
func named(what ...any) string {
	sum := sha256.Sum256([]byte(fmt.Sprintln(what...)))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// Close ends every call that waits in the node. Nothing answers any more.
func (n *Node) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	n.awake.Broadcast()
	n.stir()
}

// stir wakes whoever waits for events.
func (n *Node) stir() {
	for _, s := range n.sets {
		s.stir()
	}
}

// BootID is the kernel's name of the present boot.
func (n *Node) BootID() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return named(n.Name, "boot", n.boot)
}

// listed are the cards that the driver counts, in the order of their bus.
func (n *Node) listed() []*card {
	return slices.DeleteFunc(slices.Clone(n.cards), func(c *card) bool { return c.gone })
}

func (c *card) pci() string { return fmt.Sprintf("%02x:00.0", 0x10+0x0b*c.at) }

// Files are what an agent reads of the node's proc and sys.
func (n *Node) Files() fs.FS { return files{n} }

type files struct{ n *Node }

// Open opens nothing: these files are read as a whole.
func (f files) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

// ReadFile reads the boot id, or the NUMA node of a card.
func (f files) ReadFile(name string) ([]byte, error) {
	if name == "proc/sys/kernel/random/boot_id" {
		return []byte(f.n.BootID() + "\n"), nil
	}
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	for _, c := range f.n.cards {
		if strings.HasSuffix(name, "devices/0000:"+c.pci()+"/numa_node") {
			return fmt.Appendf(nil, "%d\n", c.numa), nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
